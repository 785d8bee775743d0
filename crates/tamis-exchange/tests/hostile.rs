//! Followers of web servers that are slow, endless, silent, wrong or dying, over real sockets:
//! what they hold stays signed and never goes back, they take neither long nor much, and recover
//! by themselves.
#![cfg(feature = "http")]

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tamis::{AnyFilter, ContentId, Digest, Insert, Limits, RankIndexed, Remove};
use tamis_exchange::{Error, Folder, Follower, Http, PublicKey, Publisher, SecretKey};

/// What a server does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It closes the connection at once.
    Closed,
    /// It never answers.
    Silent,
    /// A byte now and then.
    Slow,
    /// It never ends, whatever it said before.
    Endless,
    /// It never ends, and never said that it would.
    EndlessChunks,
    /// Headers without end.
    EndlessHeaders,
    /// It dies in the middle.
    Dying,
    /// It says that half of the bytes are all.
    Half,
    /// A bit is flipped.
    Flipped,
    /// Not HTTP.
    Garbage,
    /// It sends one away, to itself.
    Elsewhere,
    /// It is out of order.
    Broken,
    /// It says that nothing changed, whatever it is asked.
    Unchanged,
    /// It claims more bytes than there are machines for.
    Huge,
    /// It answers a part with another part.
    OtherPart,
}

const FAULTS: [Fault; 15] = [
    Fault::Closed,
    Fault::Silent,
    Fault::Slow,
    Fault::Endless,
    Fault::EndlessChunks,
    Fault::EndlessHeaders,
    Fault::Dying,
    Fault::Half,
    Fault::Flipped,
    Fault::Garbage,
    Fault::Elsewhere,
    Fault::Broken,
    Fault::Unchanged,
    Fault::Huge,
    Fault::OtherPart,
];

/// How long a follower here waits for a server.
const PATIENCE: Duration = Duration::from_millis(200);
/// A step may take three requests, which may bring some thousand bytes, on a busy machine.
const STEP_TIME: Duration = Duration::from_secs(15);
/// A follower takes no more bytes than this from a server that never ends: what it asked for, and
/// what fits between two sockets.
const MOST_BYTES: u64 = 16 << 20;

