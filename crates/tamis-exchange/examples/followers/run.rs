//! A set that changes, and followers at every distance: what they pay, and that they end with the
//! publisher's content.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tamis::{AnyFilter, BlockedRank, Delta, Digest, Effort, Insert, Remove};
use tamis_exchange::{Error, Folder, Follower, PublicKey, Publisher, SecretKey, Source, Tagged};

/// What is published and followed.
pub(crate) struct Run {
    pub(crate) keys: u64,
    /// The part of the keys that each version replaces.
    pub(crate) share: f64,
    pub(crate) which: Which,
    pub(crate) versions: u64,
    /// Followers that take every version.
    pub(crate) followers: usize,
    /// Followers that are as many versions behind when the last one comes.
    pub(crate) distances: Vec<u64>,
}

/// Which keys a version replaces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Which {
    /// Those that were in for the longest time.
    Oldest,
    /// Those of the version before: over many versions as little changes as over one.
    Newest,
    /// Any.
    Random,
}

/// What it took.
pub(crate) struct Paid {
    /// Bytes of each step of each follower, but the first.
    pub(crate) bytes: Vec<u64>,
    /// Milliseconds of processor time of each of these steps.
    pub(crate) work: Vec<f64>,
    pub(crate) far: Vec<Far>,
    /// Bytes of the last snapshot.
    pub(crate) snapshot: u64,
}

/// A follower that was away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Far {
    pub(crate) behind: u64,
    /// All bytes that it fetched, with the manifest and the table.
    pub(crate) bytes: u64,
    /// Manifest and table.
    pub(crate) beside: u64,
    /// Bytes of the headers of all deltas but one.
    pub(crate) headers: u64,
    /// A delta made for it alone.
    pub(crate) direct: u64,
}

/// A set of keys, some of which are replaced.
pub(crate) struct Set {
    filter: BlockedRank,
    keys: Vec<u64>,
    /// How many keys have been in.
    all: u64,
}

impl Set {
    pub(crate) fn new(keys: u64, rate: f64) -> Self {
        let mut filter = BlockedRank::with_rate(keys, rate).unwrap();
        (0..keys).for_each(|key| assert!(filter.insert_digest(digest(key)).is_ok()));
        Self { filter, keys: (0..keys).collect(), all: keys }
    }

    pub(crate) fn replace(&mut self, keys: u64, which: Which) {
        for number in 0..keys {
            let place = match which {
                Which::Oldest => self.all,
                Which::Newest => number,
                Which::Random => digest(self.all).word(2),
            };
            let place = (place % self.keys.len() as u64) as usize;
            let old = std::mem::replace(&mut self.keys[place], self.all);
            self.filter.remove_digest(digest(old)).unwrap();
            self.filter.insert_digest(digest(self.all)).unwrap();
            self.all += 1;
        }
    }
}

/// A folder, and how many bytes of manifests and tables were read from it.
struct Watched {
    folder: Folder,
    beside: Arc<AtomicU64>,
}

impl Source for Watched {
    fn place(&self) -> String {
        self.folder.place()
    }

    fn manifest(&self, known: Option<&str>, most: u64) -> Result<Option<Tagged>, Error> {
        let tagged = self.folder.manifest(known, most)?;
        let bytes = tagged.as_ref().map_or(0, |tagged| tagged.bytes.len());
        self.beside.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(tagged)
    }

    fn object(&self, name: &str, from: u64, bytes: u64) -> Result<(u64, Box<dyn Read>), Error> {
        let (from, mut reader) = self.folder.object(name, from, bytes)?;
        let mut start = Vec::new();
        let read = reader.by_ref().take(8).read_to_end(&mut start);
        read.map_err(|source| Error::Io { place: name.to_owned(), source })?;
        let is_table = start == b"tamis\x1atb";
        self.beside.fetch_add(if is_table { bytes } else { 0 }, Ordering::Relaxed);
        Ok((from, Box::new(io::Cursor::new(start).chain(reader))))
    }
}

/// The digest of a key.
pub(crate) fn digest(key: u64) -> Digest {
    Digest(Digest(key).word(1))
}

fn at(version: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + version)
}

