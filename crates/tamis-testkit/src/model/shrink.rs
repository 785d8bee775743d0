//! Makes a failing case shorter, as long as it fails in the same way.

use std::time::{Duration, Instant};

use super::history::{Keys, Shape, Step};
use super::{Case, Failure, judge};

/// How long to go on: by then the case is short enough.
const PATIENCE: Duration = Duration::from_secs(30);

/// The shortest case found that breaks the same law.
pub(super) fn shortest(mut failure: Failure) -> Failure {
    let start = Instant::now();
    loop {
        let found = shorter(&failure.case)
            .take_while(|_| start.elapsed() < PATIENCE)
            .find_map(|shorter| judge(&shorter).err().filter(|other| other.law == failure.law));
        match found {
            Some(found) => failure = *found,
            None => return failure,
        }
    }
}

/// Shorter cases, those that leave out most first: without half of the steps, a quarter, ..., one;
/// then with fewer and simpler keys.
fn shorter(case: &Case) -> impl Iterator<Item = Case> {
    let len = case.steps.len();
    let sizes = std::iter::successors(Some(len / 2), |size| Some(size / 2));
    let cuts = sizes.take_while(|&size| size > 0).flat_map(move |size| {
        (0..len).step_by(size).map(move |from| (from, (from + size).min(len)))
    });
    let without = cuts.map(|(from, to)| {
        let mut less = case.clone();
        less.steps.drain(from..to);
        less
    });
    let simpler = (0..len).flat_map(move |at| {
        simpler(case.steps[at]).into_iter().map(move |step| {
            let mut less = case.clone();
            less.steps[at] = step;
            less
        })
    });
    let plain = (case.seed != 1).then(|| Case { seed: 1, ..case.clone() });
    without.chain(simpler).chain(plain)
}

/// Steps that do less.
fn simpler(step: Step) -> Vec<Step> {
    let fewer = |number: u64| {
        let numbers = [number / 2, number - number / 4, number.saturating_sub(1)];
        numbers.into_iter().filter(move |&less| less < number)
    };
    let keys = |keys: Keys, make: &dyn Fn(Keys) -> Step| -> Vec<Step> {
        let mut less: Vec<Step> =
            fewer(keys.number).map(|number| make(Keys { number, ..keys })).collect();
        if keys.shape != Shape::Fresh {
            less.push(make(Keys { shape: Shape::Fresh, ..keys }));
        }
        less
    };
    match step {
        Step::Insert(it, batch) => {
            let mut less = keys(it, &|keys| Step::Insert(keys, batch));
            if batch > 0 {
                less.push(Step::Insert(it, 0));
            }
            less
        }
        Step::InsertValues(it) => keys(it, &Step::InsertValues),
        Step::Refuse(it) => keys(it, &Step::Refuse),
        Step::Ask(it, batch) => keys(it, &|keys| Step::Ask(keys, batch)),
        Step::Merge(it, partner) => {
            let mut less = keys(it, &|keys| Step::Merge(keys, partner));
            less.push(Step::Insert(it, 0));
            less
        }
        Step::Shards(it, shards) => {
            let mut less = keys(it, &|keys| Step::Shards(keys, shards));
            less.push(Step::Insert(it, 0));
            less
        }
        Step::Atomic(it) => keys(it, &Step::Atomic),
        Step::Remove(seed, number, batch) => {
            let mut less: Vec<Step> =
                fewer(number).map(|number| Step::Remove(seed, number, batch)).collect();
            if batch > 0 {
                less.push(Step::Remove(seed, number, 0));
            }
            less
        }
        Step::RemoveValues(seed, number) => {
            fewer(number).map(|number| Step::RemoveValues(seed, number)).collect()
        }
        Step::Update(seed, number) => {
            fewer(number).map(|number| Step::Update(seed, number)).collect()
        }
        Step::Churn(seed, number) => {
            fewer(number).map(|number| Step::Churn(seed, number)).collect()
        }
        Step::Coarsen(bits) if bits > 1 => vec![Step::Coarsen(bits - 1)],
        _ => Vec::new(),
    }
}
