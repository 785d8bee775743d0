//! Filters whose keys expire.
//!
//! A key is found for at least `lifetime` after it was inserted or touched, and is gone after
//! `lifetime` (1 + 1/`steps`). Time is a number that the caller passes, in units of its own: the
//! library has no clock.
//!
//! ```text
//! time         | step 7 | step 8 | step 9 | step 10 | step 11 |
//! generations    (dropped)  [ 3 ]    [ 2 ]     [ 1 ]     [ 0 ]     steps = 3, now in step 11
//! ```
//!
//! Time is cut into steps of `lifetime` / `steps`, and every step has a *generation*: the keys
//! that were last inserted or touched in it, as a [`BlockedRank`]. There are `steps` + 1 of them.
//! When a new step begins, the oldest is dropped as a whole. So nothing is ever scanned for what
//! is old, and an expired key costs the time to give memory back.
//!
//! All generations have one universe, and so a key has one identity in all of them. An identity is
//! in one generation at most: inserting a key moves its identity into the youngest. This is exact.
//! Keys of one identity are one key to the filter, and if one of them is touched, all of them are
//! found for as long as that one. Ages cost no rate: it is the number of identities, whatever
//! their ages, over the universe. They cost memory: with k generations a table has a k-th of the
//! keys, and fingerprints take log2(k) bits more.
//!
//! Generations are laid out anew as keys come and go, in small steps (`generation.rs`), so the
//! memory follows the keys that are alive.

mod generation;
mod message;
mod wire;

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::generation::Generation;
use crate::address;
use crate::blocked_rank::ladder;
use crate::digest::{Digest, Hasher};
use crate::entry::{Entry, order};
use crate::filter::Filter as _;
use crate::key::Key;
use crate::spec::{Absent, Full, Goal, Invalid, Kind, Label, MergeError, PlanError, require};
use crate::wire::{ContentHasher, ContentId};

/// A generation is laid out anew when it has room for a share of 1/`YOUNG` more keys, which is
/// beyond the room that it grows by; when no keys come to it any more, of 1/`OLD`; and when the
/// next one begins, of 1/`FITS`.
const YOUNG: u64 = 4;
const OLD: u64 = 16;
const FITS: u64 = 32;

/// The most steps of a lifetime. Frozen.
const MOST_STEPS: u32 = 64;

/// A filter whose keys expire.
///
/// A key that was inserted or touched at time t is found until t + `lifetime` at least, and is
/// gone from t + `lifetime` (1 + 1/`steps`) on. More steps make the end sharper, and take more
/// memory and time: a question looks at up to `steps` + 1 tables. With 1, 4, 8 or 16 steps a key
/// takes about 1, 2.5, 3.3 or 4.1 bits more than in a [`BlockedRank`](crate::BlockedRank). With
/// fewer than ten thousand keys per step it is more, because a table takes some hundred bytes.
///
/// Times are numbers in any unit, such as milliseconds. If the clock goes back, nothing is lost:
/// the filter takes the latest time that it was told for the present, until the clock has passed
/// it.
///
/// ```
/// use tamis::{Aging, Hasher};
/// // A million keys at 1%, each for an hour, in milliseconds.
/// let hour = 3_600_000;
/// let mut seen = Aging::new(Hasher::default(), 1_000_000, 0.01, hour, 4)?;
/// seen.insert("apple", 0)?;
/// assert!(seen.contains("apple", hour));
/// assert!(!seen.contains("apple", hour + hour / 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Limits
///
/// The universe is fixed by `capacity` and `rate`. More keys than `capacity` may be alive at once:
/// then the [rate](Self::rate) rises, in proportion.
///
/// An identity is kept once. So [`remove`](Self::remove) also removes a key that shares the
/// identity of the one removed, with probability `rate` at most.
#[derive(Clone, Debug)]
pub struct Aging {
    hasher: Hasher,
    /// Keys planned for.
    capacity: u64,
    universe: u64,
    lifetime: u64,
    steps: u32,
    /// The step of the youngest generation.
    latest: u64,
    /// By age in steps, the youngest first; `None` if there is no key of that age.
    generations: Vec<Option<Box<Generation>>>,
}

impl Aging {
    /// An empty filter for `capacity` keys that are alive at once, with the rate `rate`. A key
    /// lives for `lifetime`, cut into `steps` steps, 1 to 64.
    pub fn new(
        hasher: Hasher,
        capacity: u64,
        rate: f64,
        lifetime: u64,
        steps: u32,
    ) -> Result<Self, PlanError> {
        let goal = Goal::rate(capacity, rate);
        goal.check()?;
        let keys = goal.sized_keys();
        // As many as make 1 - (1 - 1/U)^n the rate.
        let identities = -1.0 / libm::expm1(libm::log1p(-rate) / keys as f64);
        let nearest = keys as f64 / libm::exp2(60.0);
        let kind = Kind::BlockedRank.name();
        let unreachable = PlanError::Unreachable { kind, asked: rate, keys, nearest };
        let universe = ladder::universe(identities).ok_or(unreachable)?;
        require(lifetime > 0, "lifetime", lifetime, "1 or more")?;
        require((1..=MOST_STEPS).contains(&steps), "steps", steps, "1 to 64")?;
        Ok(Self::empty(hasher, capacity, [universe, lifetime, steps.into(), 0]))
    }

