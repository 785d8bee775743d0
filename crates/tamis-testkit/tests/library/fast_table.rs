//! Fast hash tables beside an exact map: every operation, every invariant, every layout.

use std::collections::BTreeMap;

use tamis::internals::fast_table::{
    Accesses, Basic, FastTable, Layout, MAX_BUCKETS, MAX_HASHES, Pruned, TableParams,
};
use tamis::{Digest, Hasher};
use tamis_report::keys::KeyStream;
use tamis_report::memory;
use tamis_report::papers::fast_tables::{Chained, DLeft, Shared};

/// Small pseudorandom numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, range: u64) -> u64 {
        self.0 += 1;
        tamis::internals::address::reduce(Digest(self.0).word(9), range)
    }
}

fn table<V, L: Layout>(buckets: u64, hashes: u32) -> FastTable<u64, V, L> {
    FastTable::new(TableParams::new(buckets, hashes).unwrap(), Hasher::xxh3(3)).unwrap()
}

/// Buckets, hash functions and keys. All keys in one bucket; functions that often agree; few
/// buckets, with counters above 15; as planned; more functions than make sense.
const SHAPES: [(u64, u32, u64); 5] =
    [(1, 3, 40), (5, 16, 24), (13, 3, 120), (256, 3, 100), (300, 10, 80)];

/// 30,000 random operations on each shape; all invariants after each.
fn agrees_with_an_exact_map<L: Layout>() {
    for (buckets, hashes, keys) in SHAPES {
        let mut table = table::<u64, L>(buckets, hashes);
        let mut truth = BTreeMap::new();
        let mut dice = Dice(buckets);
        let mut widest = 0;
        for step in 0..30_000 {
            let key = dice.below(keys);
            // Fills and empties in turn, so that all sizes occur.
            if dice.below(10) < if step / 3000 % 2 == 0 { 6 } else { 4 } {
                assert_eq!(table.insert(key, step).unwrap(), truth.insert(key, step));
            } else {
                assert_eq!(table.remove(&key), truth.remove(&key));
            }
            table.validate().unwrap();
            assert_eq!(table.len(), truth.len());
            let asked = dice.below(keys);
            assert_eq!(table.get(&asked), truth.get(&asked));
            if step % 500 == 0 {
                let found: BTreeMap<u64, u64> = table.iter().map(|(&k, &v)| (k, v)).collect();
                assert_eq!(found, truth);
                assert!((0..keys).all(|key| table.get(&key) == truth.get(&key)));
            }
            widest = table.counters().map_or(0, |counters| widest.max(counters.width()));
        }
        assert!(widest == 0 || widest == if buckets < 256 { 8 } else { 4 }, "{widest}");
        for key in 0..keys {
            assert_eq!(table.remove(&key), truth.remove(&key));
            table.validate().unwrap();
        }
        assert!(table.is_empty() && table.iter().next().is_none());
        if let Some(counters) = table.counters() {
            assert!((0..buckets).all(|bucket| counters.count(bucket) == 0));
        }
    }
}

#[test]
fn basic_agrees_with_an_exact_map() {
    agrees_with_an_exact_map::<Basic>();
}

#[test]
fn pruned_agrees_with_an_exact_map() {
    agrees_with_an_exact_map::<Pruned>();
}

#[test]
fn shared_agrees_with_an_exact_map() {
    agrees_with_an_exact_map::<Shared>();
}

#[test]
fn chained_agrees_with_an_exact_map() {
    agrees_with_an_exact_map::<Chained>();
}

#[test]
fn dleft_agrees_with_an_exact_map() {
    agrees_with_an_exact_map::<DLeft>();
}

