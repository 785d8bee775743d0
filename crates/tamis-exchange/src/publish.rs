//! The publisher: the next version of a set, with the deltas that lead to it.
//!
//! A follower that is a few versions behind should pay little more than one delta from there to
//! the newest version. Two sorts of deltas see to that:
//!
//! - *steps*: from every version to the next, and over 8 and 64 versions where these end at a
//!   multiple. They never change.
//! - *leaps*: from some versions before the newest to the newest itself, four in each octave of
//!   the distance, and from all versions between two of these where steps would cost too much.
//!   They are made anew for each version.
//!
//! A follower takes steps to the next version with a leap, and then leaps.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, SystemTime};

use tamis::{AnyFilter, Delta, DeltaError, Digest, Effort, Filter, Limits};

use crate::error::Error;
use crate::follow::CLOCKS_DIFFER;
use crate::key::SecretKey;
use crate::manifest::{self, Manifest};
use crate::object::Object;
use crate::store::{self, Store, Tagged};
use crate::table::{self, Row, Table};

/// Steps of these lengths are kept.
const STEPS: [u64; 3] = [1, 8, 64];
/// The first part of the table is for followers up to this many versions behind.
const NEAR: u64 = 32;
/// Where steps and a leap take more than this many times the bytes of one delta, there is one.
const MOST_PAID: f64 = 1.25;
/// A snapshot is kept every so often, to rebuild older versions from.
const KEPT_SNAPSHOTS: u64 = 64;

/// Publishes versions of one set.
///
/// ```
/// use std::time::SystemTime;
/// use tamis::{AnyFilter, RankIndexed};
/// use tamis_exchange::{Folder, Follower, Publisher, SecretKey};
/// let folder = tempfile::tempdir()?;
/// let store = || Folder::new(folder.path(), "words");
/// let key = SecretKey::generate()?;
/// let public = key.public();
///
/// let mut filter = RankIndexed::with_rate(1_000, 0.01)?;
/// filter.insert("apple")?;
/// let publisher = Publisher::new(Box::new(store()?), "words", Some(key));
/// let published = publisher.publish(&AnyFilter::from(filter), SystemTime::now())?;
/// assert_eq!(published.version, 1);
///
/// let mut follower = Follower::new(Box::new(store()?), "words", Some(public));
/// follower.step(SystemTime::now())?;
/// let current = follower.live().load().expect("a first version");
/// assert!(current.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Publisher {
    store: Box<dyn Store>,
    name: String,
    key: Option<SecretKey>,
    wait: Duration,
    reach: u64,
    recent: Vec<Digest>,
}

/// What was published.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Published {
    /// The version.
    pub version: u64,
    /// The epoch.
    pub epoch: u32,
    /// Why a new epoch began, if one did: followers then need a snapshot.
    pub new_epoch: Option<String>,
    /// Whether the content is new. If not, only the time was signed anew.
    pub is_new: bool,
    /// Bytes of the snapshot.
    pub snapshot_bytes: u64,
    /// Bytes of the delta from the version before.
    pub delta_bytes: Option<u64>,
    /// How many versions back a delta still pays.
    pub reach: u64,
}

impl Publisher {
    /// Publishes the set `name`, signed with `key`; unsigned without one.
    pub fn new(store: Box<dyn Store>, name: &str, key: Option<SecretKey>) -> Self {
        let wait = Duration::from_secs(20);
        Self { store, name: name.to_owned(), key, wait, reach: 1024, recent: Vec::new() }
    }

    /// Asks followers to wait as long between two requests; 20 s unless said otherwise.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Makes deltas for followers up to `versions` versions behind, as far as they are smaller
    /// than a snapshot; 1024 unless said otherwise.
    #[must_use]
    pub fn reach(mut self, versions: u64) -> Self {
        self.reach = versions.max(1);
        self
    }

    /// Lists keys, by their digests, that are too new to be in the filter; at most 4096.
    #[must_use]
    pub fn recent(mut self, digests: Vec<Digest>) -> Self {
        self.recent = digests;
        self
    }

