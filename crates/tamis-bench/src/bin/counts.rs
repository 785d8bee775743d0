//! Fixed work for `scripts/instructions`, which counts the instructions of each [`measured`] call
//! under callgrind.
//!
//! Every call is announced by a line: kind, operation, how often. There are no rivals, clocks or
//! threads here, so that counts repeat.

use std::hint::black_box;

use anyhow::{Result, ensure};
use tamis::{
    BlockedBloom, Bloom, CompressedBloom, CountingBloom, DLeft, Digest, Filter, Hasher, Insert,
    RankIndexed, Remove,
};
use tamis_bench::blocked_rank;
use tamis_report::keys::KeyStream;

const KEYS: u64 = 20_000;
const RATE: f64 = 0.0029;

fn main() -> Result<()> {
    let stream = KeyStream::new(1);
    let keys = Keys {
        members: stream.members(Hasher::default(), 0..KEYS).collect(),
        absent: stream.absent_keys(Hasher::default(), 0..KEYS).collect(),
    };
    keys.fill("bloom", Bloom::with_rate(KEYS, RATE)?)?;
    keys.fill("blocked", BlockedBloom::with_rate(KEYS, RATE)?)?;
    keys.change("counting", CountingBloom::with_rate(KEYS, RATE)?)?;
    keys.change("rank-indexed", RankIndexed::with_rate(KEYS, RATE)?)?;
    keys.change("dleft", DLeft::with_rate(KEYS, RATE)?)?;
    keys.change("blocked-rank-8", blocked_rank(KEYS, 8)?)?;
    keys.change("blocked-rank-12", blocked_rank(KEYS, 12)?)?;
    keys.change("blocked-rank-16", blocked_rank(KEYS, 16)?)?;
    let mut portable = blocked_rank(KEYS, 8)?;
    portable.make_portable();
    keys.change("blocked-rank-8-portable", portable)?;
    let mut compressed = None;
    count("compressed", "build", || {
        compressed = CompressedBloom::builder(0).rate(RATE).build_from_digests(&keys.members).ok();
        compressed.is_some()
    })?;
    compressed.map_or(Ok(()), |filter| keys.ask("compressed", &filter))
}

/// What is counted. The symbol is known to callgrind by this name, so it must stay a call of its
/// own.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
    // Not the last thing, or the call above would be a jump, which leaves this function.
    black_box(());
}

/// Announces, and does the work, which says whether all went well.
fn count(kind: &str, operation: &str, mut work: impl FnMut() -> bool) -> Result<()> {
    println!("{kind} {operation} {KEYS}");
    let mut fine = false;
    // What was done to prepare is counted up to here.
    measured(&mut || {});
    measured(&mut || fine = work());
    ensure!(fine, "{kind} {operation}: a wrong answer");
    Ok(())
}

struct Keys {
    members: Vec<Digest>,
    absent: Vec<Digest>,
}

impl Keys {
    fn fill<F: Insert>(&self, kind: &str, mut filter: F) -> Result<()> {
        self.insert(kind, &mut filter)?;
        self.ask(kind, &filter)
    }

    fn change<F: Remove>(&self, kind: &str, mut filter: F) -> Result<()> {
        self.insert(kind, &mut filter)?;
        self.ask(kind, &filter)?;
        count(kind, "remove", || {
            self.members.iter().all(|&digest| filter.remove_digest(digest).is_ok())
        })
    }

    fn insert<F: Insert>(&self, kind: &str, filter: &mut F) -> Result<()> {
        count(kind, "insert", || {
            self.members.iter().all(|&digest| filter.insert_digest(digest).is_ok())
        })
    }

    fn ask<F: Filter>(&self, kind: &str, filter: &F) -> Result<()> {
        let mut answers = vec![false; self.absent.len()];
        count(kind, "hit", || self.members.iter().all(|&digest| filter.contains_digest(digest)))?;
        // A few in a hundred may pass.
        let few = |passed: usize| passed < self.absent.len() / 20;
        count(kind, "miss", || {
            few(self.absent.iter().filter(|&&digest| filter.contains_digest(digest)).count())
        })?;
        count(kind, "batch-miss", || {
            filter.contains_many(&self.absent, &mut answers);
            few(answers.iter().filter(|&&answer| answer).count())
        })
    }
}
