//! Publishers and followers among faults: a store that fails at any request, objects that are cut,
//! flipped or swapped, manifests that are old, forged or endless. A follower never shows a content
//! that was not signed for its version, never goes back, and recovers by itself.

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tamis::{AnyFilter, ContentId, Delta, Digest, Insert, Limits, RankIndexed, Remove};
use tamis_exchange::{Error, Follower, PublicKey, Publisher, SecretKey, Source, Store, Tagged};

const NAME: &str = "set";

/// A store in memory, with faults.
#[derive(Clone, Default)]
struct Memory {
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    /// All manifests that there ever were.
    manifests: Arc<Mutex<Vec<Vec<u8>>>>,
    faults: Arc<Faults>,
    /// What someone else does while the next object is written.
    meanwhile: Arc<Mutex<Option<Meanwhile>>>,
}

type Meanwhile = Box<dyn FnOnce() + Send>;

/// More requests than a publisher makes.
const STOPS: u64 = 40;
/// How many sorts of faults there are.
const FAULTS: u64 = 6;

/// Which request fails, counted down, and how.
#[derive(Default)]
struct Faults {
    left: Mutex<Option<(u64, u64)>>,
    /// Whether it has failed since the fault was set.
    struck: AtomicBool,
    random: Mutex<Cell<u64>>,
}

impl Faults {
    /// The fault of this request, if it has one.
    fn next(&self) -> Option<u64> {
        let fault = self.count_down();
        self.struck.fetch_or(fault.is_some(), Ordering::Relaxed);
        fault
    }

    fn count_down(&self) -> Option<u64> {
        let mut left = self.left.lock().unwrap();
        match &mut *left {
            Some((0, fault)) if *fault < FAULTS => {
                let fault = *fault;
                *left = None;
                Some(fault)
            }
            // This one stays.
            Some((0, fault)) => Some(*fault - FAULTS),
            Some((requests, _)) => {
                *requests -= 1;
                None
            }
            None => None,
        }
    }

    fn set(&self, fault: Option<(u64, u64)>) {
        self.struck.store(false, Ordering::Relaxed);
        *self.left.lock().unwrap() = fault;
    }

    fn random(&self, below: usize) -> usize {
        let cell = self.random.lock().unwrap();
        cell.set(cell.get() + 1);
        (Digest(cell.get()).word(9) % below.max(1) as u64) as usize
    }
}

fn broken() -> Error {
    Error::Io { place: "memory".to_owned(), source: io::Error::other("the fault of a test") }
}

impl Memory {
    /// What a reader gets instead of `bytes`.
    fn changed(&self, mut bytes: Vec<u8>, fault: Option<u64>) -> Result<Vec<u8>, Error> {
        match fault {
            None => {}
            Some(0) => return Err(broken()),
            Some(1) => bytes.truncate(self.faults.random(bytes.len())),
            Some(2) => {
                let at = self.faults.random(bytes.len());
                bytes[at] ^= 1 << self.faults.random(8);
            }
            Some(3) => bytes.extend([0; 100]),
            Some(_) => {
                // Another file of the store.
                let files = self.files.lock().unwrap();
                let number = self.faults.random(files.len());
                bytes = files.values().nth(number).cloned().unwrap_or_default();
            }
        }
        Ok(bytes)
    }

    fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.files.lock().unwrap().get(name).cloned()
    }
}

impl Source for Memory {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn manifest(&self, known: Option<&str>, _: u64) -> Result<Option<Tagged>, Error> {
        let missing = || Error::NoSet { place: self.place() };
        let bytes = self.get("manifest").ok_or_else(missing)?;
        let tag = Some(bytes.len().to_string() + &format!("{:?}", &bytes[16..32]));
        let fault = self.faults.next();
        if fault == Some(4) {
            let manifests = self.manifests.lock().unwrap();
            // One of the last, whose objects are still there.
            let back = self.faults.random(manifests.len().min(4));
            let old = manifests[manifests.len() - 1 - back].clone();
            return Ok(Some(Tagged { bytes: old, tag: None }));
        }
        if fault.is_none() && known.map(str::to_owned) == tag {
            return Ok(None);
        }
        Ok(Some(Tagged { bytes: self.changed(bytes, fault)?, tag }))
    }

    fn object(&self, name: &str, from: u64, _: u64) -> Result<(u64, Box<dyn Read>), Error> {
        let missing = || Error::Status { place: name.to_owned(), status: 404 };
        let bytes = self.get(name).ok_or_else(missing)?;
        let bytes = self.changed(bytes, self.faults.next())?;
        let rest = bytes.get(from as usize..).unwrap_or_default().to_vec();
        Ok((from, Box::new(io::Cursor::new(rest))))
    }
}