fn few_keys<L: Layout>() {
    for keys in 0..3_u64 {
        for (buckets, hashes) in [(1, 1), (1, 16), (2, 2), (3, 5), (1000, 3)] {
            let mut table = table::<String, L>(buckets, hashes);
            assert_eq!((table.get(&0), table.len()), (None, 0));
            assert_eq!(table.remove(&0), None);
            for key in 0..keys {
                assert_eq!(table.insert(key, key.to_string()).unwrap(), None);
                table.validate().unwrap();
            }
            for key in 0..keys {
                let old = table.insert(key, format!("{key} again")).unwrap();
                assert_eq!(old, Some(key.to_string()));
            }
            assert_eq!(table.iter().len() as u64, keys);
            assert_eq!(table.get(&keys), None);
            if let Some(value) = table.get_mut(&0) {
                value.push('!');
                assert_eq!(table.get(&0).unwrap(), "0 again!");
            }
            for key in 0..keys {
                assert!(table.remove(&key).unwrap().contains("again"));
                table.validate().unwrap();
            }
            assert!(table.is_empty() && !table.contains(&0));
        }
    }
}

#[test]
fn no_key_one_key_two_keys() {
    few_keys::<Basic>();
    few_keys::<Pruned>();
    few_keys::<Shared>();
    few_keys::<Chained>();
    few_keys::<DLeft>();
}

#[test]
fn a_shared_node_survives_functions_that_agree() {
    // Keys of which two functions, or all three, hit one bucket of 50: a list that took them twice
    // would be a circle.
    let hasher = Hasher::xxh3(3);
    let agreeing = |key: &u64| {
        let at: Vec<u64> = tamis::internals::address::probes(hasher.digest(key), 3, 50).collect();
        at[0] == at[1] || at[1] == at[2] || at[0] == at[2]
    };
    let keys: Vec<u64> = (0..).filter(agreeing).take(200).collect();
    let mut table = table::<u64, Shared>(50, 3);
    for &key in &keys {
        table.insert(key, key).unwrap();
        table.validate().unwrap();
    }
    let counted: u64 = (0..50).map(|bucket| table.counters().unwrap().count(bucket)).sum();
    assert!(counted <= 2 * 200 && (200..=counted as usize).contains(&table.layout().used()));
    assert!(keys.iter().all(|key| table.get(key) == Some(key)));
    for key in &keys {
        assert_eq!(table.remove(key), Some(*key));
        table.validate().unwrap();
    }
    assert_eq!(table.layout().used(), 0);
}

#[test]
fn counters_stay_exact_when_everybody_has_the_same_bucket() {
    let mut table = table::<(), Pruned>(1, 2);
    for key in 0..300_u64 {
        table.insert(key, ()).unwrap();
    }
    table.validate().unwrap();
    let counters = table.counters().unwrap();
    // A bucket counts a key once, though both functions hit it.
    assert_eq!((counters.count(0), counters.count(1), counters.width()), (300, 0, 16));
    for key in 0..298_u64 {
        table.remove(&key).unwrap();
    }
    assert_eq!(table.counters().unwrap().count(0), 2);
}

fn grows<L: Layout>() {
    let stream = KeyStream::new(1);
    let before = memory::held();
    let mut table =
        FastTable::<u64, [u8; 3], L>::with_capacity_and_hasher(10, Hasher::xxh3(1)).unwrap();
    for key in 0..20_000 {
        table.insert(stream.member(key), [key as u8; 3]).unwrap();
    }
    // 10 doubled until there is room for 20,000.
    assert_eq!(table.params().buckets(), 40 << 11);
    assert_eq!(table.footprint() as i64, 8 * (memory::held() - before));
    table.validate().unwrap();
    assert!((0..20_000).all(|key| table.get(&stream.member(key)) == Some(&[key as u8; 3])));
    assert!((0..20_000).all(|key| table.get(&stream.absent_key(key)).is_none()));
    let copy = table.clone();
    for key in 0..20_000 {
        assert!(table.remove(&stream.member(key)).is_some());
    }
    table.validate().unwrap();
    assert_eq!((table.len(), copy.len()), (0, 20_000));
    copy.validate().unwrap();
}

