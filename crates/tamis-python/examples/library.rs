//! The library's own time for the batches of `benches/beside.py`, which runs this beside itself:
//! the same keys in one piece of memory, hashed and handed on as the package does it.
//!
//! Prints nanoseconds of processor time a key to build, for hits and for misses.

use std::ops::Range;

use tamis::{AnyFilter, Digest, Filter as _, Goal, Hasher, Insert as _, Kind, Label, Plan, Size};

const PIECE: usize = 1024;
const RATE: f64 = 0.003;

/// Keys one behind the other, as Arrow has them.
struct Texts {
    data: String,
    ends: Vec<usize>,
}

impl Texts {
    fn new(host: &str, keys: usize) -> Self {
        let (mut data, mut ends) = (String::new(), vec![0]);
        for number in 0..keys {
            data.push_str(
                &["https://", host, "/", &(number * 7919).to_string(), "/page/"].concat(),
            );
            data.push_str(&number.to_string());
            ends.push(data.len());
        }
        Self { data, ends }
    }

    fn each_piece(&self, hasher: Hasher, mut take: impl FnMut(&[Digest])) {
        let mut digests = Vec::with_capacity(PIECE);
        let digest = |ends: Range<usize>| hasher.digest_bytes(&self.data.as_bytes()[ends]);
        for from in (0..self.ends.len() - 1).step_by(PIECE) {
            let to = (from + PIECE).min(self.ends.len() - 1);
            digests.clear();
            digests.extend((from..to).map(|row| digest(self.ends[row]..self.ends[row + 1])));
            take(&digests);
        }
    }
}

/// Processor time of this thread, in nanoseconds.
fn now() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().and_then(|name| Kind::from_name(&name)).ok_or("give a kind")?;
    let keys: usize = arguments.next().ok_or("give a number of keys")?.parse()?;
    let [present, absent] = ["example.org", "example.com"].map(|host| Texts::new(host, keys));
    let hasher = Hasher::xxh3(0);
    let goal = Goal::sized(keys as u64, Size::Rate(RATE));

    let start = now().ok_or("no clock of processor time")?;
    let plan = Plan::of(kind, &goal)?;
    let mut filter: AnyFilter = plan.params.build(Label::planned(hasher, keys as u64))?;
    let mut failed = None;
    present.each_piece(hasher, |digests| failed = filter.insert_many(digests).err().or(failed));
    if let Some(error) = failed {
        return Err(error.into());
    }
    let mut times = vec![start, now().ok_or("no clock")?];
    for texts in [&present, &absent] {
        let mut all = Vec::new();
        let mut answers = Vec::new();
        texts.each_piece(hasher, |digests| {
            answers.clear();
            answers.resize(digests.len(), false);
            filter.contains_many(digests, &mut answers);
            all.extend(answers.iter().map(|&answer| u8::from(answer)));
        });
        std::hint::black_box(&all);
        times.push(now().ok_or("no clock")?);
    }
    let each: Vec<String> = times
        .windows(2)
        .map(|pair| format!("{:.2}", (pair[1] - pair[0]) as f64 / keys as f64))
        .collect();
    println!("{}", each.join(" "));
    Ok(())
}
