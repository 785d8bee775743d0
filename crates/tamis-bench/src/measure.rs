//! One round of one subject: built, verified, then timed. The operations of every subject are
//! compiled into loops of its own.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use tamis::Digest;
use tamis_bench::record::Operation;
use tamis_report::memory;

/// The most questions of one timing, and the most removals.
pub(crate) const QUESTIONS: usize = 10_000_000;
/// Digests asked for at once.
const BATCH: usize = 1024;

/// What all subjects of a run share: the same keys for all. As digests, hashing is excluded for
/// all; as texts, each hashes by its own default.
pub(crate) struct Case<'a> {
    /// Keys that filters are built for.
    pub(crate) planned: u64,
    /// The share of them that goes in.
    pub(crate) load: f64,
    /// Rate that filters are built for.
    pub(crate) rate: f64,
    /// Steps of churn before those that are timed, as a multiple of the keys that are in.
    pub(crate) warm_up: usize,
    /// Digests of all planned keys, and behind them of those that come while others go.
    pub(crate) stream: Vec<Digest>,
    /// Digests of keys that never go in.
    pub(crate) absent: Vec<Digest>,
    /// All planned keys as texts.
    pub(crate) texts: Vec<&'a str>,
    /// Texts that never go in, as many as are asked for in a timing.
    pub(crate) absent_texts: Vec<&'a str>,
}

impl Case<'_> {
    /// How many keys go into a filter that is planned for `planned` keys.
    pub(crate) fn keys(&self, planned: u64) -> usize {
        ((planned as f64 * self.load).round() as usize).clamp(1, self.planned as usize)
    }

    /// Their digests.
    pub(crate) fn inserted(&self, planned: u64) -> &[Digest] {
        &self.stream[..self.keys(planned)]
    }

    /// As many of the absent keys as are asked for in a timing.
    pub(crate) fn asked_absent(&self) -> &[Digest] {
        &self.absent[..self.absent_texts.len()]
    }
}

/// Something that takes keys one by one.
pub(crate) trait Subject<K: Copy = Digest> {
    /// Whether keys can be removed.
    const REMOVES: bool = false;
    /// Whether it has batches of its own.
    const BATCHES: bool = false;

    /// Whether the key was taken.
    fn insert(&mut self, key: K) -> bool;

    fn contains(&self, key: K) -> bool;

    /// Whether the key was there.
    fn remove(&mut self, _: K) -> bool {
        false
    }

    /// Whether all keys were taken.
    fn insert_many(&mut self, keys: &[K]) -> bool {
        keys.iter().all(|&key| self.insert(key))
    }

    /// How many keys were there.
    fn remove_many(&mut self, keys: &[K]) -> u64 {
        keys.iter().map(|&key| u64::from(self.remove(key))).sum()
    }

    fn contains_many(&self, keys: &[K], answers: &mut [bool]) {
        for (answer, &key) in answers.iter_mut().zip(keys) {
            *answer = self.contains(key);
        }
    }

    /// Whether it holds just `keys`, as `empty` would with them, where that can be told beyond
    /// answers.
    fn holds_just(&self, _keys: &[K], _empty: Self) -> bool
    where
        Self: Sized,
    {
        true
    }
}

/// Nanoseconds an operation, where there is one.
pub(crate) type Times = BTreeMap<Operation, f64>;

/// What one round told.
#[derive(Clone)]
pub(crate) struct Round {
    pub(crate) keys: u64,
    pub(crate) held_bits: f64,
    pub(crate) false_positives: u64,
    pub(crate) times: Times,
    pub(crate) churned: Option<Churned>,
}

/// What a subject is after churn.
#[derive(Clone, Copy)]
pub(crate) struct Churned {
    pub(crate) steps: u64,
    pub(crate) held_bits: f64,
    pub(crate) false_positives: u64,
}