    /// An empty filter with params that were checked: universe, lifetime, steps and latest step.
    fn empty(hasher: Hasher, capacity: u64, params: [u64; 4]) -> Self {
        let [universe, lifetime, steps, latest] = params;
        let mut generations = Vec::new();
        generations.resize_with(steps as usize + 1, || None);
        let steps = steps as u32;
        Self { hasher, capacity, universe, lifetime, steps, latest, generations }
    }

    /// Universe, lifetime, steps and latest step: what decides answers beside the generations.
    fn params(&self) -> [u64; 4] {
        [self.universe, self.lifetime, self.steps.into(), self.latest]
    }

    /// The step of a time.
    fn step(&self, now: u64) -> u64 {
        let step = u128::from(now) * u128::from(self.steps) / u128::from(self.lifetime);
        u64::try_from(step).unwrap_or(u64::MAX)
    }

    /// How many steps have passed at `step` since the latest; at most as many as there are
    /// generations.
    fn passed_steps(&self, step: u64) -> usize {
        let passed = step.saturating_sub(self.latest);
        passed.min(self.generations.len() as u64) as usize
    }

    /// The generations that are alive at `now`, the youngest first.
    fn alive(&self, now: u64) -> impl Iterator<Item = &Generation> {
        let ages = self.generations.len() - self.passed_steps(self.step(now));
        self.generations[..ages].iter().filter_map(Option::as_deref)
    }

    /// Gives back the memory of keys that have expired at `now`. What changes the filter does so
    /// too.
    pub fn advance(&mut self, now: u64) {
        self.begin_step(self.step(now));
    }

    /// Begins a step, if it is later than the latest, and drops what is too old for it.
    fn begin_step(&mut self, step: u64) {
        let passed = self.passed_steps(step);
        self.latest = self.latest.max(step);
        self.generations.rotate_right(passed);
        self.generations[..passed].fill_with(|| None);
    }

