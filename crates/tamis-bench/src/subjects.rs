//! The subjects: our filters and the crates that people use now, behind the same three closures.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Instant;

use anyhow::{Result, ensure};
use tamis::{BlockedBloom, Bloom, CountingBloom, Digest, Insert};
use tamis_report::memory;

/// Who takes part.
#[derive(Clone, Copy)]
pub(crate) enum Rival {
    Bloom,
    Blocked,
    Counting,
    FastBloom,
    SplitBlock,
    HashSet,
}

/// One round of one subject.
pub(crate) struct Subject {
    pub(crate) held_bits: i64,
    pub(crate) measured_rate: f64,
    pub(crate) insert_ns: f64,
    pub(crate) hit_ns: f64,
    pub(crate) miss_ns: f64,
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

impl Rival {
    pub(crate) const ALL: [Self; 6] = [
        Self::Bloom,
        Self::Blocked,
        Self::Counting,
        Self::FastBloom,
        Self::SplitBlock,
        Self::HashSet,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bloom => "tamis bloom",
            Self::Blocked => "tamis blocked",
            Self::Counting => "tamis counting",
            Self::FastBloom => "fastbloom",
            Self::SplitBlock => "sbbf-rs-safe",
            Self::HashSet => "HashSet<u64>",
        }
    }

    pub(crate) fn run(
        self,
        members: &[Digest],
        strangers: &[Digest],
        rate: f64,
    ) -> Result<Subject> {
        let keys = members.len();
        match self {
            Self::Bloom => measure(
                members,
                strangers,
                || Ok(Bloom::with_rate(keys as u64, rate)?),
                |filter, digest| filter.insert_digest(digest).is_ok(),
                tamis::Filter::contains_digest,
            ),
            Self::Blocked => measure(
                members,
                strangers,
                || Ok(BlockedBloom::with_rate(keys as u64, rate)?),
                |filter, digest| filter.insert_digest(digest).is_ok(),
                tamis::Filter::contains_digest,
            ),
            Self::Counting => measure(
                members,
                strangers,
                || Ok(CountingBloom::with_rate(keys as u64, rate)?),
                |filter, digest| filter.insert_digest(digest).is_ok(),
                tamis::Filter::contains_digest,
            ),
            Self::FastBloom => measure(
                members,
                strangers,
                || {
                    let builder = fastbloom::BloomFilter::with_false_pos(rate);
                    let hasher = BuildHasherDefault::<Through>::default();
                    Ok(builder.hasher(hasher).expected_items(keys))
                },
                |filter, digest| filter.insert_hash(digest.0),
                |filter, digest| filter.contains_hash(digest.0),
            ),
            Self::SplitBlock => measure(
                members,
                strangers,
                // It takes whole bits per key only; 11 is its setting for about 1%.
                || Ok(sbbf_rs_safe::Filter::new(11, keys)),
                |filter, digest| filter.insert_hash(digest.0),
                |filter, digest| filter.contains_hash(digest.0),
            ),
            Self::HashSet => measure(
                members,
                strangers,
                || {
                    let hasher = BuildHasherDefault::<Through>::default();
                    Ok(HashSet::with_capacity_and_hasher(keys, hasher))
                },
                |set: &mut HashSet<u64, _>, digest| set.insert(digest.0),
                |set, digest| set.contains(&digest.0),
            ),
        }
    }
}

/// Builds, verifies, then times. `insert` and `contains` are compiled into each subject's own loops.
fn measure<F>(
    members: &[Digest],
    strangers: &[Digest],
    make: impl Fn() -> Result<F>,
    insert: impl Fn(&mut F, Digest) -> bool,
    contains: impl Fn(&F, Digest) -> bool,
) -> Result<Subject> {
    let before = memory::held();
    let mut filter = make()?;
    let held_bits = (memory::held() - before) * 8;
    let insert_ns = time(members, |digest| insert(&mut filter, digest)).1;
    let missing = members.iter().filter(|&&digest| !contains(&filter, digest)).count();
    ensure!(missing == 0, "{missing} keys are lost");
    let (_, hit_ns) = time(members, |digest| contains(&filter, digest));
    let (passed, miss_ns) = time(strangers, |digest| contains(&filter, digest));
    let measured_rate = passed as f64 / strangers.len() as f64;
    Ok(Subject { held_bits, measured_rate, insert_ns, hit_ns, miss_ns })
}

/// How often the answer was yes, and the nanoseconds for one.
fn time(digests: &[Digest], mut operation: impl FnMut(Digest) -> bool) -> (u64, f64) {
    let start = Instant::now();
    let yes = digests.iter().map(|&digest| u64::from(operation(digest))).sum();
    let spent = start.elapsed();
    (std::hint::black_box(yes), spent.as_nanos() as f64 / digests.len() as f64)
}
