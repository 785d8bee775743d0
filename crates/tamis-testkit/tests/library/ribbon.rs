//! Ribbon filters: their size, every key found whatever the digests, one thread or several, and
//! the measured loads that plans rely on.

use std::sync::Arc;

use tamis::internals::ribbon::model::LOADS;
use tamis::ribbon::RibbonParams;
use tamis::wire::{Encoding, Object};
use tamis::{
    Digest, Filter, Goal, Hasher, Kind, Label, Limits, Minimise, Params, Ribbon, Size, Stored,
    WireError, choose,
};
use tamis_report::keys::KeyStream;
use tamis_report::memory;
use tamis_testkit::bombs;

fn digests(seed: u64, keys: u64) -> Vec<Digest> {
    KeyStream::new(seed).members(Hasher::default(), 0..keys).collect()
}

fn plan(keys: u64, rate: f64) -> RibbonParams {
    Ribbon::plan(&Goal::rate(keys, rate)).unwrap()
}

fn build(params: RibbonParams, keys: &[Digest], threads: usize) -> Ribbon {
    let label = Label::planned(Hasher::default(), keys.len() as u64);
    Ribbon::build_in_parallel(params, label, keys, threads).unwrap()
}

fn holds_all(filter: &Ribbon, keys: &[Digest]) -> bool {
    keys.iter().all(|&key| filter.contains_digest(key))
}

/// With a million keys: at most 2% more than log2(1/rate), exactly as predicted, no key lost and
/// none listed.
#[test]
fn a_million_keys_take_hardly_more_than_the_rate_needs() {
    const KEYS: u64 = 1_000_000;
    let keys = digests(1, KEYS);
    for rate in [0.01_f64, 0.0001] {
        let params = plan(KEYS, rate);
        let filter = build(params, &keys, 2);
        assert!(holds_all(&filter, &keys), "{rate}: a key is lost");
        let bits = filter.footprint() as f64 / KEYS as f64;
        let predicted = Ribbon::predict(&params, KEYS);
        assert_eq!(bits, predicted.bits_per_key, "{rate}");
        let excess = bits / -rate.log2();
        println!("{rate}: {bits:.4} bits per key, {excess:.4} of log2(1/rate)");
        assert!(excess <= 1.02, "{rate}: {excess}");
        assert!(predicted.rate <= rate && filter.rate() <= rate * 1.002, "{rate}");
        assert_eq!(filter.overflow(), Some(0), "{rate}");
    }
}

/// Any rate takes at most 0.086 bits for a mixture of columns, and 1% for rows and codes; where a
/// row has few bits, its codes weigh more.
#[test]
fn any_rate_is_within_what_its_documentation_says() {
    const KEYS: u64 = 400_000;
    for step in 1..120 {
        let rate = 0.9 * f64::powf(0.88, f64::from(step));
        let ideal = -rate.log2();
        let bits = Ribbon::predict(&plan(KEYS, rate), KEYS).bits_per_key;
        assert!(bits <= 1.01 * ideal + 0.087 + 0.02, "{rate}: {bits} for {ideal}");
        assert!(bits >= ideal, "{rate}: {bits} for {ideal}");
    }
}

/// What plans rely on: keys bumped at a load, and how much that varies.
#[test]
fn loads_bump_what_was_measured() {
    const KEYS: u64 = 131_072;
    const FILTERS: u64 = 6;
    for load in LOADS {
        let rows = (KEYS as f64 / load.load) as u64 / 64 * 64 + 64;
        let load_here = KEYS as f64 / (rows - 64) as f64;
        let second = RibbonParams::new(8 << 16, [rows, 0, 0], 0).unwrap();
        let bumped = |seed| build(second, &digests(seed, KEYS), 1).overflow().unwrap() as f64;
        let mean = (1..=FILTERS).map(bumped).sum::<f64>() / FILTERS as f64;
        let expected = load.bumped * KEYS as f64;
        let deviation = (load.variance * KEYS as f64 / FILTERS as f64).sqrt();
        println!("load {load_here:.4}: {mean:.0} bumped, {expected:.0} +- {deviation:.0} expected");
        // The share itself is known to a few keys in ten thousand.
        let most = 4.0 * deviation + 2e-4 * KEYS as f64;
        assert!((mean - expected).abs() <= most, "{load:?}: {mean} for {expected}");
    }
}

