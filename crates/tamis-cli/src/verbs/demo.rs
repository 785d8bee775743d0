//! `tamis demo`: three sets, planned, built and measured.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use tamis_report::demo::{self, Demo as Shown, Met, Pair, Row};

use super::Outcome;
use crate::numbers;
use crate::progress::Progress;
use crate::show;

/// Show what tamis does, in less than a minute
///
/// Plans, builds and measures three filters, of keys that it makes up: for a stream without
/// repeats, for a set that changes and is sent to peers as deltas, and for a set that never
/// changes. Shows promises next to measurements, beside a plain Bloom filter and a hash set.
/// Writes the same as a page for a browser.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis demo
  tamis demo --keys 5M -o demo.html
  tamis demo --json | jq '.needs[].rows[0]'")]
pub(crate) struct Demo {
    /// Keys of every set, such as 100k or 1M
    #[arg(
        long,
        value_name = "N",
        value_parser = numbers::count,
        default_value = "1M",
        allow_hyphen_values = true
    )]
    keys: u64,

    /// Seed of the keys
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true)]
    key_seed: u64,

    /// File to write the page to
    #[arg(short, long, value_name = "FILE.html", default_value = "tamis-demo.html")]
    output: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub(crate) fn run(self) -> Result<Outcome> {
        let refused = || format!("cannot write {}", self.output.display());
        // An error is better reported before the work than after it.
        fs::write(&self.output, "").with_context(refused)?;
        let mut progress = Progress::share("building and measuring");
        let shown = demo::run(self.keys, self.key_seed, &mut |share| progress.reach(share))?;
        drop(progress);
        fs::write(&self.output, shown.page()?).with_context(refused)?;
        if self.json {
            show::print_json(&shown)?;
        } else {
            self.print(&shown)?;
        }
        Ok(Outcome::Fine)
    }

    fn print(&self, shown: &Shown) -> Result<()> {
        let example = shown.examples.first().map_or("", String::as_str);
        show::print(&format_args!(
            "Three sets of {} keys such as {example}",
            show::count(shown.keys)
        ))?;
        for need in &shown.needs {
            print_need(need)?;
        }
        show::print(&format_args!(
            "\npromised > measured (of false positives: the 95% interval); lookups: half hits, half \
             misses, hashing included. As a page: {}",
            self.output.display()
        ))
    }
}

fn print_need(need: &Met) -> Result<()> {
    show::print(&format_args!("\n{}. {}", need.title, need.text))?;
    let mut table = show::table();
    table.set_header([
        "",
        "false positives",
        "bits/key",
        "lookups/s",
        "snapshot",
        "delta of 1%",
        "removes",
    ]);
    for row in &need.rows {
        let bits = |bits: f64| format!("{bits:.2}");
        table.add_row([
            format!("{} {}", if row.chosen { "*" } else { " " }, row.name),
            rate(row),
            pair(row.bits_per_key, bits),
            show::per_second(row.lookups_per_second),
            pair(row.snapshot_bytes, show::short_bytes),
            pair(row.delta_bytes, show::short_bytes),
            if row.removes { "yes" } else { "no" }.to_owned(),
        ]);
    }
    show::print_table(table, 1..7)?;
    let chosen = need.rows.first().map_or("", |row| row.name);
    show::print(&format_args!("* {chosen}: {}", need.reason))
}

/// The promised rate, and the interval of the measured one.
fn rate(row: &Row) -> String {
    let (low, high) = row.rate_interval;
    match row.rate.promised {
        Some(promised) => {
            format!("{} > {} to {}", show::rate(promised), show::rate(low), show::rate(high))
        }
        None => show::rate(row.rate.measured),
    }
}

fn pair(pair: Pair, write: impl Fn(f64) -> String) -> String {
    match pair.promised {
        Some(promised) => format!("{} > {}", write(promised), write(pair.measured)),
        None => write(pair.measured),
    }
}
