//! Filters from which keys can be removed, that count keys or keep a value for each: compact
//! tables of fingerprints ("rank-indexed hashing").
//!
//! After N. Hua, H. Zhao, B. Lin, J. Xu, "Rank-Indexed Hashing: A compact construction of Bloom
//! filters and variants", ICNP 2008. A key is kept as its *identity*, an integer in [0, U):
//! bucket, chain location and fingerprint. The fingerprints of a bucket are in chains without
//! pointers: two bit maps say where chains start and whether they go on, and counting their bits
//! finds every cell. Buckets whose cells are all used borrow extensions from small shared pools.
//!
//! ```text
//! bucket     I0 0101100... (L bits)   IH 01010... (Z1 bits)   Z1 cells of r bits   -> extension
//! level 2                             IH ...... (Z2 bits)     Z2 cells of r bits   -> extension
//! level 3                             IH ...... (Z3 bits)     Z3 cells of r bits
//! ```
//!
//! With a million keys, a key takes 10.2 bits at 1%, 13.8 at 0.1% and 17.8 at 0.01%, removal
//! included. A counting Bloom filter takes 38 to 77.
//!
//! ```
//! use tamis::RankIndexed;
//! let mut filter = RankIndexed::with_rate(1_000, 0.001)?;
//! filter.insert("apple")?;
//! assert!(filter.contains("apple"));
//! filter.remove("apple")?;
//! assert!(!filter.contains("apple"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Kinds
//!
//! - [`RankIndexed`]: a multiset. Every insertion takes a cell, so inserting and removing distinct
//!   keys is exact.
//! - [`RankSet`]: equal identities share a cell; cannot remove.
//! - [`RankCounting`]: a cell counts up to four, for keys that come often.
//! - [`RankMap`]: a cell carries a value of 1 to 32 bits.
//!
//! Nothing of an identity is lost, so tables can be listed, merged, grown and shrunk without the
//! keys.
//!
//! # Limits
//!
//! At most 2^62 identities, fingerprints of 1 to 56 bits. A table grows by a quarter when it holds
//! more cells than it was planned for. Its universe stays, so the rate rises with the keys. A
//! table keeps up to 16 equal cells of an identity; further copies are counted in the overflow, a
//! sorted list beside the table. Keys that an adversary chose to fill one bucket go there too:
//! nothing is lost, but use a keyed hash against such keys. Packed buckets are the smallest form,
//! not the fastest.

pub(crate) mod bucket;
mod chains;
mod levels;
pub(crate) mod model;
pub(crate) mod optimise;
mod params;
mod plan;
mod sections;
mod store;
pub(crate) mod table;

pub use params::RankParams;

use self::table::{Mode, Table};
use crate::filter::{Count, Remove};
use crate::identities::{Carries, Counts, Identities, Removes, Table as _};
use crate::spec::{Kind, Operation, ResizeError};

/// What the cells of a table mean; one type a kind.
#[doc(hidden)]
pub trait Variant: sealed::Sealed {}

impl<V: sealed::Sealed> Variant for V {}

mod sealed {
    use super::{Count, Identities, Mode, Operation, Remove, Table};

    /// The facts of a variant. Sealed: there are no others.
    #[expect(private_interfaces, reason = "sealed")]
    pub trait Sealed: core::fmt::Debug + Clone + PartialEq + Eq {
        const KIND: crate::spec::Kind;
        const CAN: &'static [Operation];
        const REASON: &'static str;
        const MODE: Mode;
        /// Counter bits; or value bits, unless others are asked for.
        const EXTRA: u32;

        fn as_remove(_: &mut Identities<Table<Self>>) -> Option<&mut dyn Remove> {
            None
        }

        fn as_count(_: &Identities<Table<Self>>) -> Option<&dyn Count> {
            None
        }
    }
}

macro_rules! can {
    (Remove) => {
        fn as_remove(filter: &mut Identities<Table<Self>>) -> Option<&mut dyn Remove> {
            Some(filter)
        }
    };
    (Count) => {
        fn as_count(filter: &Identities<Table<Self>>) -> Option<&dyn Count> {
            Some(filter)
        }
    };
}

