//! The paper's layouts beside the practical one, for its experiments.
//!
//! - [`Basic`]: an item in all its k buckets.
//! - [`Shared`]: the same with lists that share their ends.
//! - [`Chained`]: one bucket a key and no filter; [`DLeft`]: the shortest of d lists. The baselines.

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
    /// Nodes in use: between one and k for each key.
    pub fn nodes(&self) -> usize {
        self.layout.used()
    }
}

impl<K: Key, V> FastTable<K, V, DLeft> {
    /// Whether the key stands in the bucket that is now the least loaded of its own. It need not: another key may have
    /// filled it up since.
    pub fn in_least_loaded<Q: Key + ?Sized>(&self, key: &Q) -> Option<bool>
    where
        K: Borrow<Q>,
    {
        let digest = self.hasher.digest(key);
        let item = self.find(digest, key, &mut ())?;
        Some(self.layout.in_least_loaded(item, digest))
    }
}
