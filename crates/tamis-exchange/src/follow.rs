//! The follower: keeps a filter current, and takes nothing that was not signed.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};
use tamis::wire::ReadSource;
use tamis::{AnyFilter, ContentId, Delta, Limits};

use crate::error::Error;
use crate::file;
use crate::key::PublicKey;
use crate::live::{Current, Live};
use crate::manifest::{self, Manifest};
use crate::object::{HASH_BYTES, Hash, Object};
use crate::state::State;
use crate::store::{self, Source};
use crate::table::{self, Row, Table};

/// Manifests that were signed further in the future are refused.
pub(crate) const CLOCKS_DIFFER: u64 = 300;

/// Keeps a filter current.
///
/// ```no_run
/// use std::time::SystemTime;
/// use tamis_exchange::{Follower, PublicKey, source};
/// let key = PublicKey::parse(&std::fs::read_to_string("publisher.pub")?)?;
/// let (name, source) = source("https://example.org/sets/words")?;
/// let mut follower = Follower::new(source, &name, Some(key)).file("words.tamis".as_ref())?;
/// let live = follower.live(); // Clone it for every thread that asks.
/// follower.step(SystemTime::now())?;
/// let current = live.load().expect("a version");
/// println!("version {} with {} keys", current.manifest.version, current.manifest.keys);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Follower {
    source: Box<dyn Source>,
    name: String,
    key: Option<PublicKey>,
    limits: Limits,
    file: Option<PathBuf>,
    state: State,
    tag: Option<String>,
    live: Live,
    totals: Totals,
}

/// What a follower has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// Bytes that were fetched.
    pub bytes: u64,
    /// Versions that were taken.
    pub updates: u64,
    /// Snapshots that were taken because deltas did not lead to the newest version.
    pub fallbacks: u64,
    /// Steps that failed.
    pub failures: u64,
}

/// What a step did.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Step {
    /// The version that is held now.
    pub version: u64,
    /// Its epoch.
    pub epoch: u32,
    /// Keys in it.
    pub keys: u64,
    /// The rate at which an absent key passes.
    pub rate: f64,
    /// Seconds since the publisher signed it.
    pub age: u64,
    /// Seconds that the publisher asks to wait until the next step.
    pub wait: u32,
    /// Whether the filter changed.
    pub is_new: bool,
    /// Deltas that were applied.
    pub deltas: usize,
    /// Whether a snapshot was taken.
    pub snapshot: bool,
    /// Bytes that were fetched.
    pub bytes: u64,
}

impl Follower {
    /// Follows the set `name` at `source`, signed with `key`; without one, only a set that is not
    /// signed.
    pub fn new(source: Box<dyn Source>, name: &str, key: Option<PublicKey>) -> Self {
        Self {
            source,
            state: State::new(name, key.as_ref()),
            name: name.to_owned(),
            key,
            limits: Limits::default(),
            file: None,
            tag: None,
            live: Live::default(),
            totals: Totals::default(),
        }
    }

    /// Takes no more memory than `limits` for reading an object.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Keeps the filter in a file too, and goes on from what is in it.
    pub fn file(mut self, path: &Path) -> Result<Self, Error> {
        self.state = self.state.read(path)?;
        self.file = Some(path.to_owned());
        Ok(self)
    }

    /// The handle for readers.
    pub fn live(&self) -> Live {
        self.live.clone()
    }

    /// What was done so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Fetches the newest version, if there is a new one. Whatever goes wrong, what was held
    /// before stays.
    pub fn step(&mut self, now: SystemTime) -> Result<Step, Error> {
        let before = self.totals.bytes;
        let result = self.try_step(now, before).or_else(|error| {
            // Objects may have been replaced since the manifest was read.
            if error.is_passing() { self.try_step(now, before) } else { Err(error) }
        });
        self.totals.failures += u64::from(result.is_err());
        result
    }

