//! `tamis map`: small values of keys.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use memchr::memrchr;
use tamis::{AnyFilter, Digest, Filter};

use super::Outcome;
use super::add::Place;
use crate::keys::Keys;
use crate::progress::Progress;
use crate::show;
use crate::store::{self, Loaded};

/// Keep a small value for every key
///
/// Filters of the kinds blocked-map, rank-map and dleft (with values) keep a few bits beside each
/// key. An absent key gets another key's value with probability rate. For the same reason a key
/// may have several values.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis build --ops insert,remove,value=8 --keys 1M -o ports.tamis < /dev/null
  printf 'web\\t80\\nssh\\t22\\n' | tamis map set ports.tamis
  echo web | tamis map get ports.tamis       # prints web, a tab, 80
  printf 'web\\t80\\n' | tamis map unset ports.tamis")]
pub(crate) struct Map {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Insert keys with their values: lines of KEY, a tab, VALUE
    Set(Change),
    /// Print the lines whose keys have values, each with a tab and its values, separated by commas
    Get(Get),
    /// Remove keys with their values: lines of KEY, a tab, VALUE
    Unset(Change),
}

#[derive(Args)]
struct Change {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    keys: Keys,
}

#[derive(Args)]
struct Get {
    /// Filter to ask
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    #[command(flatten)]
    keys: Keys,
}

impl Map {
    pub(crate) fn run(self) -> Result<Outcome> {
        match self.action {
            Action::Set(change) => change.run(|filter, key, value| {
                filter.insert_value_digest(key, value)?;
                Ok(true)
            }),
            Action::Unset(change) => {
                change.run(|filter, key, value| Ok(filter.remove_value_digest(key, value).is_ok()))
            }
            Action::Get(get) => get.run(),
        }
    }
}

impl Change {
    /// Does `change` with every line; it says whether the key was there.
    fn run(self, change: impl Fn(&mut AnyFilter, Digest, u64) -> Result<bool>) -> Result<Outcome> {
        let (Loaded { mut filter, mode, .. }, target) = self.place.open(&self.keys)?;
        let (hasher, largest) = (filter.hasher(), largest(&filter)?);
        let (mut number, mut absent) = (0, 0);
        let progress = Progress::quiet("changing", self.keys.size());
        self.keys.each_batch(hasher, progress, |batch| {
            for line in batch.keys {
                number += 1;
                let (key, value) = pair(line, largest).with_context(|| format!("line {number}"))?;
                absent += u64::from(!change(&mut filter, hasher.digest(key), value)?);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        show::note_if_crowded(&filter);
        target.write(&filter, mode)?;
        if absent == 0 {
            return Ok(Outcome::Fine);
        }
        show::note(&format_args!("{absent} of {number} lines were not in the filter"));
        Ok(Outcome::Nothing)
    }
}

impl Get {
    fn run(self) -> Result<Outcome> {
        store::one_stdin(&self.filter, &self.keys)?;
        self.keys.check(None)?;
        let filter = store::load(&self.filter)?.filter;
        let hasher = filter.hasher();
        largest(&filter)?;
        let mut found = false;
        let progress = Progress::printing("reading", self.keys.size());
        self.keys.print_batches(hasher, progress, |batch, out| {
            for (line, key) in batch.lines.iter().zip(batch.keys) {
                let values = filter.values_digest(hasher.digest(key.as_ref()));
                let values: Vec<_> = values.iter().map(ToString::to_string).collect();
                if !values.is_empty() {
                    found = true;
                    out.write_all(line)?;
                    out.write_all(b"\t")?;
                    self.keys.write_line(out, values.join(",").as_bytes())?;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(if found { Outcome::Fine } else { Outcome::Nothing })
    }
}

/// Key and value of a line.
fn pair(line: &[u8], max: u64) -> Result<(&[u8], u64)> {
    let tab = memrchr(b'\t', line).context("it has no tab; write KEY, a tab, VALUE")?;
    let value = str::from_utf8(&line[tab + 1..]).ok().and_then(|text| text.parse().ok());
    match value {
        Some(value) if value <= max => Ok((&line[..tab], value)),
        Some(value) => bail!("value {value} does not fit: this filter keeps values up to {max}"),
        None => bail!("what stands behind the last tab is no number"),
    }
}

/// The largest value of a filter; an error if it keeps none.
fn largest(filter: &AnyFilter) -> Result<u64> {
    match filter.max_value() {
        0 => bail!(
            "this {} filter keeps no values; build one with --ops insert,value=8, for values up \
             to 255",
            filter.kind().name()
        ),
        largest => Ok(largest),
    }
}
