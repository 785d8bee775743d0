//! `tamis keygen` and `tamis publish`: the next version of a set, for followers.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use clap::Args;
use tamis::Filter;
use tamis_exchange::{Publisher, SecretKey};

use super::Outcome;
use crate::system::{self, PUBLIC, SECRET};
use crate::{show, store};

/// Write a pair of keys: one that signs, and one that checks
///
/// KEY signs and stays with the publisher; KEY.pub goes to every follower.
#[derive(Args)]
#[command(after_help = "\
Example:
  tamis keygen -o words.key        # writes words.key and words.key.pub")]
pub(crate) struct Keygen {
    /// File for the secret key; the public one gets .pub behind its name
    #[arg(short, long, value_name = "KEY")]
    output: PathBuf,
}

impl Keygen {
    pub(crate) fn run(self) -> Result<Outcome> {
        let key = SecretKey::generate()?;
        let mut public = self.output.clone().into_os_string();
        public.push(".pub");
        // A key that is lost cannot be had again: nothing is written over one.
        for (path, text, mode) in [
            (self.output, key.to_text(), SECRET),
            (PathBuf::from(public), key.public().to_text(), PUBLIC),
        ] {
            let file = system::create_new(&path, mode);
            file.and_then(|mut file| file.write_all(text.as_bytes())).with_context(|| {
                format!("cannot write {} (never over a file that is there)", path.display())
            })?;
        }
        Ok(Outcome::Fine)
    }
}

/// Put the next version of a set where followers find it
///
/// STORE is a folder, which any web server can serve, or a bucket. A version is a snapshot, and
/// deltas for followers that are up to --reach versions behind. Each follower fetches a manifest
/// of about 200 bytes and then what is cheapest for it. If publishing stops halfway, followers
/// keep the version before.
///
/// Kind, size, hash and seed should stay: deltas lead only between filters that agree in them.
/// Where they change, a new epoch begins, and followers fetch a snapshot.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis keygen -o words.key
  tamis publish /srv/sets words.tamis --name words --sign words.key
  tamis add words.tamis new.txt && tamis publish /srv/sets words.tamis --name words --sign words.key
  python3 -m http.server --directory /srv/sets        # and followers can come
  tamis publish s3://bucket/sets words.tamis --name words --sign words.key")]
pub(crate) struct Publish {
    /// Folder for all sets, made if it is not there; or a bucket, such as
    /// `s3://bucket/sets`
    #[arg(value_name = "STORE")]
    store: String,

    /// Filter to publish; - is stdin
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Name of the set in the store
    #[arg(long)]
    name: String,

    /// Secret key to sign with, from tamis keygen
    #[arg(long, value_name = "KEY", required_unless_present = "unsigned")]
    sign: Option<PathBuf>,

    /// Publish without a signature: anyone on the network can replace the set
    #[arg(long, conflicts_with = "sign")]
    unsigned: bool,

    /// Seconds that followers are asked to wait between two requests
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    wait: u32,

    /// Versions that a follower may be behind and still find a delta, where that is smaller than
    /// a snapshot
    #[arg(long, value_name = "VERSIONS", default_value_t = 1024)]
    reach: u64,

    /// Print facts as JSON
    #[arg(long)]
    json: bool,
}

impl Publish {
    pub(crate) fn run(self) -> Result<Outcome> {
        let key = self.sign.as_deref().map(|path| read_key(path, SecretKey::parse)).transpose()?;
        let set = tamis_exchange::store(&self.store, &self.name)?;
        let filter = store::load(&self.filter)?.filter;
        let publisher = Publisher::new(set, &self.name, key)
            .wait(Duration::from_secs(self.wait.into()))
            .reach(self.reach);
        let published = publisher.publish(&filter, SystemTime::now())?;
        if let Some(why) = &published.new_epoch {
            show::note(&format_args!(
                "a new epoch begins, and followers fetch a snapshot, because {why}"
            ));
        }
        show::note_if_crowded(&filter);
        if self.json {
            show::print_json(&published)?;
        } else if published.is_new {
            let delta = published.delta_bytes.map(|bytes| show::short_bytes(bytes as f64));
            show::print(&format_args!(
                "version {} of {}: {} keys, snapshot {}, delta {}",
                published.version,
                self.name,
                filter.keys(),
                show::short_bytes(published.snapshot_bytes as f64),
                delta.as_deref().unwrap_or("none"),
            ))?;
        } else {
            show::print(&format_args!(
                "version {} of {} is unchanged; its time is signed anew",
                published.version, self.name
            ))?;
        }
        Ok(Outcome::Fine)
    }
}

/// The key in a file.
pub(super) fn read_key<K>(
    path: &Path,
    parse: fn(&str) -> Result<K, tamis_exchange::Error>,
) -> Result<K> {
    let text = fs::read_to_string(path).with_context(|| {
        let path = path.display();
        format!("cannot read the key {path} (tamis keygen makes KEY and KEY.pub)")
    })?;
    parse(&text).with_context(|| path.display().to_string())
}