/// Sizes of which each ends otherwise: nothing, a list, one level, two, three, several segments.
#[test]
fn sizes_from_none_to_many_hold_all_keys_in_the_predicted_memory() {
    for keys in [0, 1, 2, 3, 7, 8, 9, 16, 17, 40, 100, 127, 500, 1000, 3000, 20_000, 600_000] {
        for rate in [0.7, 0.5, 0.01, 1e-4, 1e-9] {
            let params = plan(keys, rate);
            let members = digests(keys + 3, keys);
            let filter = build(params, &members, 1);
            assert!(holds_all(&filter, &members), "{keys} {rate}");
            let predicted = Ribbon::predict(&params, keys).bits_per_key * keys.max(1) as f64;
            assert_eq!(filter.footprint() as f64, predicted.round(), "{keys} {rate}");
            filter.validate().unwrap();
        }
    }
}

/// Digests that no hash function makes: equal, in a row, in one place. The list takes what the
/// levels do not.
#[test]
fn no_digest_is_lost_whatever_the_digests_are() {
    const KEYS: u64 = 5000;
    let random = digests(1, KEYS);
    let sets: [Vec<Digest>; 6] = [
        vec![Digest(7); KEYS as usize],
        (0..KEYS).map(Digest).collect(),
        (0..KEYS).map(|key| Digest(u64::MAX - key * 3)).collect(),
        (0..KEYS).map(|key| Digest(key << 50 | 1)).collect(),
        random.iter().chain(&random).chain(&random[..9]).copied().collect(),
        vec![Digest(0), Digest(u64::MAX)],
    ];
    for planned in [2, 100, KEYS] {
        for (number, keys) in sets.iter().enumerate() {
            for rate in [0.6, 0.01] {
                let filter = build(plan(planned, rate), keys, 1);
                assert!(holds_all(&filter, keys), "set {number} planned for {planned}");
                assert_eq!(filter.keys(), keys.len() as u64);
                let mut copy = Ribbon::from_bytes(&filter.to_bytes()).unwrap();
                assert_eq!(copy, filter);
                copy.clear();
                assert!(!holds_all(&copy, &keys[..1]), "a cleared filter has keys");
            }
        }
    }
    // A copy of a key takes no room.
    let [once, often] = [&random[..], &sets[4]].map(|keys| build(plan(KEYS, 0.01), keys, 1));
    assert_eq!(once.content_id(), often.content_id());
}

#[test]
fn more_keys_than_planned_are_listed() {
    let keys = digests(5, 40_000);
    for planned in [20_000, 37_000] {
        let filter = build(plan(planned, 0.001), &keys, 1);
        assert!(holds_all(&filter, &keys));
        assert!(filter.overflow().unwrap() > 0);
        assert!(filter.rate() <= 0.001);
        assert_eq!(Ribbon::from_bytes(&filter.to_bytes()).unwrap(), filter);
    }
}

#[test]
fn threads_and_order_make_the_same_bytes() {
    let mut keys = digests(9, 900_000);
    let params = plan(keys.len() as u64, 0.02);
    let one = build(params, &keys, 1).to_bytes();
    for threads in [0, 2, 3, 16] {
        assert!(build(params, &keys, threads).to_bytes() == one, "{threads} threads");
    }
    keys.reverse();
    assert!(build(params, &keys, 1).to_bytes() == one, "another order");
}

/// Beside the filter: 8 bytes a key, those of the keys that were bumped, and 4 MiB of rows.
#[test]
fn building_takes_the_memory_that_is_documented() {
    const KEYS: u64 = 1_000_000;
    let keys = digests(2, KEYS);
    let params = plan(KEYS, 0.01);
    let (filter, peak) = memory::peak_of(|| build(params, &keys, 1));
    let most = filter.footprint() / 8 + 8 * KEYS + 8 * KEYS / 20 + (4 << 20) + (64 << 10);
    assert!(peak <= most, "{peak} bytes, {most} documented");
}

/// Absent keys at many rates, fractions of columns among them.
#[test]
fn rates_are_exact_for_any_mixture_of_columns() {
    const KEYS: u64 = 30_000;
    const ABSENT: u64 = 400_000;
    let keys = digests(1, KEYS);
    let absent: Vec<Digest> = KeyStream::new(1).absent_keys(Hasher::default(), 0..ABSENT).collect();
    for rate in [0.9, 0.51, 0.4, 0.26, 0.1, 0.03, 0.01] {
        let filter = build(plan(KEYS, rate), &keys, 1);
        let yes = absent.iter().filter(|&&digest| filter.contains_digest(digest)).count() as f64;
        let expected = filter.rate() * ABSENT as f64;
        let deviation = (expected * (1.0 - filter.rate())).sqrt();
        assert!((yes - expected).abs() <= 4.5 * deviation, "{rate}: {yes} for {expected}");
        assert!(filter.rate() <= rate * 1.005);
    }
}