/// A subject that is planned for `planned` keys and takes them one by one.
pub(crate) fn fill<S: Subject>(
    case: &Case,
    planned: u64,
    make: impl Fn() -> Result<S>,
) -> Result<Round> {
    let members = case.inserted(planned);
    let Filled { mut subject, held, insert } = filled(members, &make)?;
    let mut round = ask(case, members, &subject, held)?;
    round.times.insert(Operation::Insert, insert);
    if S::REMOVES {
        round.times.insert(Operation::Remove, time_removals(members, &mut subject)?);
    }
    drop(subject);
    if S::BATCHES {
        let mut subject = make()?;
        let (taken, ns) = stopwatch(members.len(), || subject.insert_many(members));
        ensure!(taken && lost(members, &subject) == 0, "a batch lost keys");
        round.times.insert(Operation::BatchInsert, ns);
        if S::REMOVES {
            let gone = &members[..members.len().min(QUESTIONS)];
            let (removed, ns) = stopwatch(gone.len(), || subject.remove_many(gone));
            ensure!(removed == gone.len() as u64, "a batch gave up {removed} keys");
            round.times.insert(Operation::BatchRemove, ns);
        }
    }
    if S::REMOVES {
        let (churned, ns) = churn(case, members.len(), &make)?;
        round.times.insert(Operation::Churn, ns);
        round.churned = Some(churned);
    }
    Ok(round)
}

/// The times of a subject that takes texts one by one.
pub(crate) fn fill_texts<'a, S: Subject<&'a str>>(
    case: &Case<'a>,
    planned: u64,
    make: impl Fn() -> Result<S>,
) -> Result<Times> {
    let members = &case.texts[..case.keys(planned)];
    let Filled { mut subject, insert, .. } = filled(members, &make)?;
    let mut times = ask_texts(case, members, &subject);
    times.insert(Operation::TextInsert, insert);
    if S::REMOVES {
        times.insert(Operation::TextRemove, time_removals(members, &mut subject)?);
    }
    Ok(times)
}

/// A subject that is built once from all its keys; building counts as inserting.
pub(crate) fn build<S: Subject>(
    case: &Case,
    build: impl Fn(&[Digest]) -> Result<S>,
) -> Result<Round> {
    let members = case.inserted(case.planned);
    let Filled { subject, held, insert } = built(members, build)?;
    let mut round = ask(case, members, &subject, held)?;
    round.times.insert(Operation::Insert, insert);
    Ok(round)
}

