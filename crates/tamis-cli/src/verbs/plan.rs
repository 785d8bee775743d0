//! `tamis plan`: what would be built, and what it would do.

mod peers;

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};
use tamis::{Kind, Plan as Planned};
use tamis_report::chart;

use super::Outcome;
use crate::progress::Progress;
use crate::show;
use crate::sizing::keys_must_be_said;
use crate::wishes::Wanted;

/// Show which filters meet a goal, the best first
///
/// Nothing is built. With --kind only that kind is planned. Predictions are computed from the
/// params that `tamis build` would use with the same options. If no filter meets the goal, the
/// error names the limit that stands in the way and the nearest one that can be met.
#[derive(Args)]
#[command(
    mut_arg("num_keys", keys_must_be_said),
    mut_arg("kind", |arg| arg.help("Kind of filter [default: all kinds]")),
    after_help = "\
Examples:
  tamis plan --keys 10M --rate 0.1%
  tamis plan --keys 10M --rate 0.1% --ops insert,remove --max-blocks 1.5
  tamis plan --keys 1M --churn 1% --max-delta 50kB --minimise wire
  tamis plan --keys 1e6 --kind blocked --memory 2MiB --json
  tamis plan --keys 10000 --kind bloom --wire 10kB --margin 1%
  tamis plan --keys 1M --kind rank-indexed --explain
  tamis plan --keys 1M --plot bits.svg
  tamis plan --keys 1M --churn 1% --every 5m --peers 16 --max-lost 2%"
)]
pub(crate) struct Plan {
    /// Print JSON: an object with --kind, otherwise an array
    #[arg(long)]
    json: bool,

    /// Show the arithmetic with the papers' symbols: of --kind, or of the best
    #[arg(long)]
    explain: bool,

    /// Draw bits per key against rate for all kinds that meet the goal, into this file
    #[arg(long, value_name = "FILE.svg", conflicts_with = "kind")]
    plot: Option<PathBuf>,

    // With hash and seed, so that the options of a build can be planned unchanged; no prediction
    // depends on them.
    #[command(flatten)]
    wanted: Wanted,

    #[command(flatten)]
    peers: peers::AmongPeers,
}

#[derive(Serialize)]
struct Candidate {
    kind: &'static str,
    params: Map<String, Value>,
    predicted: Predicted,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// The arithmetic, line by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Predicted {
    rate: f64,
    /// `null` without keys.
    bits_per_key: Option<f64>,
    wire_bits_per_key: Option<f64>,
    blocks_per_insert: f64,
    blocks_per_hit: f64,
    blocks_per_miss: f64,
    /// Share of the keys in the overflow, for kinds that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    overflow_share: Option<f64>,
    /// Of a packed snapshot.
    snapshot_bytes: f64,
    /// Of a delta after the churn.
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_bytes: Option<f64>,
}

impl Plan {
    pub(crate) fn run(self) -> Result<Outcome> {
        self.wanted.hashing.hasher()?;
        let Some(keys) = self.wanted.sizing.keys else {
            bail!("for how many keys? Say it with --keys, for example --keys 10M");
        };
        if let Some(need) = self.peers.need(keys, self.wanted.wishes.churn())? {
            peers::print(&need, self.json)?;
            return Ok(Outcome::Fine);
        }
        let goal = self.wanted.goal(keys);
        if let Some(kind) = self.wanted.sizing.kind {
            let plan = Planned::of(kind, &goal)?;
            let candidate = Candidate::new(&plan, keys, false, self.explain);
            if self.json {
                show::print_json(&candidate)?;
            } else {
                self.print(&[candidate])?;
            }
            return Ok(Outcome::Fine);
        }
        let plans = tamis::choose(&goal)?;
        if let Some(path) = &self.plot {
            let progress = Mutex::new(Progress::share("drawing"));
            let plot = chart::bits_against_rate(&goal, Kind::ALL, &|share| {
                if let Ok(mut progress) = progress.lock() {
                    progress.reach(share);
                }
            });
            drop(progress);
            let plot = plot.svg();
            fs::write(path, plot).with_context(|| format!("cannot write {}", path.display()))?;
        }
        // The arithmetic of all kinds would fill pages.
        let explained = |number: usize| self.explain && (self.json || number == 0);
        let candidates: Vec<_> = plans
            .iter()
            .enumerate()
            .map(|(number, plan)| Candidate::new(plan, keys, true, explained(number)))
            .collect();
        if self.json {
            show::print_json(&candidates)?;
        } else {
            self.print(&candidates)?;
        }
        Ok(Outcome::Fine)
    }

    fn print(&self, candidates: &[Candidate]) -> Result<()> {
        print_table(candidates)?;
        for explanation in candidates.iter().filter_map(|one| one.explanation.as_ref()) {
            show::print(&"")?;
            show::print(&explanation.join("\n"))?;
        }
        if let Some(path) = &self.plot {
            show::print(&format_args!("\nbits per key against rate: {}", path.display()))?;
        }
        Ok(())
    }
}

impl Candidate {
    fn new(plan: &Planned, keys: u64, reason: bool, explain: bool) -> Self {
        let Planned { params, predicted, traffic, .. } = plan;
        Self {
            kind: params.kind().name(),
            params: show::params(params),
            predicted: Predicted {
                rate: predicted.rate,
                bits_per_key: Some(predicted.bits_per_key).filter(|_| keys > 0),
                wire_bits_per_key: Some(predicted.wire_bits_per_key).filter(|_| keys > 0),
                blocks_per_insert: predicted.blocks_per_insert,
                blocks_per_hit: predicted.blocks_per_hit,
                blocks_per_miss: predicted.blocks_per_miss,
                overflow_share: predicted.overflow.map(|entries| entries / keys.max(1) as f64),
                snapshot_bytes: traffic.snapshot.mean,
                delta_bytes: traffic.delta.map(|delta| delta.mean),
            },
            reason: reason.then_some(plan.reason),
            explanation: explain.then(|| plan.explain(keys).lines().map(str::to_owned).collect()),
        }
    }
}

/// What the columns are.
const LEGEND: &str = "\
(bits/key in memory, wire in a file; insert, hit, miss: blocks, which are cache
lines, that each reads; --json and --kind KIND print the params)";

fn print_table(candidates: &[Candidate]) -> Result<()> {
    let mut table = show::table();
    let deltas = candidates.iter().any(|one| one.predicted.delta_bytes.is_some());
    let mut header = vec!["kind", "rate", "bits/key", "wire", "insert", "hit", "miss", "snapshot"];
    header.extend(deltas.then_some("delta"));
    let numbers = header.len();
    table.set_header(header);
    for Candidate { kind, predicted, .. } in candidates {
        let mut row = vec![
            (*kind).to_owned(),
            show::rate(predicted.rate),
            show::per_key(predicted.bits_per_key),
            predicted.wire_bits_per_key.map_or("-".to_owned(), |bits| format!("{bits:.2}")),
            format!("{:.2}", predicted.blocks_per_insert),
            format!("{:.2}", predicted.blocks_per_hit),
            format!("{:.2}", predicted.blocks_per_miss),
            show::short_bytes(predicted.snapshot_bytes),
        ];
        row.extend(predicted.delta_bytes.map(show::short_bytes));
        table.add_row(row);
    }
    show::print_table(table, 1..numbers)?;
    show::print(&LEGEND)?;
    if let [Candidate { params, .. }] = candidates {
        let params: Vec<_> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        show::print(&format_args!("\nparams: {}", params.join(" ")))?;
    }
    let mut reasons = show::narrow_table();
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