    /// Makes `filter` the newest version. If it fails, or is stopped at any moment, the version
    /// before stays the newest.
    pub fn publish(&self, filter: &AnyFilter, now: SystemTime) -> Result<Published, Error> {
        if self.recent.len() > manifest::MOST_RECENT {
            let fault = "at most 4096 recent keys; publish a filter with them";
            return Err(Error::format("recent", fault));
        }
        let _lock = self.store.lock()?;
        let head = self.head()?;
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut next = self.next(head.as_ref(), filter, seconds)?;
        let manifest = Manifest {
            epoch: next.epoch,
            version: next.version,
            // Of one version followers take only later manifests.
            time: head.as_ref().map_or(seconds, |head| match head.manifest {
                Manifest { version, time, .. } if version == next.version => seconds.max(time),
                _ => seconds,
            }),
            wait: u32::try_from(self.wait.as_secs()).unwrap_or(u32::MAX),
            keys: filter.keys(),
            rate: filter.rate(),
            content: filter.content_id(),
            newest: next.newest,
            table: self.put_table(&mut next.table, next.version)?,
            recent: self.recent.clone(),
        };
        // All objects are there before the manifest names them.
        let bytes = manifest.encode(&self.name, self.key.as_ref());
        if !self.store.put_manifest(&bytes, head.as_ref().map(|head| &head.tagged))? {
            return Err(Error::Conflict(next.version));
        }
        self.clean(&manifest, &next.table, head.as_ref())?;
        let last = |is_snapshot| {
            let rows = next.table.rows.iter().filter(|row| row.to == next.version);
            rows.filter(move |row| row.is_snapshot() == is_snapshot)
        };
        Ok(Published {
            version: next.version,
            epoch: next.epoch,
            is_new: head.is_none_or(|head| head.manifest.version < next.version),
            new_epoch: next.new_epoch,
            snapshot_bytes: last(true).map(|row| row.object.bytes).sum(),
            delta_bytes: next.newest.map(|newest| newest.bytes),
            reach: last(false).map(|row| row.to - row.from).max().unwrap_or(0),
        })
    }

