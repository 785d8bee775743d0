//! `tamis gate`: a reverse proxy that answers for absent keys from a followed filter.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use clap::Args;
use tamis_exchange::gate::{Gate as Proxy, Metrics};
use tamis_exchange::{Error, Follower, PublicKey, Step, source};

use super::Outcome;
use super::follow::{metrics_text, next_wait, pause};
use super::publish::read_key;
use crate::{numbers, show, store};

/// Answer 404 for absent keys from a filter, and pass all else on to a server
///
/// A reverse proxy. A GET or HEAD whose path matches --key, and whose key is not in the filter, is
/// answered here; the origin never sees it. Everything else is passed on as it is, and so is
/// everything while there is no filter, or one that was signed longer ago than --max-age. So no
/// key is denied longer than --max-age after it came into the set, whatever fails.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis gate --origin https://cache.example.org --filter https://example.org/sets/cache \\
      --public-key cache.key.pub --key '/{}.narinfo' --listen 127.0.0.1:8080
  tamis gate --origin http://10.0.0.7:5000 --filter /srv/sets/cache --public-key cache.key.pub \\
      --key '/{}.narinfo' --listen 127.0.0.1:8080 --max-age 10m --metrics 127.0.0.1:9100
  nix-store -r /nix/store/... --option substituters http://127.0.0.1:8080")]
pub(crate) struct Gate {
    /// URL of the server that all else is passed on to
    #[arg(long, value_name = "URL")]
    origin: String,

    /// Address of the set to follow: a URL or a folder, with the set's name at the end
    #[arg(long, value_name = "SET")]
    filter: String,

    /// Path of requests, with {} for the key, such as '/{}.narinfo'
    #[arg(long, value_name = "PATTERN")]
    key: String,

    /// Address and port to listen on
    #[arg(long, value_name = "ADDR")]
    listen: String,

    /// Public key of the set's publisher
    #[arg(long, value_name = "KEY.pub", required_unless_present = "unsigned")]
    public_key: Option<PathBuf>,

    /// Follow a set without a signature: anyone on the network can make the gate deny your keys
    #[arg(long, conflicts_with = "public_key")]
    unsigned: bool,

    /// Pass everything on while the set was signed longer ago than this: the longest time that a
    /// new key may be denied
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = numbers::seconds)]
    max_age: u64,

    /// Longest time that caches may keep a 404; less where --max-age comes sooner
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = numbers::seconds)]
    negative_max_age: u64,

    /// Time between two requests for the set [default: what the publisher asks for]
    #[arg(long, value_name = "TIME", value_parser = numbers::seconds)]
    every: Option<u64>,

    /// File to keep the filter in as well, so that a restart fetches only what is new
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Address and port for metrics in the text format of Prometheus, at /metrics
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
}

impl Gate {
    pub(crate) fn run(self) -> Result<Outcome> {
        let key = self.public_key.as_deref();
        let key = key.map(|path| read_key(path, PublicKey::parse)).transpose()?;
        let (name, source) = source(&self.filter)?;
        let mut follower = Follower::new(source, &name, key).limits(store::limits(0));
        if let Some(path) = &self.output {
            follower = follower.file(path)?;
        }
        let proxy = Proxy::new(&self.origin, self.key.parse()?, follower.live())?
            .max_age(Duration::from_secs(self.max_age))
            .negative_max_age(Duration::from_secs(self.negative_max_age));
        let listener = listen(&self.listen)?;
        let scraped = self.metrics.as_deref().map(listen).transpose()?;
        let told = Arc::new(Mutex::new(String::new()));
        let metrics = scraped.map(|listener| -> Metrics {
            let told = told.clone();
            (listener, Box::new(move || told.lock().map(|text| text.clone()).unwrap_or_default()))
        });
        let address = listener.local_addr()?;
        let mut following = Following { follower, set: self.filter, last: None, failures: 0, told };
        match following.step() {
            // It may be there later.
            Err(error @ (Error::Io { .. } | Error::Status { .. })) => following.complain(error),
            Err(error) => bail!("{}: {error}", following.set),
            Ok(()) => {}
        }
        thread::spawn(move || following.go_on(self.every));
        show::note(&format_args!("the gate to {} listens on {address}", self.origin));
        Arc::new(proxy).run(listener, metrics)?;
        Ok(Outcome::Fine)
    }
}

fn listen(address: &str) -> Result<TcpListener> {
    TcpListener::bind(address)
        .with_context(|| format!("cannot listen on {address:?}; write for example 127.0.0.1:8080"))
}

/// The filter behind the gate, kept current.
struct Following {
    follower: Follower,
    set: String,
    last: Option<Step>,
    failures: u32,
    told: Arc<Mutex<String>>,
}

impl Following {
    fn step(&mut self) -> Result<(), Error> {
        let result = self.follower.step(SystemTime::now());
        self.failures = if result.is_ok() { 0 } else { self.failures.saturating_add(1) };
        let result = result.map(|step| self.last = Some(step));
        if let Ok(mut told) = self.told.lock() {
            *told = metrics_text(self.last.as_ref(), self.follower.totals(), result.is_ok());
        }
        result
    }

    fn complain(&self, error: Error) {
        show::complaint(&anyhow::Error::from(error).context(self.set.clone()));
    }

    fn go_on(mut self, every: Option<u64>) {
        loop {
            thread::sleep(pause(next_wait(every, self.last.as_ref()), self.failures));
            if let Err(error) = self.step() {
                self.complain(error);
            }
        }
    }
}
