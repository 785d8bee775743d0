//! The crates that people use now. All get the digest in place of a hash, where they allow it;
//! with texts each hashes as it does by default.
//!
//! Left out, of those on the package index: `cuckoofilter` and `atomic-cuckoo-filter`, whose
//! fingerprints have 8 bits (3%) or 16 (0.01%) and nothing near the rates here;
//! `scalable_cuckoo_filter`, which takes three times as long as the fork of it that is in;
//! `bloomfilter`, `growable-bloom-filter` and other plain Bloom filters, for which `fastbloom`
//! stands; `ribbon-filter` and `quotient-filter`, of the families for which `xorf` and
//! `qfilter` stand. (C++'s `boost::bloom` needs Boost 1.89, which Debian does not have.)

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use anyhow::{Result, anyhow};
use autoscale_cuckoo_filter::{CuckooFilter, CuckooFilterBuilder, MuseAirHasher};
use tamis::Digest;
use tamis_bench::record::Side;
use xorf::{BinaryFuse8, BinaryFuse16};

use crate::lineup::{Entry, Step};
use crate::measure::{Case, Round, Subject, build, build_texts, fill, fill_texts};

const FUSE: &str = "built once: insert is the building, over keys; mixes the digest with its seed; texts by std's hash";
const AS_ASKED: &str = "for the keys asked for, in a power of two that may be half empty";
const FULL: &str = "with the most keys, up to those asked for, that fill 95% of a power of two, and fingerprints of that many bits; cuckoo is autoscale_cuckoo_filter";
/// How much of a power of two is filled.
const LOAD: f64 = 0.95;

/// All at the asked rate, or, where fingerprints have whole bits, on both sides of it.
pub(crate) fn entries(keys: u64, rate: f64) -> Vec<Entry> {
    let rival = |name: &str, note, target_rate, run: fn(&Case<'_>) -> Result<Round>| {
        Entry::new(name, Side::Rival, note, target_rate, run)
    };
    let mut entries = vec![rival("fastbloom", "", Some(rate), |case| {
        let builder = || fastbloom::BloomFilter::with_false_pos(case.rate);
        let keys = case.planned as usize;
        let mut round = fill(case, case.planned, || {
            let hasher = BuildHasherDefault::<Through>::default();
            Ok(FastBloom(builder().hasher(hasher).expected_items(keys)))
        })?;
        let make = || Ok(FastBloom(builder().expected_items(keys)));
        round.times.extend(fill_texts(case, case.planned, make)?);
        Ok(round)
    })];
    let (bits, split_block_rate) = split_blocks(rate);
    let note = "takes hashes alone, and whole bits per key: those with the nearest rate";
    let run = move |case: &Case<'_>| {
        let make = || Ok(SplitBlock(sbbf_rs_safe::Filter::new(bits, case.planned as usize)));
        fill(case, case.planned, make)
    };
    entries.push(Entry::new("sbbf-rs-safe", Side::Rival, note, Some(split_block_rate), run));
    for (step, more) in [(Step::Coarse, 0), (Step::Fine, 1)] {
        // A fingerprint is compared with as many others as the load says, on average.
        let bits = whole_bits(LOAD / rate) + more;
        let target = 0.5_f64.powi(bits);
        let run = move |case: &Case<'_>| quotient(case, fullest(keys), target);
        let name = format!("qfilter {bits}");
        entries.push(Entry::new(&name, Side::Rival, FULL, Some(target), run).on(step));

        // And in a cuckoo filter with two buckets of four.
        let bits = whole_bits(8.0 * LOAD / rate) + more;
        // The crate halves the rate that it is asked for.
        let target = 16.0 * 0.5_f64.powi(bits);
        let run = move |case: &Case<'_>| cuckoo(case, fullest(keys), target);
        let name = format!("cuckoo {bits}");
        entries.push(Entry::new(&name, Side::Rival, FULL, Some(target), run).on(step));
    }
    entries.extend([
        rival("xorf fuse8", FUSE, None, fuse::<BinaryFuse8>).built_once(),
        rival("xorf fuse16", FUSE, None, fuse::<BinaryFuse16>).built_once(),
        rival("qfilter as asked", AS_ASKED, Some(rate), |case| {
            quotient(case, case.planned, case.rate)
        }),
        rival("cuckoo as asked", AS_ASKED, Some(rate), |case| {
            cuckoo(case, case.planned, case.rate)
        }),
        rival("HashSet<u64>", "keeps whole digests, and of texts their addresses", None, |case| {
            let keys = case.planned as usize;
            let mut round = fill(case, case.planned, || {
                let hasher = BuildHasherDefault::<Through>::default();
                Ok(Set(HashSet::with_capacity_and_hasher(keys, hasher)))
            })?;
            let make = || Ok(Set(HashSet::with_capacity(keys)));
            round.times.extend(fill_texts(case, case.planned, make)?);
            Ok(round)
        }),
    ]);
    entries
}

