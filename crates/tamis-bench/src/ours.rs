//! Our kinds, each by its own type: no dispatch stands between the loop and the filter.

use anyhow::Result;
use tamis::{
    BlockedBloom, BlockedRank, Bloom, Builder, CompressedBloom, CountingBloom, DLeft, Digest,
    Filter, Goal, Hasher, Insert, Label, RankIndexed, Remove, Ribbon, Stored,
};
use tamis_bench::record::Side;
use tamis_bench::{blocked_rank, rate_of_width};

use crate::lineup::Entry;
use crate::measure::{Case, Round, Subject, build, build_texts, fill, fill_texts};

/// All at the asked rate, `blocked-rank` also in the blocks of the least memory, with portable
/// instructions only, and at the rates of wider fingerprints.
pub(crate) fn entries(keys: u64, rate: f64) -> Vec<Entry> {
    let ours = |name: &str, run: fn(&Case<'_>) -> Result<Round>| {
        Entry::new(name, Side::Ours, "", Some(rate), run)
    };
    let built = "built once: insert is the building, over keys";
    let once = |name: &str, run: fn(&Case<'_>) -> Result<Round>| {
        Entry::new(name, Side::Ours, built, Some(rate), run).built_once()
    };
    let mut entries = vec![
        ours("tamis bloom", |case| {
            growing(case, || Ok(Bloom::with_rate(case.planned, case.rate)?))
        }),
        ours("tamis counting", |case| {
            changing(case, case.planned, || Ok(CountingBloom::with_rate(case.planned, case.rate)?))
        }),
        ours("tamis blocked", |case| {
            growing(case, || Ok(BlockedBloom::with_rate(case.planned, case.rate)?))
        }),
        ours("tamis blocked-rank", |case| {
            changing(case, case.planned, || Ok(BlockedRank::with_rate(case.planned, case.rate)?))
        }),
        ours("tamis rank-indexed", |case| {
            changing(case, case.planned, || Ok(RankIndexed::with_rate(case.planned, case.rate)?))
        }),
        ours("tamis dleft", |case| {
            changing(case, case.planned, || Ok(DLeft::with_rate(case.planned, case.rate)?))
        }),
        once("tamis compressed", |case| built_once(case, CompressedBloom::builder)),
        once("tamis ribbon", |case| built_once(case, Ribbon::builder)),
        ours("tamis blocked-rank in 2 KiB", |case| {
            let goal = Goal::rate(case.planned, case.rate).params([("block", 1 << 14)]);
            let label = Label::planned(Hasher::default(), case.planned);
            let make = || Ok(BlockedRank::new(BlockedRank::plan(&goal)?, label)?);
            changing(case, case.planned, make)
        }),
        ours("tamis blocked-rank portable", |case| {
            changing(case, case.planned, || {
                let mut filter = BlockedRank::with_rate(case.planned, case.rate)?;
                filter.make_portable();
                Ok(filter)
            })
        }),
    ];
    entries.extend([8, 10, 12, 16].map(|width| {
        let name = format!("tamis blocked-rank {width}");
        let note = "with fingerprints of that many bits, at a rate of its own";
        let make = move || blocked_rank(keys, width);
        let run = move |case: &Case<'_>| changing(case, keys, make);
        Entry::new(&name, Side::Ours, note, Some(rate_of_width(width)), run)
    }));
    entries
}

/// A `blocked-rank` with the keys and the rate of some rivals.
pub(crate) fn partner(of: Vec<String>, keys: u64, rate: f64) -> Entry {
    let name = format!("tamis blocked-rank for {}", of.join(", "));
    let note = "planned for the rate and the keys of these rivals, as they were measured";
    let make = move || Ok(BlockedRank::with_rate(keys, rate)?);
    let run = move |case: &Case<'_>| changing(case, keys, make);
    Entry { partner_of: of, ..Entry::new(&name, Side::Ours, note, Some(rate), run) }
}

fn growing<F: Insert>(case: &Case, make: impl Fn() -> Result<F>) -> Result<Round> {
    let make = || Ok(Growing(make()?));
    let mut round = fill(case, case.planned, make)?;
    round.times.extend(fill_texts(case, case.planned, make)?);
    Ok(round)
}

fn built_once<F: Stored>(case: &Case, builder: fn(u64) -> Builder<F>) -> Result<Round> {
    let empty = || builder(0).rate(case.rate);
    let mut round = build(case, |digests| Ok(Built(empty().build_from_digests(digests)?)))?;
    let texts = build_texts(case, |texts| Ok(Built(empty().build_from(texts)?)))?;
    round.times.extend(texts);
    Ok(round)
}

fn changing<F: Remove + Stored>(
    case: &Case,
    planned: u64,
    make: impl Fn() -> Result<F>,
) -> Result<Round> {
    let make = || Ok(Changing(make()?));
    let mut round = fill(case, planned, make)?;
    round.times.extend(fill_texts(case, planned, make)?);
    Ok(round)
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

impl<F: Remove + Stored> Subject for Changing<F> {
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

    fn holds_just(&self, digests: &[Digest], mut empty: Self) -> bool {
        let is_full = empty.0.insert_many(digests).is_ok();
        is_full && self.0.validate().is_ok() && self.0.content_id() == empty.0.content_id()
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

impl<F: Insert> Subject<&str> for Growing<F> {
    fn insert(&mut self, text: &str) -> bool {
        self.0.insert(text).is_ok()
    }

    fn contains(&self, text: &str) -> bool {
        self.0.contains(text)
    }
}

impl<F: Remove> Subject<&str> for Changing<F> {
    const REMOVES: bool = true;

    fn insert(&mut self, text: &str) -> bool {
        self.0.insert(text).is_ok()
    }

    fn contains(&self, text: &str) -> bool {
        self.0.contains(text)
    }

    fn remove(&mut self, text: &str) -> bool {
        self.0.remove(text).is_ok()
    }
}

impl<F: Filter> Subject<&str> for Built<F> {
    fn insert(&mut self, _: &str) -> bool {
        false
    }

    fn contains(&self, text: &str) -> bool {
        self.0.contains(text)
    }
}
