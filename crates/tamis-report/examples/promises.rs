//! What is promised of rates and deltas, for every kind: `cargo run --release -p tamis-report --example promises -- KEYS QUERIES`.
//!
//! Prints a line of JSON for each promise. Rates from 37% to 0.1%: the predicted rate must lie in the interval of the measured one and be no
//! higher than the goal. Deltas after 1% and 10% of the keys were replaced, any of them: the promised length must be within 3%, with 50,000 keys (the mean of four
//! sets of replaced keys) and with KEYS. A promise that does not hold ends the run with an error.

use std::error::Error;

use serde_json::{Value, json};
use tamis::{Delta, Digest, Effort, Goal, Hasher, Kind, Label, Plan, PlanError};
use tamis_report::bench::{self, Failure, Setup};
use tamis_report::goals::replaced;
use tamis_report::keys::KeyStream;

#[global_allocator]
static ALLOCATOR: tamis_report::memory::CountingAllocator = tamis_report::memory::CountingAllocator;

const RATES: [f64; 6] = [0.37, 0.2, 0.073, 0.02, 0.01, 0.001];
const CHURNS: [f64; 2] = [0.01, 0.1];
/// Keys and sets of replaced keys.
const FEW: (u64, u64) = (50_000, 4);
const DELTA_RATE: f64 = 0.01;
const DELTA_ERROR: f64 = 0.03;

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> =
        std::env::args().skip(1).map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let [keys, queries] = numbers[..] else {
        return Err("two numbers, please: KEYS QUERIES, such as 1000000 10000000".into());
    };
    let mut broken = 0;
    let mut print = |row: Value| {
        println!("{row}");
        broken += u64::from(row["holds"] == false);
    };
    for &kind in Kind::ALL {
        for rate in RATES {
            print(rate_row(kind, keys, rate, queries)?);
        }
    }
    for &kind in Kind::ALL {
        for (keys, sets) in [FEW, (keys, 1)] {
            for churn in CHURNS {
                print(delta_row(kind, keys, churn, sets)?);
            }
        }
    }
    if broken > 0 { Err(format!("{broken} promises do not hold").into()) } else { Ok(()) }
}

/// A row for a kind that refuses the goal: it has promised nothing.
fn refused(kind: Kind, keys: u64, rate: f64, error: &PlanError) -> Value {
    json!({ "kind": kind.name(), "keys": keys, "target_rate": rate, "refused": error.to_string() })
}

fn rate_row(kind: Kind, keys: u64, rate: f64, queries: u64) -> Result<Value, Failure> {
    let goal = Goal::rate(keys, rate);
    let hasher = Hasher::default();
    let setup = Setup { kind, goal, hasher, key_seed: 1, queries: Some(queries) };
    let outcome = match bench::run(&setup, &mut |_| ()) {
        Ok(outcome) => outcome,
        Err(Failure::Plan(error)) => return Ok(refused(kind, keys, rate, &error)),
        Err(other) => return Err(other),
    };
    let predicted = outcome.predicted_rate;
    let inside = outcome.rate_low <= predicted && predicted <= outcome.rate_high;
    Ok(json!({
        "kind": outcome.kind, "keys": keys, "params": outcome.params, "target_rate": rate,
        "predicted_rate": predicted, "fill_rate": outcome.fill_rate,
        "measured_rate": outcome.measured_rate, "rate_low": outcome.rate_low,
        "rate_high": outcome.rate_high, "queries": queries,
        "false_negatives": outcome.false_negatives, "bits_per_key": outcome.bits_per_key,
        "holds": inside && predicted <= rate && outcome.false_negatives == 0,
    }))
}

fn delta_row(kind: Kind, keys: u64, churn: f64, sets: u64) -> Result<Value, Failure> {
    let goal = Goal::rate(keys, DELTA_RATE).churn(churn);
    let plan = match Plan::of(kind, &goal) {
        Ok(plan) => plan,
        Err(error) => return Ok(refused(kind, keys, DELTA_RATE, &error)),
    };
    let promised = plan.traffic.delta.map_or(0.0, |delta| delta.mean);
    let hasher = Hasher::default();
    let mut bytes = 0;
    for set in 1..=sets {
        let stream = KeyStream::new(set);
        let old: Vec<Digest> = stream.members(hasher, 0..keys).collect();
        let new = replaced(&old, churn, stream, hasher);
        let build =
            |digests: &[Digest]| plan.params.build_from(Label::planned(hasher, keys), digests);
        let newer = build(&new)?;
        bytes += if kind.can_insert() {
            Delta::between(&build(&old)?, &newer)?.encode().len()
        } else {
            newer.pack(Effort::Best).len()
        };
    }
    let measured = bytes as f64 / sets as f64;
    let off = measured / promised - 1.0;
    Ok(json!({
        "kind": kind.name(), "keys": keys, "target_rate": DELTA_RATE, "churn": churn,
        "sets": sets, "promised_bytes": promised, "measured_bytes": measured, "off": off,
        "holds": off.abs() <= DELTA_ERROR,
    }))
}