/// The most bits whose power of two is not above `most`.
fn whole_bits(most: f64) -> i32 {
    // Both crates need some.
    (most.log2().floor() as i32).max(5)
}

/// The most keys, up to `keys`, that fill 95% of a power of two.
fn fullest(keys: u64) -> u64 {
    let full = |slots: u64| (slots as f64 * LOAD) as u64;
    (6..40).map(|log| full(1 << log)).take_while(|&full| full <= keys).last().unwrap_or(1)
}

fn fuse<F>(case: &Case) -> Result<Round>
where
    F: xorf::Filter<u64> + for<'a> TryFrom<&'a [u64], Error = &'static str>,
{
    let of = |hashes: Vec<u64>| F::try_from(&hashes[..]).map(Fuse).map_err(|why| anyhow!(why));
    let mut round = build(case, |keys| of(keys.iter().map(|digest| digest.0).collect()))?;
    let texts = build_texts(case, |keys| of(keys.iter().map(|text| hash(text)).collect()))?;
    round.times.extend(texts);
    Ok(round)
}

/// As the crate's `HashProxy` does, which does not take these filters.
fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}

fn quotient(case: &Case, planned: u64, rate: f64) -> Result<Round> {
    let make = || Ok(Quotient(qfilter::Filter::new(planned, rate)?));
    let mut round = fill(case, planned, make)?;
    round.times.extend(fill_texts(case, planned, make)?);
    Ok(round)
}

/// `autoscale_cuckoo_filter`. Fingerprints are hashed once more: of digests by one multiplication,
/// of texts by the quickest of its hashes that needs no build for one machine.
fn cuckoo(case: &Case, planned: u64, rate: f64) -> Result<Round> {
    let mut round = fill(case, planned, || {
        let builder = CuckooFilterBuilder::<Times>::default().initial_capacity(planned as usize);
        Ok(Cuckoo::<u64, _>(builder.false_positive_probability(rate).finish()))
    })?;
    round.times.extend(fill_texts(case, planned, || {
        let builder = CuckooFilterBuilder::default().initial_capacity(planned as usize);
        Ok(Cuckoo::<str, _>(builder.false_positive_probability(rate).finish()))
    })?);
    Ok(round)
}

/// The whole bits per key with which split blocks of 256 bits come nearest to a rate, and the rate
/// that they have.
fn split_blocks(rate: f64) -> (usize, f64) {
    let rate_of = |bits: usize| {
        // A block of eight words has a Poisson number of keys, each of which sets a bit of every
        // word.
        let mean = 256.0 / bits as f64;
        let mut chance = (-mean).exp();
        let mut sum = 0.0;
        for keys in 1..=1000 {
            chance *= mean / f64::from(keys);
            sum += chance * (1.0 - (31.0_f64 / 32.0).powi(keys)).powi(8);
        }
        sum
    };
    let distance = |(_, near): &(usize, f64)| (near / rate).ln().abs();
    let all = (1..64).map(|bits| (bits, rate_of(bits)));
    all.min_by(|one, other| distance(one).total_cmp(&distance(other))).unwrap_or((64, 0.0))
}

/// A hasher for keys that are digests already.
#[derive(Default)]
struct Through(u64);

impl Hasher for Through {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// The cheapest hasher that spreads fingerprints.
#[derive(Clone, Default)]
struct Times(u64);

impl Hasher for Times {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, value: u64) {
        self.0 = value.wrapping_mul(0x9e3779b97f4a7c15);
    }
}

