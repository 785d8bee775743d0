//! Lookups of `ribbon` beside the floor: one line of an array of the same size, read at random.
//!
//! ```text
//! cargo run --release -p tamis-bench --features tamis/huge-pages --bin lookups 100000000 0.01
//! ```
//!
//! Nanoseconds of processor time a question, the least of several rounds. "Dependent" reads know
//! their address only when the answer before has come; the others overlap.

use std::hint::black_box;
use std::time::Duration;

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use tamis::internals::address::reduce;
use tamis::internals::bits::Words;
use tamis::{Digest, Filter, Goal, Hasher, Label, Ribbon, Stored};
use tamis_report::keys::KeyStream;

/// Questions of a round.
const QUESTIONS: u64 = 1 << 21;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |usual: f64| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (keys, rate, rounds) = (argument(1e8)? as u64, argument(0.01)?, argument(5.0)? as u32);
    let (hasher, stream) = (Hasher::default(), KeyStream::new(5));
    let params = Ribbon::plan(&Goal::rate(keys, rate))?;
    let filter = {
        let digests: Vec<Digest> = stream.members(hasher, 0..keys).collect();
        let start = processor_time();
        let filter = Ribbon::build(params, Label::planned(hasher, keys), &digests)?;
        let took = processor_time().saturating_sub(start).as_nanos() as f64;
        println!("build, one thread: {:.1} ns a key", took / keys as f64);
        assert!(digests.iter().all(|&key| filter.contains_digest(key)), "a key was lost");
        filter
    };
    let held = filter.footprint() as f64 / keys as f64;
    let predicted = Ribbon::predict(&params, keys);
    println!("{keys} keys, {:.4e} predicted, {:.4e} by its bits", predicted.rate, filter.rate());
    println!(
        "{held:.5} bits a key held, {:.5} predicted, {:.4} log2(1/rate)",
        predicted.bits_per_key,
        held / -rate.log2()
    );
    println!(
        "lines: {:.2} a key that is in, {:.2} an absent key\n",
        predicted.blocks_per_hit, predicted.blocks_per_miss
    );

    let lines = (filter.footprint() / 512) as usize;
    let plain = black_box(vec![1_u64; lines * 8]);
    let mut huge = Words::zeroed(lines as u64 * 8)?;
    huge.as_mut_slice().fill(1);
    let step = keys / QUESTIONS.min(keys);
    let hits: Vec<Digest> = (0..QUESTIONS.min(keys))
        .flat_map(|index| stream.members(hasher, index * step..index * step + 1))
        .collect();
    let misses: Vec<Digest> = stream.absent_keys(hasher, 0..QUESTIONS).collect();
    let yes = misses.iter().filter(|&&key| filter.contains_digest(key)).count();
    println!("measured {:.4e}\n", yes as f64 / misses.len() as f64);

    let read = |words: &[u64], at: Digest| words[reduce(at.0, lines as u64) as usize * 8];
    let mut answers = vec![false; misses.len()];
    let mut least = [f64::MAX; 10];
    for _ in 0..rounds {
        let times = [
            ns(&misses, |keys| dependent(keys, |key| read(&plain, key))),
            ns(&misses, |keys| dependent(keys, |key| read(huge.as_slice(), key))),
            ns(&misses, |keys| keys.iter().map(|&key| read(&plain, key)).sum()),
            ns(&misses, |keys| keys.iter().map(|&key| read(huge.as_slice(), key)).sum()),
            ns(&hits, |keys| dependent(keys, |key| filter.contains_digest(key).into())),
            ns(&misses, |keys| dependent(keys, |key| filter.contains_digest(key).into())),
            ns(&hits, |keys| keys.iter().map(|&key| u64::from(filter.contains_digest(key))).sum()),
            ns(&misses, |keys| {
                keys.iter().map(|&key| u64::from(filter.contains_digest(key))).sum()
            }),
            ns(&hits, |keys| many(&filter, keys, &mut answers)),
            ns(&misses, |keys| many(&filter, keys, &mut answers)),
        ];
        least.iter_mut().zip(times).for_each(|(least, time)| *least = least.min(time));
    }
    let names = [
        "one line, dependent, small pages",
        "one line, dependent, huge pages if there are",
        "one line, small pages",
        "one line, huge pages if there are",
        "ribbon, dependent, key that is in",
        "ribbon, dependent, absent key",
        "ribbon, one by one, key that is in",
        "ribbon, one by one, absent key",
        "ribbon, contains_many, key that is in",
        "ribbon, contains_many, absent key",
    ];
    for (name, ns) in names.iter().zip(least) {
        println!("{name:44} {ns:6.1} ns");
    }
    Ok(())
}

/// The next question depends on the last answer, though only in a bit that says nothing.
fn dependent(keys: &[Digest], mut ask: impl FnMut(Digest) -> u64) -> u64 {
    keys.iter().fold(0, |last, key| ask(Digest(key.0 ^ black_box(last) >> 63)))
}

fn many(filter: &Ribbon, keys: &[Digest], answers: &mut [bool]) -> u64 {
    filter.contains_many(keys, &mut answers[..keys.len()]);
    answers.iter().filter(|&&yes| yes).count() as u64
}

fn ns(keys: &[Digest], work: impl FnOnce(&[Digest]) -> u64) -> f64 {
    let start = processor_time();
    black_box(work(black_box(keys)));
    processor_time().saturating_sub(start).as_nanos() as f64 / keys.len() as f64
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
