//! A program without the standard library that links the library and uses it: it exits with 0, or
//! panics and exits with 101.
//!
//! Of libc it takes what starts it, `write` and `_exit`.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::fmt::Write;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use tamis::{AnyFilter, BlockedRank, Bloom, Delta, Filter, Goal, Limits, Stored, choose};

/// Memory that is given out once and never taken back.
struct Bump {
    memory: UnsafeCell<[u8; SIZE]>,
    used: AtomicUsize,
}

const SIZE: usize = 64 << 20;

// SAFETY: `used` hands out each byte of `memory` once.
unsafe impl Sync for Bump {}

// SAFETY: what is returned lies inside `memory`, is aligned, and overlaps nothing that was
// returned before.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.memory.get().cast::<u8>();
        // Alignment may skip bytes, so room for it is taken too.
        let taken = layout.size() + layout.align();
        let offset = self.used.fetch_add(taken, Ordering::Relaxed);
        if offset.checked_add(taken).is_none_or(|end| end > SIZE) {
            return ptr::null_mut();
        }
        let first = start.wrapping_add(offset);
        first.wrapping_add(first.align_offset(layout.align()))
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Bump = Bump { memory: UnsafeCell::new([0; SIZE]), used: AtomicUsize::new(0) };

unsafe extern "C" {
    fn write(file: c_int, bytes: *const c_void, length: usize) -> isize;
    fn _exit(code: c_int) -> !;
}

/// A file of the system, by its number.
struct File(c_int);

impl Write for File {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        // SAFETY: the pointer and the length are those of a string.
        let written = unsafe { write(self.0, text.as_ptr().cast(), text.len()) };
        if written == text.len() as isize { Ok(()) } else { Err(core::fmt::Error) }
    }
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let _ = writeln!(File(2), "{info}");
    // SAFETY: it only ends the program.
    unsafe { _exit(101) }
}

// The `alloc` of a target with unwinding names these two, though nothing unwinds where a panic
// aborts.

#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    unreachable!("nothing unwinds")
}

/// Keys that are inserted, and as many that are not.
const KEYS: u64 = 20_000;

fn ask(filter: &impl Filter) {
    assert!((0..KEYS).all(|key| filter.contains(&key)), "a key is lost");
    let wrong = (KEYS..2 * KEYS).filter(|key| filter.contains(key)).count();
    assert!(wrong < KEYS as usize / 50, "{wrong} false positives of {KEYS} at 1%");
}

fn bloom() {
    let mut filter = Bloom::with_rate(KEYS, 0.01).unwrap();
    for key in 0..KEYS {
        filter.insert(&key);
    }
    ask(&filter);
    let copy = Bloom::decode(&filter.encode().to_vec(), Limits::default()).unwrap();
    assert_eq!(copy, filter);
    ask(&copy);
}

fn blocked_rank() {
    let mut old = BlockedRank::with_rate(2 * KEYS, 0.01).unwrap();
    for key in 0..KEYS {
        old.insert(&key).unwrap();
    }
    ask(&old);
    let mut new = old.clone();
    for key in 0..KEYS / 2 {
        new.remove(&key).unwrap();
    }
    assert_eq!(new.keys(), KEYS / 2);
    let (old, new) = (AnyFilter::BlockedRank(old), AnyFilter::BlockedRank(new));
    let delta = Delta::between(&old, &new).unwrap().encode().to_vec();
    let mut peer = AnyFilter::decode(&old.encode().to_vec(), Limits::default()).unwrap();
    Delta::decode(&delta, Limits::default()).unwrap().apply(&mut peer).unwrap();
    assert_eq!(peer.content_id(), new.content_id());
}

fn golden() {
    for bytes in [
        &include_bytes!("../../../golden/v1/bloom.tamis")[..],
        include_bytes!("../../../golden/v1/blocked-256-sip13.tamis"),
        include_bytes!("../../../golden/v1/blocked-rank.tamis"),
        include_bytes!("../../../golden/v1/compressed.tamis"),
        include_bytes!("../../../golden/v1/dleft.tamis"),
        include_bytes!("../../../golden/v1/rank-map.tamis"),
    ] {
        let filter = AnyFilter::decode(bytes, Limits::default()).unwrap();
        assert_eq!(
            filter.encode().to_vec(),
            bytes,
            "{:?} is written in other bytes",
            filter.kind()
        );
    }
}

fn plans() {
    let plans: Vec<_> = choose(&Goal::rate(KEYS, 0.01)).unwrap();
    assert!(plans.len() > 3);
}

/// What libc calls at the start.
#[unsafe(no_mangle)]
extern "C" fn main(_: c_int, _: *const *const u8) -> c_int {
    bloom();
    blocked_rank();
    golden();
    plans();
    let used = ALLOCATOR.used.load(Ordering::Relaxed);
    writeln!(File(1), "without the standard library: all well, {used} bytes taken").unwrap();
    0
}