struct FastBloom<S>(fastbloom::BloomFilter<S>);
struct SplitBlock(sbbf_rs_safe::Filter);
struct Fuse<F>(F);
struct Quotient(qfilter::Filter);
struct Cuckoo<K: ?Sized, H>(CuckooFilter<K, H>);
struct Set<K, S>(HashSet<K, S>);

impl<S: BuildHasher> Subject for FastBloom<S> {
    fn insert(&mut self, digest: Digest) -> bool {
        self.0.insert_hash(digest.0);
        true
    }

    fn contains(&self, digest: Digest) -> bool {
        self.0.contains_hash(digest.0)
    }
}

impl Subject for SplitBlock {
    fn insert(&mut self, digest: Digest) -> bool {
        self.0.insert_hash(digest.0);
        true
    }

    fn contains(&self, digest: Digest) -> bool {
        self.0.contains_hash(digest.0)
    }
}

impl<F: xorf::Filter<u64>> Subject for Fuse<F> {
    fn insert(&mut self, _: Digest) -> bool {
        false
    }

    fn contains(&self, digest: Digest) -> bool {
        self.0.contains(&digest.0)
    }
}

impl Subject for Quotient {
    const REMOVES: bool = true;

    /// Equal fingerprints are kept as often as they come: otherwise removing one key would lose
    /// another.
    fn insert(&mut self, digest: Digest) -> bool {
        self.0.insert_fingerprint(true, digest.0).is_ok()
    }

    fn contains(&self, digest: Digest) -> bool {
        self.0.contains_fingerprint(digest.0)
    }

    fn remove(&mut self, digest: Digest) -> bool {
        self.0.remove_fingerprint(digest.0)
    }
}

impl Subject for Cuckoo<u64, Times> {
    const REMOVES: bool = true;

    fn insert(&mut self, digest: Digest) -> bool {
        self.0.add_hash(digest.0);
        true
    }

    fn contains(&self, digest: Digest) -> bool {
        self.0.contains_hash(digest.0)
    }

    fn remove(&mut self, digest: Digest) -> bool {
        self.0.remove_hash(digest.0)
    }
}

impl Subject for Set<u64, BuildHasherDefault<Through>> {
    const REMOVES: bool = true;

    fn insert(&mut self, digest: Digest) -> bool {
        self.0.insert(digest.0)
    }

    fn contains(&self, digest: Digest) -> bool {
        self.0.contains(&digest.0)
    }

    fn remove(&mut self, digest: Digest) -> bool {
        self.0.remove(&digest.0)
    }
}

impl<S: BuildHasher> Subject<&str> for FastBloom<S> {
    fn insert(&mut self, text: &str) -> bool {
        self.0.insert(text);
        true
    }

    fn contains(&self, text: &str) -> bool {
        self.0.contains(text)
    }
}

impl<F: xorf::Filter<u64>> Subject<&str> for Fuse<F> {
    fn insert(&mut self, _: &str) -> bool {
        false
    }

    fn contains(&self, text: &str) -> bool {
        self.0.contains(&hash(text))
    }
}

impl Subject<&str> for Quotient {
    const REMOVES: bool = true;

    fn insert(&mut self, text: &str) -> bool {
        self.0.insert_duplicated(text).is_ok()
    }

    fn contains(&self, text: &str) -> bool {
        self.0.contains(text)
    }

    fn remove(&mut self, text: &str) -> bool {
        self.0.remove(text)
    }
}

impl Subject<&str> for Cuckoo<str, MuseAirHasher> {
    const REMOVES: bool = true;

    fn insert(&mut self, text: &str) -> bool {
        self.0.add(text);
        true
    }

    fn contains(&self, text: &str) -> bool {
        self.0.contains(text)
    }

    fn remove(&mut self, text: &str) -> bool {
        self.0.remove(text)
    }
}

impl<'a, S: BuildHasher> Subject<&'a str> for Set<&'a str, S> {
    const REMOVES: bool = true;

    fn insert(&mut self, text: &'a str) -> bool {
        self.0.insert(text)
    }

    fn contains(&self, text: &'a str) -> bool {
        self.0.contains(text)
    }

    fn remove(&mut self, text: &'a str) -> bool {
        self.0.remove(text)
    }
}
