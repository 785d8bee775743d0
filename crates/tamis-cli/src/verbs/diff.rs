//! `tamis diff` and `tamis patch`: deltas, written and applied.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use tamis::Delta;

use super::Outcome;
use crate::store::{Loaded, is_stdio};
use crate::target::Target;
use crate::{show, store};

/// Write what turns one filter into another
///
/// Both must agree in kind, hash, seed and size. Send the delta to a peer that holds the old
/// filter: `tamis patch` there makes the new one. A delta names the content of both, and applies
/// to no other filter.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis diff monday.tamis tuesday.tamis -o tuesday.delta
  tamis diff old.tamis new.tamis -o - | ssh host 'tamis patch old.tamis -'")]
pub(crate) struct Diff {
    /// Filter that the peer holds; - is stdin
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// Filter that the peer is to have; - is stdin
    #[arg(value_name = "NEW", required_unless_present = "filter")]
    new: Option<PathBuf>,

    /// The new filter, instead of NEW
    #[arg(long, value_name = "NEW", conflicts_with = "new")]
    filter: Option<PathBuf>,

    /// File to write the delta to; - is stdout
    #[arg(short, long, value_name = "DELTA")]
    output: PathBuf,

    /// Print facts as JSON
    #[arg(long)]
    json: bool,
}

impl Diff {
    pub(crate) fn run(self) -> Result<Outcome> {
        let new = self.new.or(self.filter).context("name the new filter")?;
        if is_stdio(&self.old) && is_stdio(&new) {
            bail!("only one filter can come from stdin");
        }
        let target = Target::new(&self.output)?;
        let (old, new) = (store::load(&self.old)?, store::load(&new)?);
        let delta = Delta::between(&old.filter, &new.filter)?;
        let encoded = delta.encode();
        target.write_encoded(&encoded, old.mode & new.mode)?;
        if self.json {
            show::print_json(&Facts::new(&delta, encoded.len()))?;
        }
        Ok(Outcome::Fine)
    }
}

/// Facts about a delta.
#[derive(Serialize)]
pub(crate) struct Facts {
    object: &'static str,
    kind: &'static str,
    base: String,
    result: String,
    /// Keys in the result.
    keys: u64,
    /// Bits that flip, counters that change, or identities that are removed.
    changed: u64,
    /// Identities that are inserted, for kinds that keep identities.
    #[serde(skip_serializing_if = "Option::is_none")]
    inserted: Option<u64>,
    bytes: u64,
}

impl Facts {
    pub(crate) fn new(delta: &Delta, bytes: u64) -> Self {
        Self {
            object: "delta",
            kind: delta.kind().name(),
            base: delta.base().to_string(),
            result: delta.result().to_string(),
            keys: delta.label().keys,
            changed: delta.changed(),
            inserted: delta.inserted(),
            bytes,
        }
    }

    pub(crate) fn print(&self) -> Result<()> {
        let mut table = show::table();
        table.add_rows([
            ["object", self.object],
            ["kind", self.kind],
            ["base", &self.base],
            ["result", &self.result],
            ["keys of the result", &self.keys.to_string()],
            ["changed", &self.changed.to_string()],
        ]);
        if let Some(inserted) = self.inserted {
            table.add_row(["inserted", &inserted.to_string()]);
        }
        table.add_row(["file", &show::bytes(self.bytes)]);
        show::print_table(table, 0..0)
    }
}

/// Turn a filter into the next version with a delta
///
/// All or nothing: a delta for another filter, or a damaged one, is an error and changes nothing.
/// If FILTER is already the result of a delta, that delta is skipped.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis patch words.tamis tuesday.delta
  tamis patch monday.tamis tuesday.delta wednesday.delta -o wednesday.tamis")]
pub(crate) struct Patch {
    /// Filter to change
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Deltas, applied one after the other; - is stdin
    #[arg(value_name = "DELTA", required = true)]
    deltas: Vec<PathBuf>,

    /// Write the new filter to this file and leave FILTER as it is; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Patch {
    pub(crate) fn run(self) -> Result<Outcome> {
        let inputs = || self.deltas.iter().chain([&self.filter]);
        if inputs().filter(|path| is_stdio(path)).count() > 1 {
            bail!("only one file can come from stdin");
        }
        if is_stdio(&self.filter) && self.output.is_none() {
            bail!("a filter from stdin has no file to change; name one with -o");
        }
        let target = Target::new(self.output.as_ref().unwrap_or(&self.filter))?;
        let Loaded { mut filter, mode, .. } = store::load(&self.filter)?;
        for path in &self.deltas {
            let delta = load_delta(path)?;
            if filter.content_id() == delta.result() {
                let (filter, delta) = (store::name(&self.filter), store::name(path));
                show::note(&format_args!("{filter} already is the result of {delta}"));
                continue;
            }
            delta.apply(&mut filter).with_context(|| store::name(path))?;
        }
        target.write(&filter, mode)?;
        Ok(Outcome::Fine)
    }
}

/// Reads a delta and checks all that can be checked without its base.
fn load_delta(path: &Path) -> Result<Delta> {
    let bytes = store::bytes(path)?;
    let limits = store::limits(bytes.len() as u64);
    Delta::decode(&bytes, limits).map_err(store::refused).with_context(|| store::name(path))
}

/// Facts of a file that holds a delta; `None` if it holds something else.
pub(crate) fn facts_of(path: &Path) -> Result<Option<Facts>> {
    if is_stdio(path) {
        return Ok(None); // Stdin can be read only once, and usually carries a filter.
    }
    let bytes = store::bytes(path)?;
    // The object of the header, as `docs/wire.md` has it.
    if bytes.get(10) != Some(&(tamis::wire::Object::Delta as u8)) {
        return Ok(None);
    }
    let delta = load_delta(path)?;
    Ok(Some(Facts::new(&delta, bytes.len() as u64)))
}
