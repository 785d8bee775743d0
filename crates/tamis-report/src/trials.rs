//! Many trials of one experiment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Calls `run` with the seeds 0 to `trials` - 1, on as many threads as there are processors. The
/// results come in any order.
///
/// # Panics
///
/// When a trial does.
pub fn in_parallel<R: Send>(trials: u64, run: impl Fn(u64) -> R + Sync) -> Vec<R> {
    let next = AtomicU64::new(0);
    let worker = || {
        let mut results = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= trials {
                return results;
            }
            results.push(run(seed));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    })
}
