//! `tamis server`: one filter over the nodes of a cluster, as shards under one name.
//!
//! ```text
//! NAME:shards   a string: how many shards there are
//! NAME:{i}      shard i, a filter of the module; a key belongs to shard CRC-32(key) mod shards
//! ```
//!
//! The number in braces decides the slot. So shards are spread over all nodes, and shards of one
//! number, of whatever filter, are on one node, where they can be merged.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use flate2::Crc;
use tamis::{AnyFilter, AnyParams, Entry, Filter, Goal, Hasher, Kind, Label};

use super::{Outcome, Reads};
use crate::keys::{Batch, Keys};
use crate::numbers;
use crate::progress::Progress;
use crate::resp::{Cluster, Reply, unexpected};
use crate::store;
use crate::target::Target;

/// Work on a filter that is spread over a cluster of Redis or Valkey servers
///
/// The servers need the module of this project. The filter NAME is cut into shards, which are the
/// server's keys NAME:{0}, NAME:{1} and so on. A line belongs to the shard whose number is the
/// CRC-32 of its bytes modulo the number of shards, which NAME:shards holds.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis server add seen --cluster localhost:6379 --shards 64 --keys 1e9 < urls.txt
  tamis server check seen --cluster localhost:6379 < more-urls.txt
  tamis server dump seen --cluster localhost:6379 -o seen.tamis")]
pub(crate) struct Server {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Add(Add),
    Check(Check),
    Merge(Merge),
    Dump(Reads<Dump>),
}

/// A name that shards can have: what is in braces says which node has a key.
fn name(text: &str) -> Result<String, &'static str> {
    match text {
        "" => Err("a filter needs a name"),
        _ if text.contains(['{', '}']) => Err("braces say which node has a shard; leave them out"),
        _ => Ok(text.to_owned()),
    }
}

/// A filter in a cluster.
#[derive(Args)]
struct Place {
    /// Name of the filter
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,

    /// A node of the cluster; the others are found from there. A single server will do
    #[arg(long, value_name = "HOST:PORT")]
    cluster: String,
}

/// Add lines; the filter is made if it does not exist
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis server add seen --cluster localhost:6379 --shards 16 --keys 1e8 --rate 0.1% urls.txt")]
struct Add {
    #[command(flatten)]
    place: Place,

    /// Make the filter with this number of shards, if it does not exist
    #[arg(long, value_name = "N", requires = "keys_expected")]
    shards: Option<u32>,

    /// Keys to plan a new filter for
    #[arg(long = "keys", id = "keys_expected", value_name = "N", value_parser = numbers::count)]
    expected: Option<u64>,

    /// Rate of a new filter, and of its dump
    #[arg(long, default_value = "1%", value_name = "RATE", value_parser = numbers::rate)]
    rate: f64,

    /// Family of a new filter: only cuckoo can be dumped as one file
    #[arg(long, default_value = "cuckoo", value_name = "FAMILY")]
    family: Family,

    #[command(flatten)]
    keys: Keys,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Family {
    Bloom,
    Cuckoo,
}

/// Print the lines that may be in
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis server check seen --cluster localhost:6379 -v urls.txt   # lines that are certainly new")]
struct Check {
    #[command(flatten)]
    place: Place,

    /// Print the lines that are certainly not in
    #[arg(short = 'v', long)]
    invert: bool,

    #[command(flatten)]
    keys: Keys,
}

/// Add all that other filters of the cluster hold, each shard on its node
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis server merge week monday tuesday --cluster localhost:6379")]
struct Merge {
    #[command(flatten)]
    place: Place,

    /// Filters with as many shards
    #[arg(value_name = "OTHER", required = true, value_parser = name)]
    others: Vec<String>,
}

/// Write the filter to one file, as a filter of kind rank-counting
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis server dump seen --cluster localhost:6379 -o seen.tamis")]
struct Dump {
    #[command(flatten)]
    place: Place,

