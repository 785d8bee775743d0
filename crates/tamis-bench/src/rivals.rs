//! The crates that people use now. All get the digest in place of a hash, where they allow it.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use anyhow::{Result, anyhow};
use autoscale_cuckoo_filter::{CuckooFilter, CuckooFilterBuilder};
use tamis::Digest;

use crate::lineup::{Entry, Side};
use crate::measure::{Case, Round, Subject, build, fill};

pub(crate) static ENTRIES: &[Entry] = &[
    rival("fastbloom", "", |case| {
        fill(case, case.planned, || {
            let builder = fastbloom::BloomFilter::with_false_pos(case.rate);
            let hasher = BuildHasherDefault::<Through>::default();
            Ok(FastBloom(builder.hasher(hasher).expected_items(case.planned as usize)))
        })
    }),
    rival("sbbf-rs-safe", "takes whole bits per key: the fewest that meet the rate", |case| {
        let bits = split_block_bits(case.rate);
        let make = || Ok(SplitBlock(sbbf_rs_safe::Filter::new(bits, case.planned as usize)));
        fill(case, case.planned, make)
    }),
    rival("xorf fuse8", FUSE, |case| {
        build(case, |keys| {
            xorf::BinaryFuse8::try_from_iterator(keys.iter().map(|digest| digest.0))
                .map(Fuse)
                .map_err(|error| anyhow!(error))
        })
    }),
    rival("xorf fuse16", FUSE, |case| {
        build(case, |keys| {
            xorf::BinaryFuse16::try_from_iterator(keys.iter().map(|digest| digest.0))
                .map(Fuse)
                .map_err(|error| anyhow!(error))
        })
    }),
    rival("qfilter", "slots are a power of two", |case| quotient(case, case.planned, 1.0)),
    rival("qfilter full", FULL, |case| quotient(case, fullest(case), 1.0)),
    rival("qfilter coarse", COARSE, |case| quotient(case, fullest(case), 2.0)),
    rival("cuckoo", CUCKOO, |case| cuckoo(case, case.planned, 1.0)),
    rival("cuckoo full", FULL, |case| cuckoo(case, fullest(case), 1.0)),
    rival("cuckoo coarse", COARSE, |case| cuckoo(case, fullest(case), 4.0)),
    rival("HashSet<u64>", "keeps whole digests", |case| {
        fill(case, case.planned, || {
            let hasher = BuildHasherDefault::<Through>::default();
            Ok(Set(HashSet::with_capacity_and_hasher(case.planned as usize, hasher)))
        })
    }),
];

const FUSE: &str = "built once: insert is the building, over keys; mixes the digest with its seed";
const CUCKOO: &str = "autoscale_cuckoo_filter: buckets are a power of two; hashes fingerprints, here by one multiplication";
const COARSE: &str = "as full, with the longest fingerprints whose rate is not below the one asked for: they come in whole bits";
const FULL: &str = "with the most keys, up to those asked for, that fill 95% of a power of two";

const fn rival(name: &'static str, note: &'static str, run: fn(&Case) -> Result<Round>) -> Entry {
    Entry { name, side: Side::Rival, note, run }
}

/// The most keys, up to the planned ones, that fill 95% of a power of two.
fn fullest(case: &Case) -> u64 {
    let full = |slots: u64| slots * 19 / 20;
    (6..40).map(|log| full(1 << log)).take_while(|&keys| keys <= case.planned).last().unwrap_or(1)
}

fn quotient(case: &Case, planned: u64, coarser: f64) -> Result<Round> {
    fill(case, planned, || Ok(Quotient(qfilter::Filter::new(planned, case.rate * coarser)?)))
}

fn cuckoo(case: &Case, planned: u64, coarser: f64) -> Result<Round> {
    fill(case, planned, || {
        let builder = CuckooFilterBuilder::<Times>::default();
        let builder = builder.initial_capacity(planned as usize);
        Ok(Cuckoo(builder.false_positive_probability(case.rate * coarser).finish()))
    })
}

/// The fewest whole bits per key with which split blocks of 256 bits meet a rate.
fn split_block_bits(rate: f64) -> usize {
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
    (1..64).find(|&bits| rate_of(bits) <= rate).unwrap_or(64)
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

struct FastBloom(fastbloom::BloomFilter<BuildHasherDefault<Through>>);
struct SplitBlock(sbbf_rs_safe::Filter);
struct Fuse<F>(F);
struct Quotient(qfilter::Filter);
struct Cuckoo(CuckooFilter<u64, Times>);
struct Set(HashSet<u64, BuildHasherDefault<Through>>);

impl Subject for FastBloom {
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

impl Subject for Cuckoo {
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

impl Subject for Set {
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
