//! `tamis plan`: what would be built, and what would it do?

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};
use tamis::{AnyParams, Prediction};

use super::Outcome;
use crate::show;
use crate::sizing::{Hashing, Sizing, keys_must_be_said};

/// Show which filters meet a goal, the best first
///
/// Nothing is built. With --kind only that kind is planned. Predictions are computed from the integer parameters
/// that `tamis build` would use with the same options.
#[derive(Args)]
#[command(
    mut_arg("num_keys", keys_must_be_said),
    after_help = "\
Examples:
  tamis plan --keys 10M --rate 0.1%
  tamis plan --keys 1e6 --kind blocked --memory 2MiB --json"
)]
pub(crate) struct Plan {
    /// Print JSON: an object with --kind, otherwise an array
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    sizing: Sizing,

    // Taken so that the options of a build can be planned as they are; no prediction depends on them.
    #[command(flatten)]
    hashing: Hashing,
}

#[derive(Serialize)]
struct Candidate {
    kind: &'static str,
    params: Map<String, Value>,
    predicted: Predicted,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

#[derive(Serialize)]
struct Predicted {
    rate: f64,
    bits_per_key: f64,
    wire_bits_per_key: f64,
    blocks_per_insert: f64,
    blocks_per_hit: f64,
    blocks_per_miss: f64,
    /// Share of the keys in the overflow, for kinds that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    overflow_share: Option<f64>,
}

impl Plan {
    pub(crate) fn run(self) -> Result<Outcome> {
        self.hashing.hasher()?;
        let Some(keys) = self.sizing.keys else {
            anyhow::bail!(
                "how many keys shall be planned for? Say it with --keys, for example --keys 10M"
            );
        };
        let goal = self.sizing.goal(keys);
        if let Some(kind) = self.sizing.kind {
            let params = AnyParams::plan(kind, &goal)?;
            let candidate = Candidate::new(&params, params.predict(keys), keys, None);
            if self.json {
                show::print_json(&candidate)?;
            } else {
                print_table(&[candidate])?;
            }
            return Ok(Outcome::Fine);
        }
        let candidates: Vec<_> = tamis::choose(&goal)?
            .iter()
            .map(|plan| Candidate::new(&plan.params, plan.predicted, keys, Some(plan.reason)))
            .collect();
        if self.json {
            show::print_json(&candidates)?;
        } else {
            print_table(&candidates)?;
        }
        Ok(Outcome::Fine)
    }
}

impl Candidate {
    fn new(
        params: &AnyParams,
        predicted: Prediction,
        keys: u64,
        reason: Option<&'static str>,
    ) -> Self {
        Self {
            kind: params.kind().name(),
            params: show::params(params),
            predicted: Predicted {
                rate: predicted.rate,
                bits_per_key: predicted.bits_per_key,
                wire_bits_per_key: predicted.wire_bits_per_key,
                blocks_per_insert: predicted.blocks_per_insert,
                blocks_per_hit: predicted.blocks_per_hit,
                blocks_per_miss: predicted.blocks_per_miss,
                overflow_share: predicted.overflow.map(|entries| entries / keys.max(1) as f64),
            },
            reason,
        }
    }
}

fn print_table(candidates: &[Candidate]) -> Result<()> {
    let mut table = show::table();
    table.set_header([
        "kind",
        "rate",
        "bits/key",
        "wire b/key",
        "blk/insert",
        "blk/hit",
        "blk/miss",
        "params",
    ]);
    for Candidate { kind, params, predicted, .. } in candidates {
        let params: Vec<_> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        table.add_row([
            (*kind).to_owned(),
            show::rate(predicted.rate),
            format!("{:.3}", predicted.bits_per_key),
            format!("{:.3}", predicted.wire_bits_per_key),
            format!("{:.2}", predicted.blocks_per_insert),
            format!("{:.2}", predicted.blocks_per_hit),
            format!("{:.2}", predicted.blocks_per_miss),
            params.join(" "),
        ]);
    }
    show::print_table(table, 1..7)?;
    let mut reasons = show::table();
    for candidate in candidates {
        if let Some(reason) = candidate.reason {
            reasons.add_row([candidate.kind, reason]);
        }
    }
    if !reasons.is_empty() {
        show::print(&"")?;
        show::print_table(reasons, 0..0)?;
    }
    Ok(())
}
