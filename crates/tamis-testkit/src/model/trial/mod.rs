//! Runs one history on one filter, with the exact multiset beside it.

mod bytes;
mod checks;

use std::time::Duration;

use tamis::{AnyFilter, AnyParams, Digest, Filter, Hasher, Kind, Label, SharedBytes};
use tamis_report::memory;

use super::clock::{MOST, Watch};
use super::dice::Dice;
use super::history::{Keys, Partner, Shape, Step};
use super::subject;
use super::truth::{Member, Truth};

/// Up to this number of members every invariant is checked after every operation.
const TINY: u64 = 40;
/// Above this number of members not everything is checked after every step.
const FEW: u64 = 400;
/// A call that works on the whole filter may take [`MOST`] once more for every `BYTES_A_CALL`
/// bytes that the filter holds...
const BYTES_A_CALL: u64 = 1 << 20;
/// ... and once more for every `KEYS_A_CALL` keys: 3 microseconds for each key, for kinds that
/// place every key anew.
const KEYS_A_CALL: u64 = 1 << 14;

/// What went wrong.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    /// The law, in words without numbers, so that a shorter history can be seen to break the same
    /// law.
    pub(super) law: &'static str,
    pub(super) detail: String,
}

type Checked<T = ()> = Result<T, Broken>;

fn ensure(holds: bool, law: &'static str, detail: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Broken { law, detail: detail() }) }
}

fn broken<T>(law: &'static str, detail: &impl ToString) -> Checked<T> {
    Err(Broken { law, detail: detail.to_string() })
}

/// A filter and the memory that it holds, by the allocator's count.
struct Held {
    filter: AnyFilter,
    bytes: i64,
}

