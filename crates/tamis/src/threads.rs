//! Pieces of work on several threads, with the result that one thread would have made.

#[cfg(feature = "std")]
use std::sync::{Mutex, PoisonError};
#[cfg(feature = "std")]
use std::thread;

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