    /// File to write; - is stdout
    #[arg(short, long, value_name = "FILTER")]
    output: PathBuf,
}

impl Server {
    pub(crate) fn run(self) -> Result<Outcome> {
        match self.verb {
            Verb::Add(verb) => verb.run(),
            Verb::Check(verb) => verb.run(),
            Verb::Merge(verb) => verb.run(),
            Verb::Dump(verb) => verb.limited().run(),
        }
    }
}

/// The shards of a filter.
struct Shards {
    cluster: Cluster,
    name: String,
    number: u32,
    family: Family,
}

/// The key of a shard.
fn shard(name: &str, number: u32) -> String {
    format!("{name}:{{{number}}}")
}

/// How many shards a filter has, if it exists.
fn shards(cluster: &mut Cluster, name: &str) -> Result<Option<u32>> {
    let key = format!("{name}:shards");
    let text = match cluster.ask("GET", &key, &[])? {
        Reply::Nothing => return Ok(None),
        Reply::Bytes(text) => text,
        _ => return Err(unexpected("GET")),
    };
    let number = str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    let number = number.filter(|&number| number > 0);
    number.map(Some).with_context(|| format!("{key} is no number of shards"))
}

impl Shards {
    /// A filter that exists.
    fn open(place: &Place) -> Result<Self> {
        let (mut cluster, name) = (Cluster::new(&place.cluster), place.name.clone());
        let Some(number) = shards(&mut cluster, &name)? else {
            bail!("there is no filter {name}; tamis server add --shards N --keys N makes one");
        };
        let info = cluster.ask("TAMIS.INFO", &shard(&name, 0), &[])?;
        let family = match info.field("family") {
            Some(Reply::Bytes(word)) if word == b"bloom" => Family::Bloom,
            Some(Reply::Bytes(word)) if word == b"cuckoo" => Family::Cuckoo,
            _ => return Err(unexpected("TAMIS.INFO")),
        };
        Ok(Self { cluster, name, number, family })
    }

    /// Sorts the keys of a batch by shard: for each, which lines they are.
    fn sorted(&self, batch: &Batch) -> Vec<Vec<usize>> {
        let mut shards = vec![Vec::new(); self.number as usize];
        for (line, key) in batch.keys.iter().enumerate() {
            let mut crc = Crc::new();
            crc.update(key);
            shards[(crc.sum() % self.number) as usize].push(line);
        }
        shards
    }

