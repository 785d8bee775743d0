//! What goes over all keys of a filter at once: nanoseconds of processor time a key, the least of
//! several rounds.
//!
//! ```text
//! cargo run --release -p tamis-bench --bin passes [keys] [rounds]
//! ```
//!
//! A merge and a delta touch the keys of both filters, and their time is that for each of these.
//! The filters of a merge have half of the keys each; those of a delta differ in one key of 20.
//! "Over entropy" says how much longer the packed form is than the entropy of its set. With two
//! threads the time is that of the one that builds and joins what both made; their shares of the
//! work are equal, so on two free cores this is the time that passes.

use std::hint::black_box;
use std::time::Duration;

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use tamis::{
    AnyFilter, BlockedRank, Delta, Digest, Effort, Goal, Hasher, Label, Limits, RankIndexed, Stored,
};
use tamis_report::keys::KeyStream;

const HEAD: &str = "\
| kind | rate | encode | decode | pack | over entropy | unpack | content id | diff | apply | merge | build, sorted | by two threads | build, unsorted | by two threads |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse());
    let keys: u64 = arguments.next().unwrap_or(Ok(1_000_000))?;
    let rounds = arguments.next().unwrap_or(Ok(7))?;
    println!("{keys} keys\n\n{HEAD}");
    for rate in [0.01, 0.003] {
        row::<BlockedRank>(keys, rate, rounds)?;
        row::<RankIndexed>(keys, rate, rounds)?;
    }
    Ok(())
}

/// The least time of several rounds, in nanoseconds a key.
struct Least {
    rounds: u64,
}

impl Least {
    fn of<T>(&self, keys: u64, mut work: impl FnMut() -> T) -> f64 {
        let once = |_| {
            let start = processor_time();
            let result = black_box(work());
            let took = processor_time().saturating_sub(start);
            drop(result);
            took.as_nanos()
        };
        (0..self.rounds).map(once).min().unwrap_or(0) as f64 / keys as f64
    }
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn row<F>(keys: u64, rate: f64, rounds: u64) -> Result<()>
where
    F: Stored<Params: Copy> + Into<AnyFilter>,
{
    let least = Least { rounds };
    let (hasher, stream) = (Hasher::default(), KeyStream::new(5));
    let digests: Vec<Digest> = stream.members(hasher, 0..keys).collect();
    let mut sorted = digests.clone();
    sorted.sort_unstable_by_key(|digest| digest.0);
    let label = Label::planned(hasher, keys);
    let params = F::plan(&Goal::rate(keys, rate))?;
    let filter = F::build(params, label, &digests)?;

    let bytes = filter.encode().to_vec();
    let packed = filter.pack(Effort::Fast).to_vec();
    let over = packed.len() as f64 * 8.0 / filter.entropy_bits() - 1.0;
    let limits = Limits::memory(1 << 40);
    let times = [
        least.of(keys, || filter.encode().to_vec()),
        least.of(keys, || F::decode(&bytes, limits).expect("valid")),
        least.of(keys, || filter.pack(Effort::Fast)),
        least.of(keys, || F::decode(&packed, limits).expect("valid")),
        least.of(keys, || filter.content_id()),
    ];

    let half = keys as usize / 2;
    let other = F::build(params, label, &digests[half..])?;
    let mut first = F::build(params, label, &digests[..half])?;
    let merge = {
        let start = first.clone();
        let mut best = f64::MAX;
        for _ in 0..rounds {
            first = start.clone();
            let begin = processor_time();
            first.merge(&other)?;
            best = best.min(processor_time().saturating_sub(begin).as_nanos() as f64 / keys as f64);
        }
        best
    };
    let newer = stream.members(hasher, keys..keys + keys / 20);
    let kept: Vec<Digest> = digests[keys as usize / 20..].iter().copied().chain(newer).collect();
    let new = F::build(params, label, &kept)?.into();
    let old: AnyFilter = filter.into();
    let diff = least.of(2 * keys, || Delta::between(&old, &new).expect("alike"));
    let delta = Delta::decode(&Delta::between(&old, &new)?.encode().to_vec(), limits)?;
    let mut patched = old.clone();
    let mut apply = f64::MAX;
    for _ in 0..rounds {
        patched = old.clone();
        let begin = processor_time();
        delta.apply(&mut patched)?;
        let took = processor_time().saturating_sub(begin);
        apply = apply.min(took.as_nanos() as f64 / (2 * keys) as f64);
    }
    assert_eq!(patched.content_id(), new.content_id());

    let build = |digests: &[Digest], threads| {
        let built = || F::build_in_parallel(params, label, digests, threads).expect("memory");
        least.of(keys, built)
    };
    let [encode, decode, pack, unpack, id] = times;
    println!(
        "| {} | {rate} | {encode:.1} | {decode:.1} | {pack:.1} | {:.2}% | {unpack:.1} | {id:.1} \
         | {diff:.1} | {apply:.1} | {merge:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
        F::KIND.name(),
        100.0 * over,
        build(&sorted, 1),
        build(&sorted, 2),
        build(&digests, 1),
        build(&digests, 2),
    );
    Ok(())
}
