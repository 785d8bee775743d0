//! What no filter can beat: one line of memory an operation, and nothing else.
#![allow(unsafe_code)] // The prefetch instruction is an unsafe intrinsic; the block says why it is sound.

use std::hint::black_box;

use anyhow::Result;
use tamis::Digest;
use tamis::internals::address::reduce;
use tamis_bench::record::{Operation, Side};

use crate::lineup::Entry;
use crate::measure::{Case, Round, Times, sample, stopwatch, time};

pub(crate) fn entries() -> Vec<Entry> {
    vec![
        floor("one-line read", |case| {
            let (memory, members) = (Memory::new(case), sample(case.inserted(case.planned)));
            let read = |digest: Digest| memory.lines[memory.at(digest)].0[0] != 0;
            Ok(memory.round([
                (Operation::Hit, time(&members, read).1),
                (Operation::Miss, time(case.asked_absent(), read).1),
            ]))
        }),
        floor("prefetched one-line read", |case| {
            let (memory, members) = (Memory::new(case), sample(case.inserted(case.planned)));
            Ok(memory.round([
                (Operation::BatchHit, memory.time_prefetched(&members)),
                (Operation::BatchMiss, memory.time_prefetched(case.asked_absent())),
            ]))
        }),
        floor("read-modify-write of a line", |case| {
            let mut memory = Memory::new(case);
            let write = |digest: Digest| {
                let at = memory.at(digest);
                memory.lines[at].0[0] ^= digest.0;
                true
            };
            let (_, ns) = time(case.inserted(case.planned), write);
            Ok(memory.round([(Operation::Insert, ns), (Operation::Remove, ns)]))
        }),
        floor("dependent one-line read", |case| {
            let (memory, members) = (Memory::new(case), sample(case.inserted(case.planned)));
            let mut last = 0;
            let mut read = |digest: Digest| {
                // The next address depends on what was read, though all of it is zero.
                last = memory.lines[memory.at(Digest(digest.0 ^ last))].0[0];
                last != 0
            };
            Ok(memory.round([
                (Operation::Hit, time(&members, &mut read).1),
                (Operation::Miss, time(case.asked_absent(), &mut read).1),
            ]))
        }),
    ]
}

/// Bits of memory for each planned key, about those of `blocked-rank`.
const BITS_PER_KEY: u64 = 12;
/// How many lines are fetched at once: the quickest of these counts.
const AHEAD: [usize; 4] = [8, 16, 32, 64];

fn floor(name: &str, run: impl Fn(&Case<'_>) -> Result<Round> + 'static) -> Entry {
    Entry::new(name, Side::Floor, "in memory of 12 bits a key", None, run)
}

/// A cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u64; 8]);

struct Memory {
    lines: Vec<Line>,
    keys: u64,
}

impl Memory {
    fn new(case: &Case) -> Self {
        let lines = (case.planned * BITS_PER_KEY).div_ceil(512).max(1) as usize;
        // Not all zero, because the system would map one page of zeros many times.
        let lines = black_box(vec![Line([0, 1, 2, 3, 4, 5, 6, 7]); lines]);
        Self { lines, keys: case.inserted(case.planned).len() as u64 }
    }

    fn at(&self, digest: Digest) -> usize {
        reduce(digest.0, self.lines.len() as u64) as usize
    }

    fn round<const N: usize>(&self, times: [(Operation, f64); N]) -> Round {
        let held_bits = size_of_val(&self.lines[..]) as f64 * 8.0;
        let times = Times::from(times);
        Round { keys: self.keys, held_bits, false_positives: 0, times, churned: None }
    }

    fn time_prefetched(&self, digests: &[Digest]) -> f64 {
        AHEAD.map(|ahead| self.time_ahead(digests, ahead)).into_iter().fold(f64::MAX, f64::min)
    }

    /// Every line is fetched `ahead` questions before it is read.
    fn time_ahead(&self, digests: &[Digest], ahead: usize) -> f64 {
        let (first, rest) = digests.split_at(ahead.min(digests.len()));
        let next = rest.iter().chain(first);
        let (_, ns) = stopwatch(digests.len(), || {
            for &digest in first {
                self.prefetch(digest);
            }
            digests.iter().zip(next).fold(0_u64, |sum, (&digest, &next)| {
                self.prefetch(next);
                sum + u64::from(self.lines[self.at(digest)].0[0] != 0)
            })
        });
        ns
    }

    fn prefetch(&self, digest: Digest) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let line = &raw const self.lines[self.at(digest)];
            // SAFETY: a prefetch never faults and changes nothing that a program can see.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = digest;
    }
}
