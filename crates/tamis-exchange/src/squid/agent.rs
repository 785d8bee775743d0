//! The agent beside a Squid: fetches its digest, and serves it the digests of its peers.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, SystemTime};

use super::CacheDigest;
use crate::error::Error;
use crate::follow::{Follower, Step};
use crate::live::Live;

/// Between the parts of an answer. Squid 5 damages a digest whose header and array it reads at
/// once (squid-cache/squid, pull request 2254).
const APART: Duration = Duration::from_millis(100);
/// A client that says nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(30);
/// No request of Squid is longer.
const MOST_REQUEST: u64 = 1 << 16;

/// The digests of peers by name, served over HTTP.
///
/// A Squid with `cache_peer b.example.org sibling 3128 0 no-query
/// digest-url=http://127.0.0.1:4827/b` asks it for the digest of its peer b.
#[derive(Clone, Debug)]
pub struct Agent {
    peers: Arc<RwLock<HashMap<String, Peer>>>,
    max_age: Duration,
}

/// What a peer has.
#[derive(Debug)]
struct Peer {
    digest: Arc<CacheDigest>,
    /// The set that it was made of. Its manifest says when it was last signed.
    live: Live,
}

impl Default for Agent {
    fn default() -> Self {
        Self { peers: Arc::default(), max_age: Duration::from_secs(3600) }
    }
}

impl Agent {
    /// Serves no digest whose set was signed longer ago; an hour unless said otherwise. Squid
    /// takes a 404 for a peer without a digest, and asks it for nothing until there is one.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    /// Takes the newest version of a peer's set, if there is a new one, and serves it as `name`.
    pub fn follow(&self, name: &str, peer: &mut Follower, now: SystemTime) -> Result<Step, Error> {
        let step = peer.step(now)?;
        let live = peer.live();
        let is_known = || self.peers.read().is_ok_and(|peers| peers.contains_key(name));
        if let Some(current) = live.load().filter(|_| step.is_new || !is_known()) {
            let digest = Arc::new(CacheDigest::from_filter(&current.filter)?);
            let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
            peers.insert(name.to_owned(), Peer { digest, live });
        }
        Ok(step)
    }

    /// What is served as `name` at the time `now`, and how long it may be served then.
    pub fn digest(&self, name: &str, now: SystemTime) -> Option<(Arc<CacheDigest>, Duration)> {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        let peer = peers.get(name)?;
        let left = self.max_age.checked_sub(peer.live.load()?.age(now))?;
        Some((peer.digest.clone(), left))
    }

    /// Answers requests until the listener fails. Answers may be kept for `age`, or as long as
    /// they are served if that is less.
    pub fn serve(&self, listener: &TcpListener, age: Duration) -> io::Result<()> {
        for stream in listener.incoming() {
            let (stream, agent) = (stream?, self.clone());
            // A client that goes away has lost nothing but its answer.
            thread::spawn(move || agent.answer(stream, age));
        }
        Ok(())
    }

    fn answer(&self, mut stream: TcpStream, age: Duration) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut lines = BufReader::new(stream.try_clone()?.take(MOST_REQUEST)).lines();
        let start = lines.next().transpose()?.unwrap_or_default();
        for line in lines {
            if line?.is_empty() {
                break;
            }
        }
        let mut words = start.split(' ');
        let (method, path) = (words.next(), words.next().unwrap_or_default());
        // Through a proxy it is a whole URL.
        let path = path
            .split_once("://")
            .map_or(path, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
        let digest = path.strip_prefix('/').and_then(|name| self.digest(name, SystemTime::now()));
        let digest = digest.filter(|_| matches!(method, Some("GET" | "HEAD")));
        let Some((digest, left)) = digest else {
            let text = "there is no digest of this name, not yet or too old a one\n";
            return write!(
                stream,
                "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{text}",
                text.len()
            );
        };
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: application/cache-digest\r\nContent-Length: {}\r\n\
             Cache-Control: max-age={}\r\nConnection: close\r\n\r\n",
            digest.header().len() + digest.mask().len(),
            age.min(left).as_secs(),
        )?;
        if method == Some("GET") {
            for part in [&digest.header(), digest.mask()] {
                stream.flush()?;
                thread::sleep(APART);
                stream.write_all(part)?;
            }
        }
        stream.flush()
    }
}

#[cfg(feature = "http")]
impl CacheDigest {
    /// Asks a Squid at an address such as `http://127.0.0.1:3128` for its digest, of at most
    /// `most` bytes.
    pub fn fetch(squid: &str, most: u64) -> Result<Self, Error> {
        let url = format!("{}/squid-internal-periodic/store_digest", squid.trim_end_matches('/'));
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .build();
        let answer = ureq::Agent::from(config).get(&url).call();
        let mut answer = answer.map_err(|error| Error::io(&url)(io::Error::other(error)))?;
        let status = answer.status().as_u16();
        if status == 404 {
            let fault = format!("{url}: the Squid has none yet, or is built without digests");
            return Err(Error::format("digest", fault));
        } else if status != 200 {
            return Err(Error::Status { place: url, status });
        }
        let mut bytes = Vec::new();
        let read =
            answer.body_mut().as_reader().take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(Error::io(&url))?;
        if bytes.len() as u64 > most {
            return Err(Error::Limit { field: "digest", need: bytes.len() as u64, limit: most });
        }
        Self::decode(&bytes)
    }
}