    /// Inserts `key`, or renews it if it is in. Returns `Ok(true)` if it was surely absent before.
    /// It is an error if there is no memory left for it.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K, now: u64) -> Result<bool, Full> {
        self.insert_digest(self.hasher.digest(key), now)
    }

    /// As [`insert`](Self::insert), for a key by its digest.
    pub fn insert_digest(&mut self, digest: Digest, now: u64) -> Result<bool, Full> {
        self.advance(now);
        self.put(address::identity(digest, self.universe), 0)
    }

    /// Renews `key` if it is in, and returns whether it is. It is an error if there is no memory
    /// left for it; then its age has not changed.
    #[inline]
    pub fn touch<K: Key + ?Sized>(&mut self, key: &K, now: u64) -> Result<bool, Full> {
        self.touch_digest(self.hasher.digest(key), now)
    }

    /// As [`touch`](Self::touch), for a key by its digest.
    pub fn touch_digest(&mut self, digest: Digest, now: u64) -> Result<bool, Full> {
        let is_in = self.contains_digest(digest, now);
        if is_in {
            self.insert_digest(digest, now)?;
        }
        Ok(is_in)
    }

    /// Whether `key` may be in at `now`. `false` is always right; an absent key is answered `true`
    /// with probability [`rate`](Self::rate).
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K, now: u64) -> bool {
        self.contains_digest(self.hasher.digest(key), now)
    }

    /// As [`contains`](Self::contains), for a key by its digest.
    pub fn contains_digest(&self, digest: Digest, now: u64) -> bool {
        let identity = address::identity(digest, self.universe);
        self.alive(now).any(|generation| generation.contains(identity))
    }

    /// Removes `key`, whatever its age. It is an error if the filter answers no for it.
    ///
    /// Remove only keys that are in. Another key of the same identity goes with it, with
    /// probability [`rate`](Self::rate).
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K, now: u64) -> Result<(), Absent> {
        self.remove_digest(self.hasher.digest(key), now)
    }

    /// As [`remove`](Self::remove), for a key by its digest.
    pub fn remove_digest(&mut self, digest: Digest, now: u64) -> Result<(), Absent> {
        if !self.contains_digest(digest, now) {
            return Err(Absent);
        }
        self.advance(now);
        self.take(address::identity(digest, self.universe), 0);
        Ok(())
    }

    /// Starts fetching the memory that a question for `digest` will read.
    pub fn prefetch(&self, digest: Digest) {
        for generation in self.generations.iter().flatten() {
            generation.filter().prefetch(digest);
        }
    }

    /// Puts an identity into the generation of this age, unless it is in a younger one. Returns
    /// true if it was in none.
    fn put(&mut self, identity: u64, age: usize) -> Result<bool, Full> {
        let mut younger = self.generations[..=age].iter().flatten();
        if younger.any(|generation| generation.contains(identity)) {
            return Ok(false);
        }
        match &mut self.generations[age] {
            Some(generation) => generation.insert(identity)?,
            empty => {
                let generation = Generation::of(self.hasher, self.universe, identity)?;
                *empty = Some(Box::new(generation));
                let older = self.generations[age + 1..].iter_mut().flatten();
                older.for_each(|generation| generation.fit(FITS));
            }
        }
        Ok(!self.take(identity, age + 1))
    }

    /// Removes an identity from the generations of this age or older, and returns whether it was
    /// there. (Only one has it.)
    fn take(&mut self, identity: u64, age: usize) -> bool {
        for (age, place) in (age..).zip(&mut self.generations[age..]) {
            let share = if age == 0 { YOUNG } else { OLD };
            if let Some(generation) = place
                && generation.remove(identity, share)
            {
                if generation.keys() == 0 {
                    *place = None;
                }
                return true;
            }
        }
        false
    }

    /// How many keys are alive at `now`. Keys that share an identity count once.
    pub fn keys(&self, now: u64) -> u64 {
        self.alive(now).map(Generation::keys).sum()
    }

    /// How many keys are held, alive or not, by age: the youngest first.
    pub fn ages(&self) -> impl Iterator<Item = u64> {
        let generations = self.generations.iter();
        generations.map(|generation| generation.as_deref().map_or(0, Generation::keys))
    }

    /// The probability that the filter answers yes for an absent key at `now`: keys over universe.
    pub fn rate(&self, now: u64) -> f64 {
        self.keys(now) as f64 / self.universe as f64
    }

    /// How many keys the filter was planned for. With more the rate is higher than was asked for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How many identities the filter tells apart.
    pub fn universe(&self) -> u64 {
        self.universe
    }

    /// How long a key is found at least.
    pub fn lifetime(&self) -> u64 {
        self.lifetime
    }

    /// Into how many steps a lifetime is cut.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The hash function and seed that make the digests of this filter.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// Bits of heap memory held.
    pub fn footprint(&self) -> u64 {
        let own = self.generations.capacity() * size_of::<Option<Box<Generation>>>();
        let of = |generation: &Generation| {
            8 * size_of::<Generation>() as u64 + generation.filter().footprint()
        };
        8 * own as u64 + self.generations.iter().flatten().map(|one| of(one)).sum::<u64>()
    }

    /// Removes all keys. The latest time stays.
    pub fn clear(&mut self) {
        self.generations.fill_with(|| None);
    }

    /// Adds the keys of `other`. A key that is in both is as young as in either.
    ///
    /// Hash, seed, universe, lifetime and steps must agree, and so must the clocks. Nothing has
    /// changed on an error.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.check_fits(other)?;
        // On a copy, so that an error leaves the filter as it was.
        let mut merged = self.clone();
        merged.capacity = merged.capacity.max(other.capacity);
        merged.begin_step(other.latest);
        let older = merged.latest - other.latest;
        for (age, generation) in (older..=self.steps.into()).zip(&other.generations) {
            let Some(generation) = generation else { continue };
            for identity in generation.identities() {
                merged.put(identity, age as usize).map_err(|_| MergeError::OutOfMemory)?;
            }
        }
        *self = merged;
        Ok(())
    }

    /// A name for what the filter holds: the keys with their ages, and the latest time. Filters
    /// with the same id answer alike at all times, however they came about.
    pub fn content_id(&self) -> ContentId {
        let mut id = ContentHasher::new(Kind::BlockedRank, self.hasher, &self.params());
        for (age, generation) in (0..).zip(&self.generations) {
            if let Some(generation) = generation {
                id.number(age);
                id.number(generation.keys());
                generation.identities().for_each(|identity| id.number(identity));
            }
        }
        id.finish()
    }

    /// Checks every invariant. An error says that the content was not made by this library.
    pub fn validate(&self) -> Result<(), Invalid> {
        for generation in self.generations.iter().flatten() {
            generation.validate()?;
        }
        let nothing: Box<dyn Iterator<Item = Entry>> = Box::new(core::iter::empty());
        let mut all = self.generations.iter().flatten().fold(nothing, |all, generation| {
            Box::new(order::merged(all, generation.entries(), false))
        });
        if all.all(|entry| entry.count == 1) {
            return Ok(());
        }
        Err(Invalid("an identity is in two generations"))
    }

    /// The label that the header stores.
    fn label(&self) -> Label {
        let keys = self.ages().sum();
        Label { hasher: self.hasher, keys, capacity: self.capacity }
    }
}

impl PartialEq for Aging {
    /// Two filters are equal if their content and what they were planned for are.
    fn eq(&self, other: &Self) -> bool {
        self.capacity == other.capacity && self.content_id() == other.content_id()
    }
}

impl Eq for Aging {}
