//! The experiment of paper 003: a filter whose keys come and go, and the standard counting filter
//! beside it.

use serde::Serialize;
use tamis::bloom::CountingParams;
use tamis::dleft::DLeftParams;
use tamis::internals::address::probes;
use tamis::{
    Count, CountingBloom, DLeft, Digest, Filter, Full, Hasher, Insert, PlanError, Remove, Stored,
};

use crate::keys::KeyStream;

/// How much comes and goes.
#[derive(Clone, Copy, Debug)]
pub struct Churn {
    /// Keys that are in at any time.
    pub keys: u64,
    /// Steps, each of which removes a random key and inserts a new one.
    pub steps: u64,
    /// Absent keys asked for at the end.
    pub queries: u64,
    /// Which keys.
    pub seed: u64,
}

/// What became of a d-left filter.
#[derive(Clone, Debug, Serialize)]
pub struct DLeftTrial {
    /// The share of buckets with at least 0, 1, 2, ... used cells at the end.
    pub at_least: Vec<f64>,
    /// The largest count that any identity reached.
    pub largest_count: u64,
    /// Insertions that found all their buckets full: each would be an overflow without moves.
    pub full_insertions: u64,
    /// The most entries that the overflow ever held.
    pub overflow: u64,
    /// Buckets of the last subtable that were full, summed over `looks`.
    pub last_full: u64,
    /// How often all buckets were looked at: after every 8192 insertions.
    pub looks: u64,
    /// What all filters have in common.
    #[serde(flatten)]
    pub answers: Answers,
}

/// What became of a standard counting filter.
#[derive(Clone, Debug, Serialize)]
pub struct CountingTrial {
    /// How often a counter was raised to 0, 1, 2, ... in the whole time; 0 stands for nothing.
    pub raised: Vec<u64>,
    /// What all filters have in common.
    #[serde(flatten)]
    pub answers: Answers,
}

impl CountingTrial {
    /// The largest counter there ever was.
    pub fn largest_counter(&self) -> u64 {
        self.raised.iter().rposition(|&times| times > 0).unwrap_or(0) as u64
    }
}

/// What a filter answers after all steps.
#[derive(Clone, Debug, Serialize)]
pub struct Answers {
    /// Members that were not found, or could not be removed: 0, or there is a fault.
    pub false_negatives: u64,
    /// Absent keys that were answered yes.
    pub false_positives: u64,
    /// Absent keys asked for.
    pub queries: u64,
    /// Whether nothing was left when all keys had been removed.
    pub empties: bool,
}

impl Churn {
    /// The experiment on a d-left filter.
    pub fn dleft(&self, params: DLeftParams) -> Result<DLeftTrial, PlanError> {
        let mut filter = DLeft::new(params, self.hasher())?;
        let (mut full_insertions, mut overflow, mut largest_count) = (0, 0, 1);
        let (mut insertions, mut looks, mut last_full) = (0_u64, 0, 0);
        let members = self.run(&mut filter, |filter, digest| {
            full_insertions +=
                u64::from(!filter.has_room(digest) && !filter.contains_digest(digest));
            if !filter.insert_digest(digest)? {
                largest_count = largest_count.max(filter.count_digest(digest).unwrap_or(0));
            }
            overflow = overflow.max(filter.overflow().unwrap_or(0));
            insertions += 1;
            if insertions.is_multiple_of(8192) {
                looks += 1;
                last_full +=
                    filter.loads().last().and_then(|loads| loads.last().copied()).unwrap_or(0);
            }
            Ok(())
        })?;
        let loads = filter.loads();
        let buckets = (u64::from(params.subtables()) * params.buckets()) as f64;
        let share = |least: usize| {
            loads.iter().flat_map(|loads| &loads[least..]).sum::<u64>() as f64 / buckets
        };
        Ok(DLeftTrial {
            at_least: (0..=params.cells() as usize).map(share).collect(),
            largest_count,
            full_insertions,
            overflow,
            last_full,
            looks,
            answers: self.ask(filter, &members),
        })
    }

    /// The same on a standard counting filter.
    pub fn counting(&self, params: CountingParams) -> Result<CountingTrial, PlanError> {
        let mut filter = CountingBloom::new(params, self.hasher())?;
        let mut raised = vec![0; 1 << params.width()];
        let members = self.run(&mut filter, |filter, digest| {
            filter.insert_digest(digest)?;
            let mut positions: Vec<u64> =
                probes(digest, params.hashes(), params.counters()).collect();
            positions.sort_unstable();
            // A counter that the key has twice was raised twice.
            for same in positions.chunk_by(|a, b| a == b) {
                let height = filter.counters().get(same[0]) as usize;
                let times = height.saturating_sub(same.len() - 1)..=height;
                raised[times].iter_mut().for_each(|raised| *raised += 1);
            }
            Ok(())
        })?;
        Ok(CountingTrial { raised, answers: self.ask(filter, &members) })
    }

    fn hasher(&self) -> Hasher {
        Hasher::xxh3(self.seed)
    }

    /// Inserts the keys, lets them come and go, and returns those that are in at the end.
    fn run<F: Remove>(
        &self,
        filter: &mut F,
        mut insert: impl FnMut(&mut F, Digest) -> Result<(), Full>,
    ) -> Result<Vec<Digest>, PlanError> {
        let random = Digest(self.seed);
        let mut members: Vec<Digest> = Vec::new();
        for (number, digest) in (0..).zip(self.members(0..self.keys + self.steps)) {
            if number >= self.keys {
                let leaves = (random.word(number) % self.keys.max(1)) as usize;
                let leaver = members.swap_remove(leaves);
                // One that cannot be removed is noticed at the end, when the filter does not
                // empty.
                let _ = filter.remove_digest(leaver);
            }
            members.push(digest);
            insert(filter, digest).map_err(|_| tamis::OutOfMemory { bytes: u64::MAX })?;
        }
        Ok(members)
    }

    fn members(&self, range: std::ops::Range<u64>) -> impl Iterator<Item = Digest> {
        KeyStream::new(self.seed).members(self.hasher(), range)
    }

    fn ask<F: Remove + Stored>(&self, mut filter: F, members: &[Digest]) -> Answers {
        let found = |digest: &Digest| filter.contains_digest(*digest);
        let missing = members.iter().filter(|digest| !found(digest)).count();
        let absent = KeyStream::new(self.seed).absent_keys(self.hasher(), 0..self.queries);
        let false_positives = absent.filter(found).count() as u64;
        let refused =
            members.iter().filter(|&&digest| filter.remove_digest(digest).is_err()).count();
        let empty = F::new(filter.params(), filter.hasher());
        Answers {
            false_negatives: (missing + refused) as u64,
            false_positives,
            queries: self.queries,
            empties: empty.is_ok_and(|empty| empty.content_id() == filter.content_id()),
        }
    }
}
