//! What all commands that add items share: making the filter and its layers on the way, and
//! telling replicas exactly what was done.

use std::ffi::CStr;
use std::ops::Range;

use super::grow;
use crate::arguments::letter;
use crate::asked::{Asked, Family};
use crate::ffi::Call;
use crate::multiset::Full;
use crate::reply::Refusal;
use crate::value::Filter;

/// What became of an item.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was added.
    Added,
    /// It seemed to be in, and nothing was added.
    Known,
    /// There was no room for it.
    Refused(Refusal),
}

/// Hands over the options in front of ITEMS, each with the argument behind it if there is one;
/// `take` says whether that is the option's value. Returns which argument is the first item.
/// Options are known by one letter, or two where that is not enough, as clients are used to.
pub(super) fn options(
    call: &Call<'_>,
    mut take: impl FnMut(&[u8], Option<&[u8]>) -> Result<bool, Refusal>,
) -> Result<usize, Refusal> {
    let mut rest = (2..call.len()).map(|at| (at, call.argument(at))).peekable();
    loop {
        let (at, option) = rest.next().ok_or(Refusal::Arity)?;
        if letter(option, 0, b'I') {
            return if at + 1 < call.len() { Ok(at + 1) } else { Err(Refusal::Arity) };
        }
        if take(option, rest.peek().map(|&(_, value)| value))? {
            rest.next();
        }
    }
}

/// How items are added.
pub(super) struct Insertion {
    pub(super) family: Family,
    /// Which arguments are items.
    pub(super) items: Range<usize>,
    /// Only items that do not seem to be in.
    pub(super) only_new: bool,
    /// What to make of a key that does not exist; nothing if it must.
    pub(super) create: Option<Asked>,
    /// Whether to stop at the first item that finds no room.
    pub(super) stops: bool,
}

impl Insertion {
    /// Adds the items, and hands over what became of each.
    ///
    /// Replicas get the announcement of every new layer when it is made, and the items that were
    /// added before and after it. So they plan nothing, and decide nothing anew.
    pub(super) fn run(
        self,
        call: &mut Call<'_>,
        mut report: impl FnMut(Outcome),
    ) -> Result<(), Refusal> {
        let found = call.find_mut(1, Some(self.family))?;
        let value = if let Some(value) = found {
            value
        } else {
            let asked = self.create.ok_or("ERR not found")?;
            let (filter, announcement) = grow::create(call, asked)?;
            grow::put(call, filter, &announcement)?
        };
        let filter = value.filter_mut()?;
        let mut refused: Option<Refusal> = None;
        let mut without: Vec<usize> = Vec::new();
        let (mut told, mut changed, mut ever_changed) = (self.items.start, false, false);
        for at in self.items.clone() {
            let digest = filter.digest(call.argument(at));
            let outcome = loop {
                // A multiset grows by a leaf at a time, and not beyond what is allowed.
                if self.family == Family::Cuckoo
                    && let Err(refusal) = grow::check_size(call, filter.memory())
                {
                    break Outcome::Refused(refusal);
                }
                let inserted = match (&mut *filter, self.only_new) {
                    (Filter::Set(set), _) => set.insert_new(digest),
                    (Filter::Multiset(multiset), true) => multiset.insert_new(digest),
                    (Filter::Multiset(multiset), false) => {
                        multiset.insert(digest, 1).map(|()| true)
                    }
                };
                match inserted {
                    Ok(true) => break Outcome::Added,
                    Ok(false) => break Outcome::Known,
                    Err(Full::NeedsPart) => {}
                    Err(full) => break Outcome::Refused(no_room(self.family, full)),
                }
                let grown = match refused.clone() {
                    Some(refusal) => Err(refusal),
                    None => grow::add_part(call, filter),
                };
                match grown {
                    Ok(announcement) => {
                        if changed {
                            self.tell(call, told..at, &without);
                        }
                        (told, changed) = (at, false);
                        call.replicate_bytes(c"TAMIS.LAYER", 1, &announcement);
                    }
                    Err(refusal) => break Outcome::Refused(refusal),
                }
            };
            match &outcome {
                Outcome::Added => (changed, ever_changed) = (true, true),
                Outcome::Known => {}
                Outcome::Refused(refusal) => {
                    refused = Some(refusal.clone());
                    without.push(at);
                }
            }
            let stop = self.stops && refused.is_some();
            report(outcome);
            if stop {
                without.extend(at + 1..self.items.end);
                break;
            }
        }
        if changed && told == self.items.start && without.is_empty() {
            call.replicate();
        } else if changed {
            self.tell(call, told..self.items.end, &without);
        }
        if ever_changed {
            call.notify(match self.family {
                Family::Bloom => c"bloom.add",
                Family::Cuckoo => c"cuckoo.add",
            });
        }
        Ok(())
    }

    /// Tells replicas to add some items.
    fn tell(&self, call: &Call<'_>, items: Range<usize>, without: &[usize]) {
        let items: Vec<usize> = items.filter(|at| without.binary_search(at).is_err()).collect();
        let (command, word): (&CStr, _) = match (self.family, self.only_new) {
            (Family::Bloom, _) => (c"BF.MADD", None),
            (Family::Cuckoo, true) => (c"CF.INSERTNX", Some(c"ITEMS")),
            (Family::Cuckoo, false) => (c"CF.INSERT", Some(c"ITEMS")),
        };
        call.replicate_items(command, word, &items);
    }
}

/// What is said where an item finds no room, and another layer would not help.
pub(super) fn no_room(family: Family, full: Full) -> Refusal {
    match (family, full) {
        (_, Full::Count) => "Filter is full".into(),
        (Family::Bloom, _) => "ERR problem inserting into filter".into(),
        (Family::Cuckoo, _) => "ERR Insufficient memory".into(),
    }
}