#[test]
fn hostile_params_and_content_are_refused_by_name() {
    let refused = |values: &[u64]| RibbonParams::from_values(values).unwrap_err().to_string();
    let named = "0, or a multiple of 64 from 128 to 2^40";
    assert_eq!(
        refused(&[0, 128, 0, 0, 0]),
        "param columns must be 1 to 2^22, which are 64 columns, not 0"
    );
    assert!(refused(&[(64 << 16) + 1, 128, 0, 0, 0]).starts_with("param columns"));
    assert_eq!(refused(&[1, 64, 0, 0, 0]), format!("param rows must be {named}, not 64"));
    assert_eq!(refused(&[1, 0, 130, 0, 0]), format!("param second must be {named}, not 130"));
    let most = (1_u64 << 40) + 64;
    assert_eq!(refused(&[1, 0, 0, most, 0]), format!("param third must be {named}, not {most}"));
    assert!(refused(&[1, 0, 0, 0, 1 << 41]).starts_with("param listed"));

    let file = |params: &[u64], words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let section = (0, Encoding::Raw, bytes.clone(), bytes.len() as u64);
        bombs::file(Object::Filter, Kind::Ribbon, params, &[section])
    };
    let read = |bytes: &[u8]| Ribbon::decode(bytes, Limits::default());
    // Two blocks of one column, a word of codes for one bucket, a list.
    assert!(read(&file(&[1 << 16, 128, 0, 0, 2], &[5, 6, 3, 1, 2])).is_ok());
    let fault = |words: &[u64]| read(&file(&[1 << 16, 128, 0, 0, 2], words)).unwrap_err();
    let list = fault(&[5, 6, 3, 2, 2]).to_string();
    assert!(list.contains("the list of digests does not rise"), "{list}");
    let codes = fault(&[5, 6, 4, 1, 2]).to_string();
    assert!(codes.contains("codes are set beyond the last bucket"), "{codes}");
    for words in [&[5, 6, 3, 1][..], &[5, 6, 3, 1, 2, 3]] {
        assert!(matches!(fault(words), WireError::Value { .. }), "{:?}", fault(words));
    }
    // In place, where only the header is checked, nothing panics.
    let shared: tamis::SharedBytes =
        Arc::new(file(&[1 << 16, 128, 0, 0, 2], &[5, 6, u64::MAX, 2, 2]));
    if let Ok(opened) = Ribbon::open(&shared) {
        assert!(opened.validate().is_err());
        let yes = (0..1000).filter(|digest| opened.contains_digest(Digest(digest << 50))).count();
        assert!(yes < 1000);
        assert!((0.0..=1.0).contains(&opened.rate()));
    }
}

/// The planner says when other kinds that are built once take less memory.
#[test]
fn the_planner_takes_it_for_many_keys_and_others_for_few() {
    let smallest = |keys, rate| {
        let plans = choose(&Goal::rate(keys, rate).minimise(Minimise::Memory)).unwrap();
        plans[0].params.kind()
    };
    for rate in [0.3, 0.05, 0.01, 0.001, 1e-4] {
        assert_eq!(smallest(100_000, rate), Kind::Ribbon, "{rate}");
        assert_eq!(smallest(10_000_000, rate), Kind::Ribbon, "{rate}");
        assert_ne!(smallest(100, rate), Kind::Ribbon, "{rate}");
    }
    // What memory allows is used.
    let held = |bits| {
        let params = Ribbon::plan(&Goal::sized(50_000, Size::BitsPerKey(bits))).unwrap();
        Ribbon::predict(&params, 50_000)
    };
    for bits in [1.5, 7.0, 10.0, 33.3] {
        let predicted = held(bits);
        assert!(
            predicted.bits_per_key <= bits + 512.0 / 5e4 && predicted.bits_per_key > bits - 0.01
        );
        assert!(-predicted.rate.log2() > 0.96 * bits - 0.12, "{predicted:?}");
    }
}