impl Store for Memory {
    fn lock(&self) -> Result<Option<Box<dyn Any>>, Error> {
        Ok(None)
    }

    fn put_object(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(act) = meanwhile {
            act();
        }
        if self.faults.next().is_some() {
            return Err(broken());
        }
        self.files.lock().unwrap().insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn put_manifest(&self, bytes: &[u8], expected: Option<&Tagged>) -> Result<bool, Error> {
        if self.faults.next().is_some() {
            return Err(broken());
        }
        if self.get("manifest") != expected.map(|tagged| tagged.bytes.clone()) {
            return Ok(false);
        }
        self.manifests.lock().unwrap().push(bytes.to_vec());
        self.files.lock().unwrap().insert("manifest".to_owned(), bytes.to_vec());
        Ok(true)
    }

    fn clean(&self, keep: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        if self.faults.next().is_some() {
            return Err(broken());
        }
        self.files.lock().unwrap().retain(|name, _| name == "manifest" || keep(name));
        Ok(())
    }
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
}

fn digest(key: u64) -> Digest {
    Digest(Digest(key).word(1))
}

/// A publisher with a set of 200 keys, and the contents that it has signed.
struct Trial {
    store: Memory,
    publisher: Publisher,
    public: PublicKey,
    secret: String,
    filter: RankIndexed,
    first: u64,
    signed: BTreeMap<u64, ContentId>,
    clock: u64,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let store = Memory::default();
        store.faults.random.lock().unwrap().set(seed << 32);
        let key = SecretKey::generate().unwrap();
        let (public, secret) = (key.public(), key.to_text());
        let publisher = Publisher::new(Box::new(store.clone()), NAME, Some(key));
        let mut filter = RankIndexed::with_rate(200, 0.01).unwrap();
        (0..200).for_each(|key| assert!(filter.insert_digest(digest(key)).is_ok()));
        let signed = BTreeMap::new();
        Self { store, publisher, public, secret, filter, first: 0, signed, clock: 0 }
    }

    /// Replaces some keys and publishes, perhaps with a fault.
    fn publish(&mut self) -> Result<(), Error> {
        for _ in 0..self.store.faults.random(20) {
            self.filter.remove_digest(digest(self.first)).unwrap();
            self.filter.insert_digest(digest(self.first + 200)).unwrap();
            self.first += 1;
        }
        self.clock += 1;
        let filter = AnyFilter::from(self.filter.clone());
        let before = self.store.manifests.lock().unwrap().len();
        let published = self.publisher.publish(&filter, at(self.clock));
        // It may be signed although cleaning failed.
        if self.store.manifests.lock().unwrap().len() > before {
            let next = self.signed.last_key_value().map_or(1, |(version, _)| version + 1);
            let same = self.signed.last_key_value().map(|(_, &content)| content);
            if same != Some(filter.content_id()) {
                self.signed.insert(next, filter.content_id());
            }
        }
        if let Ok(published) = &published {
            assert_eq!(Some(&published.version), self.signed.keys().last());
        }
        published.map(drop)
    }

    fn follower(&self) -> Follower {
        Follower::new(Box::new(self.store.clone()), NAME, Some(self.public))
    }

    /// A step that may fail; returns the version that is held then.
    fn step(&self, follower: &mut Follower, before: u64) -> u64 {
        let _ = follower.step(at(self.clock));
        let Some(current) = follower.live().load() else { return 0 };
        let version = current.manifest.version;
        assert_eq!(self.signed.get(&version), Some(&current.manifest.content), "not signed");
        assert_eq!(current.filter.content_id(), current.manifest.content, "another content");
        assert!(version >= before, "it went back from {before} to {version}");
        version
    }
}

#[test]
fn no_fault_makes_a_follower_show_what_was_not_signed() {
    let (mut steps, mut hostile) = (0, 0);
    // scripts/hostile has more.
    let seeds = std::env::var("TAMIS_FAULT_SEEDS").map_or(20, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        let mut trial = Trial::new(seed);
        trial.publish().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("set.tamis");
        // One in memory, one with a file that is opened anew each time, one that seldom comes.
        let mut near = trial.follower();
        let mut far = trial.follower();
        let mut held = [0; 3];
        for round in 0..40 {
            let faults = trial.store.faults.clone();
            let is_faulty = faults.random(3) == 0;
            faults.set(is_faulty.then(|| (faults.random(12) as u64, 0)));
            let _ = trial.publish();
            hostile += u64::from(faults.struck.load(Ordering::Relaxed));
            for (number, held) in held.iter_mut().enumerate() {
                let fault = (faults.random(4) as u64, faults.random(2 * FAULTS as usize) as u64);
                faults.set((faults.random(2) == 0).then_some(fault));
                *held = match number {
                    0 => trial.step(&mut near, *held),
                    1 if round % 8 == 0 => trial.step(&mut far, *held),
                    1 => continue,
                    _ if seed % 4 > 0 => continue,
                    _ => match trial.follower().file(&file) {
                        Ok(mut opened) => trial.step(&mut opened, *held).max(*held),
                        Err(error) => panic!("{error}"),
                    },
                };
                steps += 1;
                hostile += u64::from(faults.struck.load(Ordering::Relaxed));
            }
            faults.set(None);
        }
        // The cause is gone: everyone recovers without help.
        trial.publish().unwrap();
        let newest = *trial.signed.keys().last().unwrap();
        let mut opened = trial.follower().file(&file).unwrap();
        for follower in [&mut near, &mut far, &mut opened] {
            assert_eq!(trial.step(follower, 0), newest);
        }
    }
    eprintln!("hostile runs: {hostile}, of {steps} steps of followers and {} versions", 40 * seeds);
    assert!(steps > 50 * seeds && hostile > 15 * seeds, "{hostile} of {steps}");
}