impl Held {
    fn make<E: ToString>(make: impl FnOnce() -> Result<AnyFilter, E>) -> Result<Self, String> {
        let before = memory::held();
        match make() {
            Ok(filter) => Ok(Self { filter, bytes: memory::held() - before }),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Changes the filter, and counts its memory anew. The result of `change` must hold no memory.
    fn change<T: Copy>(&mut self, change: impl FnOnce(&mut AnyFilter) -> T) -> T {
        let before = memory::held();
        let done = change(&mut self.filter);
        self.bytes += memory::held() - before;
        done
    }
}

/// A copy of the filter, with the layout that its memory is predicted from, and what was inserted
/// since.
struct Kept {
    filter: AnyFilter,
    planned: AnyParams,
    most: u64,
    chosen: u64,
}

/// A running history.
pub(super) struct Trial {
    kind: Kind,
    /// The layout that the filter began with.
    first: AnyParams,
    label: Label,
    watch: Watch,
    held: Held,
    truth: Truth,
    /// Bytes that the filter or its copy may still use in place. A change of the filter must not
    /// free them.
    shared: Vec<SharedBytes>,
    kept: Option<Kept>,
    /// The layout that memory is predicted from, and the most keys since then.
    planned: AnyParams,
    most: u64,
    /// Digests since then that were not drawn at random: predictions do not hold for them.
    chosen: u64,
    /// The operation so far that exceeded its time the most, with its name.
    pub(super) slow: Option<(Duration, &'static str)>,
    pub(super) operations: u64,
}

impl Trial {
    pub(super) fn new(kind: Kind, values: &[u64], seed: u64, watch: Watch) -> Checked<Self> {
        let hasher = match seed % 3 {
            0 => Hasher::sip13(seed.into()),
            _ => Hasher::xxh3(seed),
        };
        let label = Label::planned(hasher, seed % 1000);
        let planned = match AnyParams::from_values(kind, values) {
            Ok(params) => params,
            Err(error) => return broken("layouts are legal", &error),
        };
        let held = Held::make(|| planned.build(label));
        let held = held.or_else(|error| broken("layouts can be built", &error))?;
        let mut trial = Self {
            kind,
            first: planned,
            label,
            watch,
            held,
            truth: Truth::default(),
            shared: Vec::new(),
            kept: None,
            planned,
            most: 0,
            chosen: 0,
            slow: None,
            operations: 0,
        };
        trial.replan();
        trial.check()?;
        Ok(trial)
    }

    /// Takes a step, and checks the result.
    pub(super) fn step(&mut self, step: Step) -> Checked {
        match step {
            Step::Insert(keys, batch) => self.insert(keys, batch)?,
            Step::InsertValues(keys) => self.insert_values(keys)?,
            Step::Remove(seed, number, batch) => self.remove(seed, number, batch)?,
            Step::RemoveValues(seed, number) => self.remove_values(seed, number)?,
            Step::Update(seed, number) => self.update(seed, number)?,
            Step::Churn(seed, number) => self.churn(seed, number)?,
            Step::Refuse(keys) => self.refuse(keys)?,
            Step::Ask(keys, batch) => self.ask(keys, batch)?,
            Step::Merge(keys, partner) => self.merge(keys, partner)?,
            Step::Shards(keys, shards) => self.shards(keys, shards)?,
            Step::Atomic(keys) => self.atomic(keys),
            Step::Grow => self.lay_out(|filter| filter.grow().is_ok())?,
            Step::Shrink => self.lay_out(|filter| filter.shrink().is_ok())?,
            Step::Resize(keys) => self.lay_out(|filter| subject::resize(filter, keys))?,
            Step::Coarsen(bits) => self.coarsen(bits)?,
            Step::Clear => self.clear()?,
            Step::Encode => self.encode(None)?,
            Step::Pack(effort) => self.encode(Some(effort))?,
            Step::Open => self.open()?,
            Step::Keep => self.keep(),
            Step::Patch => self.patch()?,
            Step::Portable => self.held.change(subject::make_portable),
            Step::Check => self.check()?,
        }
        self.most = self.most.max(self.truth.len());
        if self.truth.len() <= FEW { self.check() } else { self.glance() }
    }

    /// Times a call that may take longer if the filter holds more.
    fn timed<T>(&mut self, name: &'static str, call: impl FnOnce(&mut Self) -> T) -> T {
        let start = self.watch.start();
        let done = call(self);
        self.note(name, start.elapsed(), MOST * self.pieces());
        self.operations += 1;
        done
    }

    /// Times a merge of `keys` keys. The table is built anew, and then grows once, and once more
    /// for every doubling of the keys. (An insertion makes it grow once.)
    fn timed_merge(&mut self, other: &AnyFilter, keys: usize) -> bool {
        let doublings = (keys as u64 / (self.truth.len() + 1) + 1).ilog2();
        let start = self.watch.start();
        let done = self.held.change(|filter| filter.merge(other).is_ok());
        self.note("merge", start.elapsed(), MOST * (self.pieces() + 1 + doublings));
        self.operations += 1;
        done
    }

    /// How many times [`MOST`] a call may take that works on the whole filter.
    fn pieces(&self) -> u32 {
        let shared = self.shared.last().map_or(0, |bytes| (**bytes).as_ref().len() as u64);
        let bytes = self.held.bytes.max(0) as u64 + shared;
        (1 + bytes / BYTES_A_CALL + self.truth.len() / KEYS_A_CALL) as u32
    }

    fn note(&mut self, name: &'static str, spent: Duration, allowed: Duration) {
        if spent > allowed && self.slow.is_none_or(|(slowest, _)| spent > slowest) {
            self.slow = Some((spent, name));
        }
    }

    /// Runs single operations, timed in runs or one by one.
    fn each<T: Copy>(
        &mut self,
        name: &'static str,
        items: &[T],
        mut operation: impl FnMut(&mut Self, T) -> Checked,
    ) -> Checked {
        for run in items.chunks(self.watch.run()) {
            let start = self.watch.start();
            for &item in run {
                operation(self, item)?;
            }
            self.note(name, start.elapsed(), MOST);
        }
        self.operations += items.len() as u64;
        Ok(())
    }

    fn insert(&mut self, keys: Keys, batch: usize) -> Checked {
        let digests: Vec<Digest> = keys.digests().collect();
        if keys.shape != Shape::Fresh {
            self.chosen += keys.number;
        }
        if !self.kind.can_insert() {
            self.truth.insert_all(&digests);
            return self.rebuild();
        }
        if batch == 0 || self.watch == Watch::Each {
            return self.each("insert", &digests, Self::insert_one);
        }
        for digests in digests.chunks(batch) {
            let start = self.watch.start();
            let done = self.held.change(|filter| {
                filter.as_insert().map_or(Ok(()), |filter| filter.insert_many(digests))
            });
            self.note("insert_many", start.elapsed(), MOST);
            self.operations += digests.len() as u64;
            let inserted = done.map_or_else(|full| full.inserted as usize, |()| digests.len());
            self.truth.insert_all(&digests[..inserted]);
            ensure(done.is_ok() || subject::may_refuse(&self.planned), "there is room", || {
                format!("after {inserted} of a batch of {}", digests.len())
            })?;
        }
        Ok(())
    }

    fn insert_one(&mut self, digest: Digest) -> Checked {
        let before = self.held.filter.contains_digest(digest);
        let done = self
            .held
            .change(|filter| filter.as_insert().map(|filter| filter.insert_digest(digest)));
        match done {
            Some(Ok(new)) => {
                self.truth.insert(digest);
                ensure(new != before, "`insert` answers what `contains` answered", || {
                    format!("{digest:?}: new {new}, held before {before}")
                })
            }
            Some(Err(_)) if subject::may_refuse(&self.planned) => Ok(()),
            _ => broken("there is room", &format!("{digest:?} is refused")),
        }
    }

    fn insert_values(&mut self, keys: Keys) -> Checked {
        let Some(most) = subject::max_value(&self.held.filter) else { return Ok(()) };
        // Values are not drawn at random either.
        self.chosen += keys.number;
        self.truth.valued = true;
        let mut dice = Dice::new(keys.seed);
        let keys: Vec<(u64, Digest)> = keys.numbers(self.label.hasher).collect();
        self.each("insert_value", &keys, |trial, (key, digest)| {
            let value = if dice.once_in(2) { dice.below(3).min(most) } else { dice.word() & most };
            let done = trial.held.change(|filter| subject::insert_value(filter, key, value));
            trial.truth.members.push(Member { digest, value, key: Some(key) });
            ensure(done, "there is room", || format!("key {key} with value {value} is refused"))
        })
    }

    fn remove(&mut self, seed: u64, number: u64, batch: usize) -> Checked {
        let mut dice = Dice::new(seed);
        if self.kind.can_insert() && self.held.filter.as_remove().is_none() {
            return Ok(());
        }
        if self.truth.valued && self.kind.can_insert() {
            return self.remove_valued(&mut dice, number.min(100));
        }
        let taken = (0..number).map_while(|_| self.truth.take_any(&mut dice));
        let digests: Vec<Digest> = taken.map(|member| member.digest).collect();
        if !self.kind.can_insert() {
            return self.rebuild();
        }
        if batch == 0 || self.watch == Watch::Each {
            return self.each("remove", &digests, Self::remove_one);
        }
        for digests in digests.chunks(batch) {
            let start = self.watch.start();
            let done = self.held.change(|filter| {
                filter.as_remove().map_or(0, |filter| filter.remove_many(digests))
            });
            self.note("remove_many", start.elapsed(), MOST);
            self.operations += digests.len() as u64;
            ensure(done == digests.len() as u64, "no false negative", || {
                format!("{done} of {} members removed", digests.len())
            })?;
        }
        Ok(())
    }

    fn remove_one(&mut self, digest: Digest) -> Checked {
        let done = self
            .held
            .change(|filter| filter.as_remove().map(|filter| filter.remove_digest(digest)));
        ensure(matches!(done, Some(Ok(()))), "no false negative", || {
            format!("{digest:?} cannot be removed")
        })
    }

    /// Removes keys whatever their values. Of several values, the smallest is removed.
    fn remove_valued(&mut self, dice: &mut Dice, number: u64) -> Checked {
        let Some(universe) = subject::universe(&self.held.filter.params()) else { return Ok(()) };
        for _ in 0..number.min(self.truth.len()) {
            let at = dice.below(self.truth.len()) as usize;
            let digest = self.truth.members[at].digest;
            self.truth.take_like(digest, universe);
            self.each("remove", &[digest], Self::remove_one)?;
        }
        Ok(())
    }

    fn remove_values(&mut self, seed: u64, number: u64) -> Checked {
        let mut dice = Dice::new(seed);
        let keyed: Vec<usize> = (0..self.truth.members.len())
            .filter(|&at| self.truth.members[at].key.is_some())
            .collect();
        let mut gone: Vec<usize> = (0..number.min(keyed.len() as u64))
            .map(|_| keyed[dice.below(keyed.len() as u64) as usize])
            .collect();
        gone.sort_unstable();
        gone.dedup();
        let gone: Vec<Member> =
            gone.into_iter().rev().map(|at| self.truth.members.swap_remove(at)).collect();
        self.each("remove_value", &gone, |trial, member| {
            let key = member.key.unwrap_or(0);
            let done = trial.held.change(|filter| subject::remove_value(filter, key, member.value));
            ensure(done, "no false negative", || format!("{member:?} cannot be removed"))
        })
    }

    fn update(&mut self, seed: u64, number: u64) -> Checked {
        let Some(most) = subject::max_value(&self.held.filter) else { return Ok(()) };
        let mut dice = Dice::new(seed);
        for _ in 0..number.min(self.truth.len()) {
            let at = dice.below(self.truth.len()) as usize;
            let member = self.truth.members[at];
            let (Some(key), new) = (member.key, dice.word() & most) else { continue };
            self.truth.members[at].value = new;
            self.each("update", &[member], |trial, member| {
                let done =
                    trial.held.change(|filter| subject::update(filter, key, member.value, new));
                ensure(done, "no false negative", || format!("{member:?} cannot be changed"))
            })?;
        }
        Ok(())
    }

    /// Removes a key and inserts one, again and again. For kinds that cannot remove, it only looks
    /// up members.
    fn churn(&mut self, seed: u64, number: u64) -> Checked {
        let mut dice = Dice::new(seed);
        if self.truth.members.is_empty() {
            return Ok(());
        }
        let numbers: Vec<u64> = (0..number).collect();
        let removes = !self.truth.valued && self.held.filter.as_remove().is_some();
        self.each("churn", &numbers, |trial, _| {
            let len = trial.truth.len();
            if !removes {
                return trial.found(trial.truth.members[dice.below(len) as usize]);
            }
            let Some(gone) = trial.truth.take_any(&mut dice) else { return Ok(()) };
            trial.remove_one(gone.digest)?;
            let comes = match dice.below(8) {
                0 => Digest(Digest(dice.below(40)).word(13)),
                1 if len > 1 => trial.truth.members[dice.below(len - 1) as usize].digest,
                _ => Digest(dice.word()),
            };
            trial.insert_one(comes)?;
            if len <= TINY {
                trial.valid()?;
            }
            trial.found(Member { digest: comes, value: 0, key: None })
        })?;
        if removes {
            self.operations += 3 * number;
            self.chosen += number.min(80);
        }
        Ok(())
    }

    /// Checks that an absent key cannot be removed, and that trying changes nothing.
    fn refuse(&mut self, keys: Keys) -> Checked {
        let held = &self.held.filter;
        let absent: Vec<Digest> =
            keys.digests().filter(|&digest| !held.contains_digest(digest)).collect();
        let before = held.content_id();
        self.each("refused remove", &absent, |trial, digest| {
            let done = trial.held.change(|filter| {
                filter.as_remove().is_some_and(|it| it.remove_digest(digest).is_ok())
            });
            ensure(!done, "what is absent is refused", || format!("{digest:?} was removed"))
        })?;
        let removed =
            self.held.change(|filter| filter.as_remove().map_or(0, |it| it.remove_many(&absent)));
        ensure(removed == 0, "what is absent is refused", || format!("{removed} of a batch"))?;
        ensure(self.held.filter.content_id() == before, "all or nothing", || {
            "a refused removal changed the content".into()
        })
    }

    fn ask(&mut self, keys: Keys, batch: usize) -> Checked {
        let digests: Vec<Digest> = keys.digests().collect();
        let mut single = Vec::with_capacity(digests.len());
        self.each("contains", &digests, |trial, digest| {
            single.push(trial.held.filter.contains_digest(digest));
            Ok(())
        })?;
        let mut answers = vec![false; digests.len()];
        for (digests, answers) in digests.chunks(batch.max(1)).zip(answers.chunks_mut(batch.max(1)))
        {
            self.held.filter.contains_many(digests, answers);
        }
        self.operations += digests.len() as u64;
        ensure(single == answers, "batches are plain", || "other answers in a batch".into())
    }

    fn merge(&mut self, keys: Keys, partner: Partner) -> Checked {
        let now = self.held.filter.params();
        let Some(params) = subject::partner(&self.first, &now, partner) else { return Ok(()) };
        if subject::may_refuse(&params) || !self.kind.can_insert() {
            return Ok(());
        }
        let digests: Vec<Digest> = keys.digests().collect();
        let other = match params.build_from(self.label, &digests) {
            Ok(other) => other,
            Err(error) => return broken("there is room", &error),
        };
        self.operations += digests.len() as u64;
        let added = if keys.shape == Shape::Fresh { 0 } else { keys.number };
        self.absorb(&other, &digests, added)
    }

    /// Merges a filter into this one, or checks that a refused merge changed nothing.
    fn absorb(&mut self, other: &AnyFilter, digests: &[Digest], chosen: u64) -> Checked {
        let before = self.held.filter.content_id();
        let theirs = other.content_id();
        let done = self.timed_merge(other, digests.len());
        ensure(other.content_id() == theirs, "merging leaves the other", String::new)?;
        if done {
            self.truth.insert_all(digests);
            // The lists of balanced kinds are united, whatever length was planned for them.
            let listed =
                if subject::universe(&other.params()).is_none() { other.overflow() } else { None };
            self.chosen += chosen + listed.unwrap_or(0);
            return Ok(());
        }
        let same =
            subject::universe(&self.held.filter.params()) == subject::universe(&other.params());
        ensure(!same, "equal layouts merge", || "refused".into())?;
        ensure(self.held.filter.content_id() == before, "all or nothing", || {
            "a refused merge changed the content".into()
        })
    }

    fn shards(&mut self, keys: Keys, shards: usize) -> Checked {
        let params = self.held.filter.params();
        if subject::may_refuse(&params) || !self.kind.can_insert() {
            return Ok(());
        }
        let digests: Vec<Digest> = keys.digests().collect();
        let removes = self.held.filter.as_remove().is_some();
        let (gone, stay) = digests.split_at(if removes { digests.len() / 3 } else { 0 });
        let dealt = subject::through_shards(params, self.label, shards, (&digests, gone));
        let other = dealt.or_else(|error| broken("shards are one filter", &error))?;
        self.operations += 3 * digests.len() as u64;
        let chosen = if keys.shape == Shape::Fresh { 0 } else { keys.number };
        self.absorb(&other, stay, chosen)
    }

    fn atomic(&mut self, keys: Keys) {
        let digests: Vec<Digest> = keys.digests().collect();
        if self.held.change(|filter| subject::insert_atomically(filter, &digests)) {
            self.truth.insert_all(&digests);
            self.operations += digests.len() as u64;
        }
    }

    /// Changes the layout, and checks that the content stays.
    fn lay_out(&mut self, change: impl FnOnce(&mut AnyFilter) -> bool) -> Checked {
        let before = self.held.filter.content_id();
        let done = self.timed("resize", |trial| trial.held.change(change));
        if done {
            self.replan();
        }
        ensure(self.held.filter.content_id() == before, "identities stay", || {
            "another content in another layout".into()
        })
    }

    fn coarsen(&mut self, bits: u32) -> Checked {
        let before = self.held.filter.content_id();
        if self.timed("coarsen", |trial| trial.held.change(|filter| subject::coarsen(filter, bits)))
        {
            self.replan();
            return Ok(());
        }
        ensure(self.held.filter.content_id() == before, "all or nothing", || {
            "coarsening was refused and changed the content".into()
        })
    }

    /// Predicts memory from this layout on: it was chosen by the user, or for a known number of
    /// keys.
    fn replan(&mut self) {
        self.planned = self.held.filter.params();
        (self.most, self.chosen) = (self.truth.len(), 0);
        // What is in the overflow counts as not drawn at random for this layout.
        if let Some(overflow) = self.held.filter.overflow() {
            self.chosen = overflow;
        }
    }

    fn clear(&mut self) -> Checked {
        self.held.change(AnyFilter::clear);
        self.truth = Truth::default();
        let empty = self.held.filter.params().build(self.label);
        let empty = empty.or_else(|error| broken("layouts can be built", &error))?;
        ensure(empty.content_id() == self.held.filter.content_id(), "clear leaves nothing", || {
            "another content than that of an empty filter".into()
        })
    }

    /// A kind that is built once is built anew from all keys.
    fn rebuild(&mut self) -> Checked {
        let digests = self.truth.digests();
        let planned = self.planned;
        // This is not timed: a kind that is built once may take long.
        let made = planned.build_from(self.label, &digests);
        let made = made.or_else(|error| broken("filters can be built", &error))?;
        // Memory that other threads allocated is not counted here, so a copy is made by this
        // thread.
        let copy = Held::make(|| Ok::<_, String>(made.clone()));
        self.held = copy.or_else(|error| broken("filters can be built", &error))?;
        self.operations += digests.len() as u64;
        Ok(())
    }
}
