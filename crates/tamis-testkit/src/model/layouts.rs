//! Random valid layouts of every kind. Not only those that a plan chooses, because a file may have
//! any.

use tamis::blocked_rank::{BlockedMapParams, BlockedRankParams};
use tamis::rank_indexed::RankParams;
use tamis::{AnyParams, Goal, Kind, Params};

use super::dice::Dice;

/// The most memory of a layout that is tried, in bytes. Larger ones show nothing new and take
/// long.
const MOST_BYTES: f64 = (4 << 20) as f64;
/// One layout in this number is a planned one.
const PLANNED: u64 = 4;

/// Values that the kind accepts, for about `keys` keys.
pub(super) fn draw(kind: Kind, keys: u64, dice: &mut Dice) -> Vec<u64> {
    loop {
        let values = if dice.once_in(PLANNED) {
            let rate = 0.5 / dice.small(1 << 17) as f64;
            let Ok(plan) = AnyParams::plan(kind, &Goal::rate(keys, rate)) else { continue };
            plan.named().into_iter().map(|(_, value)| value).collect()
        } else {
            integers(kind, keys.max(1), dice)
        };
        if AnyParams::from_values(kind, &values).is_ok() && bytes(kind, &values) <= MOST_BYTES {
            return values;
        }
    }
}

/// About how many bytes an empty filter takes.
fn bytes(kind: Kind, values: &[u64]) -> f64 {
    let factors = |at: &[usize]| at.iter().map(|&at| values[at] as f64).product::<f64>();
    match kind {
        Kind::Bloom => factors(&[0]) / 8.0,
        Kind::Counting => factors(&[0, 2]) / 8.0,
        Kind::Blocked => factors(&[0, 1]) / 8.0,
        Kind::RankIndexed | Kind::RankSet | Kind::RankCounting | Kind::RankMap => {
            table_bytes(values[3], [0, 1, 2, 5, 6, 7, 8, 9, 10].map(|at| values[at]))
        }
        Kind::BlockedRank | Kind::BlockedMap => {
            factors(&[0, 1]) + (factors(&[6]) + factors(&[10])) * 64.0
        }
        Kind::DLeft => factors(&[0, 1, 2]) * (values[3] + values[4] + 2) as f64 / 8.0,
        Kind::Partitioned => (factors(&[0]) + factors(&[2, 4]) * 20.0) / 8.0,
        Kind::BalancedSingle
        | Kind::BalancedSequential
        | Kind::BalancedMht
        | Kind::BalancedPopcount
        | Kind::BalancedTwoChoice => factors(&[0, 1]) / 8.0 + factors(&[7]) * 16.0,
        Kind::Ribbon => {
            let rows = factors(&[1]) + factors(&[2]) + factors(&[3]);
            rows * (factors(&[0]) / 65_536.0 + 1.0) / 8.0 + factors(&[4]) * 8.0
        }
        // The array of positions is never in memory as a whole.
        _ => 0.0,
    }
}

/// Bytes of a packed table: buckets, locations, fingerprint, groups, cells of the levels,
/// extensions of a group.
fn table_bytes(extra: u64, values: [u64; 9]) -> f64 {
    let [buckets, locations, fingerprint, groups, level1, level2, level3, second, third] =
        values.map(|value| value as f64);
    let cells = buckets * level1 + groups * (second * level2 + third * level3);
    (buckets * (locations + 16.0) + cells * (fingerprint + extra as f64 + 1.0)) / 8.0
}

/// Integers in about the ranges that the kind has; some are refused.
fn integers(kind: Kind, keys: u64, dice: &mut Dice) -> Vec<u64> {
    match kind {
        Kind::Bloom => vec![dice.small(20 * keys + 70), dice.small(64)],
        Kind::Counting => {
            vec![dice.small(20 * keys + 70), dice.small(64), dice.pick(&[1, 2, 4, 8, 16])]
        }
        Kind::Blocked => {
            let block = dice.pick(&[256, 512]);
            vec![dice.small(keys / 20 + 4), block, dice.between(1, block / 32)]
        }
        Kind::RankIndexed | Kind::RankSet | Kind::RankCounting | Kind::RankMap => {
            rank(kind, keys, dice)
        }
        Kind::BlockedRank => blocked_rank(keys, dice, None),
        Kind::BlockedMap => {
            let value = dice.pick(&[1, 2, 8, 16, 32]);
            blocked_rank(keys, dice, Some(value))
        }
        Kind::DLeft => vec![
            dice.between(1, 8),
            dice.small(keys + 2),
            dice.between(1, 15),
            dice.small(56),
            dice.pick(&[0, 0, 1, 2, 8, 32]),
        ],
        Kind::Partitioned => {
            let groups = dice.small(keys + 2);
            let segments = if dice.once_in(2) { 1 } else { dice.small(groups) };
            let bits = segments * if segments > 1 { 64 } else { 1 } * dice.small(2 * keys + 2);
            let candidates = dice.small(60);
            vec![bits, segments, groups, candidates, dice.small(candidates.min(20))]
        }
        Kind::BalancedSingle
        | Kind::BalancedSequential
        | Kind::BalancedMht
        | Kind::BalancedPopcount
        | Kind::BalancedTwoChoice => balanced(kind, keys, dice),
        Kind::Compressed => {
            let positions = dice.small(1 << 62);
            let ones = if dice.once_in(2) { 0 } else { dice.small(positions) };
            vec![positions, dice.small(64), ones]
        }
        Kind::Ribbon => {
            let columns = if dice.once_in(8) { 64 } else { dice.below(20) };
            let columns = columns << 16 | dice.below(1 << 16);
            let mut rows = || if dice.once_in(4) { 0 } else { dice.small(2 * keys / 64 + 3) * 64 };
            let rows = [rows(), rows(), rows()];
            let listed = if dice.once_in(4) { dice.small(keys) } else { 0 };
            vec![columns, rows[0], rows[1], rows[2], listed]
        }
        // The kind refuses this: a kind without a line here is tried with planned layouts only.
        _ => Vec::new(),
    }
}

