//! The optimiser compared with all shapes of small filters, its margins with random filters, and
//! extreme demands.

use tamis::Digest;
use tamis::bloom::BloomParams;
use tamis::internals::bloom::model::rate;
use tamis::internals::compressed::model::{Message, Shape, adaptive_bits};
use tamis::internals::compressed::optimise::{Demand, Margin, least_rate};
use tamis_report::papers::compressed::{MARGIN, entropy_bits, least_bits};

const MESSAGES: [Message; 4] = [
    Message::Snapshot,
    Message::Delta { changed: 0.05 },
    Message::Delta { changed: 1.0 },
    Message::Counters,
];

#[test]
fn nothing_beats_the_optimum() {
    let keys = 60;
    for message in MESSAGES {
        for cap in [300, 900, 2400] {
            let demand = Demand { most_positions: cap, ..Demand::new(keys, message) };
            // All shapes with their rate and size, the mirror branch left out.
            let shapes: Vec<(u64, u32, f64, f64)> = (1..=cap)
                .flat_map(|positions| {
                    let most = (core::f64::consts::LN_2 * positions as f64 / keys as f64).ceil();
                    (1..=most as u32).map(move |hashes| {
                        let bits = Shape { positions, hashes, keys }.entropy_bits(message);
                        (positions, hashes, rate(positions, hashes, keys), bits)
                    })
                })
                .collect();
            for bits in [40_u32, 100, 240, 480, 960] {
                let fitting = shapes.iter().filter(|shape| shape.3 <= f64::from(bits));
                let best = fitting.map(|shape| shape.2).fold(1.0, f64::min);
                let found = least_rate(&demand, bits.into());
                let found = found.map_or(1.0, |choice| choice.rate);
                assert!(found <= best, "{message:?} {cap} {bits}: {found} and {best}");
            }
            for asked in [0.5, 0.1, 0.01, 0.001] {
                let fitting = shapes.iter().filter(|shape| shape.2 <= asked);
                let best = fitting.min_by(|a, b| a.3.total_cmp(&b.3));
                let found = least_bits(&demand, asked);
                assert_eq!(found.is_some(), best.is_some(), "{message:?} {cap} {asked}");
                let (Some(found), Some(best)) = (found, best) else { continue };
                assert!(found.rate <= asked && found.positions <= cap);
                // k is chosen in the limit, so with few keys the second best may be chosen.
                assert!(entropy_bits(&demand, &found) <= best.3 * 1.002, "{found:?} {best:?}");
            }
        }
    }
}

#[test]
fn margins_hold() {
    let packets = [(200, 8), (1_000, 12), (10_000, 8)];
    for (keys, per_key) in packets {
        let bits = keys * per_key;
        let choose = |margin| {
            let most_positions = 20 * keys;
            let demand = Demand { margin, most_positions, ..Demand::new(keys, Message::Snapshot) };
            let choice = least_rate(&demand, bits).unwrap();
            assert!(demand.limit_bits(choice.positions, choice.hashes) <= bits as f64);
            choice
        };
        let [none, paper, five] = [Margin::Share(1.0), MARGIN, Margin::Deviations(5)].map(choose);
        assert!(none.rate <= paper.rate && none.rate <= five.rate);
        let trials = 400;
        let above = |positions: u64, hashes: u32| {
            (0..trials)
                .filter(|&trial| length(positions, hashes, keys, trial) > bits as f64)
                .count()
        };
        assert_eq!(above(five.positions, five.hashes), 0);
        assert!(above(none.positions, none.hashes) > 100);
        if keys == 10_000 {
            assert_eq!(above(paper.positions, paper.hashes), 0);
            // Here the paper's rule costs more than a margin of five deviations.
            assert!(five.rate < paper.rate);
        }
        if keys == 200 {
            assert!(above(paper.positions, paper.hashes) > 10);
        }
    }
}

/// The ideal adaptive length of a random filter.
fn length(positions: u64, hashes: u32, keys: u64, trial: u64) -> f64 {
    let mut array = vec![false; positions as usize];
    for throw in 0..keys * u64::from(hashes) {
        let random = Digest(trial << 32 | throw).word(0);
        array[((u128::from(random) * u128::from(positions)) >> 64) as usize] = true;
    }
    let zeros = array.iter().filter(|&&bit| !bit).count() as u64;
    adaptive_bits(positions, zeros)
}

#[test]
fn deltas_and_counters() {
    // Table VI at its own sizes: at least as good as the paper's choices, memory capped at theirs.
    let keys = 1_000_000;
    let delta = Message::Delta { changed: 0.05 };
    let demand = Demand { most_positions: 32 * keys, ..Demand::new(keys, delta) };
    let choice = least_rate(&demand, 1_671_290).unwrap();
    assert_eq!((choice.positions, choice.hashes), (32 * keys, 2));
    let capped = Demand { most_positions: 13 * keys, ..demand };
    let choice = least_bits(&capped, 0.0203345).unwrap();
    assert_eq!(choice.hashes, 2);
    assert!((entropy_bits(&capped, &choice) / keys as f64 - 1.31244).abs() < 1e-4);
    // Nothing is sent of an unchanged set, so only memory limits the rate.
    let unchanged = Demand { message: Message::Delta { changed: 0.0 }, ..demand };
    assert_eq!(least_rate(&unchanged, 0).unwrap().positions, 32 * keys);
    // A margin costs counters little.
    let counters = Demand::new(keys, Message::Counters);
    let plain = least_rate(&counters, 10 * keys).unwrap();
    let sure = Demand { margin: Margin::Deviations(5), ..counters };
    let sure = least_rate(&sure, 10 * keys).unwrap();
    assert_eq!((plain.hashes, sure.hashes), (1, 1));
    assert!(sure.positions < plain.positions && sure.rate < 1.01 * plain.rate);
}

#[test]
fn corners() {
    for message in MESSAGES {
        for margin in [Margin::Share(1.0), MARGIN, Margin::Deviations(5)] {
            for keys in [0, 1, 2, 1 << 40, u64::MAX] {
                for cap in [0, 1, 64, u64::MAX] {
                    let demand = Demand { keys, message, margin, most_positions: cap };
                    for bits in [0, 1, 100, u64::MAX] {
                        if let Some(choice) = least_rate(&demand, bits) {
                            let limit = demand.limit_bits(choice.positions, choice.hashes);
                            assert!(limit <= bits as f64);
                            BloomParams::new(choice.positions, choice.hashes).unwrap();
                        }
                    }
                    for asked in [f64::NAN, -1.0, 0.0, 1e-300, 1e-9, 0.5, 1.0 - 1e-16, 1.0, 2.0] {
                        if let Some(choice) = least_bits(&demand, asked) {
                            assert!(choice.rate <= asked && choice.positions <= cap);
                            BloomParams::new(choice.positions, choice.hashes).unwrap();
                        }
                    }
                }
            }
        }
    }
    for changed in [f64::NAN, -0.1, 1.1] {
        let demand = Demand::new(1000, Message::Delta { changed });
        assert_eq!(least_rate(&demand, 8000), None);
        assert_eq!(least_bits(&demand, 0.01), None);
    }
    // The bounds of the optimiser are those of the filter.
    assert!(BloomParams::new(1 << 48, 64).is_ok());
    assert!(BloomParams::new((1 << 48) + 1, 64).is_err() && BloomParams::new(1 << 48, 65).is_err());
}