#[test]
fn a_publisher_that_stops_anywhere_leaves_the_version_before() {
    eprintln!("hostile runs: {STOPS}, each a publisher that stops");
    for stop in 0..STOPS {
        let mut trial = Trial::new(stop);
        (0..12).for_each(|_| trial.publish().unwrap());
        let before = *trial.signed.keys().last().unwrap();
        trial.store.faults.set(Some((stop, 0)));
        let stopped = trial.publish().is_err();
        trial.store.faults.set(None);
        let version = trial.step(&mut trial.follower(), 0);
        assert_eq!(version, *trial.signed.keys().last().unwrap());
        assert!(version == before || version == before + 1);
        assert!(stopped || version == before + 1);
        trial.publish().unwrap();
    }
}

#[test]
fn of_two_publishers_one_wins() {
    for published in [0, 1, 5] {
        let mut trial = Trial::new(1);
        (0..published).for_each(|_| trial.publish().unwrap());
        let mut filter = trial.filter.clone();
        filter.insert_digest(digest(1 << 40)).unwrap();
        let other = AnyFilter::from(filter);
        let key = SecretKey::parse(&trial.secret).unwrap();
        let quicker = Publisher::new(Box::new(trial.store.clone()), NAME, Some(key));
        let content = other.content_id();
        *trial.store.meanwhile.lock().unwrap() =
            Some(Box::new(move || assert!(quicker.publish(&other, at(99)).unwrap().is_new)));
        let newest = trial.signed.len() as u64 + 1;
        let before = trial.signed.clone();
        assert!(matches!(trial.publish(), Err(Error::Conflict(version)) if version == newest));
        trial.signed = before;
        trial.signed.insert(newest, content);
        trial.clock = 99;
        assert_eq!(trial.step(&mut trial.follower(), 0), newest);
        // On top of the other's.
        trial.publish().unwrap();
        assert_eq!(trial.step(&mut trial.follower(), 0), newest + 1);
    }
}

#[test]
fn old_forged_and_foreign_manifests_are_refused() {
    let mut trial = Trial::new(2);
    trial.publish().unwrap();
    let old = trial.store.get("manifest").unwrap();
    let mut follower = trial.follower();
    trial.step(&mut follower, 0);
    trial.publish().unwrap();
    trial.step(&mut follower, 1);
    let put = |bytes: &[u8]| {
        trial.store.files.lock().unwrap().insert("manifest".to_owned(), bytes.to_vec())
    };
    let newest = put(&old).unwrap();
    assert!(matches!(follower.step(at(9)), Err(Error::Rollback { offered: 1, seen: 2 })));
    let mut forged = newest.clone();
    forged[16] += 1;
    put(&forged);
    assert!(matches!(follower.step(at(9)), Err(Error::Signature(_))));
    put(&newest);
    let early = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    let mut new = trial.follower();
    assert!(matches!(new.step(early), Err(Error::Clock { .. })));
    let other = SecretKey::generate().unwrap().public();
    let foreign = |name: &str, key| Follower::new(Box::new(trial.store.clone()), name, key);
    for (name, key) in [(NAME, Some(other)), ("another", Some(trial.public)), (NAME, None)] {
        assert!(matches!(foreign(name, key).step(at(9)), Err(Error::Signature(_))));
    }
    assert!(new.step(at(9)).is_ok());
}

