//! `tamis bench`: predictions and measurements side by side.

use anyhow::{Context, Result};
use clap::Args;
use tamis::Kind;
use tamis_report::bench::{self, Outcome as Measured, Setup};

use super::Outcome;
use crate::numbers;
use crate::progress::Progress;
use crate::show;
use crate::sizing::keys_must_be_said;
use crate::wishes::Wanted;

/// Build a filter from seeded keys and measure it
///
/// Checks that every key is found. Asks for absent keys until 4,000 false positives are expected
/// (at most 10^9 absent keys), and compares rate, memory and blocks (cache lines that a lookup
/// reads) with the prediction. Times exclude hashing.
#[derive(Args)]
#[command(
    mut_arg("num_keys", keys_must_be_said),
    after_help = "\
Examples:
  tamis bench --kind blocked --keys 1M --rate 0.1%
  tamis bench --kind counting --keys 50k --rate 1% --json | jq '.predicted_rate, .measured_rate'"
)]
pub(crate) struct Bench {
    /// Seed of the keys: another seed gives other keys for the same params
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true)]
    key_seed: u64,

    /// Absent keys to ask for, such as 10M
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_hyphen_values = true)]
    queries: Option<u64>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    wanted: Wanted,
}

impl Bench {
    pub(crate) fn run(self) -> Result<Outcome> {
        let keys = self.wanted.sizing.keys.context(
            "how many keys are to be inserted? Say it with --keys, for example --keys 1M",
        )?;
        let setup = Setup {
            kind: self.wanted.sizing.kind.unwrap_or(Kind::Bloom),
            goal: self.wanted.goal(keys),
            hasher: self.wanted.hashing.hasher()?,
            key_seed: self.key_seed,
            queries: self.queries,
        };
        let mut progress = Progress::share("measuring");
        let mut measured = bench::run(&setup, &mut |share| progress.reach(share))?;
        drop(progress);
        if keys == 0 {
            // JSON has null for it.
            (measured.bits_per_key, measured.wire_bits_per_key) = (f64::NAN, f64::NAN);
        }
        if self.json {
            show::print_json(&measured)?;
        } else {
            print(&measured)?;
        }
        // A lost key must never be overlooked.
        Ok(if measured.false_negatives == 0 { Outcome::Fine } else { Outcome::Wrong })
    }
}

fn print(measured: &Measured) -> Result<()> {
    let params = measured.params.iter().map(|(name, value)| format!("{name}={value}"));
    let mut table = show::table();
    let mut row = |name: &str, value: String| {
        table.add_row([name, &value]);
    };
    row("kind", measured.kind.to_owned());
    row("params", params.collect::<Vec<_>>().join(" "));
    row("keys", measured.keys.to_string());
    row("false negatives", measured.false_negatives.to_string());
    if let Some(target) = measured.target_rate {
        row("rate, asked for", show::rate(target));
    }
    row("rate, predicted", show::rate(measured.predicted_rate));
    row("rate, from its bits", show::rate(measured.fill_rate));
    row(
        "rate, measured",
        format!(
            "{} ({} to {} with 99.9% confidence, {} queries)",
            show::rate(measured.measured_rate),
            show::rate(measured.rate_low),
            show::rate(measured.rate_high),
            measured.queries
        ),
    );
    let per_key = |bits: f64| show::per_key(Some(bits).filter(|bits| !bits.is_nan()));
    row("bits per key, held", per_key(measured.bits_per_key));
    row("bits per key, wire", per_key(measured.wire_bits_per_key));
    row(
        "blocks",
        format!(
            "{:.3} insert, {:.3} hit, {:.3} miss",
            measured.blocks_per_insert, measured.blocks_per_hit, measured.blocks_per_miss
        ),
    );
    if let Some(share) = measured.overflow_share {
        row("overflow", show::rate(share));
    }
    let remove = measured.remove_ns.map_or(String::new(), |ns| format!(", {ns:.1} remove"));
    row(
        "ns, hashing excluded",
        format!(
            "{:.1} insert, {:.1} hit, {:.1} miss, {:.1} miss in batches{remove}",
            measured.insert_ns, measured.hit_ns, measured.miss_ns, measured.batch_miss_ns
        ),
    );
    show::print_table(table, 0..0)
}
