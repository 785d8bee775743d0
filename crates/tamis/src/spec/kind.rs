//! The names of all filters, and what each can do.

use super::Operation;

/// The kinds of filters. Numbers and names are allotted once and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
#[expect(missing_docs, reason = "`name` says it")]
pub enum Kind {
    Bloom = 1,
    Counting = 2,
    Blocked = 3,
    RankIndexed = 4,
    RankSet = 5,
    RankCounting = 6,
    RankMap = 7,
    BlockedRank = 8,
    DLeft = 9,
    BalancedSingle = 10,
    BalancedSequential = 11,
    BalancedMht = 12,
    BalancedPopcount = 13,
    BalancedTwoChoice = 14,
    Partitioned = 15,
    Compressed = 16,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 16] = [
        Self::Bloom,
        Self::Counting,
        Self::Blocked,
        Self::RankIndexed,
        Self::RankSet,
        Self::RankCounting,
        Self::RankMap,
        Self::BlockedRank,
        Self::DLeft,
        Self::BalancedSingle,
        Self::BalancedSequential,
        Self::BalancedMht,
        Self::BalancedPopcount,
        Self::BalancedTwoChoice,
        Self::Partitioned,
        Self::Compressed,
    ];

    /// The number in the header.
    pub const fn id(self) -> u16 {
        self as u16
    }

    /// The kind with this number.
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::Counting => "counting",
            Self::Blocked => "blocked",
            Self::RankIndexed => "rank-indexed",
            Self::RankSet => "rank-set",
            Self::RankCounting => "rank-counting",
            Self::RankMap => "rank-map",
            Self::BlockedRank => "blocked-rank",
            Self::DLeft => "dleft",
            Self::BalancedSingle => "balanced-single",
            Self::BalancedSequential => "balanced-sequential",
            Self::BalancedMht => "balanced-mht",
            Self::BalancedPopcount => "balanced-popcount",
            Self::BalancedTwoChoice => "balanced-two-choice",
            Self::Partitioned => "partitioned",
            Self::Compressed => "compressed",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether filters of this kind can do this.
    pub const fn can(self, operation: Operation) -> bool {
        match operation {
            // What is built once is built anew from all keys.
            Operation::Insert | Operation::Merge => self.can_insert(),
            Operation::Remove => self.can_remove(),
            Operation::Count => self.can_count(),
            Operation::Grow => self.keeps_identities(),
            Operation::Values(_) => matches!(self, Self::RankMap | Self::DLeft),
        }
    }

    /// Whether what a filter of this kind is packed into is an array of bits, which can be cut into pieces
    /// ([`Packing`](crate::Packing)); others are counters or sorted numbers.
    pub const fn packs_an_array(self) -> bool {
        matches!(
            self,
            Self::Bloom
                | Self::Blocked
                | Self::Partitioned
                | Self::BalancedSingle
                | Self::BalancedSequential
                | Self::BalancedMht
                | Self::BalancedPopcount
                | Self::BalancedTwoChoice
        )
    }

    /// Whether filters of this kind take keys one by one; others are built once from all their keys.
    pub const fn can_insert(self) -> bool {
        !matches!(self, Self::Partitioned | Self::Compressed)
    }

    /// Whether keys can be removed from filters of this kind.
    pub const fn can_remove(self) -> bool {
        matches!(
            self,
            Self::Counting
                | Self::RankIndexed
                | Self::RankCounting
                | Self::RankMap
                | Self::BlockedRank
                | Self::DLeft
        )
    }

    /// Whether filters of this kind keep an identity of every key, rather than bits that keys share.
    pub(crate) const fn keeps_identities(self) -> bool {
        matches!(
            self,
            Self::RankIndexed
                | Self::RankSet
                | Self::RankCounting
                | Self::RankMap
                | Self::BlockedRank
                | Self::DLeft
        )
    }

    /// Whether filters of this kind know how often a key is in.
    pub const fn can_count(self) -> bool {
        matches!(
            self,
            Self::Counting
                | Self::RankIndexed
                | Self::RankCounting
                | Self::BlockedRank
                | Self::DLeft
        )
    }
}
