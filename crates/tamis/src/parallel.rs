//! Filters built by several threads, with the bytes that one thread would have made.

use std::thread;

use crate::any::{AnyFilter, AnyParams};
use crate::bits::{self, AHEAD, Line};
use crate::bloom::{BlockedBloom, Bloom, MAX_HASHES};
use crate::digest::Digest;
use crate::filter::Stored;
use crate::spec::{BuildError, Label};

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
            _ if threads < 2 => self.build_from(label, keys),
            Self::Bloom(params) => {
                let mut filter = Bloom::new(params, label)?;
                fill(filter.words_mut(), keys, threads, |key| params.positions(key));
                count(filter.label_mut(), keys);
                Ok(AnyFilter::Bloom(filter))
            }
            Self::Blocked(params) => {
                let mut filter = BlockedBloom::new(params, label)?;
                fill(filter.words_mut(), keys, threads, |key| params.positions(key));
                count(filter.label_mut(), keys);
                Ok(AnyFilter::Blocked(filter))
            }
            params => params.build_from(label, keys),
        }
    }
}

fn count(label: &mut Label, keys: &[Digest]) {
    label.keys = label.keys.saturating_add(keys.len() as u64);
}

/// Sets the bits of all keys. Each thread has a part of the array to itself, and looks at all keys for bits that lie there: to find
/// them is quick, and threads that write to the same lines would wait for each other.
fn fill<P: Iterator<Item = u64>>(
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
                        // Without a branch, which nobody could predict.
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
