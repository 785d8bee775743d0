//! Asking for memory before it is needed.
#![allow(unsafe_code)] // The prefetch instruction is an unsafe intrinsic; the block says why it is sound.

use core::convert::Infallible;

/// How many digests of a batch have their lines fetched at once: enough to keep memory busy, and
/// few enough that the first lines are still in the cache when the last arrive. (16, 32 and 48
/// were tried on a busy machine. With 100 million keys 32 and 48 were alike and 16 a third slower
/// to insert; with a million keys 48 was the slowest.)
pub(crate) const AHEAD: usize = 32;

/// Calls `act` with each of `items` and its number, after `fetch` was called for it and for its
/// neighbours. Stops at the first error.
#[inline]
pub(crate) fn fetch_ahead<S: ?Sized, T: Copy, E>(
    state: &mut S,
    items: &[T],
    fetch: impl Fn(&S, T),
    mut act: impl FnMut(&mut S, usize, T) -> Result<(), E>,
) -> Result<(), E> {
    for (chunk, items) in items.chunks(AHEAD).enumerate() {
        for &item in items {
            fetch(state, item);
        }
        for (number, &item) in (chunk * AHEAD..).zip(items) {
            act(state, number, item)?;
        }
    }
    Ok(())
}

/// The same for what cannot fail.
#[inline]
pub(crate) fn fetch_all_ahead<S: ?Sized, T: Copy>(
    state: &mut S,
    items: &[T],
    fetch: impl Fn(&S, T),
    mut act: impl FnMut(&mut S, usize, T),
) {
    let Ok(()) = fetch_ahead::<_, _, Infallible>(state, items, fetch, |state, number, item| {
        act(state, number, item);
        Ok(())
    });
}

/// Starts fetching the line in which item `index` begins, and the one in which it ends. Does
/// nothing on machines without such an instruction.
#[inline]
pub(crate) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = items.as_ptr().wrapping_add(index);
        // SAFETY: a prefetch never faults and changes nothing that a program can see, whatever the
        // address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
        if size_of::<T>() > size_of::<u64>() {
            let end = address.cast::<u8>().wrapping_add(size_of::<T>() - 1);
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(end.cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}
