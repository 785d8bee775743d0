//! What is done to a filter. A step means the same whatever was done before, so any step can be
//! left out.

use tamis::{Digest, Effort, Hasher, Kind, Operation};

use super::dice::Dice;

/// How the digests of a step are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// At random.
    Fresh,
    /// Equal in this many first bits: of one bucket, one block or one identity.
    Alike(u32),
    /// One digest again and again.
    One,
    /// One of a few digests, the same in every step with this shape.
    Few,
    /// The least and the greatest numbers.
    Ends,
}

/// The digests of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// How they are spread.
    pub shape: Shape,
    /// Fixes the digests.
    pub seed: u64,
    /// How many.
    pub number: u64,
}

impl Keys {
    /// The digests, in order.
    pub(super) fn digests(self) -> impl Iterator<Item = Digest> {
        const FEW: u64 = 40;
        let base = Digest(self.seed).word(11);
        (0..self.number).map(move |index| {
            let random = Digest(base.wrapping_add(index)).word(12);
            Digest(match self.shape {
                Shape::Fresh => random,
                Shape::Alike(bits) => {
                    let free = u64::MAX.checked_shr(bits).unwrap_or(0);
                    base & !free | random & free
                }
                Shape::One => base,
                Shape::Few => Digest(random % FEW).word(13),
                Shape::Ends if index % 2 == 0 => index / 2,
                Shape::Ends => u64::MAX - index / 2,
            })
        })
    }

    /// Keys that are numbers, with their digests, for calls that need keys and not digests. Those
    /// of [`Shape::Alike`] share up to eight bits.
    pub(super) fn numbers(self, hasher: Hasher) -> impl Iterator<Item = (u64, Digest)> {
        let mut dice = Dice::new(self.seed);
        let wanted = self.seed << 56;
        (0..self.number).map(move |_| {
            loop {
                let key = match self.shape {
                    Shape::One => self.seed,
                    Shape::Few | Shape::Ends => dice.below(40),
                    Shape::Fresh | Shape::Alike(_) => dice.word(),
                };
                let digest = hasher.digest(&key);
                let free = match self.shape {
                    Shape::Alike(bits) => u64::MAX >> bits.min(8),
                    _ => u64::MAX,
                };
                if (digest.0 ^ wanted) & !free == 0 {
                    return (key, digest);
                }
            }
        })
    }
}

/// The layout of a filter that is merged into the one under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partner {
    /// The layout of the case.
    Alike,
    /// The layout of the case with identities one bit shorter, where the kind has identities.
    Coarser,
    /// The same with identities one bit longer.
    Finer,
    /// The layout that the filter has at that point.
    Now,
}

/// One step of a history. The size of a batch is the number of digests in one call; 0 means one by
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Inserts.
    Insert(Keys, usize),
    /// Inserts with values.
    InsertValues(Keys),
    /// Removes some members: seed, number, size of a batch.
    Remove(u64, u64, usize),
    /// Removes some members by key and value: seed, number.
    RemoveValues(u64, u64),
    /// Changes some values: seed, number.
    Update(u64, u64),
    /// Removes a key and inserts one, again and again: seed, number. The key that comes is new,
    /// one of a few, or a member.
    Churn(u64, u64),
    /// Tries to remove absent keys, which must be refused.
    Refuse(Keys),
    /// Looks up keys, one by one and in batches.
    Ask(Keys, usize),
    /// Merges a filter of these keys into this one.
    Merge(Keys, Partner),
    /// Merges a filter of these keys that was built in this number of shards.
    Shards(Keys, usize),
    /// Inserts through the filter that threads share.
    Atomic(Keys),
    /// Makes room for twice as many keys.
    Grow,
    /// Leaves room for half as many.
    Shrink,
    /// Makes room for this many keys, where the kind can.
    Resize(u64),
    /// Makes identities this many bits shorter.
    Coarsen(u32),
    /// Removes all.
    Clear,
    /// Encodes and decodes the filter, and goes on with the result.
    Encode,
    /// Packs and decodes the filter, and goes on with the result.
    Pack(Effort),
    /// Encodes the filter and opens it in place, and goes on with the result.
    Open,
    /// As `Encode` and `Open`, in the form that large filters are written in, where the kind has
    /// Keeps a copy of the filter.
    Keep,
    /// Makes a delta from the copy that was kept to the filter, applies it to the copy, and goes
    /// on with the result.
    Patch,
    /// Uses portable instructions from here on, where that can be chosen.
    Portable,
    /// Checks all that can be checked.
    Check,
}

