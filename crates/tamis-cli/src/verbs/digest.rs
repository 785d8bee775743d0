//! `tamis digest`: Squid's cache digests.

mod agent;

use std::fs;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use tamis::{Filter, Hasher, Kind, Plan};
use tamis_exchange::squid::{CacheDigest, PageKey};

use super::{Outcome, Reads};
use crate::keys::Keys;
use crate::progress::Progress;
use crate::sizing::{Hashing, Sizing, label};
use crate::store::is_stdio;
use crate::target::Target;
use crate::{show, store};

/// Read, write and exchange Squid's cache digests
///
/// A cache digest is a Bloom filter of what a Squid has, which its siblings fetch. Agents keep the
/// digests of peers current by deltas, which take a small part of the bytes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis digest info http://127.0.0.1:3128
  echo http://example.org/ | tamis digest check http://127.0.0.1:3128
  tamis digest build -o peer.digest --bits-per-entry 12 urls.txt
  curl -s http://127.0.0.1:3128/squid-internal-mgr/objects |
      tamis digest convert --listing -o cache.tamis
  tamis digest agent --squid http://127.0.0.1:3128 --store /srv/sets --name a --sign a.key \\
      --peer https://b.example.org/sets/b=b.key.pub --listen 127.0.0.1:4827")]
pub(crate) struct Digest {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Print the fields of a digest, and how often it is wrong
    Info(Reads<Info>),
    /// Print the URLs that are probably in a digest, or in a filter from `convert`
    Check(Reads<Check>),
    /// Write a digest of the pages with these URLs
    Build(Build),
    /// Build a filter of ours whose keys are Squid's: 16 bytes of MD5
    Convert(Convert),
    /// Publish the digests of this Squid, and serve it those of its peers
    Agent(Reads<agent::Agent>),
}

#[derive(Args)]
struct Info {
    /// Digest: a file, or the address of a Squid, such as `http://127.0.0.1:3128`
    #[arg(value_name = "DIGEST")]
    digest: String,

    /// Print facts as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Check {
    /// Digest or filter: a file, or the address of a Squid
    #[arg(value_name = "DIGEST")]
    digest: String,

    /// Print the URLs that are not in
    #[arg(short = 'v', long)]
    invert: bool,

    #[command(flatten)]
    keys: Keys,
}

#[derive(Args)]
struct Build {
    /// File to write the digest to
    #[arg(short, long, value_name = "DIGEST")]
    output: PathBuf,

    /// Bits for each page, as Squid's `digest_bits_per_entry`
    #[arg(long, value_name = "BITS", default_value_t = 5)]
    bits_per_entry: u8,

    /// Pages to make room for [default: those that come]
    #[arg(long, value_name = "PAGES")]
    capacity: Option<u32>,

    #[command(flatten)]
    source: Pages,
}

#[derive(Args)]
struct Convert {
    /// File to write the filter to; - is stdout
    #[arg(short, long, value_name = "FILTER")]
    output: PathBuf,

    #[command(flatten)]
    sizing: Sizing,

    #[command(flatten)]
    hashing: Hashing,

    #[command(flatten)]
    source: Pages,
}

/// What pages there are.
#[derive(Args)]
struct Pages {
    /// The input is Squid's list of its store (`/squid-internal-mgr/objects`), not URLs: its lines
    /// `KEY ...` are the pages
    #[arg(long)]
    listing: bool,

    #[command(flatten)]
    keys: Keys,
}

impl Digest {
    pub(crate) fn run(self) -> Result<Outcome> {
        match self.action {
            Action::Info(info) => info.limited().run(),
            Action::Check(check) => check.limited().run(),
            Action::Build(build) => build.run(),
            Action::Convert(convert) => convert.run(),
            Action::Agent(agent) => agent.limited().run(),
        }
    }
}

/// What is in a digest.
#[derive(Serialize)]
struct Facts {
    capacity: u32,
    count: u32,
    estimated: f64,
    bits: u64,
    bits_per_entry: u8,
    fill: f64,
    rate: f64,
    bytes: usize,
}

impl Info {
    fn run(self) -> Result<Outcome> {
        let digest = read(&self.digest)?;
        let facts = Facts {
            capacity: digest.capacity(),
            count: digest.count(),
            estimated: digest.estimated(),
            bits: digest.bits(),
            bits_per_entry: digest.bits_per_entry(),
            fill: digest.ones() as f64 / digest.bits() as f64,
            rate: digest.rate(),
            bytes: digest.header().len() + digest.mask().len(),
        };
        if self.json {
            show::print_json(&facts)?;
        } else {
            show::print(&format_args!(
                "capacity        {} pages\ncount           {}\nestimated       {:.0} pages\n\
                 bits            {}, {} a page\nfill            {:.1}%\nrate            {}\n\
                 bytes           {}",
                facts.capacity,
                facts.count,
                facts.estimated,
                facts.bits,
                facts.bits_per_entry,
                facts.fill * 100.0,
                show::rate(facts.rate),
                facts.bytes,
            ))?;
        }
        Ok(Outcome::Fine)
    }
}

