//! Bits set by several threads, with the result that one thread would have made.

use std::thread;

use super::MAX_HASHES;
use crate::bits::{self, AHEAD, Line};
use crate::digest::Digest;

/// Sets the bits of all keys. Each thread has a part of the array to itself, and goes through all
/// keys for bits in that part. Computing positions is quick; threads that write to the same lines
/// would wait for each other.
pub(super) fn fill<P: Iterator<Item = u64>>(
    words: &mut [u64],
    keys: &[Digest],
    threads: usize,
    positions: impl Fn(Digest) -> P + Sync,
) {
    let part = words.len().div_ceil(threads).next_multiple_of(Line::WORDS);
    let positions = &positions;
    thread::scope(|scope| {
        for (index, words) in words.chunks_mut(part).enumerate() {
            let (start, bits) = ((index * part * 64) as u64, words.len() as u64 * 64);
            scope.spawn(move || {
                let mut own = [0; AHEAD * MAX_HASHES as usize];
                for keys in keys.chunks(AHEAD) {
                    let mut count = 0;
                    for at in keys.iter().flat_map(|&key| positions(key)) {
                        let at = at.wrapping_sub(start);
                        // Without a branch, because it could not be predicted.
                        own[count] = at;
                        count += usize::from(at < bits);
                    }
                    for &at in &own[..count] {
                        bits::prefetch(words, (at / 64) as usize);
                    }
                    for &at in &own[..count] {
                        bits::set(words, at);
                    }
                }
            });
        }
    });
}
