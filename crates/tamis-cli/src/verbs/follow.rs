//! `tamis follow`: a filter that someone publishes, kept current.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use tamis_exchange::{Follower, PublicKey, Step, Totals, source};

use super::Outcome;
use super::publish::read_key;
use crate::{numbers, show, store};

/// Keep a filter current that someone publishes
///
/// SET is the address of a store and the name of a set in it: a URL, a folder or a bucket, such as
/// `s3://bucket/sets/words`. What arrives is compared with what the publisher signed before FILE
/// is replaced, in whole. Whatever goes wrong, FILE stays as it was, and older versions are never
/// taken. FILE.follow remembers the version.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis follow https://example.org/sets/words -o words.tamis --key words.key.pub --once
  tamis follow https://example.org/sets/words -o words.tamis --key words.key.pub --every 20s
  tamis follow /srv/sets/words -o words.tamis --key words.key.pub --json | jq .version")]
pub(crate) struct Follow {
    /// Address of the set: a URL, a folder or a bucket, with the set's name at the end
    #[arg(value_name = "SET")]
    set: String,

    /// File to keep current
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Public key of the publisher
    #[arg(long, value_name = "KEY.pub", required_unless_present = "unsigned")]
    key: Option<PathBuf>,

    /// Follow a set without a signature: anyone on the network can replace the set
    #[arg(long, conflicts_with = "key")]
    unsigned: bool,

    /// Fetch once and stop; exit status 2 if that fails
    #[arg(long, conflicts_with = "every")]
    once: bool,

    /// Time between two requests, such as 20s, 5m or 1h [default: what the publisher asks for]
    #[arg(long, value_name = "TIME", value_parser = numbers::seconds)]
    every: Option<u64>,

    /// Complain if the newest version is older than this, such as 1h or 7d
    #[arg(long, value_name = "TIME", value_parser = numbers::seconds)]
    max_age: Option<u64>,

    /// Print a line of JSON for every request
    #[arg(long)]
    json: bool,

    /// File for metrics in the text format of Prometheus, written after every request
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
}

/// What a request gave, for programs.
#[derive(Serialize)]
struct Told<'a> {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    step: Option<&'a Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Follow {
    pub(crate) fn run(self) -> Result<Outcome> {
        let key = self.key.as_deref().map(|path| read_key(path, PublicKey::parse)).transpose()?;
        let (name, source) = source(&self.set)?;
        let mut follower =
            Follower::new(source, &name, key).limits(store::limits(0)).file(&self.output)?;
        let mut failures = 0_u32;
        let mut last: Option<Step> = None;
        loop {
            let result = follower.step(SystemTime::now());
            let event = match &result {
                Ok(step) if self.is_stale(step) => "stale",
                Ok(step) if step.is_new => "updated",
                Ok(_) => "unchanged",
                Err(_) => "failed",
            };
            let error = result.as_ref().err().map(ToString::to_string);
            if self.json {
                let step = result.as_ref().ok();
                show::print(&serde_json::to_string(&Told { event, step, error })?)?;
            } else {
                self.tell(event, result.as_ref().ok())?;
            }
            failures = if result.is_ok() { 0 } else { failures.saturating_add(1) };
            if let Ok(step) = &result {
                last = Some(step.clone());
            }
            if let Some(path) = &self.metrics {
                write_metrics(
                    path,
                    &metrics_text(last.as_ref(), follower.totals(), failures == 0),
                )?;
            }
            match result {
                Err(error) if self.once => bail!("{}: {error}", self.set),
                Err(error) if !self.json => {
                    show::complaint(&anyhow::Error::from(error).context(self.set.clone()));
                }
                _ => {}
            }
            if self.once {
                return Ok(if event == "stale" { Outcome::Wrong } else { Outcome::Fine });
            }
            thread::sleep(pause(next_wait(self.every, last.as_ref()), failures));
        }
    }

    fn is_stale(&self, step: &Step) -> bool {
        self.max_age.is_some_and(|most| step.age > most)
    }

    fn tell(&self, event: &str, step: Option<&Step>) -> Result<()> {
        let Some(step) = step else { return Ok(()) };
        match event {
            "stale" => show::note(&format_args!(
                "{}: version {} was signed {} s ago: the publisher or a mirror stands still",
                self.set, step.version, step.age
            )),
            "updated" => show::print(&format_args!(
                "version {}: {} keys, {}, {}",
                step.version,
                step.keys,
                match (step.snapshot, step.deltas) {
                    (true, 0) => "a snapshot".to_owned(),
                    (true, deltas) => format!("a snapshot and {deltas} deltas"),
                    (false, 1) => "1 delta".to_owned(),
                    (false, deltas) => format!("{deltas} deltas"),
                },
                show::short_bytes(step.bytes as f64)
            ))?,
            _ if self.once => {
                show::print(&format_args!("version {} is the newest", step.version))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Seconds between requests before the publisher has said how many.
const DEFAULT_WAIT: u64 = 20;
/// The longest wait after failures, as a multiple of the usual one.
const MOST_BACK_OFF: u32 = 5;

/// Seconds between two requests: what the user says, or what the publisher asks for.
pub(super) fn next_wait(every: Option<u64>, last: Option<&Step>) -> u64 {
    every.unwrap_or_else(|| last.map_or(DEFAULT_WAIT, |step| step.wait.into()))
}

/// How long to wait: twice as long after each failure, and up to a tenth more or less, so that
/// followers do not come all at once.
pub(super) fn pause(seconds: u64, failures: u32) -> Duration {
    let usual = Duration::from_secs(seconds.max(1)) * 2_u32.pow(failures.min(MOST_BACK_OFF));
    // A system without randomness has followers that come at once, and no other harm.
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    usual.mul_f64(0.9 + 0.2 * f64::from(random) / f64::from(u32::MAX))
}

/// Writes what a scraper wants to know. It finds the old text or the new one.
fn write_metrics(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// What a scraper wants to know.
pub(super) fn metrics_text(last: Option<&Step>, totals: Totals, is_up: bool) -> String {
    let mut lines = Vec::new();
    let mut add = |name: &str, kind: &str, help: &str, value: u64| {
        lines.push(format!("# HELP tamis_follow_{name} {help}\n"));
        lines.push(format!("# TYPE tamis_follow_{name} {kind}\ntamis_follow_{name} {value}\n"));
    };
    add("up", "gauge", "Whether the last request succeeded.", is_up.into());
    if let Some(step) = last {
        add("version", "gauge", "Version that is held.", step.version);
        add("age_seconds", "gauge", "Age of its manifest at the last request.", step.age);
        add("keys", "gauge", "Keys in it.", step.keys);
    }
    add("bytes_total", "counter", "Bytes fetched.", totals.bytes);
    add("updates_total", "counter", "Versions taken.", totals.updates);
    add("fallbacks_total", "counter", "Snapshots taken where deltas failed.", totals.fallbacks);
    add("failures_total", "counter", "Requests that failed.", totals.failures);
    lines.concat()
}
