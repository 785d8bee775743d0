//! What an operation reads, for experiments that count accesses.

/// Is told of every access of an operation. `()` ignores them, and costs nothing.
pub trait Trace {
    /// A counter was read: on chip.
    #[inline]
    fn counter(&mut self) {}

    /// The head of a list was read: off chip, unless the heads are kept beside the counters.
    #[inline]
    fn head(&mut self) {}

    /// A node of a list was read, and the item with it: off chip.
    #[inline]
    fn node(&mut self) {}

    /// An item was moved from one list to another.
    #[inline]
    fn moved(&mut self) {}
}

impl Trace for () {}

/// A [`Trace`] that counts. [`FastTable::get_traced`](super::FastTable::get_traced) has an
/// example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Counters read, on chip.
    pub counters: u64,
    /// Heads of lists read. The papers keep them beside the counters, and do not count them.
    pub heads: u64,
    /// Nodes read, off chip. This is what the papers measure.
    pub nodes: u64,
    /// Items moved from one list to another.
    pub moved: u64,
}

impl Trace for Accesses {
    #[inline]
    fn counter(&mut self) {
        self.counters += 1;
    }

    #[inline]
    fn head(&mut self) {
        self.heads += 1;
    }

    #[inline]
    fn node(&mut self) {
        self.nodes += 1;
    }

    #[inline]
    fn moved(&mut self) {
        self.moved += 1;
    }
}
