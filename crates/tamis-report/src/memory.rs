//! A global allocator that counts how much memory each thread holds, so that the memory of a
//! filter is measured; and that refuses memory where a test asks for it.
#![allow(unsafe_code)] // A global allocator is an unsafe trait; each block says why it is sound.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

/// The system's allocator, with a tally for each thread. Install it in a binary:
///
/// ```
/// use tamis_report::memory::{self, CountingAllocator};
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let before = memory::held();
/// let vec: Vec<u64> = Vec::with_capacity(100);
/// assert_eq!(memory::held() - before, 800);
/// # drop(vec);
/// ```
#[derive(Debug)]
pub struct CountingAllocator;

/// Bytes allocated less bytes freed, the most of it so far, and the largest single request.
#[derive(Clone, Copy)]
struct Tally {
    held: i64,
    peak: i64,
    largest: usize,
}

thread_local! {
    // Constant and without a destructor, so that access to it never allocates.
    static TALLY: Cell<Tally> = const { Cell::new(Tally { held: 0, peak: 0, largest: 0 }) };
    /// How many requests are still granted, if they are counted.
    static GRANTED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Bytes that this thread has allocated and not freed. (Memory freed by another thread still
/// counts here.)
pub fn held() -> i64 {
    TALLY.get().held
}

/// Runs `run`, and returns the most bytes that this thread held meanwhile, beyond what it held
/// before. A block that grows counts twice, old and new, because not every allocator grows in
/// place.
pub fn peak_of<T>(run: impl FnOnce() -> T) -> (T, u64) {
    let before = held();
    TALLY.set(Tally { peak: before, ..TALLY.get() });
    let done = run();
    (done, (TALLY.get().peak - before) as u64)
}

/// The largest single request of this thread since the last [`forget_largest`].
pub fn largest() -> usize {
    TALLY.get().largest
}

/// Starts [`largest`] anew.
pub fn forget_largest() {
    TALLY.set(Tally { largest: 0, ..TALLY.get() });
}

/// Runs `run`, in which the first `times` requests of this thread for memory are granted, and no
/// other.
pub fn refusing_after<T>(times: u64, run: impl FnOnce() -> T) -> T {
    GRANTED.set(Some(times));
    let done = run();
    GRANTED.set(None);
    done
}

fn is_refused() -> bool {
    let left = GRANTED.get();
    GRANTED.set(left.map(|left| left.saturating_sub(1)));
    left == Some(0)
}

fn note(change: i64, request: usize) {
    let Tally { held, peak, largest } = TALLY.get();
    // Both blocks exist while one is copied to the other.
    let peak = peak.max(held + change.max(request as i64));
    TALLY.set(Tally { held: held + change, peak, largest: largest.max(request) });
}

// SAFETY: every call goes to the system's allocator with the caller's own arguments; the tally
// beside it touches no allocated memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused() {
            return ptr::null_mut();
        }
        note(layout.size() as i64, layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused() {
            return ptr::null_mut();
        }
        note(layout.size() as i64, layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(-(layout.size() as i64), 0);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if is_refused() {
            return ptr::null_mut();
        }
        note(new_size as i64 - layout.size() as i64, new_size);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
