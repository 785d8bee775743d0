//! Filters built by several threads, with the bytes that one thread would have made.

use std::thread;

use crate::any::{AnyFilter, AnyParams, BuildError};
use crate::bloom::atomic::{Atomic, Layout};
use crate::bloom::{AtomicBlockedBloom, AtomicBloom, BlockedBloom, Bloom};
use crate::digest::Digest;
use crate::filter::{Label, Stored};

impl AnyParams {
    /// As [`build_from`](Self::build_from), by so many threads where the kind allows, and with the same bytes.
    ///
    /// `bloom` and `blocked` allow it: their bits come out alike in whatever order they are set. The other kinds are built by one
    /// thread, because the order of the keys decides where they lie.
    pub fn build_in_parallel(
        self,
        label: impl Into<Label>,
        keys: &[Digest],
        threads: usize,
    ) -> Result<AnyFilter, BuildError> {
        match self {
            Self::Bloom(params) => {
                let filter = AtomicBloom::from(Bloom::new(params, label)?);
                fill(&filter, keys, threads);
                Ok(AnyFilter::Bloom(filter.into()))
            }
            Self::Blocked(params) => {
                let filter = AtomicBlockedBloom::from(BlockedBloom::new(params, label)?);
                fill(&filter, keys, threads);
                Ok(AnyFilter::Blocked(filter.into()))
            }
            params => params.build_from(label, keys),
        }
    }
}

/// Each thread inserts an equal part of the keys.
fn fill<P: Layout + Sync>(filter: &Atomic<P>, keys: &[Digest], threads: usize) {
    let part = keys.len().div_ceil(threads.max(1)).max(1);
    thread::scope(|scope| {
        let mut parts = keys.chunks(part);
        let own = parts.next().unwrap_or_default();
        for part in parts {
            scope.spawn(|| filter.insert_many(part));
        }
        filter.insert_many(own);
    });
}