    /// The newest version, which must be ours.
    fn head(&self) -> Result<Option<Head>, Error> {
        let tagged = match self.store.manifest(None, manifest::MOST_BYTES) {
            Ok(Some(tagged)) => tagged,
            Ok(None) | Err(Error::NoSet { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let key = self.key.as_ref().map(SecretKey::public);
        let manifest = Manifest::decode(&tagged.bytes, &self.name, key.as_ref())?;
        let read = |object: &Object| store::read(&*self.store, object);
        let table = read(&manifest.table).and_then(|bytes| Table::decode(&bytes)?.complete(read));
        let table = match table {
            // Nothing leads on from here.
            Err(error) if error.is_loss() => Table::default(),
            table => table?,
        };
        Ok(Some(Head { manifest, table, tagged }))
    }

    /// The version with the content of `filter`, to be signed at the time `seconds`. Its objects
    /// are written.
    fn next(&self, head: Option<&Head>, filter: &AnyFilter, seconds: u64) -> Result<Next, Error> {
        let Some(Head { manifest, table, .. }) = head else {
            return self.begin(1, 1, filter, None);
        };
        let (epoch, from) = (manifest.epoch, manifest.version);
        let is_whole = table.path(None, from).is_some();
        // Nobody takes what was signed by a clock that is far ahead. A new version mends that.
        let is_early = manifest.time > seconds + CLOCKS_DIFFER;
        if manifest.content == filter.content_id() && is_whole && !is_early {
            let (newest, table) = (manifest.newest, table.clone());
            return Ok(Next { epoch, version: from, newest, table, new_epoch: None });
        }
        let version = from + 1;
        let mut walk = Walk { store: &*self.store, table, at: None };
        let newest = match walk.to(from) {
            Err(error) if error.is_loss() => {
                let why = format!("the store has lost version {from} ({error})");
                return self.begin(epoch + 1, version, filter, Some(why));
            }
            newest => newest?,
        };
        let step = match Delta::between(newest, filter) {
            Err(why @ (DeltaError::Mismatch(_) | DeltaError::BuiltOnce(_))) => {
                return self.begin(epoch + 1, version, filter, Some(why.to_string()));
            }
            step => self.put(&step?.encode().to_vec())?,
        };
        let snapshot = self.put(&filter.pack(Effort::Best).to_vec())?;
        let reach = table.leap_to_try(from).min(self.reach);
        let mut rows = table.kept_by(version, reach);
        rows.push(Row { from: 0, to: version, object: snapshot });
        rows.push(Row { from, to: version, object: step });
        let steps = STEPS.into_iter().filter(|&step| version.is_multiple_of(step));
        let leaps = leaps().take_while(|&leap| leap <= reach);
        let furthest = (version - table.first).min(reach);
        let distances = leaps.chain(steps).chain([furthest]).filter(|&distance| distance > 1);
        let bases: BTreeSet<u64> =
            distances.filter_map(|distance| version.checked_sub(distance)).collect();
        let mut next = Table::new(table.first, rows);
        next.rows.extend(self.leaps(bases, table, filter, version, snapshot.bytes)?);
        let dear = next.dear(version);
        next.rows.extend(self.leaps(dear, table, filter, version, snapshot.bytes)?);
        Ok(Next { epoch, version, newest: Some(step), table: next, new_epoch: None })
    }

    /// Deltas of fewer than `most` bytes from the versions `bases`, which `table` can rebuild, to
    /// `filter`, which is `version`.
    fn leaps(
        &self,
        bases: BTreeSet<u64>,
        table: &Table,
        filter: &AnyFilter,
        version: u64,
        most: u64,
    ) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        // In order of version, so that each is rebuilt from the one before.
        let mut walk = Walk { store: &*self.store, table, at: None };
        for from in bases.into_iter().filter(|&from| from >= table.first) {
            let Ok(base) = walk.to(from) else { continue }; // (It is no longer in the store.)
            let bytes = Delta::between(base, filter)?.encode().to_vec();
            if (bytes.len() as u64) < most {
                rows.push(Row { from, to: version, object: self.put(&bytes)? });
            }
        }
        Ok(rows)
    }

    /// The first version of an epoch.
    fn begin(
        &self,
        epoch: u32,
        version: u64,
        filter: &AnyFilter,
        new_epoch: Option<String>,
    ) -> Result<Next, Error> {
        let object = self.put(&filter.pack(Effort::Best).to_vec())?;
        let rows = vec![Row { from: 0, to: version, object }];
        Ok(Next { epoch, version, newest: None, table: Table::new(version, rows), new_epoch })
    }

    fn put(&self, bytes: &[u8]) -> Result<Object, Error> {
        let object = Object::of(bytes);
        self.store.put_object(&object.hash.to_string(), bytes)?;
        Ok(object)
    }

    /// Writes both parts of a table, and returns the first.
    fn put_table(&self, table: &mut Table, newest: u64) -> Result<Object, Error> {
        let (mut near, rest) = table.split(newest.saturating_sub(NEAR), newest);
        near.rest = if rest.rows.is_empty() { None } else { Some(self.put(&rest.encode())?) };
        table.rest = near.rest;
        self.put(&near.encode())
    }

    /// Deletes what neither this version names nor the one before, whose followers may still be
    /// reading.
    fn clean(&self, now: &Manifest, table: &Table, before: Option<&Head>) -> Result<(), Error> {
        let rows = table.rows.iter().chain(before.iter().flat_map(|head| &head.table.rows));
        let tables = [now.table].into_iter().chain(before.map(|head| head.manifest.table));
        let rests = table.rest.into_iter().chain(before.and_then(|head| head.table.rest));
        let objects = rows.map(|row| row.object).chain(tables).chain(rests);
        let named: HashSet<String> = objects.map(|object| object.hash.to_string()).collect();
        self.store.clean(&|name| named.contains(name))
    }
}

/// The newest version in a store.
struct Head {
    manifest: Manifest,
    table: Table,
    tagged: Tagged,
}

/// The version to publish.
struct Next {
    epoch: u32,
    version: u64,
    newest: Option<Object>,
    table: Table,
    new_epoch: Option<String>,
}

/// The filters of older versions, rebuilt one after the other.
struct Walk<'a> {
    store: &'a dyn Store,
    table: &'a Table,
    at: Option<(u64, AnyFilter)>,
}

impl Walk<'_> {
    fn to(&mut self, version: u64) -> Result<&AnyFilter, Error> {
        let held = self.at.take();
        let path = self.table.path(held.as_ref().map(|held| held.0), version);
        let gone = || Error::format("table", format!("version {version} cannot be rebuilt"));
        let mut filter = held.map(|held| held.1);
        for row in path.ok_or_else(gone)? {
            let bytes = store::read(self.store, &row.object)?;
            // The publisher wrote these bytes itself.
            if row.is_snapshot() {
                filter = Some(AnyFilter::decode(&bytes, Limits::NONE)?);
            } else if let Some(filter) = &mut filter {
                Delta::decode(&bytes, Limits::NONE)?.apply(filter)?;
            }
        }
        Ok(&self.at.insert((version, filter.ok_or_else(gone)?)).1)
    }
}

