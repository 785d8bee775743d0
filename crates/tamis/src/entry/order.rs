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

/// Identities in order as entries; equal ones are one entry.
pub(crate) fn counted(
    identities: impl Iterator<Item = u64>,
    is_set: bool,
) -> impl Iterator<Item = Entry> {
    let mut identities = identities.peekable();
    iter::from_fn(move || {
        let identity = identities.next()?;
        let mut entry = Entry { identity, value: 0, count: 1 };
        while let Some(identity) = identities.next_if_eq(&identity) {
            join(&mut entry, &Entry { identity, value: 0, count: 1 }, is_set);
        }
        Some(entry)
    })
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

/// Entries in order, the next of which are at hand.
struct AtHand<I> {
    rest: I,
    entries: Vec<Entry>,
    at: usize,
}

impl<I: Iterator<Item = Entry>> AtHand<I> {
    fn new(rest: I) -> Self {
        Self { rest, entries: Vec::new(), at: 0 }
    }

    /// The next entry, which stays.
    #[inline]
    fn peek(&mut self) -> Option<Entry> {
        if self.at == self.entries.len() {
            self.entries.clear();
            self.entries.extend(self.rest.by_ref().take(MOST_AT_HAND));
            self.at = 0;
        }
        self.entries.get(self.at).copied()
    }
}

/// Entries at hand: few enough for the quickest memory.
const MOST_AT_HAND: usize = 128;

/// The entries of both, in order; equal ones are joined.
///
/// Which comes first cannot be predicted, and decides no branch while there are entries of both.
pub(crate) fn merged(
    a: impl Iterator<Item = Entry>,
    b: impl Iterator<Item = Entry>,
    is_set: bool,
) -> impl Iterator<Item = Entry> {
    let (mut a, mut b) = (AtHand::new(a), AtHand::new(b));
    iter::from_fn(move || {
        let (first, second) = match (a.peek(), b.peek()) {
            (Some(first), Some(second)) => (first, second),
            (first, second) => {
                a.at += usize::from(first.is_some());
                b.at += usize::from(second.is_some());
                return first.or(second);
            }
        };
        let order = first.key().cmp(&second.key());
        a.at += usize::from(order.is_le());
        b.at += usize::from(order.is_ge());
        let mut next = [first, second][usize::from(order.is_gt())];
        if order.is_eq() {
            join(&mut next, &second, is_set);
        }
        Some(next)
    })
}