    fn try_step(&mut self, now: SystemTime, before: u64) -> Result<Step, Error> {
        let held = self.live.load();
        let known = held.as_ref().and(self.tag.as_deref());
        let Some(tagged) = self.source.manifest(known, manifest::MOST_BYTES)? else {
            let manifest = held.map(|held| held.manifest.clone());
            let missing = || Error::format("manifest", "the server says that nothing changed yet");
            return Ok(self.said(&manifest.ok_or_else(missing)?, now, before, &[], false));
        };
        self.totals.bytes += tagged.bytes.len() as u64;
        if tagged.bytes.len() as u64 > manifest::MOST_BYTES {
            return Err(Error::format("manifest", "it is larger than any manifest"));
        }
        let manifest = Manifest::decode(&tagged.bytes, &self.name, self.key.as_ref())?;
        let ahead = manifest.time.saturating_sub(seconds(now));
        if ahead > CLOCKS_DIFFER {
            return Err(Error::Clock { ahead });
        }
        self.state.check(&manifest)?;
        let held = held.map(|held| (held.manifest.content, held.filter.clone()));
        let (filter, path) = match held.or_else(|| self.held_file()) {
            Some((content, filter)) if content == manifest.content => (filter, Vec::new()),
            held => {
                let (filter, path) = self.fetch(&manifest, held)?;
                (Arc::new(filter), path)
            }
        };
        let is_new = !path.is_empty();
        self.state.see(&manifest);
        if let Some(path) = &self.file {
            self.state.write(path)?;
            if is_new {
                let encoded = filter.encode();
                let pieces: Vec<&[u8]> = encoded.pieces().collect();
                file::replace(path, &pieces, None).map_err(Error::io(&path.display()))?;
            }
        }
        self.totals.updates += u64::from(is_new);
        self.tag = tagged.tag;
        let step = self.said(&manifest, now, before, &path, is_new);
        self.live.store(Arc::new(Current { filter, manifest }));
        Ok(step)
    }

    fn said(
        &self,
        manifest: &Manifest,
        now: SystemTime,
        before: u64,
        path: &[Row],
        is_new: bool,
    ) -> Step {
        Step {
            version: manifest.version,
            epoch: manifest.epoch,
            keys: manifest.keys,
            rate: manifest.rate,
            age: seconds(now).saturating_sub(manifest.time),
            wait: manifest.wait,
            is_new,
            deltas: path.iter().filter(|row| !row.is_snapshot()).count(),
            snapshot: path.iter().any(Row::is_snapshot),
            bytes: self.totals.bytes - before,
        }
    }

    /// The filter in the file and its content; `None` if there is none that can be used, for then
    /// a snapshot is fetched.
    fn held_file(&self) -> Option<(ContentId, Arc<AnyFilter>)> {
        let file = File::open(self.file.as_ref()?).ok()?;
        let bytes = file.metadata().ok()?.len();
        let limits = Limits::memory(self.limits.memory.max(2 * bytes));
        let filter = AnyFilter::read(&mut ReadSource::new(file, bytes), limits).ok()?;
        Some((filter.content_id(), Arc::new(filter)))
    }

    /// The filter of a manifest by the cheapest path, and the objects that led to it.
    fn fetch(
        &mut self,
        manifest: &Manifest,
        held: Option<(ContentId, Arc<AnyFilter>)>,
    ) -> Result<(AnyFilter, Vec<Row>), Error> {
        let version = held.as_ref().and_then(|held| self.state.version_of(held.0, manifest.epoch));
        let held = held.map(|held| held.1);
        let to = manifest.version;
        let newest = version.zip(manifest.newest).filter(|(from, _)| from + 1 == to);
        let mut table = None;
        let path = if let Some((from, object)) = newest {
            vec![Row { from, to, object }]
        } else {
            let whole = self.table(manifest, version)?;
            table.insert(whole).path(version, to).ok_or_else(no_path)?
        };
        let is_snapshot = path.first().is_some_and(Row::is_snapshot);
        match self.walk(&path, held.as_deref(), manifest) {
            // What is held is not what it should be, or a delta is damaged.
            Err(error) if !is_snapshot && error.is_of_content() => {
                self.totals.fallbacks += 1;
                let table = table.map_or_else(|| self.table(manifest, None), Ok)?;
                let path = table.path(None, to).ok_or_else(no_path)?;
                Ok((self.walk(&path, None, manifest)?, path))
            }
            filter => Ok((filter?, path)),
        }
    }

    /// The table, as far as a follower of version `held` needs it.
    fn table(&mut self, manifest: &Manifest, held: Option<u64>) -> Result<Table, Error> {
        let mut read = |object: &Object| {
            check_limit("table", object.bytes, table::MOST_BYTES)?;
            self.read(object)
        };
        let table = Table::decode(&read(&manifest.table)?)?;
        if held.is_some_and(|held| table.first <= held && held < table.since) {
            return table.complete(read);
        }
        Ok(table)
    }