/// The distances of leaps: numbers of at most three significant bits, so that none is more than a
/// quarter beyond the one before.
fn leaps() -> impl Iterator<Item = u64> {
    (1..=4).chain((0..60).flat_map(|octave| [5, 6, 7, 8].map(|number| number << octave)))
}

impl Table {
    /// How far back from the version behind `newest` leaps are tried: once more than they paid
    /// for the one before.
    fn leap_to_try(&self, newest: u64) -> u64 {
        let last = self.rows.iter().filter(|row| row.to == newest && !row.is_snapshot());
        let paid = last.map(|row| row.to - row.from).max().unwrap_or(1);
        leaps().find(|&leap| leap > paid).unwrap_or(paid)
    }

    /// The versions from which the way to `newest` takes more than `MOST_PAID` times one delta, by
    /// the leaps on both sides. Where each version replaces what the one before it brought, that
    /// is all of them: a delta over many versions is then no larger than one over two.
    fn dear(&self, newest: u64) -> BTreeSet<u64> {
        let ways = self.ways(newest);
        let snapshot = ways.get(&table::SNAPSHOT).map_or(u64::MAX, |way| way.bytes);
        let leaps = self.rows.iter().filter(|row| row.to == newest && !row.is_snapshot());
        let leaps: BTreeMap<u64, u64> = leaps.map(|row| (row.from, row.object.bytes)).collect();
        let pairs = leaps.iter().zip(leaps.iter().skip(1));
        let between = pairs.flat_map(|((&far, &far_bytes), (&near, &near_bytes))| {
            (far + 1..near).map(move |from| {
                let part = (from - far) as f64 / (near - far) as f64;
                (from, far_bytes as f64 + part * (near_bytes as f64 - far_bytes as f64))
            })
        });
        let dear = between.filter(|(from, direct)| {
            let way = ways.get(from).map_or(snapshot, |way| way.bytes.min(snapshot));
            way as f64 > MOST_PAID * direct
        });
        dear.map(|(from, _)| from).collect()
    }

    /// The rows that stay when `version` comes: steps, and some snapshots, for leaps of up to
    /// `reach`.
    fn kept_by(&self, version: u64, reach: u64) -> Vec<Row> {
        let oldest = version.saturating_sub(reach + 2 * KEPT_SNAPSHOTS);
        let is_kept = |row: &&Row| {
            let is_step = |&step: &u64| row.to - row.from == step && row.to.is_multiple_of(step);
            let is_base = row.to.is_multiple_of(KEPT_SNAPSHOTS) || row.to == self.first;
            row.to >= oldest && if row.is_snapshot() { is_base } else { STEPS.iter().any(is_step) }
        };
        self.rows.iter().filter(is_kept).copied().collect()
    }
}