#[test]
fn tables_grow_and_know_what_they_hold() {
    grows::<Basic>();
    grows::<Pruned>();
    grows::<Shared>();
    grows::<Chained>();
    grows::<DLeft>();
}

#[test]
fn growth_by_hand_moves_every_key() {
    let mut table = table::<u64, Pruned>(3, 3);
    for key in 0..500 {
        table.insert(key, key).unwrap();
    }
    for doubled in 1..10 {
        table.grow().unwrap();
        assert_eq!(table.params().buckets(), 3 << doubled);
        table.validate().unwrap();
    }
    assert!(table.remove(&17).is_some());
    table.validate().unwrap();
}

#[test]
fn a_planned_table_allocates_nothing_for_an_item() {
    let mut table = FastTable::with_capacity(5000).unwrap();
    table.insert(0_u64, 0_u64).unwrap();
    let before = memory::held();
    memory::forget_largest();
    for key in 1..5000_u64 {
        table.insert(key, key).unwrap();
    }
    // Links are reserved at once, so exactly the planned memory is held.
    assert_eq!(memory::held(), before);
    assert_eq!(memory::largest(), 0);
}

#[test]
fn a_batch_is_its_lookups() {
    let stream = KeyStream::new(2);
    for keys in [0, 1, 2, 15, 16, 17, 5000] {
        let mut table = FastTable::with_capacity(keys / 3).unwrap();
        for key in 0..keys {
            table.insert(stream.member(key), key).unwrap();
        }
        let asked: Vec<u64> =
            (0..keys).flat_map(|key| [stream.member(key), stream.absent_key(key)]).collect();
        let mut found = vec![None; asked.len()];
        table.get_many(&asked, &mut found);
        assert!(asked.iter().zip(&found).all(|(key, &found)| table.get(key) == found));
        assert_eq!(found.iter().flatten().count() as u64, keys);
    }
}

#[test]
fn strings_are_asked_as_strings() {
    let mut table = FastTable::with_capacity(2).unwrap();
    table.insert(String::from("apple"), 1).unwrap();
    table.insert(String::from("pear"), 2).unwrap();
    assert_eq!(table.get("apple"), Some(&1));
    assert_eq!(table.get(&String::from("pear")), Some(&2));
    assert_eq!(table.get("plum"), None);
    let mut borrowed = FastTable::with_capacity(2).unwrap();
    borrowed.insert("apple", 1).unwrap();
    let mut found = [None; 3];
    borrowed.get_many(&["pear", "plum", "apple"], &mut found);
    assert_eq!(found, [None, None, Some(&1)]);
}

#[test]
fn a_miss_on_chip_reads_nothing_else() {
    let mut table = table::<(), Pruned>(1 << 16, 3);
    for key in 0..100 {
        table.insert(key, ()).unwrap();
    }
    let mut accesses = Accesses::default();
    for key in 100..10_100 {
        assert_eq!(table.get_traced(&key, &mut accesses), None);
    }
    // All three counters of an absent key are above 0 once in 10^7.
    assert_eq!((accesses.heads, accesses.nodes, accesses.moved), (0, 0, 0));
    assert!((10_000..10_100).contains(&accesses.counters));
}

#[test]
fn params_are_checked() {
    assert!(TableParams::new(0, 3).is_err());
    assert!(TableParams::new(MAX_BUCKETS + 1, 3).is_err());
    assert!(TableParams::new(1, 0).is_err());
    assert!(TableParams::new(1, MAX_HASHES + 1).is_err());
    let most = TableParams::new(MAX_BUCKETS, MAX_HASHES).unwrap();
    assert_eq!(most.doubled(), most);
    assert_eq!(TableParams::for_keys(u64::MAX).buckets(), MAX_BUCKETS);
    assert_eq!(TableParams::for_keys(0).buckets(), 16);
    assert!(FastTable::<u64, u64>::with_capacity(u64::MAX).is_err());
}
