//! Our kinds, each by its own type: no dispatch stands between the loop and the filter.

use anyhow::Result;
use tamis::{
    BlockedBloom, Bloom, CompressedBloom, CountingBloom, DLeft, Digest, Filter, Insert,
    RankIndexed, Remove,
};
use tamis_bench::blocked_rank;

use crate::lineup::{Entry, Side};
use crate::measure::{Case, Round, Subject, build, fill};

pub(crate) static ENTRIES: &[Entry] = &[
    ours("tamis bloom", "", |case| {
        fill(case, case.planned, || Ok(Growing(Bloom::with_rate(case.planned, case.rate)?)))
    }),
    ours("tamis counting", "", |case| {
        let make = || Ok(Changing(CountingBloom::with_rate(case.planned, case.rate)?));
        fill(case, case.planned, make)
    }),
    ours("tamis blocked", "", |case| {
        fill(case, case.planned, || Ok(Growing(BlockedBloom::with_rate(case.planned, case.rate)?)))
    }),
    ours("tamis blocked-rank 8", OWN_RATE, |case| of_width(case, 8)),
    ours("tamis blocked-rank 9", OWN_RATE, |case| of_width(case, 9)),
    ours("tamis blocked-rank 10", OWN_RATE, |case| of_width(case, 10)),
    ours("tamis blocked-rank 12", OWN_RATE, |case| of_width(case, 12)),
    ours("tamis blocked-rank 16", OWN_RATE, |case| of_width(case, 16)),
    ours("tamis rank-indexed", "", |case| {
        fill(case, case.planned, || Ok(Changing(RankIndexed::with_rate(case.planned, case.rate)?)))
    }),
    ours("tamis dleft", "", |case| {
        fill(case, case.planned, || Ok(Changing(DLeft::with_rate(case.planned, case.rate)?)))
    }),
    ours("tamis compressed", "built once: insert is the building, over keys", |case| {
        let make = |keys: &[Digest]| {
            Ok(Built(CompressedBloom::builder(0).rate(case.rate).build_from_digests(keys)?))
        };
        build(case, make)
    }),
];

const OWN_RATE: &str = "as full as plans make it, at the rate that its cells then give";

const fn ours(name: &'static str, note: &'static str, run: fn(&Case) -> Result<Round>) -> Entry {
    Entry { name, side: Side::Ours, note, run }
}

fn of_width(case: &Case, width: u32) -> Result<Round> {
    fill(case, case.planned, || Ok(Changing(blocked_rank(case.planned, width)?)))
}

/// A filter that takes keys.
struct Growing<F>(F);

/// A filter that takes keys and gives them up.
struct Changing<F>(F);

/// A filter that is built once.
struct Built<F>(F);

impl<F: Insert> Subject for Growing<F> {
    const BATCHES: bool = true;

    fn insert(&mut self, digest: Digest) -> bool {
        self.0.insert_digest(digest).is_ok()
    }

    fn contains(&self, digest: Digest) -> bool {
        self.0.contains_digest(digest)
    }

    fn insert_many(&mut self, digests: &[Digest]) -> bool {
        self.0.insert_many(digests).is_ok()
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        self.0.contains_many(digests, answers);
    }
}

impl<F: Remove> Subject for Changing<F> {
    const REMOVES: bool = true;
    const BATCHES: bool = true;

    fn insert(&mut self, digest: Digest) -> bool {
        self.0.insert_digest(digest).is_ok()
    }

    fn contains(&self, digest: Digest) -> bool {
        self.0.contains_digest(digest)
    }

    fn remove(&mut self, digest: Digest) -> bool {
        self.0.remove_digest(digest).is_ok()
    }

    fn insert_many(&mut self, digests: &[Digest]) -> bool {
        self.0.insert_many(digests).is_ok()
    }

    fn remove_many(&mut self, digests: &[Digest]) -> u64 {
        self.0.remove_many(digests)
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        self.0.contains_many(digests, answers);
    }
}

impl<F: Filter> Subject for Built<F> {
    const BATCHES: bool = true;

    fn insert(&mut self, _: Digest) -> bool {
        false
    }

    fn contains(&self, digest: Digest) -> bool {
        self.0.contains_digest(digest)
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        self.0.contains_many(digests, answers);
    }
}