/// A history for a filter that is planned for about `keys` keys and will hold up to `most`.
pub(super) fn draw(kind: Kind, keys: u64, most: u64, dice: &mut Dice) -> Vec<Step> {
    let mut steps = Vec::new();
    let steps_wanted = dice.between(3, 24);
    let hostile = dice.once_in(2);
    if dice.once_in(6) {
        steps.push(Step::Portable);
    }
    let mut left = most;
    while (steps.len() as u64) < steps_wanted {
        let number = dice.small((2 * keys).max(16)).min(left);
        let keys = keys_of(number, hostile, dice);
        let step = step(kind, keys, dice);
        if matches!(step, Step::Insert(..) | Step::Merge(..) | Step::Shards(..) | Step::Atomic(_)) {
            left -= number;
        }
        steps.push(step);
    }
    if left > 0 && dice.once_in(3) {
        // Fills the filter far beyond its plan first.
        let keys = Keys { shape: Shape::Fresh, seed: dice.word(), number: left };
        steps.insert(dice.below(steps.len() as u64) as usize, Step::Insert(keys, batch(dice)));
    }
    steps
}

fn keys_of(number: u64, hostile: bool, dice: &mut Dice) -> Keys {
    let shape = match dice.below(12) {
        0..=2 if hostile => Shape::Alike(dice.between(1, 48) as u32),
        3 if hostile => Shape::One,
        4 if hostile => Shape::Ends,
        5..=6 if hostile => Shape::Few,
        _ => Shape::Fresh,
    };
    // Small seeds are easier to read, and there are enough of them.
    Keys { shape, seed: dice.below(1 << 32), number }
}

fn batch(dice: &mut Dice) -> usize {
    if dice.once_in(2) { 0 } else { dice.small(600) as usize }
}

fn step(kind: Kind, keys: Keys, dice: &mut Dice) -> Step {
    if !kind.can_insert() {
        return match dice.below(8) {
            0..=2 => Step::Insert(keys, 0),
            3 => Step::Remove(keys.seed, keys.number, 0),
            4 => Step::Encode,
            5 => Step::Pack(dice.pick(&[Effort::Fast, Effort::Best])),
            6 => Step::Open,
            _ => Step::Ask(keys, batch(dice)),
        };
    }
    let values = kind.can(Operation::Values(1));
    match dice.below(42) {
        40..=41 => Step::Churn(keys.seed, dice.small(20_000)),
        9..=10 if values => Step::InsertValues(keys),
        11 if values => Step::RemoveValues(keys.seed, keys.number),
        12 if values => Step::Update(keys.seed, keys.number.min(50)),
        9..=16 if kind.can_remove() => Step::Remove(keys.seed, keys.number, batch(dice)),
        17 if kind.can_remove() => Step::Refuse(keys),
        0..=13 => Step::Insert(keys, batch(dice)),
        18..=19 => Step::Ask(keys, batch(dice)),
        20..=21 => Step::Merge(
            keys,
            dice.pick(&[Partner::Alike, Partner::Coarser, Partner::Finer, Partner::Now]),
        ),
        22 => Step::Shards(keys, dice.small(12) as usize),
        23 => Step::Atomic(keys),
        24 => Step::Grow,
        25 => Step::Shrink,
        26 => Step::Resize(keys.number),
        27 => Step::Coarsen(dice.small(6) as u32),
        28 if dice.once_in(4) => Step::Clear,
        29..=31 => Step::Encode,
        32..=33 => Step::Pack(dice.pick(&[Effort::Fast, Effort::Best])),
        34..=35 => Step::Open,
        36 => Step::Keep,
        37..=38 => Step::Patch,
        _ => Step::Check,
    }
}
