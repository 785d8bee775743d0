//! Two nodes find out, in few bytes, what one of them is missing.
//!
//! A and B hold about the same hundred thousand names. A sends a summary of its set; B looks up its own names there, and
//! sends those that the summary denies (and the other way round for what B is missing, which is not shown):
//!
//! ```text
//! A   set -> filter -> pack -> bytes ...............................-> union
//! B                            bytes -> decode -> names not in it -/
//! ```
//!
//! A filter never denies what is in, so no name is sent that A has. It takes an absent key for a member at its rate, so that share
//! of the difference is missed, and no more: for many uses (gossip that is repeated with another seed, a cache to be filled)
//! that is enough. Compared are
//!
//! - a plain Bloom filter planned for the least memory, which is half full and so cannot be packed;
//! - one with two hash functions for the same rate: larger in memory, sparse, and smaller on the wire, which is the finding of
//!   M. Mitzenmacher, "Compressed Bloom filters", 2002;
//! - a rank-indexed filter, whose packed form is the bare set of identities: hardly more than log2(e / rate) bits a key.
//!
//! ```text
//! cargo run --release -p tamis-report --example reconcile
//! ```

use std::collections::BTreeSet;

use tamis::{AnyFilter, AnyParams, Effort, Filter, Goal, Hasher, Kind, Label, Limits};
use tamis_report::keys::KeyStream;
use tamis_report::papers::statistics::exact_interval;

type Names = BTreeSet<String>;
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const COMMON: u64 = 96_000;
/// Names that only A has, and as many that only B has.
const DIFFERENT: u64 = 4_000;
const SEED: u64 = 7;
const RATES: [f64; 2] = [0.01, 0.001];
/// Eight rows are checked, so that the odds of an honest run to be called wrong are below 1%.
const CONFIDENCE: f64 = 0.999;

const HEAD: &str = "\
summary                 rate     memory    summary     bits    names       bytes     missed, 99.9%  rate of     bytes
                       asked      bytes      bytes   a name    found    of names          interval   filter    in all";

/// A summary to be tried.
struct Scheme {
    name: &'static str,
    kind: Kind,
    /// Hash functions, where the planner shall not choose them.
    hashes: Option<u64>,
    packed: bool,
}

const SCHEMES: [Scheme; 4] = [
    Scheme { name: "bloom, raw", kind: Kind::Bloom, hashes: None, packed: false },
    Scheme { name: "bloom, packed", kind: Kind::Bloom, hashes: None, packed: true },
    Scheme { name: "bloom k=2, packed", kind: Kind::Bloom, hashes: Some(2), packed: true },
    Scheme { name: "rank-indexed, packed", kind: Kind::RankIndexed, hashes: None, packed: true },
];

fn main() -> Outcome<()> {
    let (a, b) = nodes();
    println!("A and B have {COMMON} names in common, and {DIFFERENT} more each.");
    println!("B sends A what A's summary denies.\n\n{HEAD}");
    for rate in RATES {
        for scheme in &SCHEMES {
            reconcile(scheme, rate, &a, &b)?;
        }
        println!();
    }
    naive(&a, &b);
    Ok(())
}

/// The names of A and of B, all of them distinct.
fn nodes() -> (Names, Names) {
    let stream = KeyStream::new(SEED);
    let name = |index| format!("photos/{:016x}.jpg", stream.member(index));
    let a = (0..COMMON + DIFFERENT).map(name);
    let b = (0..COMMON).chain(COMMON + DIFFERENT..COMMON + 2 * DIFFERENT).map(name);
    (a.collect(), b.collect())
}

/// One exchange: bytes from A to B, names from B to A.
fn reconcile(scheme: &Scheme, rate: f64, a: &Names, b: &Names) -> Outcome<()> {
    let summary = summarise(scheme, rate, a)?;
    let message = if scheme.packed { summary.pack(Effort::Best) } else { summary.encode() };
    let reply = answer(&message.to_vec(), b)?;

    assert!(reply.iter().all(|&name| !a.contains(name)), "{}: no byte is wasted", scheme.name);
    let missed = DIFFERENT - reply.len() as u64;
    let (low, high) = exact_interval(missed, DIFFERENT, CONFIDENCE);
    assert!((low..=high).contains(&summary.rate()), "{}: {missed} missed", scheme.name);

    let reply_bytes = wire_size(reply.iter().copied());
    println!(
        "{:22}{:>5}%{:>11}{:>11}{:>9.2}{:>9}{:>12}{:>18}{:>8.3}%{:>10}",
        scheme.name,
        rate * 100.0,
        summary.footprint() / 8,
        message.len(),
        message.len() as f64 * 8.0 / a.len() as f64,
        percent(reply.len() as f64 / DIFFERENT as f64),
        reply_bytes,
        format!("{} - {}", percent(low), percent(high)),
        summary.rate() * 100.0,
        message.len() + reply_bytes,
    );
    Ok(())
}

/// A's side: a filter of all its names.
fn summarise(scheme: &Scheme, rate: f64, names: &Names) -> Outcome<AnyFilter> {
    let mut goal = Goal::rate(names.len() as u64, rate);
    goal.fixed.extend(scheme.hashes.map(|hashes| ("hashes".to_string(), hashes)));
    let hasher = Hasher::xxh3(SEED);
    let params = AnyParams::plan(scheme.kind, &goal)?;
    let mut filter = params.build(Label::planned(hasher, names.len() as u64))?;
    let digests: Vec<_> = names.iter().map(|name| hasher.digest(name)).collect();
    filter.as_insert().ok_or("a summary must take names")?.insert_many(&digests)?;
    Ok(filter)
}

/// B's side: it knows nothing of A but these bytes, which say themselves what they are and how names were hashed.
fn answer<'b>(message: &[u8], names: &'b Names) -> Outcome<Vec<&'b String>> {
    let summary = AnyFilter::decode(message, Limits::memory(1 << 24))?;
    Ok(names.iter().filter(|name| !summary.contains(*name)).collect())
}

/// What exchanges without a filter would take: they find everything.
fn naive(a: &Names, b: &Names) {
    let reply = wire_size(b.difference(a));
    for (way, bytes) in [
        ("A sends all its names", wire_size(a)),
        ("A sends 64-bit hashes of its names", 8 * a.len() as u64),
    ] {
        println!("{way:36}{bytes:>9} bytes, B's reply {reply:>7}, in all {:>8}", bytes + reply);
    }
}

/// Bytes of names, ends of line included.
fn wire_size<'n>(names: impl IntoIterator<Item = &'n String>) -> u64 {
    names.into_iter().map(|name| name.len() as u64 + 1).sum()
}

fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}
