//! Arrays of bits made by several threads, with the result that one thread would have made.

use alloc::vec::Vec;
use core::iter;

use crate::bits::unite;
use crate::digest::Digest;
use crate::filter::Insert;
use crate::stored::Stored;
use crate::threads::for_each;

/// With fewer keys a second thread costs more than it saves.
const FEW: usize = 100_000;

/// Inserts keys into an empty filter: each thread its share into a filter of its own, and then the
/// bits of all are set in one. (Threads that write to one array would wait for each other, and to
/// look for the keys of a part of it takes as long as to insert them.) Returns false if there are
/// few keys or there is no memory; then nothing was inserted.
pub(super) fn insert<F: Stored + Insert + Send + Sync>(
    filter: &mut F,
    keys: &[Digest],
    threads: usize,
) -> bool {
    if keys.len() < FEW {
        return false;
    }
    // All filters but one take no more memory than the keys.
    let most = 64 * keys.len() as u64 / filter.footprint().max(1);
    let number = threads.min(1 + most as usize);
    let others =
        (1..number).map(|_| F::new(filter.params(), filter.label())).collect::<Result<Vec<F>, _>>();
    let Some(mut others) = others.ok().filter(|others| !others.is_empty()) else { return false };
    let share = keys.len().div_ceil(number);
    let all = iter::once(&mut *filter).chain(&mut others).zip(keys.chunks(share));
    for_each(number, all, |(filter, keys)| {
        // Arrays take any number of keys.
        let _ = filter.insert_many(keys);
    });
    filter.label_mut().keys = keys.len() as u64;
    let words = filter.words_mut().unwrap_or_default();
    let part = words.len().div_ceil(number).max(1);
    for_each(number, words.chunks_mut(part).enumerate(), |(index, words)| {
        for other in others.iter().filter_map(F::words) {
            unite(words, &other[index * part..]);
        }
    });
    true
}
