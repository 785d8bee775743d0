//! The filter that a follower holds, for readers.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use tamis::{AnyFilter, Digest, Filter, Key};

use crate::manifest::Manifest;

/// A version of a set: its filter, and what the publisher says of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Current {
    /// The filter.
    pub filter: Arc<AnyFilter>,
    /// The signed manifest.
    pub manifest: Manifest,
}

impl Current {
    /// How long ago it was signed. (A publisher whose clock is ahead signs in the future: then it
    /// is no time at all.)
    pub fn age(&self, now: SystemTime) -> Duration {
        let signed = SystemTime::UNIX_EPOCH + Duration::from_secs(self.manifest.time);
        now.duration_since(signed).unwrap_or_default()
    }

    /// Whether `key` is probably present: an absent key passes at the rate of the manifest.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_digest(self.filter.hasher().digest(key))
    }

    /// Whether the digest is in the filter, or among the keys that are too new for it.
    pub fn contains_digest(&self, digest: Digest) -> bool {
        self.filter.contains_digest(digest) || self.manifest.recent.contains(&digest)
    }
}

/// A handle to the newest version that a follower holds. Readers take no lock, and a reader keeps
/// its version as long as it looks at it.
///
/// ```
/// use tamis_exchange::{Follower, source};
/// let (name, source) = source("/srv/sets/words")?;
/// let live = Follower::new(source, &name, None).live();
/// assert!(live.load().is_none()); // Nothing was fetched yet.
/// # Ok::<(), tamis_exchange::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<ArcSwapOption<Current>>);

impl Live {
    /// The newest version; `None` before the first.
    pub fn load(&self) -> Option<Arc<Current>> {
        self.0.load_full()
    }

    pub(crate) fn store(&self, current: Arc<Current>) {
        self.0.store(Some(current));
    }
}