macro_rules! variants {
    ($($name:ident $kind:ident $mode:ident $extra:literal [$($can:ident)*] $doc:literal
        $reason:literal)*) => {
        $(
            #[doc = $doc]
            #[doc(hidden)]
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub enum $name {}

            #[expect(private_interfaces, reason = "sealed")]
            impl sealed::Sealed for $name {
                const KIND: Kind = Kind::$kind;
                const CAN: &'static [Operation] =
                    &[Operation::Insert, Operation::Merge, Operation::Grow $(, Operation::$can)*];
                const REASON: &'static str = $reason;
                const MODE: Mode = Mode::$mode;
                const EXTRA: u32 = $extra;

                $(can!($can);)*
            }
        )*
    };
}
// Name, kind, mode, counter or value bits, and what it can do beyond the others; what it is, and
// when to take it.
variants! {
    Multiset RankIndexed Multiset 0 [Remove Count] "Every insertion takes a cell."
        "packed buckets; keys can be removed and counted"
    Distinct RankSet Set 0 [] "Equal identities share a cell."
        "packed buckets where equal identities are stored once; keys cannot be removed"
    Counters RankCounting Counting 2 [Remove Count] "A cell counts up to four."
        "packed buckets for keys that come often: a cell counts up to four; keys can be removed"
    Values RankMap Map 8 [Remove] "A cell carries a value."
        "packed buckets with a small value for every key; keys can be removed"
}

impl Removes for Table<Multiset> {}
impl Removes for Table<Counters> {}
impl Removes for Table<Values> {}
impl Counts for Table<Multiset> {}
impl Counts for Table<Counters> {}
impl Carries for Table<Values> {}

/// A filter from which keys can be removed and in which they can be counted, in packed buckets.
/// At rates of 2% and below [`BlockedRank`](crate::BlockedRank) does the same in less memory, and
/// is quicker.
///
/// Remove only keys that are in; [the module](self) says how it works.
///
/// ```
/// use tamis::RankIndexed;
/// let mut online = RankIndexed::with_rate(1_000, 0.001)?;
/// online.insert("ada")?;
/// assert_eq!(online.count("ada"), Some(1));
/// online.remove("ada")?;
/// assert!(!online.contains("ada"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type RankIndexed = Rank<Multiset>;
/// A filter for insertions only, slightly smaller than [`RankIndexed`]: keys that come again take
/// no more memory.
///
/// ```compile_fail
/// use tamis::{Insert, RankSet, Remove};
/// let mut set = RankSet::with_rate(100, 0.01).unwrap();
/// set.remove("apple"); // Two keys may share the cell: removing one would lose the other.
/// ```
pub type RankSet = Rank<Distinct>;
/// A filter that counts keys which come often, and from which they can be removed. A cell counts
/// up to four.
pub type RankCounting = Rank<Counters>;
/// A filter that keeps a small value for each key; see its method `values` for what happens when
/// two keys share an identity. At rates of 0.01% and above [`BlockedMap`](crate::BlockedMap) does
/// the same in less memory, and is quicker.
pub type RankMap = Rank<Values>;

/// A rank-indexed filter.
#[doc(hidden)]
pub type Rank<V> = Identities<Table<V>>;

impl<V: Variant> Rank<V> {
    /// Builds the table anew, with room for `capacity` keys.
    pub fn resize(&mut self, capacity: u64) -> Result<(), ResizeError> {
        self.table = self.table.resized(capacity)?;
        Ok(())
    }

    /// Drops the lowest `bits` bits of all identities. That saves as many bits per key, and
    /// doubles the rate for each.
    pub fn coarsen(&mut self, bits: u32) -> Result<(), ResizeError> {
        let params = self.table.params().coarser(bits)?;
        self.table = self.table.rebuilt(params, bits)?;
        Ok(())
    }
}
