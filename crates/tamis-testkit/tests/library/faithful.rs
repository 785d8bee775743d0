//! Law 8 for the kinds that keep identities, with any number of keys beyond the plan: decoding
//! gives the filter that was encoded, which gives the same bytes again.

use tamis::blocked_rank::BlockedRankParams;
use tamis::dleft::DLeftParams;
use tamis::rank_indexed::{Rank, RankParams, Variant};
use tamis::{BlockedRank, DLeft, Digest, Effort, Hasher, Insert, Limits, Params, RankSet, Stored};

/// Small pseudorandom numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }

    /// Digests of a narrow range, which fall into few buckets, or of the whole range. Some come
    /// often.
    fn digests(&mut self, most: u64) -> Vec<Digest> {
        let (start, shift) = (self.below(1 << 31) << 33, [0, 0, 3, 12, 40][self.below(5) as usize]);
        let often = self.below(3) * 7;
        let number = self.below(most);
        (0..number)
            .map(|_| {
                let spread = (self.below(1 << 31) << 33) >> shift;
                let again = often > 0 && self.below(10) == 0;
                Digest(start.wrapping_add(if again { often } else { spread }))
            })
            .collect()
    }
}

fn check<F: Stored>(filter: &F, case: &str) {
    let values = filter.params().values();
    for bytes in [filter.encode().to_vec(), filter.pack(Effort::Fast).to_vec()] {
        let loaded = F::decode(&bytes, Limits::default()).unwrap();
        assert_eq!(loaded.content_id(), filter.content_id(), "{case}: other content");
        assert_eq!(loaded.label(), filter.label(), "{case}");
        assert_eq!(loaded.params().values(), values, "{case}: another layout");
    }
    let bytes = filter.encode().to_vec();
    let loaded = F::decode(&bytes, Limits::default()).unwrap();
    assert!(loaded.encode().to_vec() == bytes, "{case}: other bytes");
    let packed = filter.pack(Effort::Fast).to_vec();
    let loaded = F::decode(&packed, Limits::default()).unwrap();
    assert!(loaded.pack(Effort::Fast).to_vec() == packed, "{case}: other packed bytes");
}

#[test]
fn a_set_far_past_its_plan_is_loaded_as_it_was_saved() {
    let params = RankParams::new(6, 1, 14, 0, 9, 6).unwrap();
    let mut filter = RankSet::new(params, Hasher::default()).unwrap();
    filter.coarsen(2).unwrap();
    // All of them are identities of the first of six buckets, of 2^12 identities each.
    let unit = u64::MAX / 6 / 4096;
    for number in 0..26 {
        filter.insert_digest(Digest(unit * (number * 82) + unit / 2)).unwrap();
    }
    check(&filter, "26 digests in one bucket");
}

fn rank<V: Variant>(dice: &mut Dice, case: &str) {
    let (buckets, locations) = (1 + dice.below(20), 1 + dice.below(64) as u32);
    let (fingerprint, extra) = (1 + dice.below(16) as u32, 1 + dice.below(5) as u32);
    let groups = if dice.below(2) == 0 { 1 } else { buckets };
    let capacity = 1 + dice.below((4 * buckets * u64::from(locations)).min(200));
    let params = RankParams::new(buckets, locations, fingerprint, extra, capacity, groups).unwrap();
    let make = || Rank::<V>::new(params, Hasher::default()).unwrap();
    let mut filter = make();
    for _ in 0..4 {
        filter.insert_many(&dice.digests(300)).unwrap();
        check(&filter, case);
        match dice.below(6) {
            0 => drop(filter.coarsen(1 + dice.below(3) as u32)),
            1 => drop(filter.grow()),
            2 => drop(filter.shrink()),
            3 => {
                let mut other = make();
                other.insert_many(&dice.digests(300)).unwrap();
                filter.merge(&other).unwrap();
            }
            _ => {}
        }
        check(&filter, case);
    }
}

#[test]
fn rank_indexed_kinds_are_loaded_as_they_were_saved() {
    let mut dice = Dice(15);
    for case in 0..30 {
        rank::<tamis::rank_indexed::Multiset>(&mut dice, &format!("multiset {case}"));
        rank::<tamis::rank_indexed::Distinct>(&mut dice, &format!("set {case}"));
        rank::<tamis::rank_indexed::Counters>(&mut dice, &format!("counting {case}"));
        rank::<tamis::rank_indexed::Values>(&mut dice, &format!("map {case}"));
    }
}

#[test]
fn dleft_is_loaded_as_it_was_saved() {
    let mut dice = Dice(16);
    for case in 0..50 {
        let params = DLeftParams::new(
            1 + dice.below(8) as u32,
            1 + dice.below(20),
            1 + dice.below(15) as u32,
            1 + dice.below(16) as u32,
            dice.below(5) as u32,
        );
        let make = || DLeft::new(params.clone().unwrap(), Hasher::default()).unwrap();
        let mut filter = make();
        for _ in 0..4 {
            filter.insert_many(&dice.digests(400)).unwrap();
            match dice.below(5) {
                0 => drop(filter.recut(1 + dice.below(3) as u32)),
                1 => drop(filter.grow()),
                2 => drop(filter.shrink()),
                3 => {
                    let mut other = make();
                    other.insert_many(&dice.digests(300)).unwrap();
                    filter.merge(&other).unwrap();
                }
                _ => {}
            }
            check(&filter, &format!("dleft {case}"));
        }
    }
}

#[test]
fn blocked_rank_is_loaded_as_it_was_saved() {
    let mut dice = Dice(17);
    let mut tried = 0;
    while tried < 50 {
        let (blocks, capacity) = (1 + dice.below(20), 1 + dice.below(800));
        let (locations, cells) = (1 + dice.below(64) as u32, 1 + dice.below(49) as u32);
        let width = 1 + dice.below(16) as u32;
        let Ok(params) = BlockedRankParams::new(512, blocks, locations, cells, width, capacity)
        else {
            continue;
        };
        tried += 1;
        let make = || BlockedRank::new(params, Hasher::default()).unwrap();
        let mut filter = make();
        for _ in 0..4 {
            filter.insert_many(&dice.digests(400)).unwrap();
            match dice.below(5) {
                1 => drop(filter.grow()),
                2 => drop(filter.shrink()),
                3 => {
                    let mut other = make();
                    other.insert_many(&dice.digests(300)).unwrap();
                    filter.merge(&other).unwrap();
                }
                _ => {}
            }
            let case = format!("blocked-rank {params:?}");
            check(&filter, &case);
            let bytes = filter.encode().to_vec();
            let loaded = BlockedRank::decode(&bytes, Limits::default()).unwrap();
            assert!(loaded.encode().to_vec() == bytes, "{case}: other bytes in place");
            assert_eq!(loaded.content_id(), filter.content_id(), "{case}");
        }
    }
}
