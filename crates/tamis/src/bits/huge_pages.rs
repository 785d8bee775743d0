//! Huge pages for large arrays: a random access then seldom has to look up where its page is.
#![allow(unsafe_code)] // A call to the system; the block says why it is sound.

use alloc::vec::Vec;
use core::ffi::c_void;

use super::line::{self, Line};

/// Bytes in a huge page on most machines. Where pages are larger the advice does less, and no
/// harm.
const PAGE: usize = 2 << 20;

/// As [`line::zeroed`]; several huge pages are asked for before their first byte is written,
/// because then it is too late.
pub(super) fn zeroed(len: usize) -> Option<Vec<Line>> {
    if len * size_of::<Line>() < 2 * PAGE {
        return line::zeroed(len);
    }
    let mut lines = Vec::new();
    lines.try_reserve_exact(len).ok()?;
    advise(&mut lines);
    lines.resize(len, Line::ZERO);
    Some(lines)
}

/// Asks the system to put the memory of the empty vector `lines` on huge pages, before anything is
/// written there. The system may refuse; then nothing changes.
fn advise(lines: &mut Vec<Line>) {
    let memory = lines.spare_capacity_mut();
    let bytes = size_of_val(memory);
    let start = memory.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(PAGE);
    let Some(whole) = bytes.checked_sub(skipped).map(|left| left / PAGE * PAGE) else { return };
    if whole == 0 {
        return;
    }
    let first = start.wrapping_add(skipped).cast::<c_void>();
    // SAFETY: the pages lie wholly inside memory that the vector has allocated and that is
    // borrowed exclusively here; the advice changes which pages stand behind it, never what can be
    // read there.
    let _refused = unsafe { libc::madvise(first, whole, libc::MADV_HUGEPAGE) };
}