/// A server of a folder, with faults.
#[derive(Clone)]
struct Server {
    address: SocketAddr,
    folder: PathBuf,
    /// After how many requests it goes wrong, and how.
    fault: Arc<Mutex<Option<(u64, Fault)>>>,
    sent: Arc<AtomicU64>,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            folder: folder.to_owned(),
            fault: Arc::default(),
            sent: Arc::default(),
        };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                // What goes wrong here is the follower's to bear.
                thread::spawn(move || serving.serve(stream));
            }
        });
        server
    }

    fn fault(&self) -> Option<Fault> {
        let mut fault = self.fault.lock().unwrap();
        match &mut *fault {
            Some((0, fault)) => Some(*fault),
            Some((requests, _)) => {
                *requests -= 1;
                None
            }
            None => None,
        }
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut path, mut from, mut line) = (String::new(), 0, String::new());
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            if let Some(rest) = line.strip_prefix("GET ") {
                rest.split(' ').next().unwrap_or_default().clone_into(&mut path);
            }
            if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=") {
                from = range.split('-').next().and_then(|from| from.parse().ok()).unwrap_or(0);
            }
        }
        let fault = self.fault();
        let Ok(bytes) = std::fs::read(self.folder.join(path.trim_start_matches('/'))) else {
            return self.send(
                &mut stream,
                b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            );
        };
        self.answer(&mut stream, fault, &path, bytes, from)
    }

    fn send(&self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        stream.write_all(bytes)?;
        self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn answer(
        &self,
        stream: &mut TcpStream,
        fault: Option<Fault>,
        path: &str,
        mut bytes: Vec<u8>,
        from: usize,
    ) -> io::Result<()> {
        let total = bytes.len();
        bytes.drain(..from.min(total));
        let (mut status, mut start) = (if from > 0 { "206 Part" } else { "200 OK" }, from);
        let mut length = bytes.len();
        match fault {
            Some(Fault::Closed) => return Ok(()),
            Some(Fault::Silent) => thread::sleep(Duration::from_secs(20)),
            Some(Fault::Garbage) => return self.send(stream, b"\0\xff what is this?\r\n\r\n"),
            Some(Fault::Broken) => status = "503 Not now",
            Some(Fault::Unchanged) => status = "304 Not Modified",
            Some(Fault::Elsewhere) => {
                let away = format!("HTTP/1.1 302 Found\r\nLocation: {path}\r\n\r\n");
                return self.send(stream, away.as_bytes());
            }
            Some(Fault::EndlessHeaders) => {
                self.send(stream, b"HTTP/1.1 200 OK\r\n")?;
                loop {
                    self.send(stream, format!("X: {}\r\n", "x".repeat(4000)).as_bytes())?;
                }
            }
            Some(Fault::EndlessChunks) => {
                self.send(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                loop {
                    self.send(stream, &[b"1000\r\n", &[7; 4096][..], b"\r\n"].concat())?;
                }
            }
            Some(Fault::Half) => {
                bytes.truncate(bytes.len() / 2);
                length = bytes.len();
            }
            Some(Fault::Flipped) if !bytes.is_empty() => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 4;
            }
            Some(Fault::Endless | Fault::Huge) => length = usize::MAX / 2,
            Some(Fault::OtherPart) => start = from + 1,
            _ => {}
        }
        let range = format!("Content-Range: bytes {start}-{}/{total}\r\n", total.max(1) - 1);
        let range = if from > 0 { range } else { String::new() };
        let tag = format!("ETag: \"{}\"\r\n", tamis_tag(&bytes));
        let head = format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{range}{tag}\r\n"
        );
        self.send(stream, head.as_bytes())?;
        match fault {
            Some(Fault::Slow) => {
                for byte in bytes {
                    self.send(stream, &[byte])?;
                    thread::sleep(Duration::from_millis(50));
                }
                Ok(())
            }
            Some(Fault::Dying) => self.send(stream, &bytes[..bytes.len() / 3]),
            Some(Fault::Endless) => loop {
                self.send(stream, &[7; 4096])?;
            },
            _ => self.send(stream, &bytes),
        }
    }
}

/// A tag that changes with the bytes.
fn tamis_tag(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64, |tag, &byte| Digest(tag ^ u64::from(byte)).word(2))
}

fn digest(key: u64) -> Digest {
    Digest(Digest(key).word(1))
}

/// A set that is published and served.
struct Trial {
    publisher: Publisher,
    public: PublicKey,
    server: Server,
    filter: RankIndexed,
    next: u64,
    signed: BTreeMap<u64, ContentId>,
    _folder: tempfile::TempDir,
}

impl Trial {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let key = SecretKey::generate().unwrap();
        let public = key.public();
        let store = Folder::new(folder.path(), "set").unwrap();
        let publisher = Publisher::new(Box::new(store), "set", Some(key)).reach(8);
        let mut filter = RankIndexed::with_rate(200, 0.01).unwrap();
        (0..200).for_each(|key| assert!(filter.insert_digest(digest(key)).is_ok()));
        let server = Server::start(folder.path());
        let signed = BTreeMap::new();
        let mut trial =
            Self { publisher, public, server, filter, next: 200, signed, _folder: folder };
        trial.publish();
        trial
    }

    fn publish(&mut self) {
        for _ in 0..5 {
            self.filter.remove_digest(digest(self.next - 200)).unwrap();
            self.filter.insert_digest(digest(self.next)).unwrap();
            self.next += 1;
        }
        let filter = AnyFilter::from(self.filter.clone());
        let published = self.publisher.publish(&filter, SystemTime::now()).unwrap();
        self.signed.insert(published.version, filter.content_id());
    }

    fn follower(&self) -> Follower {
        let http = Http::new(&format!("http://{}/set", self.server.address)).patience(PATIENCE);
        Follower::new(Box::new(http), "set", Some(self.public)).limits(Limits::memory(4 << 20))
    }

    /// A step, and the version that is held then: signed, and no older than `before`.
    fn step(&self, follower: &mut Follower, before: u64, what: &str) -> (u64, Result<(), Error>) {
        let (begin, sent) = (Instant::now(), self.server.sent.load(Ordering::Relaxed));
        let result = follower.step(SystemTime::now()).map(drop);
        assert!(begin.elapsed() < STEP_TIME, "{what}: {:?}", begin.elapsed());
        let sent = self.server.sent.load(Ordering::Relaxed) - sent;
        assert!(sent < MOST_BYTES, "{what}: {sent} bytes");
        let Some(current) = follower.live().load() else { return (0, result) };
        let version = current.manifest.version;
        assert_eq!(self.signed.get(&version), Some(&current.filter.content_id()), "{what}");
        assert!(version >= before, "{what}: from {before} to {version}");
        (version, result)
    }
}

