//! Work on all cores.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Does all pieces of work, on as many threads as the machine has cores. The results do not depend
/// on which thread does which piece.
pub(super) fn for_each<T: Send>(
    pieces: usize,
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
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..cores.min(pieces) {
            // If the system starts no more threads, this one does the rest.
            if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                break;
            }
        }
        serve();
    });
}