fn follower(store: &Path, key: PublicKey) -> Follower {
    Follower::new(Box::new(Folder::new(store, "set").unwrap()), "set", Some(key))
}

/// Milliseconds of processor time of this thread so far.
fn worked() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().and_then(|time| time.parse::<f64>().ok()).unwrap() / 1e6
}

impl Run {
    /// Publishes and follows all versions; every follower ends with the publisher's content.
    pub(crate) fn run(&self) -> Paid {
        // In memory where there is such a folder: it is not the disk that is looked at.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let key = SecretKey::generate().unwrap();
        let public = key.public();
        let store = Folder::new(folder.path(), "set").unwrap();
        let publisher = Publisher::new(Box::new(store), "set", Some(key));
        let mut set = Set::new(self.keys, 0.01);
        let mut near: Vec<_> =
            (0..self.followers).map(|_| follower(folder.path(), public)).collect();
        let mut far: Vec<(u64, AnyFilter, Follower, Arc<AtomicU64>)> = Vec::new();
        let mut paid = Paid { bytes: Vec::new(), work: Vec::new(), far: Vec::new(), snapshot: 0 };
        let mut newest = AnyFilter::from(set.filter.clone());
        for version in 1..=self.versions {
            newest = set.filter.clone().into();
            let content = newest.content_id();
            let published = publisher.publish(&newest, at(version)).unwrap();
            assert_eq!((published.version, published.new_epoch), (version, None));
            for follower in &mut near {
                let before = worked();
                let step = follower.step(at(version)).unwrap();
                let work = worked() - before;
                // (The follower has compared its filter with it.)
                assert_eq!(follower.live().load().unwrap().manifest.content, content);
                if version > 1 {
                    assert_eq!((step.deltas, step.snapshot), (1, false));
                    paid.bytes.push(step.bytes);
                    paid.work.push(work);
                }
            }
            if self.distances.contains(&(self.versions - version)) {
                let beside = Arc::default();
                let source = Watched { folder: Folder::new(folder.path(), "set").unwrap(), beside };
                let beside = source.beside.clone();
                let mut one = Follower::new(Box::new(source), "set", Some(public));
                one.step(at(version)).unwrap();
                far.push((self.versions - version, newest.clone(), one, beside));
            }
            set.replace((self.keys as f64 * self.share) as u64, self.which);
        }
        paid.snapshot = newest.pack(Effort::Best).len();
        let header = Delta::between(&newest, &newest).unwrap().encode().len();
        for (behind, old, mut one, beside) in far {
            let before = beside.load(Ordering::Relaxed);
            let step = one.step(at(self.versions)).unwrap();
            let content = one.live().load().unwrap().filter.content_id();
            assert_eq!(content, newest.content_id());
            assert_eq!(one.totals().fallbacks, 0);
            let direct = Delta::between(&old, &newest).unwrap().encode().len();
            let beside = beside.load(Ordering::Relaxed) - before;
            let headers = step.deltas.saturating_sub(1) as u64 * header;
            paid.far.push(Far { behind, bytes: step.bytes, beside, headers, direct });
        }
        paid
    }
}

impl Paid {
    /// How much more the worst follower that was away paid for objects than it may, 1 if it paid
    /// just that: a snapshot, or 1.3 times a delta made for it. Of several deltas the headers
    /// count once: small ones have little else.
    pub(crate) fn worst(&self) -> (f64, Far) {
        let of = |far: &Far| {
            let most = (self.snapshot as f64).min(1.3 * far.direct as f64);
            (far.bytes - far.beside - far.headers) as f64 / most
        };
        let worst = self.far.iter().max_by(|one, other| of(one).total_cmp(&of(other))).unwrap();
        (of(worst), *worst)
    }

    /// The same with all headers, the manifest and the table, but where a snapshot is the less.
    pub(crate) fn worst_in_all(&self) -> f64 {
        let of = |far: &Far| {
            let snapshot = (self.snapshot + far.beside) as f64;
            far.bytes as f64 / snapshot.min(1.3 * far.direct as f64)
        };
        self.far.iter().map(of).fold(0.0, f64::max)
    }
}
