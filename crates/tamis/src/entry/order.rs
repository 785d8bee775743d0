//! Entries in order, one after the other: made coarser, and merged.

use alloc::vec::Vec;
use core::iter;

use super::Entry;

/// Adds the count of an entry to that of an equal one; in a set one is kept.
fn join(kept: &mut Entry, other: &Entry, is_set: bool) {
    if !is_set {
        kept.count = kept.count.saturating_add(other.count);
    }
}

/// Puts the entries from number `from` on in order, and joins equal ones.
pub(crate) fn put_in_order(entries: &mut Vec<Entry>, from: usize, is_set: bool) {
    entries[from..].sort_unstable_by_key(Entry::key);
    let mut kept = from;
    for at in from + 1..entries.len() {
        let next = entries[at];
        if entries[kept].key() == next.key() {
            join(&mut entries[kept], &next, is_set);
        } else {
            kept += 1;
            entries[kept] = next;
        }
    }
    entries.truncate(kept + 1);
}

/// Entries in order whose identities lose their lowest `dropped` bits, in order again. Those that
/// become equal are joined.
pub(crate) fn coarser(
    entries: impl Iterator<Item = Entry>,
    dropped: u32,
    is_set: bool,
) -> impl Iterator<Item = Entry> {
    let short = move |entry: Entry| Entry { identity: entry.identity >> dropped, ..entry };
    let mut entries = entries.map(short).peekable();
    // Those of one identity, if there are several, the last first.
    let mut same = Vec::new();
    iter::from_fn(move || {
        if dropped == 0 {
            return entries.next();
        }
        if let Some(entry) = same.pop() {
            return Some(entry);
        }
        let first = entries.next()?;
        let is_same = |next: &Entry| next.identity == first.identity;
        let Some(second) = entries.next_if(is_same) else { return Some(first) };
        same.extend([first, second]);
        same.extend(iter::from_fn(|| entries.next_if(is_same)));
        put_in_order(&mut same, 0, is_set);
        same.reverse();
        same.pop()
    })
}

/// The entries of both, in order; equal ones are joined.
pub(crate) fn merged(
    mut a: impl Iterator<Item = Entry>,
    mut b: impl Iterator<Item = Entry>,
    is_set: bool,
) -> impl Iterator<Item = Entry> {
    let (mut first, mut second) = (a.next(), b.next());
    iter::from_fn(move || {
        let is_second = match (&first, &second) {
            (Some(first), Some(second)) => first.key() > second.key(),
            (first, _) => first.is_none(),
        };
        if is_second {
            return core::mem::replace(&mut second, b.next());
        }
        let mut next = core::mem::replace(&mut first, a.next())?;
        if let Some(same) = second.filter(|second| second.key() == next.key()) {
            join(&mut next, &same, is_set);
            second = b.next();
        }
        Some(next)
    })
}
