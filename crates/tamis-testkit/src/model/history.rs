//! What is done to a filter: steps that mean the same whatever was done before, so that any of
//! them can be left out.

use tamis::{Digest, Effort, Hasher, Kind};

use super::dice::Dice;

/// How the digests of a step are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// At random.
    Fresh,
    /// Alike in their first bits: one bucket, one block, one identity.
    Alike(u32),
    /// One digest again and again.
    One,
    /// A few, the same ones in every step with this shape.
    Few,
    /// The least and the greatest numbers.
    Ends,
}

/// The digests of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// How they are spread.
    pub shape: Shape,
    /// Which ones.
    pub seed: u64,
    /// How many.
    pub number: u64,
}

impl Keys {
    /// The digests, by their order.
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

    /// Keys as numbers with their digests: what is asked for values. Those of [`Shape::Alike`]
    /// share up to eight bits.
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
    /// That of the case.
    Alike,
    /// With identities a bit shorter or longer, where the kind has them.
    Coarser,
    /// See [`Partner::Coarser`].
    Finer,
    /// That which the filter has by now.
    Now,
}

/// One step of a history. A number of a batch is that of the digests handed over at once, 0 for
/// one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Inserts.
    Insert(Keys, usize),
    /// Inserts with values.
    InsertValues(Keys),
    /// Removes that many of what is in: seed, number, batch.
    Remove(u64, u64, usize),
    /// Removes that many of what is in, by key and value: seed, number.
    RemoveValues(u64, u64),
    /// Changes that many values: seed, number.
    Update(u64, u64),
    /// One out, one in, that many times: what comes is new, or one of a few, or one that is in.
    /// Seed, number.
    Churn(u64, u64),
    /// Removes what is not in, and is refused.
    Refuse(Keys),
    /// Asks, one by one and in batches.
    Ask(Keys, usize),
    /// Merges a filter of these keys into this one.
    Merge(Keys, Partner),
    /// Merges what came together in this number of shards.
    Shards(Keys, usize),
    /// Inserts through the form that threads share.
    Atomic(Keys),
    /// Room for twice as many keys.
    Grow,
    /// Room for half as many.
    Shrink,
    /// Room for this many keys, where the kind can be told.
    Resize(u64),
    /// Identities this many bits shorter.
    Coarsen(u32),
    /// Removes all.
    Clear,
    /// Goes on with what was written and read back.
    Encode,
    /// Goes on with what was packed and unpacked.
    Pack(Effort),
    /// Goes on with what was written and opened in place.
    Open,
    /// As `Encode` and `Open` of the form that large filters are written in, where there is one.
    InPlace,
    /// Remembers what is.
    Keep,
    /// Goes on with what was remembered, patched to what is now.
    Patch,
    /// Uses plain instructions from here on, where that can be chosen.
    Portable,
    /// Checks all that can be checked.
    Check,
}

/// A history for a filter that is planned for about `keys` keys, and will have up to `most`.
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
        // Far past the plan, and then whatever comes.
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
    // Small seeds read better, and there are enough of them.
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
    let values = matches!(kind, Kind::RankMap | Kind::DLeft);
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
        34 => Step::Open,
        35 => Step::InPlace,
        36 => Step::Keep,
        37..=38 => Step::Patch,
        _ => Step::Check,
    }
}
