//! `tamis digest agent`: the digests of peers, kept current by deltas.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use clap::Args;
use tamis_exchange::squid::{Agent as Served, CacheDigest};
use tamis_exchange::{Follower, PublicKey, Publisher, SecretKey, source};

use super::super::Outcome;
use super::super::follow::pause;
use super::super::publish::read_key;
use crate::{numbers, show, store};

/// Publish the digests of this Squid, and serve it those of its peers
///
/// Each peer is a set that its own agent publishes. The digest of the set NAME is served at
/// `http://LISTEN/NAME`: say so in squid.conf, as in the example. What Squid gets is what its
/// peer's Squid has made, bit by bit; what travels between sites are the bits that flipped.
#[derive(Args)]
#[command(after_help = "\
Example:
  tamis digest agent --squid http://127.0.0.1:3128 --store /srv/sets --name a --sign a.key \\
      --peer https://b.example.org/sets/b=b.key.pub --listen 127.0.0.1:4827
and in squid.conf:
  cache_peer b.example.org sibling 3128 0 no-query digest-url=http://127.0.0.1:4827/b")]
pub(crate) struct Agent {
    /// Address of the Squid whose digests are published, such as `http://127.0.0.1:3128`
    #[arg(long, value_name = "URL", requires_all = ["store", "name"])]
    squid: Option<String>,

    /// Folder or bucket to publish into
    #[arg(long, value_name = "STORE", requires = "squid")]
    store: Option<String>,

    /// Name of this Squid's set in the store
    #[arg(long, requires = "squid")]
    name: Option<String>,

    /// Secret key to sign with, from tamis keygen
    #[arg(long, value_name = "KEY", requires = "squid")]
    sign: Option<PathBuf>,

    /// Set of a peer, and the public key of its publisher; may be repeated
    #[arg(long = "peer", value_name = "SET=KEY.pub")]
    peers: Vec<String>,

    /// Address to serve digests of peers at, such as 127.0.0.1:4827
    #[arg(long, value_name = "ADDR", requires = "peers")]
    listen: Option<String>,

    /// Time between two requests to Squid and to each peer
    #[arg(long, value_name = "TIME", value_parser = numbers::seconds, default_value = "1m")]
    every: u64,

    /// Serve no digest of a peer that was signed longer ago than this; Squid then asks that peer
    /// for nothing until there is a new one
    #[arg(long, value_name = "TIME", value_parser = numbers::seconds, default_value = "1h")]
    max_age: u64,

    /// Print a line of JSON for every version that was published or taken
    #[arg(long)]
    json: bool,
}

/// A peer, and what it is called.
struct Peer {
    name: String,
    follower: Follower,
}

impl Agent {
    pub(crate) fn run(self) -> Result<Outcome> {
        if self.squid.is_none() && self.peers.is_empty() {
            bail!("nothing to do: say --squid to publish, or --peer to serve, or both");
        }
        let publisher = self.publisher()?;
        let mut peers = self.peers.iter().map(|peer| follow(peer)).collect::<Result<Vec<_>>>()?;
        let served = Served::default().max_age(Duration::from_secs(self.max_age));
        if let Some(address) = &self.listen {
            let listener = TcpListener::bind(address).with_context(|| {
                format!("cannot listen on {address:?}; write for example 127.0.0.1:4827")
            })?;
            let (served, age) = (served.clone(), Duration::from_secs(self.every));
            show::note(&format_args!("digests are served on {}", listener.local_addr()?));
            thread::spawn(move || served.serve(&listener, age));
        } else if !peers.is_empty() {
            bail!("where shall the digests of peers be served? Say it with --listen");
        }
        loop {
            if let Err(error) = self.publish(publisher.as_ref()) {
                show::complaint(&error);
            }
            for Peer { name, follower } in &mut peers {
                match served.follow(name, follower, SystemTime::now()) {
                    Ok(step) => {
                        if self.json {
                            show::print(&serde_json::to_string(&step)?)?;
                        }
                        if step.age > self.max_age {
                            show::note(&format_args!(
                                "{name}: signed {} s ago and not served any more: its agent or \
                                 its Squid stands still",
                                step.age
                            ));
                        }
                    }
                    Err(error) => {
                        show::complaint(&anyhow::Error::from(error).context(name.clone()));
                    }
                }
            }
            thread::sleep(pause(self.every, 0));
        }
    }

    fn publisher(&self) -> Result<Option<Publisher>> {
        let (Some(store), Some(name)) = (&self.store, &self.name) else { return Ok(None) };
        let Some(key) = &self.sign else {
            bail!("peers take what is signed; make a key with tamis keygen, and give it by --sign");
        };
        let key = read_key(key, SecretKey::parse)?;
        let publisher = Publisher::new(tamis_exchange::store(store, name)?, name, Some(key));
        Ok(Some(publisher.wait(Duration::from_secs(self.every))))
    }

    fn publish(&self, publisher: Option<&Publisher>) -> Result<()> {
        let (Some(publisher), Some(squid)) = (publisher, &self.squid) else { return Ok(()) };
        let digest = CacheDigest::fetch(squid, store::limits(0).memory)?;
        let published = publisher.publish(&digest.to_filter()?, SystemTime::now())?;
        if self.json && published.is_new {
            show::print(&serde_json::to_string(&published)?)?;
        }
        Ok(())
    }
}

fn follow(peer: &str) -> Result<Peer> {
    let Some((set, key)) = peer.rsplit_once('=') else {
        bail!("--peer {peer:?}: write the set and the key of its publisher, as SET=KEY.pub");
    };
    let key = read_key(Path::new(key), PublicKey::parse)?;
    let (name, source) = source(set)?;
    let follower = Follower::new(source, &name, Some(key)).limits(store::limits(0));
    Ok(Peer { name, follower })
}
