//! The layouts of the paper beside the practical one, for its experiments.
//!
//! - [`Basic`]: an item in all its k buckets.
//! - [`Shared`]: the same with lists that share their ends.
//! - [`Chained`]: one bucket a key and no filter, a baseline.
//! - [`DLeft`]: the shortest of d lists, a baseline.

mod chained;
mod dleft;
mod shared;

use core::borrow::Borrow;

pub use super::basic::Basic;
pub use chained::Chained;
pub use dleft::DLeft;
pub use shared::Shared;

use super::{FastTable, Layout};
use crate::key::Key;

pub use super::params::{MAX_BUCKETS, MAX_HASHES};

impl Layout for Basic {}
impl Layout for Shared {}
impl Layout for Chained {}
impl Layout for DLeft {}

impl<K: Key, V> FastTable<K, V, Shared> {
    /// How many nodes are in use: from one to k for each key.
    pub fn nodes(&self) -> usize {
        self.layout.used()
    }
}

impl<K: Key, V> FastTable<K, V, DLeft> {
    /// Whether `key` is in the bucket that is now the least loaded of its own; `None` if it is
    /// absent. It need not be in that bucket: other keys may have filled its own since.
    pub fn in_least_loaded<Q: Key + ?Sized>(&self, key: &Q) -> Option<bool>
    where
        K: Borrow<Q>,
    {
        let digest = self.hasher.digest(key);
        let item = self.find(digest, key, &mut ())?;
        Some(self.layout.in_least_loaded(item, digest))
    }
}
