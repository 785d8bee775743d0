//! Huge pages for large arrays: a random access then seldom has to look up where its page is.
#![allow(unsafe_code)] // A call to the system; the block says why it is sound.

use alloc::vec::Vec;
use core::ffi::c_void;

use super::line::{self, Line};

/// Bytes in a huge page on most machines. Where pages are larger the advice does less, and no
/// harm.
const PAGE: usize = 2 << 20;

/// As [`line::zeroed`], on huge pages if the system allows. Large memory that it zeroes has no
/// pages yet, so the advice comes in time, and pages still come when they are first used.
pub(super) fn zeroed(len: usize) -> Option<Vec<Line>> {
    let mut lines = line::zeroed(len)?;
    advise(&mut lines);
    Some(lines)
}

/// Asks the system to put `lines` on huge pages. The system may refuse; then nothing changes.
fn advise(lines: &mut [Line]) {
    let bytes = size_of_val(lines);
    let start = lines.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(PAGE);
    let Some(whole) = bytes.checked_sub(skipped).map(|left| left / PAGE * PAGE) else { return };
    if whole == 0 {
        return;
    }
    let first = start.wrapping_add(skipped).cast::<c_void>();
    // SAFETY: the pages lie wholly inside memory that is borrowed exclusively here; the advice
    // changes which pages stand behind it, never what can be read there.
    let _refused = unsafe { libc::madvise(first, whole, libc::MADV_HUGEPAGE) };
}