fn rank(kind: Kind, keys: u64, dice: &mut Dice) -> Vec<u64> {
    let buckets = dice.small(keys / 4 + 8);
    let locations = dice.small(64);
    let right = match kind {
        Kind::RankCounting => 2,
        Kind::RankMap => dice.pick(&[1, 2, 3, 8, 32]),
        _ => 0,
    };
    // The kind corrects any other number.
    let extra = if dice.once_in(20) { dice.below(33) } else { right };
    let most = if dice.once_in(2) { 4 * buckets * locations + 3 } else { keys };
    let groups = if dice.once_in(3) { dice.small(buckets) } else { dice.pick(&[1, buckets]) };
    let [locations, fingerprint, extra] = [locations, dice.small(56), extra].map(|it| it as u32);
    let capacity = dice.small(most);
    let planned = RankParams::new(buckets, locations, fingerprint, extra, capacity, groups);
    let mut values = planned.map_or_else(|_| Vec::new(), |params| params.values());
    change_some(&mut values, 6, dice);
    values
}

fn blocked_rank(keys: u64, dice: &mut Dice, value: Option<u32>) -> Vec<u64> {
    let blocks = dice.small(keys / 20 + 4);
    let most = if dice.once_in(2) { 256 * blocks } else { 2 * keys };
    let block = dice.pick(&[512, 512, 512, 1024, 2048, 8192]);
    let most_cells = block / 8;
    let [locations, cells, fingerprint] =
        [most_cells, most_cells, 24].map(|most| dice.between(1, most) as u32);
    let capacity = dice.small(most);
    let block = block as u32;
    let planned = match value {
        None => BlockedRankParams::new(block, blocks, locations, cells, fingerprint, capacity)
            .map(|params| params.values()),
        Some(value) => {
            BlockedMapParams::new(block, blocks, locations, cells, fingerprint, capacity, value)
                .map(|params| params.values())
        }
    };
    let mut values = planned.unwrap_or_default();
    change_some(&mut values, 6, dice);
    values
}

/// Changes some numbers from place `from` on to such as no plan would choose: a file may have
/// them.
fn change_some(values: &mut [u64], from: usize, dice: &mut Dice) {
    if values.len() > from && dice.once_in(3) {
        for _ in 0..dice.small(4) {
            let at = dice.between(from as u64, values.len() as u64 - 1) as usize;
            values[at] = match dice.below(3) {
                0 => dice.small(40),
                1 => values[at] / 2,
                _ => values[at] + dice.small(4),
            };
        }
    }
}

fn balanced(kind: Kind, keys: u64, dice: &mut Dice) -> Vec<u64> {
    const ONE: u64 = 1 << 32;
    let (counts, least) = match kind {
        Kind::BalancedPopcount => (false, false),
        Kind::BalancedTwoChoice => (false, true),
        _ => (true, false),
    };
    let block = dice.pick(&[256, 512]);
    let choices = match kind {
        Kind::BalancedSingle => 1,
        Kind::BalancedTwoChoice => dice.between(1, 2),
        _ => dice.between(1, 4),
    };
    let apart = matches!(kind, Kind::BalancedMht | Kind::BalancedPopcount) && choices > 1;
    let share = |dice: &mut Dice| match dice.below(4) {
        0 => 0,
        1 => ONE,
        _ => dice.below(ONE),
    };
    let ratio = if apart { share(dice) } else { 0 };
    let threshold = match (counts, least) {
        (_, true) => 0,
        (true, _) if dice.once_in(2) => dice.below(40),
        (true, _) => dice.below(1023),
        (false, _) => dice.below(block + 1),
    };
    let coin = if counts { share(dice) } else { 0 };
    let (list, policy) = if least { (0, 0) } else { (dice.below(40), dice.below(3)) };
    let blocks = dice.small(keys / 10 + 5);
    vec![blocks, block, dice.between(1, 32), choices, ratio, threshold, coin, list, policy]
}