/// The times of a subject that is built once from texts.
pub(crate) fn build_texts<'a, S: Subject<&'a str>>(
    case: &Case<'a>,
    build: impl Fn(&[&'a str]) -> Result<S>,
) -> Result<Times> {
    let members = &case.texts[..case.keys(case.planned)];
    let Filled { subject, insert, .. } = built(members, build)?;
    let mut times = ask_texts(case, members, &subject);
    times.insert(Operation::TextInsert, insert);
    Ok(times)
}

/// A subject in which all keys are found.
struct Filled<S> {
    subject: S,
    /// Bytes.
    held: i64,
    insert: f64,
}

fn filled<K: Copy, S: Subject<K>>(
    members: &[K],
    make: impl Fn() -> Result<S>,
) -> Result<Filled<S>> {
    let before = memory::held();
    let mut subject = make()?;
    let (taken, insert) = time(members, |key| subject.insert(key));
    ensure!(taken == members.len() as u64, "it took {taken} of {} keys", members.len());
    verified(members, subject, before, insert)
}

fn built<K: Copy, S: Subject<K>>(
    members: &[K],
    build: impl Fn(&[K]) -> Result<S>,
) -> Result<Filled<S>> {
    let before = memory::held();
    let (subject, insert) = stopwatch(members.len(), || build(members));
    verified(members, subject?, before, insert)
}

fn verified<K: Copy, S: Subject<K>>(
    members: &[K],
    subject: S,
    before: i64,
    insert: f64,
) -> Result<Filled<S>> {
    let held = memory::held() - before;
    ensure!(held > 0, "no memory is held");
    let missing = lost(members, &subject);
    ensure!(missing == 0, "{missing} keys are lost");
    Ok(Filled { subject, held, insert })
}

/// Counts false positives, then times questions.
fn ask<S: Subject>(case: &Case, members: &[Digest], subject: &S, held: i64) -> Result<Round> {
    let false_positives = found(&case.absent, subject);
    let asked = sample(members);
    let absent = case.asked_absent();

    let (_, hit) = time(&asked, |digest| subject.contains(digest));
    let (passed, miss) = time(absent, |digest| subject.contains(digest));
    let mut times = Times::from([(Operation::Hit, hit), (Operation::Miss, miss)]);
    if S::BATCHES {
        let (all, hit) = time_batches(&asked, subject);
        let (same, miss) = time_batches(absent, subject);
        ensure!(all == asked.len() as u64 && same == passed, "batches answer otherwise");
        times.extend([(Operation::BatchHit, hit), (Operation::BatchMiss, miss)]);
    }
    let keys = members.len() as u64;
    Ok(Round { keys, held_bits: held as f64 * 8.0, false_positives, times, churned: None })
}

fn ask_texts<'a, S: Subject<&'a str>>(case: &Case<'a>, members: &[&'a str], subject: &S) -> Times {
    let (_, hit) = time(&sample(members), |text| subject.contains(text));
    let (_, miss) = time(&case.absent_texts, |text| subject.contains(text));
    Times::from([(Operation::TextHit, hit), (Operation::TextMiss, miss)])
}

/// The oldest key goes and a new one comes, a key in the middle of its time is asked for and an
/// absent one, over and over; the last `keys` steps are timed. Afterwards all keys that are in
/// must be found.
fn churn<S: Subject>(
    case: &Case,
    keys: usize,
    make: impl Fn() -> Result<S>,
) -> Result<(Churned, f64)> {
    let stream = &case.stream;
    let before = memory::held();
    let mut subject = make()?;
    ensure!(subject.insert_many(&stream[..keys]), "it did not take all keys");
    let mut steps = |range: Range<usize>| {
        let shifted = |by: usize| &stream[range.start + by..range.end + by];
        let leaving = shifted(0).iter().zip(shifted(keys));
        let asked = shifted(keys / 2 + 1).iter().zip(case.absent.iter().cycle());
        let mut done = 0;
        for ((&old, &new), (&member, &absent)) in leaving.zip(asked) {
            done += u64::from(subject.remove(old));
            done += u64::from(subject.insert(new));
            done += u64::from(subject.contains(member));
            black_box(subject.contains(absent));
        }
        done
    };
    let warm_up = case.warm_up * keys;
    let last = warm_up + keys;
    let mut done = steps(0..warm_up);
    let (timed, ns) = stopwatch(keys, || steps(warm_up..last));
    done += timed;
    ensure!(done == 3 * last as u64, "churn: {} operations failed", 3 * last as u64 - done);
    let held_bits = (memory::held() - before) as f64 * 8.0;
    let members = &stream[last..last + keys];
    let missing = lost(members, &subject);
    ensure!(missing == 0, "{missing} keys are lost after churn");
    ensure!(subject.holds_just(members, make()?), "after churn it does not hold what it should");
    let false_positives = found(&case.absent, &subject);
    Ok((Churned { steps: last as u64, held_bits, false_positives }, ns))
}

fn time_removals<K: Copy, S: Subject<K>>(members: &[K], subject: &mut S) -> Result<f64> {
    let gone = &members[..members.len().min(QUESTIONS)];
    let (removed, ns) = time(gone, |key| subject.remove(key));
    ensure!(removed == gone.len() as u64, "it gave up {removed} of {} keys", gone.len());
    let missing = lost(&members[gone.len()..], subject);
    ensure!(missing == 0, "{missing} keys are lost after removals of others");
    Ok(ns)
}

/// Some of the members, evenly from all; all if they are few enough.
pub(crate) fn sample<K: Copy>(members: &[K]) -> Vec<K> {
    members.iter().step_by(members.len().div_ceil(QUESTIONS).max(1)).copied().collect()
}

fn found<K: Copy, S: Subject<K>>(keys: &[K], subject: &S) -> u64 {
    keys.iter().map(|&key| u64::from(subject.contains(key))).sum()
}

fn lost<K: Copy, S: Subject<K>>(members: &[K], subject: &S) -> u64 {
    members.len() as u64 - found(members, subject)
}

/// What the work gave, and the nanoseconds an operation.
pub(crate) fn stopwatch<R>(operations: usize, work: impl FnOnce() -> R) -> (R, f64) {
    let start = processor_time();
    let result = black_box(work());
    let spent = processor_time().saturating_sub(start);
    (result, spent.as_nanos() as f64 / operations.max(1) as f64)
}

/// Time that this thread has had on a processor: what others do meanwhile is not counted.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How often the answer was yes, and the nanoseconds for one.
pub(crate) fn time<K: Copy>(keys: &[K], mut operation: impl FnMut(K) -> bool) -> (u64, f64) {
    stopwatch(keys.len(), || keys.iter().map(|&key| u64::from(operation(key))).sum())
}

fn time_batches<S: Subject>(digests: &[Digest], subject: &S) -> (u64, f64) {
    let mut answers = [false; BATCH];
    stopwatch(digests.len(), || {
        digests.chunks(BATCH).fold(0, |yes, digests| {
            let answers = &mut answers[..digests.len()];
            subject.contains_many(digests, answers);
            yes + answers.iter().map(|&answer| u64::from(answer)).sum::<u64>()
        })
    })
}
