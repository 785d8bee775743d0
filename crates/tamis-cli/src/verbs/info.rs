//! `tamis info`: what a filter is.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};
use tamis::{AnyFilter, Filter};

use super::{Outcome, diff};
use crate::store::Loaded;
use crate::{show, store};

/// Print what filters are and how full they are, or what deltas do
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis info words.tamis
  tamis info --json words.tamis | jq .predicted_rate
  tamis info monday.tamis tuesday.delta")]
pub(crate) struct Info {
    /// Filters or deltas to describe; - is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Print a JSON object for each
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Facts {
    kind: &'static str,
    params: Map<String, Value>,
    keys: u64,
    capacity: u64,
    content_id: String,
    hash: &'static str,
    /// A string, because a JSON number has 53 bits in most languages.
    seed: String,
    predicted_rate: f64,
    fill: f64,
    /// Entries that found no regular place, for kinds that have an overflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    overflow: Option<u64>,
    /// `null` without keys.
    bits_per_key: Option<f64>,
    file_bytes: u64,
    wire_bits_per_key: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

impl Info {
    pub(crate) fn run(self) -> Result<Outcome> {
        let several = self.files.len() > 1;
        let (mut outcome, mut gap) = (Outcome::Fine, "");
        for path in &self.files {
            let name = store::name(path);
            let facts = match Described::read(path) {
                Ok(facts) => facts,
                Err(error) => {
                    show::complaint(&error);
                    outcome = Outcome::Wrong;
                    continue;
                }
            };
            if self.json {
                show::print_json(&Named { file: several.then_some(name), facts: &facts })?;
                continue;
            }
            if several {
                show::print(&format_args!("{gap}{name}:"))?;
                gap = "\n";
            }
            match facts {
                Described::Filter(facts) => facts.print()?,
                Described::Delta(facts) => facts.print()?,
            }
        }
        Ok(outcome)
    }
}

/// What one of several files is.
#[derive(Serialize)]
struct Named<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(flatten)]
    facts: &'a Described,
}

/// What a file is.
#[derive(Serialize)]
#[serde(untagged)]
enum Described {
    Filter(Facts),
    Delta(diff::Facts),
}

impl Described {
    fn read(path: &Path) -> Result<Self> {
        Ok(match diff::facts_of(path)? {
            Some(delta) => Self::Delta(delta),
            None => Self::Filter(Facts::new(&store::load(path)?)),
        })
    }
}

impl Facts {
    fn new(Loaded { filter, file_bytes, .. }: &Loaded) -> Self {
        let keys = Some(filter.keys()).filter(|&keys| keys > 0);
        let per_key = |bits: u64| keys.map(|keys| bits as f64 / keys as f64);
        Self {
            kind: filter.kind().name(),
            params: show::params(&filter.params()),
            keys: filter.keys(),
            capacity: filter.capacity(),
            content_id: filter.content_id().to_string(),
            hash: filter.hasher().id().name(),
            seed: seed(filter),
            predicted_rate: filter.rate(),
            fill: filter.fill(),
            overflow: filter.overflow(),
            bits_per_key: per_key(filter.footprint()),
            file_bytes: *file_bytes,
            wire_bits_per_key: per_key(file_bytes * 8),
            warning: show::crowded(filter),
        }
    }

    fn print(&self) -> Result<()> {
        let mut table = show::table();
        table.add_row(["kind", self.kind]);
        for (name, value) in &self.params {
            table.add_row([format!("  {name}"), value.to_string()]);
        }
        let capacity = match self.capacity {
            0 => "not said".to_owned(),
            capacity => capacity.to_string(),
        };
        table.add_rows([
            ["keys", &self.keys.to_string()],
            ["planned keys", &capacity],
            ["rate", &show::rate(self.predicted_rate)],
            ["fill", &format!("{:.2}%", self.fill * 100.0)],
        ]);
        if let Some(overflow) = self.overflow {
            table.add_row(["overflow", &overflow.to_string()]);
        }
        table.add_rows([
            ["bits per key", &show::per_key(self.bits_per_key)],
            ["file", &show::bytes(self.file_bytes)],
            ["wire bits per key", &show::per_key(self.wire_bits_per_key)],
            ["hash", self.hash],
            ["seed", &self.seed],
            ["content id", &self.content_id],
        ]);
        show::print_table(table, 0..0)?;
        if let Some(warning) = &self.warning {
            show::note(warning);
        }
        Ok(())
    }
}

/// The seed as `--seed` takes it: short ones decimal, keys hexadecimal.
fn seed(filter: &AnyFilter) -> String {
    let seed = filter.hasher().seed();
    if seed < 1 << 53 { seed.to_string() } else { format!("0x{seed:x}") }
}
