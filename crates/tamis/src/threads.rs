//! Pieces of work on several threads, with the result that one thread would have made.

use alloc::vec;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::sync::{Mutex, PoisonError};
#[cfg(feature = "std")]
use std::thread;

use crate::bits::{OutOfMemory, with_room};
use crate::digest::Digest;

/// Digests dealt out to lots: those of each lot side by side, and where each lot ends.
pub(crate) struct Dealt {
    pub(crate) digests: Vec<Digest>,
    pub(crate) ends: Vec<usize>,
}

/// Deals digests out to `lots` lots; in each they keep their order.
pub(crate) fn deal(
    digests: &[Digest],
    lots: usize,
    lot: impl Fn(Digest) -> usize,
) -> Result<Dealt, OutOfMemory> {
    let mut dealt = with_room(digests.len() as u64)?;
    if lots < 2 {
        dealt.extend_from_slice(digests);
        return Ok(Dealt { ends: vec![digests.len(); lots], digests: dealt });
    }
    let mut ends = vec![0; lots];
    for &digest in digests {
        ends[lot(digest)] += 1;
    }
    let mut all = 0;
    for end in &mut ends {
        // For now this is where a lot begins; dealing moves it to its end.
        (*end, all) = (all, all + *end);
    }
    dealt.resize(all, Digest(0));
    for &digest in digests {
        let next = &mut ends[lot(digest)];
        dealt[*next] = digest;
        *next += 1;
    }
    Ok(Dealt { digests: dealt, ends })
}

/// Does all pieces of work on at most `threads` threads, of which this is one. The results do not
/// depend on which thread does which piece.
#[cfg(feature = "std")]
pub(crate) fn for_each<T: Send>(
    threads: usize,
    work: impl Iterator<Item = T> + Send,
    each: impl Fn(T) + Sync,
) {
    let work = Mutex::new(work);
    let serve = || {
        loop {
            let piece = work.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(piece) = piece else { break };
            each(piece);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // If the system starts no more threads, this one does the rest.
            if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                break;
            }
        }
        serve();
    });
}

/// Does all pieces of work, one after the other.
#[cfg(not(feature = "std"))]
pub(crate) fn for_each<T>(_: usize, work: impl Iterator<Item = T>, each: impl Fn(T)) {
    work.for_each(each);
}

/// How many threads the machine runs at once.
#[cfg(feature = "std")]
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Without the standard library there is one thread.
#[cfg(not(feature = "std"))]
pub(crate) fn cores() -> usize {
    1
}
