//! One round of one subject: built, verified, then timed. The operations of every subject are
//! compiled into loops of its own.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use tamis::Digest;
use tamis_report::memory;

/// The most questions of one timing, and the most removals.
pub(crate) const QUESTIONS: usize = 10_000_000;
/// Digests asked for at once.
const BATCH: usize = 1024;

/// What all subjects of a run share: the same digests for all, so that hashing is excluded for
/// all.
pub(crate) struct Case {
    /// Keys that filters are built for.
    pub(crate) planned: u64,
    /// The share of them that goes in.
    pub(crate) load: f64,
    /// Rate that filters are built for.
    pub(crate) rate: f64,
    /// Digests of all planned keys.
    pub(crate) members: Vec<Digest>,
    /// Digests of keys that never go in.
    pub(crate) absent: Vec<Digest>,
}

impl Case {
    /// The digests that go into a filter that is planned for `planned` keys.
    pub(crate) fn inserted(&self, planned: u64) -> &[Digest] {
        let keys = (planned as f64 * self.load).round() as usize;
        &self.members[..keys.clamp(1, self.members.len())]
    }

    /// As many of the absent keys as are asked for in a timing.
    pub(crate) fn asked_absent(&self) -> &[Digest] {
        let questions = self.members.len().clamp(QUESTIONS / 10, QUESTIONS);
        &self.absent[..questions.min(self.absent.len())]
    }
}

/// Something that takes keys one by one.
pub(crate) trait Subject {
    /// Whether keys can be removed.
    const REMOVES: bool = false;
    /// Whether it has batches of its own.
    const BATCHES: bool = false;

    /// Whether the key was taken.
    fn insert(&mut self, digest: Digest) -> bool;

    fn contains(&self, digest: Digest) -> bool;

    /// Whether the key was there.
    fn remove(&mut self, _: Digest) -> bool {
        false
    }

    /// Whether all keys were taken.
    fn insert_many(&mut self, digests: &[Digest]) -> bool {
        digests.iter().all(|&digest| self.insert(digest))
    }

    /// How many keys were there.
    fn remove_many(&mut self, digests: &[Digest]) -> u64 {
        digests.iter().map(|&digest| u64::from(self.remove(digest))).sum()
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        for (answer, &digest) in answers.iter_mut().zip(digests) {
            *answer = self.contains(digest);
        }
    }
}

/// What one round told.
#[derive(Clone, Copy, Default)]
pub(crate) struct Round {
    pub(crate) keys: u64,
    pub(crate) held_bits: f64,
    pub(crate) false_positives: u64,
    pub(crate) times: Times,
}

/// Nanoseconds an operation, where there is one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) insert: Option<f64>,
    pub(crate) hit: Option<f64>,
    pub(crate) miss: Option<f64>,
    pub(crate) remove: Option<f64>,
    pub(crate) batch_insert: Option<f64>,
    pub(crate) batch_hit: Option<f64>,
    pub(crate) batch_miss: Option<f64>,
    pub(crate) batch_remove: Option<f64>,
}

/// A subject that is planned for `planned` keys and takes them one by one.
pub(crate) fn fill<S: Subject>(
    case: &Case,
    planned: u64,
    make: impl Fn() -> Result<S>,
) -> Result<Round> {
    let members = case.inserted(planned);
    let before = memory::held();
    let mut subject = make()?;
    let (taken, insert) = time(members, |digest| subject.insert(digest));
    ensure!(taken == members.len() as u64, "it took {taken} of {} keys", members.len());
    let held = memory::held() - before;
    let mut round = ask(case, members, &subject, held)?;
    round.times.insert = Some(insert);
    if S::REMOVES {
        let gone = &members[..members.len().min(QUESTIONS)];
        let (removed, remove) = time(gone, |digest| subject.remove(digest));
        ensure!(removed == gone.len() as u64, "it gave up {removed} of {} keys", gone.len());
        let missing = lost(&members[gone.len()..], &subject);
        ensure!(missing == 0, "{missing} keys are lost after removals of others");
        round.times.remove = Some(remove);
    }
    drop(subject);
    if S::BATCHES {
        let mut subject = make()?;
        let (taken, ns) = stopwatch(members.len(), || subject.insert_many(members));
        ensure!(taken && lost(members, &subject) == 0, "a batch lost keys");
        round.times.batch_insert = Some(ns);
        if S::REMOVES {
            let gone = &members[..members.len().min(QUESTIONS)];
            let (removed, ns) = stopwatch(gone.len(), || subject.remove_many(gone));
            ensure!(removed == gone.len() as u64, "a batch gave up {removed} keys");
            round.times.batch_remove = Some(ns);
        }
    }
    Ok(round)
}

/// A subject that is built once from all its keys; building counts as inserting.
pub(crate) fn build<S: Subject>(
    case: &Case,
    build: impl Fn(&[Digest]) -> Result<S>,
) -> Result<Round> {
    let members = case.inserted(case.planned);
    let before = memory::held();
    let (subject, insert) = stopwatch(members.len(), || build(members));
    let subject = subject?;
    let held = memory::held() - before;
    let mut round = ask(case, members, &subject, held)?;
    round.times.insert = Some(insert);
    Ok(round)
}

/// Checks that every member is found, then asks.
fn ask<S: Subject>(case: &Case, members: &[Digest], subject: &S, held: i64) -> Result<Round> {
    ensure!(held > 0, "no memory is held");
    let missing = lost(members, subject);
    ensure!(missing == 0, "{missing} keys are lost");
    let false_positives = found(&case.absent, subject);
    let asked = sample(members);
    let absent = case.asked_absent();

    let (_, hit) = time(&asked, |digest| subject.contains(digest));
    let (passed, miss) = time(absent, |digest| subject.contains(digest));
    let mut times = Times { hit: Some(hit), miss: Some(miss), ..Times::default() };
    if S::BATCHES {
        let (all, hit) = time_batches(&asked, subject);
        let (same, miss) = time_batches(absent, subject);
        ensure!(all == asked.len() as u64 && same == passed, "batches answer otherwise");
        times.batch_hit = Some(hit);
        times.batch_miss = Some(miss);
    }
    Ok(Round { keys: members.len() as u64, held_bits: held as f64 * 8.0, false_positives, times })
}

/// Some of the members, evenly from all; all if they are few enough.
pub(crate) fn sample(members: &[Digest]) -> Vec<Digest> {
    members.iter().step_by(members.len().div_ceil(QUESTIONS).max(1)).copied().collect()
}

fn found<S: Subject>(digests: &[Digest], subject: &S) -> u64 {
    digests.iter().map(|&digest| u64::from(subject.contains(digest))).sum()
}

fn lost<S: Subject>(members: &[Digest], subject: &S) -> u64 {
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
pub(crate) fn time(digests: &[Digest], mut operation: impl FnMut(Digest) -> bool) -> (u64, f64) {
    stopwatch(digests.len(), || digests.iter().map(|&digest| u64::from(operation(digest))).sum())
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
