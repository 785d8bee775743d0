//! Bits set by several threads, with the result that one thread would have made.

use std::thread;

use super::MAX_HASHES;
use crate::bits::{self, AHEAD, Line};
use crate::block::Split;
use crate::digest::Digest;

/// Digests that a thread goes through for those that are its own.
const BATCH: usize = 1024;

/// Sets the bits of all keys in blocks. Each thread has a part of the blocks to itself, and goes
/// through all keys for those in that part.
pub(super) fn fill_blocks(words: &mut [u64], keys: &[Digest], threads: usize, split: &Split) {
    let part = split.number.div_ceil(threads as u64);
    let words_each = part as usize * (split.sections.block / 64) as usize;
    thread::scope(|scope| {
        for (index, words) in words.chunks_mut(words_each).enumerate() {
            let first = index as u64 * part;
            let split = split.part(first);
            let start = split.first_digest(first).unwrap_or(u64::MAX);
            let span = split.first_digest(first + part).map_or(u64::MAX, |end| end - 1) - start;
            scope.spawn(move || {
                let mut own = [Digest(0); BATCH];
                for keys in keys.chunks(BATCH) {
                    let mut count = 0;
                    for &key in keys {
                        // Without a branch, because it could not be predicted.
                        own[count] = key;
                        count += usize::from(key.0.wrapping_sub(start) <= span);
                    }
                    split.insert_many(words, &own[..count]);
                }
            });
        }
    });
}

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