    /// Sends the keys of a batch with a command to their shards, and hands over the answer to
    /// each, and the number of its line.
    fn send(
        &mut self,
        batch: &Batch,
        command: [&str; 2],
        words: &[&[u8]],
        mut take: impl FnMut(usize, i64),
    ) -> Result<()> {
        let command = command[usize::from(self.family == Family::Cuckoo)];
        for (number, lines) in (0..).zip(self.sorted(batch)) {
            if lines.is_empty() {
                continue;
            }
            let words = words.iter().copied();
            let items: Vec<&[u8]> =
                words.chain(lines.iter().map(|&line| batch.keys[line].as_ref())).collect();
            let reply = self.cluster.ask(command, &shard(&self.name, number), &items)?;
            let Reply::List(answers) = reply else { return Err(unexpected(command)) };
            if answers.len() != lines.len() {
                return Err(unexpected(command));
            }
            for (line, answer) in lines.into_iter().zip(answers) {
                let Reply::Int(answer) = answer else { return Err(unexpected(command)) };
                take(line, answer);
            }
        }
        Ok(())
    }
}

impl Add {
    fn run(self) -> Result<Outcome> {
        self.keys.check(None)?;
        self.keys.refuse_integers()?;
        self.make()?;
        let mut shards = Shards::open(&self.place)?;
        let (words, mut full) = ([b"NOCREATE".as_slice(), b"ITEMS"], false);
        let progress = Progress::quiet("adding", self.keys.size());
        self.keys.each_batch(Hasher::default(), progress, |batch| {
            shards
                .send(batch, ["BF.INSERT", "CF.INSERT"], &words, |_, answer| full |= answer < 0)?;
            if full {
                bail!("a shard is full, or as large as bf.max-filter-bytes allows");
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Outcome::Fine)
    }

    /// Makes the filter, if it does not exist and it was said how.
    fn make(&self) -> Result<()> {
        let name = &self.place.name;
        let (Some(number), Some(keys)) = (self.shards, self.expected) else { return Ok(()) };
        let mut cluster = Cluster::new(&self.place.cluster);
        if !(1..=16384).contains(&number) {
            bail!("--shards is 1 to 16384, the slots of a cluster");
        }
        let text = number.to_string();
        cluster.ask("SET", &format!("{name}:shards"), &[text.as_bytes(), b"NX"])?;
        let made = shards(&mut cluster, name)?;
        if made != Some(number) {
            bail!("the filter {name} has {} shards", made.unwrap_or(0));
        }
        // Shards are not equally full: five deviations more than the mean.
        let mean = keys as f64 / f64::from(number);
        let keys = ((mean + 5.0 * mean.sqrt()).ceil() as u64).max(4).to_string();
        for shard_number in 0..number {
            let key = shard(name, shard_number);
            if matches!(cluster.ask("EXISTS", &key, &[])?, Reply::Int(1)) {
                continue; // From a run that was stopped.
            }
            // Shards of identities below one universe are one filter with all their keys.
            let rate = match self.family {
                Family::Bloom => self.rate,
                Family::Cuckoo => self.rate / f64::from(number),
            };
            let rate = rate.to_string();
            match self.family {
                Family::Bloom => {
                    cluster.ask("BF.RESERVE", &key, &[rate.as_bytes(), keys.as_bytes()])?
                }
                Family::Cuckoo => {
                    let words = [keys.as_bytes(), b"ERROR", rate.as_bytes()];
                    cluster.ask("CF.RESERVE", &key, &words)?
                }
            };
        }
        Ok(())
    }
}

impl Check {
    fn run(self) -> Result<Outcome> {
        self.keys.check(None)?;
        self.keys.refuse_integers()?;
        let mut shards = Shards::open(&self.place)?;
        let progress = Progress::printing("checking", self.keys.size());
        let mut outcome = Outcome::Nothing;
        self.keys.print_batches(Hasher::default(), progress, |batch, out| {
            let mut found = vec![false; batch.keys.len()];
            let commands = ["BF.MEXISTS", "CF.MEXISTS"];
            shards.send(batch, commands, &[], |line, answer| found[line] = answer == 1)?;
            for (line, &found) in batch.lines.iter().zip(&found) {
                if found != self.invert {
                    outcome = Outcome::Fine;
                    self.keys.write_line(out, line)?;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(outcome)
    }
}

impl Merge {
    fn run(self) -> Result<Outcome> {
        let mut filter = Shards::open(&self.place)?;
        for other in &self.others {
            let theirs = shards(&mut filter.cluster, other)?;
            if theirs != Some(filter.number) {
                let theirs = theirs.unwrap_or(0);
                bail!("{other} has {theirs} shards, and {} {}", filter.name, filter.number);
            }
        }
        for number in 0..filter.number {
            let others: Vec<String> =
                self.others.iter().map(|other| shard(other, number)).collect();
            let others: Vec<&[u8]> = others.iter().map(String::as_bytes).collect();
            filter.cluster.ask("TAMIS.MERGE", &shard(&filter.name, number), &others)?;
        }
        Ok(Outcome::Fine)
    }
}

impl Dump {
    fn run(self) -> Result<Outcome> {
        let mut filter = Shards::open(&self.place)?;
        if filter.family == Family::Bloom {
            bail!(
                "arrays of bits cannot become one; TAMIS.DUMP writes each shard, or make the \
                 filter with --family cuckoo"
            );
        }
        let target = Target::new(&self.output)?;
        let mut tables = Vec::new();
        for number in 0..filter.number {
            let key = shard(&filter.name, number);
            let info = filter.cluster.ask("TAMIS.INFO", &key, &[])?;
            let Some(Reply::List(layers)) = info.field("layers") else {
                return Err(unexpected("TAMIS.INFO"));
            };
            for layer in 0..layers.len() {
                let layer = layer.to_string();
                let words = [b"LAYER".as_slice(), layer.as_bytes()];
                let Reply::Bytes(bytes) = filter.cluster.ask("TAMIS.DUMP", &key, &words)? else {
                    return Err(unexpected("TAMIS.DUMP"));
                };
                let table = AnyFilter::decode(&bytes, store::limits(bytes.len() as u64));
                tables.push(table.map_err(store::refused).with_context(|| key.clone())?);
            }
        }
        target.write(&joined(&tables)?, 0o666)?;
        Ok(Outcome::Fine)
    }
}

/// One filter with all identities of some, below the least of their universes.
fn joined(tables: &[AnyFilter]) -> Result<AnyFilter> {
    let universes = tables.iter().map(|table| table.universe().filter(|u| u.is_power_of_two()));
    let universes: Option<Vec<u64>> = universes.collect();
    let universes = universes.context("the shards were not made by tamis server")?;
    let hasher = tables.first().context("there are no shards")?.hasher();
    if tables.iter().any(|table| table.hasher() != hasher) {
        bail!("the shards differ in hash or seed");
    }
    let universe = universes.iter().copied().min().unwrap_or(1);
    let mut entries: Vec<Entry> = Vec::new();
    for (table, finer) in tables.iter().zip(universes) {
        let dropped = finer.ilog2() - universe.ilog2();
        let coarse = |entry: Entry| Entry { identity: entry.identity >> dropped, ..entry };
        entries.extend(table.entries().into_iter().map(coarse));
    }
    entries.sort_unstable_by_key(|entry| entry.identity);
    entries.dedup_by(|next, entry| {
        let same = next.identity == entry.identity;
        if same {
            entry.count = entry.count.saturating_add(next.count);
        }
        same
    });
    let keys = (entries.len() as u64).max(1);
    let fingerprint = (universe / keys).checked_ilog2().unwrap_or(1).max(1);
    let rest = universe >> fingerprint;
    let locations = rest.clamp(1, 64);
    let fixed = [
        ("buckets", (rest / locations).max(1)),
        ("locations", locations),
        ("fingerprint", fingerprint.into()),
    ];
    let params = AnyParams::plan(Kind::RankCounting, &Goal::rate(keys, 0.5).params(fixed))?;
    let label = Label::planned(hasher, keys);
    AnyFilter::of_entries(params, label, entries).context("there is no memory for the filter")
}
