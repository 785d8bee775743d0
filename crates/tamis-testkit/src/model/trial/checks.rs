//! What must hold of a filter, whatever its history.

use tamis::{AnyParams, Count, Digest, Filter};

use super::super::dice::Dice;
use super::super::subject;
use super::super::truth::Member;
use super::{Checked, Trial, broken, ensure};

/// How many members are looked up after a step, if there are more.
const SAMPLE: usize = 64;
/// How many times the predicted memory a filter may hold.
const MOST_MEMORY: f64 = 2.0;
/// Bytes beyond that for lists that start small and double. They matter in the smallest filters
/// only.
const SLACK: u64 = 1024;
/// Bytes that a key may take in a list that doubles.
const LISTED: u64 = 2 * 24;
/// How many blocks may be full by chance where few are expected to be: a full block of a balanced
/// filter lists all later keys, so a filter of one block lists none or most of them.
const FULL_BY_CHANCE: u64 = 4;

impl Trial {
    /// Checks what is cheap to check at any size: a sample of the members, and memory.
    pub(super) fn glance(&mut self) -> Checked {
        let len = self.truth.members.len();
        let mut dice = Dice::new(self.operations);
        for _ in 0..SAMPLE.min(len) {
            let member = self.truth.members[dice.below(len as u64) as usize];
            self.found(member)?;
        }
        self.operations += SAMPLE.min(len) as u64;
        let keys = self.held.filter.keys();
        ensure(keys == len as u64, "keys are counted", || format!("{keys}, not {len}"))?;
        let (told, counted) = (self.held.filter.footprint(), self.held.bytes * 8);
        ensure(told as i64 == counted, "footprint is memory", || {
            format!("{told} bits told, {counted} held")
        })
    }

    pub(super) fn found(&self, member: Member) -> Checked {
        ensure(self.held.filter.contains_digest(member.digest), "no false negative", || {
            format!("{member:?} is not found")
        })
    }

    /// Checks that the filter holds at most twice the predicted memory. Called last, because
    /// predictions take long.
    pub(in super::super) fn memory(&self) -> Checked {
        let told = self.held.filter.footprint();
        let keys = self.most.max(self.truth.len());
        let predict = |params: AnyParams| params.predict(keys).bits_per_key * keys.max(1) as f64;
        // A layout that no plan would choose is laid out as planned when its overflow gets long.
        let planned = subject::as_planned(&self.planned).map_or(0.0, predict);
        // A filter that has no room for identities of their length any more is laid out for
        // shorter ones.
        let now = self.held.filter.params();
        let coarser = subject::coarsened(&self.planned, &now).map_or(0.0, predict);
        let predicted = predict(self.planned).max(planned).max(coarser);
        let by_chance = subject::lists_by_block(&self.planned)
            .map_or(0, |blocks| FULL_BY_CHANCE * keys / blocks);
        let listed = (self.chosen + by_chance.min(keys)) * LISTED;
        let allowed = MOST_MEMORY * predicted + ((listed + SLACK) * 8) as f64;
        ensure(told as f64 <= allowed, "memory is as predicted", || {
            let now = self.held.filter.params().named();
            format!(
                "{} bytes for {keys} keys ({} chosen), {} predicted; {} in the overflow; now {now:?}",
                told / 8,
                self.chosen,
                predicted / 8.0,
                self.held.filter.overflow().unwrap_or(0),
            )
        })
    }

    pub(super) fn valid(&self) -> Checked {
        self.held.filter.validate().or_else(|invalid| broken("filters are valid", &invalid))
    }

    /// Checks all that can be checked.
    pub(in super::super) fn check(&mut self) -> Checked {
        self.glance()?;
        self.valid()?;
        let filter = &self.held.filter;
        let digests = self.truth.digests();
        let mut answers = vec![false; digests.len()];
        filter.contains_many(&digests, &mut answers);
        if let Some(at) = answers.iter().position(|&answer| !answer) {
            return broken("no false negative", &format!("{:?} is not found", digests[at]));
        }
        self.operations += digests.len() as u64;
        let (rate, fill) = (filter.rate(), filter.fill());
        ensure((0.0..=1.0).contains(&rate) && (0.0..=1.0).contains(&fill), "shares", || {
            format!("rate {rate}, fill {fill}")
        })?;
        self.content(&digests)?;
        self.counts(digests)
    }

    /// Checks that the filter holds the multiset, and that a filter of the same keys in another
    /// order holds the same.
    fn content(&mut self, digests: &[Digest]) -> Checked {
        let filter = &self.held.filter;
        if let Some(universe) = subject::universe(&filter.params()) {
            let (told, truth) = (filter.entries(), self.truth.entries(self.kind, universe));
            ensure(told == truth, "the content is the multiset", || {
                let at = told.iter().zip(&truth).take_while(|(a, b)| a == b).count();
                format!("{:?} instead of {:?}", told.get(at), truth.get(at))
            })?;
        }
        if self.truth.valued || !subject::forgets_order(filter) {
            return Ok(());
        }
        let mut order: Vec<Digest> = digests.to_vec();
        order.sort_unstable_by_key(|digest| digest.word(5));
        let rebuilt = filter.params().build_from(self.label, &order);
        let rebuilt = rebuilt.or_else(|error| broken("filters can be built", &error))?;
        self.operations += order.len() as u64;
        ensure(rebuilt.content_id() == filter.content_id(), "history leaves no trace", || {
            "the same keys in another order have another content".into()
        })
    }

    /// Checks that counts are never too low, that they are exact where this is promised, and that
    /// values are those that were inserted.
    fn counts(&mut self, mut digests: Vec<Digest>) -> Checked {
        let filter = &self.held.filter;
        digests.sort_unstable();
        let entries = filter.entries();
        let runs = digests.chunk_by(|a, b| a == b);
        for run in runs.step_by(digests.len() / 500 + 1) {
            let (told, exact) =
                (filter.count_digest(run[0]), subject::exact_count(filter, &entries, run[0]));
            ensure(
                told.is_none_or(|told| told >= run.len() as u64),
                "counts are never low",
                || format!("{:?} is in {} times, {told:?} told", run[0], run.len()),
            )?;
            ensure(exact.is_none() || told == exact, "counts are exact", || {
                format!("{:?} is in {exact:?} times, {told:?} told", run[0])
            })?;
        }
        for member in self.truth.members.iter().filter(|it| it.key.is_some()).take(200) {
            let told = subject::values(filter, member.key.unwrap_or(0));
            ensure(told.contains(&member.value), "no value is lost", || {
                format!("{member:?} has {told:?}")
            })?;
        }
        Ok(())
    }
}