impl Check {
    fn run(self) -> Result<Outcome> {
        let path = Path::new(&self.digest);
        store::one_stdin(path, &self.keys)?;
        self.keys.check(None)?;
        let has: Box<dyn Fn(PageKey) -> bool> = if is_filter(path) {
            let filter = store::load(path)?.filter;
            Box::new(move |key| filter.contains_digest(filter.hasher().digest(&key.0)))
        } else {
            let digest = read(&self.digest)?;
            Box::new(move |key| digest.contains(key))
        };
        let mut found = false;
        let progress = Progress::printing("checking", self.keys.size());
        self.keys.print_batches(Hasher::default(), progress, |batch, out| {
            for (line, url) in batch.lines.iter().zip(batch.keys) {
                if has(PageKey::get(url)) != self.invert {
                    found = true;
                    self.keys.write_line(out, line)?;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(if found { Outcome::Fine } else { Outcome::Nothing })
    }
}

impl Build {
    fn run(self) -> Result<Outcome> {
        let pages = self.source.read(&self.output)?;
        let count = u32::try_from(pages.len()).context("more pages than a digest can have")?;
        let capacity = self.capacity.unwrap_or(count.max(1));
        let mut digest = CacheDigest::new(capacity, self.bits_per_entry)?;
        for page in pages {
            digest.insert(page);
        }
        fs::write(&self.output, digest.encode())
            .with_context(|| format!("cannot write {}", self.output.display()))?;
        Ok(Outcome::Fine)
    }
}

impl Convert {
    fn run(self) -> Result<Outcome> {
        let pages = self.source.read(&self.output)?;
        let target = Target::new(&self.output)?;
        let hasher = self.hashing.hasher()?;
        let keys = self.sizing.keys.unwrap_or(pages.len() as u64);
        let kind = self.sizing.kind.unwrap_or(Kind::BlockedRank);
        let plan = Plan::of(kind, &self.sizing.goal(keys))?;
        let digests: Vec<_> = pages.iter().map(|page| hasher.digest(&page.0)).collect();
        let filter = plan.params.build_from(label(hasher, keys), &digests)?;
        show::note_if_crowded(&filter);
        target.write(&filter, self.hashing.mode())?;
        Ok(Outcome::Fine)
    }
}

impl Pages {
    /// All pages, for an output that must not be one of the inputs.
    fn read(&self, output: &Path) -> Result<Vec<PageKey>> {
        self.keys.check(Some(output))?;
        let mut pages = Vec::new();
        let progress = Progress::quiet("reading", self.keys.size());
        self.keys.each_batch(Hasher::default(), progress, |batch| {
            for key in batch.keys {
                if !self.listing {
                    pages.push(PageKey::get(key));
                } else if let Some(digits) = key.strip_prefix(b"KEY ") {
                    let digits = std::str::from_utf8(digits).ok();
                    let Some(page) = digits.and_then(|digits| PageKey::parse(digits.trim_end()))
                    else {
                        bail!("a line KEY has no 32 hexadecimal digits: is it a list of a store?");
                    };
                    pages.push(page);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(pages)
    }
}

/// Whether a file is a filter of ours.
fn is_filter(path: &Path) -> bool {
    let mut magic = Vec::new();
    let read = fs::File::open(path)
        .and_then(|file| file.take(tamis::wire::MAGIC.len() as u64).read_to_end(&mut magic));
    read.is_ok() && magic == tamis::wire::MAGIC
}

/// The digest in a file, or of a Squid.
fn read(place: &str) -> Result<CacheDigest> {
    let most = store::limits(0).memory;
    if place.starts_with("http://") || place.starts_with("https://") {
        return Ok(CacheDigest::fetch(place, most)?);
    }
    let path = Path::new(place);
    if is_stdio(path) {
        bail!("a digest is read from a file or a Squid; give its path, or http://HOST:PORT");
    }
    let read = || -> Result<CacheDigest> {
        let bytes = fs::metadata(path)?.len();
        if bytes > most {
            bail!("{bytes} bytes are more than --limit {most}");
        }
        Ok(CacheDigest::decode(&fs::read(path)?)?)
    };
    read().with_context(|| place.to_owned())
}