#[test]
fn hostile_servers_delay_followers_and_do_nothing_else() {
    // scripts/hostile has more.
    let runs = std::env::var("TAMIS_HOSTILE_RUNS").map_or(90, |runs| runs.parse().unwrap());
    let mut trial = Trial::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine");
    let mut near = trial.follower();
    let (mut held, mut kept) = (0, 0);
    let mut failed = BTreeMap::<String, u64>::new();
    for run in 0..runs {
        let fault = FAULTS[run as usize % FAULTS.len()];
        let at = Digest(run).word(4) % 3;
        let what = format!("run {run}, {fault:?} after {at} requests");
        trial.publish();
        *trial.server.fault.lock().unwrap() = Some((at, fault));
        let (version, result) = trial.step(&mut near, held, &what);
        held = version;
        *failed.entry(format!("{fault:?}")).or_default() += u64::from(result.is_err());
        // One that keeps a file, and is started anew each time.
        *trial.server.fault.lock().unwrap() = Some((at, fault));
        let mut opened = trial.follower().file(&file).unwrap();
        kept = kept.max(trial.step(&mut opened, 0, &what).0);
        if run % 5 == 4 {
            // The cause is gone.
            *trial.server.fault.lock().unwrap() = None;
            let newest = *trial.signed.keys().last().unwrap();
            for (follower, before) in [(&mut near, held), (&mut opened, kept)] {
                // On a busy machine an answer may come too late for such a short patience.
                let recovers = (0..10).any(|_| {
                    let (version, result) = trial.step(follower, before, &what);
                    result.is_ok() && version == newest
                });
                assert!(recovers, "{what}: it does not recover");
            }
            (held, kept) = (newest, newest);
        }
    }
    eprintln!("hostile runs: {}, by two followers of a server; failed: {failed:?}", 2 * runs);
    // Every fault did hinder someone.
    if runs >= 90 {
        let hindered = failed.values().filter(|&&failures| failures > 0).count();
        assert_eq!(hindered, FAULTS.len() - 1, "(a part of a part is never asked for): {failed:?}");
    }
}

#[test]
fn a_snapshot_that_is_cut_off_goes_on_where_it_stopped() {
    let trial = Trial::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine");
    // The manifest and the table come whole.
    *trial.server.fault.lock().unwrap() = Some((2, Fault::Dying));
    assert!(trial.follower().file(&file).unwrap().step(SystemTime::now()).is_err());
    // A server that answers with another part does no harm.
    *trial.server.fault.lock().unwrap() = Some((2, Fault::OtherPart));
    assert!(trial.follower().file(&file).unwrap().step(SystemTime::now()).is_err());
    *trial.server.fault.lock().unwrap() = None;
    let mut follower = trial.follower().file(&file).unwrap();
    let step = follower.step(SystemTime::now()).unwrap();
    let snapshot = AnyFilter::from(trial.filter.clone()).pack(tamis::Effort::Best).len();
    assert!(step.snapshot && step.bytes < 192 + 100 + snapshot, "{step:?}, snapshot {snapshot}");
    assert_eq!(
        trial.signed.values().last(),
        Some(&follower.live().load().unwrap().filter.content_id())
    );
}