#[test]
fn a_publisher_whose_clock_was_far_ahead_recovers() {
    for is_changed in [false, true] {
        let mut trial = Trial::new(7);
        trial.publish().unwrap();
        let mut follower = trial.follower();
        trial.step(&mut follower, 0);
        let mut publish = |time: u64, is_changed: bool| {
            if is_changed {
                trial.filter.insert_digest(digest(1 << 40)).unwrap();
            }
            let filter = AnyFilter::from(trial.filter.clone());
            (trial.publisher.publish(&filter, at(time)).unwrap().version, filter.content_id())
        };
        publish(1 << 30, true);
        assert!(matches!(follower.step(at(9)), Err(Error::Clock { .. })));
        let (version, content) = publish(10, is_changed);
        let step = follower.step(at(10)).unwrap();
        assert_eq!((step.version, step.age), (version, 0));
        assert_eq!(follower.live().load().unwrap().filter.content_id(), content);
        // Within a version the time only rises.
        let (again, _) = publish(5, false);
        assert_eq!((again, follower.step(at(10)).unwrap().age), (version, 0));
    }
}

#[test]
fn damaged_objects_are_not_even_read() {
    let mut trial = Trial::new(4);
    trial.publish().unwrap();
    let mut follower = trial.follower();
    trial.step(&mut follower, 0);
    trial.publish().unwrap();
    let is_delta = |bytes: &[u8]| Delta::decode(bytes, Limits::default()).is_ok();
    let is_snapshot = |bytes: &[u8]| AnyFilter::decode(bytes, Limits::default()).is_ok();
    // Of both, the number of keys: no content id covers it.
    let damaged = |is_it: &dyn Fn(&[u8]) -> bool| {
        let mut files = trial.store.files.lock().unwrap();
        let before = files.clone();
        let objects = files.iter_mut().filter(|(name, bytes)| *name != "manifest" && is_it(bytes));
        assert!(objects.map(|(_, bytes)| bytes[24] ^= 1).count() > 0);
        before
    };
    let whole = damaged(&is_delta);
    assert!(follower.step(at(9)).unwrap().snapshot);
    assert_eq!(follower.totals().fallbacks, 1);
    *trial.store.files.lock().unwrap() = whole;
    let whole = damaged(&is_snapshot);
    assert!(matches!(trial.follower().step(at(9)), Err(Error::Damaged { .. })));
    *trial.store.files.lock().unwrap() = whole;
    assert!(trial.follower().step(at(9)).is_ok());
}

#[test]
fn a_manifest_that_is_too_large_is_not_read() {
    let mut trial = Trial::new(5);
    trial.publish().unwrap();
    let mut follower = trial.follower();
    trial.step(&mut follower, 0);
    let whole = trial.store.get("manifest").unwrap();
    for bytes in [193, 32_960, 32_961, 1 << 20] {
        let mut large = whole.clone();
        large.resize(bytes, 0);
        trial.store.files.lock().unwrap().insert("manifest".to_owned(), large);
        assert!(matches!(follower.step(at(9)), Err(Error::Format { field: "manifest", .. })));
    }
    trial.store.files.lock().unwrap().insert("manifest".to_owned(), whole);
    assert!(follower.step(at(9)).is_ok());
}

#[test]
fn a_store_that_loses_its_objects_begins_an_epoch() {
    for is_changed in [false, true] {
        let mut trial = Trial::new(6);
        (0..3).for_each(|_| trial.publish().unwrap());
        let mut follower = trial.follower();
        let held = trial.step(&mut follower, 0);
        trial.store.files.lock().unwrap().retain(|name, _| name == "manifest");
        if is_changed {
            trial.filter.insert_digest(digest(1 << 40)).unwrap();
        }
        let filter = AnyFilter::from(trial.filter.clone());
        let published = trial.publisher.publish(&filter, at(9)).unwrap();
        assert_eq!((published.version, published.epoch), (held + 1, 2));
        assert!(published.new_epoch.is_some_and(|why| why.contains("has lost version")));
        for mut follower in [follower, trial.follower()] {
            assert_eq!(follower.step(at(9)).unwrap().version, held + 1);
            assert_eq!(follower.live().load().unwrap().filter.content_id(), filter.content_id());
        }
    }
}

#[test]
fn other_layouts_begin_an_epoch() {
    let mut trial = Trial::new(3);
    trial.publish().unwrap();
    let mut follower = trial.follower();
    trial.step(&mut follower, 0);
    let larger = AnyFilter::from(RankIndexed::with_rate(5_000, 0.01).unwrap());
    let published = trial.publisher.publish(&larger, at(9)).unwrap();
    assert_eq!((published.version, published.epoch), (2, 2));
    assert!(published.new_epoch.is_some_and(|why| why.contains("universe")));
    let step = follower.step(at(9)).unwrap();
    assert_eq!((step.version, step.epoch, step.snapshot, step.deltas), (2, 2, true, 0));
    // The same again: only the time is new.
    let again = trial.publisher.publish(&larger, at(10)).unwrap();
    assert_eq!((again.version, again.is_new), (2, false));
    assert_eq!(follower.step(at(12)).unwrap().age, 2);
}