    /// Follows a path, and compares where it leads with what was signed.
    fn walk(
        &mut self,
        path: &[Row],
        held: Option<&AnyFilter>,
        manifest: &Manifest,
    ) -> Result<AnyFilter, Error> {
        let mut filter = held.cloned();
        let mut proven = None;
        for row in path {
            if row.is_snapshot() {
                filter = Some(self.snapshot(&row.object)?);
            } else if let Some(filter) = &mut filter {
                check_limit("delta", row.object.bytes, self.limits.memory)?;
                let delta = Delta::decode(&self.read(&row.object)?, self.limits)?;
                delta.apply(filter)?;
                proven = Some(delta.result());
            }
        }
        let filter = filter.ok_or_else(no_path)?;
        // A delta that was applied has compared the content already, which takes as long as all
        // else that is done with it. Snapshots stand in front.
        let (promised, found) = (manifest.content, proven.unwrap_or_else(|| filter.content_id()));
        if promised == found { Ok(filter) } else { Err(Error::Content { promised, found }) }
    }

    fn read(&mut self, object: &Object) -> Result<Vec<u8>, Error> {
        let bytes = store::read(&*self.source, object)?;
        self.totals.bytes += object.bytes;
        Ok(bytes)
    }

    /// Fetches a snapshot. Where there is a file, it goes into another beside it, so that a
    /// fetch that was cut off goes on where it stopped.
    fn snapshot(&mut self, object: &Object) -> Result<AnyFilter, Error> {
        check_limit("snapshot", object.bytes, self.limits.memory)?;
        let Some(path) = &self.file else {
            return Ok(AnyFilter::decode(&self.read(object)?, self.limits)?);
        };
        let path = part_of(path);
        let place = path.display();
        let mut part = Part::open(&path, object).map_err(Error::io(&place))?;
        if part.done < object.bytes {
            let name = object.hash.to_string();
            let (start, reader) = self.source.object(&name, part.done, object.bytes)?;
            if start != part.done {
                part.restart().map_err(Error::io(&place))?;
            }
            let fetched = part.fill(reader, object);
            self.totals.bytes += part.fetched;
            fetched.map_err(Error::io(&format_args!("{}/{name}", self.source.place())))?;
        }
        let is_whole = part.done == object.bytes && part.hash() == object.hash;
        let _ = if is_whole || part.done >= object.bytes { fs::remove_file(&path) } else { Ok(()) };
        if !is_whole {
            return Err(Error::Damaged { place: self.source.place() });
        }
        part.file.seek(SeekFrom::Start(HASH_BYTES as u64)).map_err(Error::io(&place))?;
        Ok(AnyFilter::read(&mut ReadSource::new(part.file, object.bytes), self.limits)?)
    }
}

/// Where a snapshot is collected before it becomes a file.
fn part_of(file: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(".part");
    file.with_file_name(name)
}

/// A part of a snapshot: its name, so that a part of another is not taken for
/// it, and then its bytes so far.
struct Part {
    file: File,
    hasher: Sha256,
    done: u64,
    fetched: u64,
    name: [u8; HASH_BYTES],
}

impl Part {
    fn open(path: &Path, object: &Object) -> io::Result<Self> {
        let open = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let name = object.hash.0;
        let mut found = [0; HASH_BYTES];
        let mut part = Self { file: open?, hasher: Sha256::new(), done: 0, fetched: 0, name };
        let is_same = part.file.read_exact(&mut found).is_ok() && found == name;
        if !is_same {
            part.restart()?;
            return Ok(part);
        }
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = part.file.read(&mut buffer)?;
            if read == 0 {
                return Ok(part);
            }
            part.hasher.update(&buffer[..read]);
            part.done += read as u64;
        }
    }

    fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&self.name)?;
        (self.hasher, self.done) = (Sha256::new(), 0);
        Ok(())
    }

    /// Adds what a reader gives, up to the end of the object and a byte more.
    fn fill(&mut self, reader: Box<dyn Read>, object: &Object) -> io::Result<()> {
        let mut reader = reader.take((object.bytes - self.done).saturating_add(1));
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = reader.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            self.file.write_all(&buffer[..read])?;
            self.hasher.update(&buffer[..read]);
            self.done += read as u64;
            self.fetched += read as u64;
        }
        if self.done < object.bytes {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server stopped early"));
        }
        Ok(())
    }

    fn hash(&self) -> Hash {
        Hash::of(self.hasher.clone())
    }
}

fn no_path() -> Error {
    Error::format("table", "no object leads to the newest version")
}

fn check_limit(field: &'static str, need: u64, limit: u64) -> Result<(), Error> {
    if need <= limit { Ok(()) } else { Err(Error::Limit { field, need, limit }) }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
