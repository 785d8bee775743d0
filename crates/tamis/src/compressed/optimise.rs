//! The shape with the lowest rate for a message size.
//!
//! Symbols as in [`model`](crate::traffic::model). For given k the size depends on m only through
//! the load x = kn / m: z = kn h(x) / x, where h is the entropy of a position. h(x) / x falls in
//! x, so z rises with m:
//!
//! - Snapshot: h / x = e^-x / ln 2 + (1-p) ln(1-p) / (ln 2 ln p). With u = 1-p the last term is
//!   (u / -ln(1-u)) (-log2 u), a product of two falling positive functions.
//! - Delta: where q rises, h / x = (H(q) / q) (q / x) is a product of falling functions. Where q
//!   falls, H(q) falls too, because q <= 1/2.
//! - Counters: the entropy of a Poisson law is concave in its mean, and 0 at 0.
//!
//! The rate f falls with m. So for every k the largest m that meets the bound is found by
//! bisection, and the best k is kept: no shape is better.
//!
//! The paper gives examples but no procedure. Tested against its tables and those of the notes
//! (section 2.3) by `section_two_three`, and against all shapes of small filters by
//! `nothing_beats_the_optimum`.

use core::f64::consts::LN_2;

use crate::bloom::model::rate as exact_rate;
use crate::bloom::{MAX_HASHES, MAX_POSITIONS};
use crate::math::solve::first_true;
use crate::traffic::model::{Message, Shape};

/// The largest load that is considered. Beyond it all but a share e^-32 of the absent keys are
/// answered yes.
const MAX_LOAD: f64 = 32.0;

/// How far the mean size must stay below a limit, because sizes vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    /// The entropy is at most this share of the limit. With 1 the entropy itself meets the limit,
    /// and so do about half of the messages.
    Share(f64),
    /// The mean length from an ideal coder and this number of standard deviations together meet
    /// the limit. With 5, about three messages in ten million do not. The header of a frame is
    /// not counted: take it off the limit.
    Deviations(u32),
}

/// What is asked of a shape, beside its rate or its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// The keys, n. A demand for 0 keys is planned like one for 1.
    pub keys: u64,
    /// What is sent.
    pub message: Message,
    /// The room for messages that are longer than the mean.
    pub margin: Margin,
    /// The largest m allowed.
    pub most_positions: u64,
}

/// A shape with its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// m.
    pub positions: u64,
    /// k.
    pub hashes: u32,
    /// The exact rate with n keys, by [`bloom::model::rate`](crate::bloom::model::rate).
    pub rate: f64,
}

impl Demand {
    /// `keys` keys that are sent as `message`, in any memory and without a margin.
    pub fn new(keys: u64, message: Message) -> Self {
        Self { keys, message, margin: Margin::Share(1.0), most_positions: MAX_POSITIONS }
    }

    /// The number of keys to plan for, which is at least 1.
    pub fn sized_keys(&self) -> u64 {
        self.keys.max(1)
    }

    /// The most positions that are considered.
    pub fn cap(&self) -> u64 {
        self.most_positions.min(MAX_POSITIONS)
    }

    /// Whether every number of the demand makes sense.
    pub fn sensible(&self) -> bool {
        match self.message {
            Message::Delta { changed } => (0.0..=1.0).contains(&changed),
            Message::Snapshot | Message::Counters => true,
        }
    }

    /// The smallest limit in bits that a message of this shape meets.
    pub fn limit_bits(&self, positions: u64, hashes: u32) -> f64 {
        let shape = Shape { positions, hashes, keys: self.sized_keys() };
        match self.margin {
            Margin::Share(share) => shape.entropy_bits(self.message) / share,
            Margin::Deviations(number) => {
                shape.coded_bits(self.message)
                    + f64::from(number) * shape.deviation_bits(self.message)
            }
        }
    }

    /// Whether k <= ceil(ln 2 m/n).
    ///
    /// With larger k the array is so full that it compresses again. On paper such shapes win,
    /// with absurd k (28 at m = 14 n). If one k is excluded, so are all larger ones: as k rises
    /// the load of the best m rises too, and the condition says load (k-1)/k < ln 2.
    fn worthwhile(&self, positions: u64, hashes: u32) -> bool {
        let ideal = LN_2 * positions as f64 / self.sized_keys() as f64;
        f64::from(hashes) <= libm::ceil(ideal)
    }

    /// The shape with `positions` positions and `hashes` hash functions, and its rate.
    pub fn choice(&self, positions: u64, hashes: u32) -> Choice {
        Choice { positions, hashes, rate: exact_rate(positions, hashes, self.sized_keys()) }
    }

    /// The largest m with which the message keeps within `bits` bits; `None` if there is none.
    fn largest(&self, bits: u64, hashes: u32) -> Option<u64> {
        let least = f64::from(hashes) * self.sized_keys() as f64 / MAX_LOAD;
        let least = (libm::ceil(least) as u64).max(1);
        let beyond = |positions| self.limit_bits(positions, hashes) > bits as f64;
        if least > self.cap() || beyond(least) {
            return None;
        }
        Some(first_true(least, self.cap(), beyond).map_or(self.cap(), |first| first - 1))
    }

    /// The shapes worth considering: for each k with the m that `positions` gives.
    pub fn shapes(
        &self,
        positions: impl Fn(u32) -> Option<u64>,
    ) -> impl Iterator<Item = (u64, u32)> {
        let shapes = (1..=MAX_HASHES).filter_map(move |hashes| Some((positions(hashes)?, hashes)));
        shapes.take_while(|&(positions, hashes)| self.worthwhile(positions, hashes))
    }
}

/// The shape with the lowest rate whose message keeps within `bits` bits; `None` if no shape
/// does, or if a number of `demand` makes no sense.
///
/// Printed (section II-B): minimise f subject to m H(p) <= z; (section IV): subject to m H(q) <=
/// z. More memory need not help: at 8 bits for each key nothing is gained between 14.34 n and
/// 58.5 n. Tested by `section_two_three`, `margins_hold`.
pub fn least_rate(demand: &Demand, bits: u64) -> Option<Choice> {
    if !demand.sensible() {
        return None;
    }
    let shapes = demand.shapes(|hashes| demand.largest(bits, hashes));
    let choices = shapes.map(|(positions, hashes)| demand.choice(positions, hashes));
    choices.min_by(|a, b| a.rate.total_cmp(&b.rate))
}
