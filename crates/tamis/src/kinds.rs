//! The one list of all kinds. A new filter is its folder and a line here.

/// Calls a macro with all kinds: number in the header, variant, name on the command line, type.
/// Numbers and names are given once and never reused.
macro_rules! kinds {
    ($take:ident $($with:tt)*) => {
        $take! { $($with)*
            1 Bloom "bloom" crate::bloom::Bloom,
            2 Counting "counting" crate::bloom::CountingBloom,
            3 Blocked "blocked" crate::bloom::BlockedBloom,
            4 RankIndexed "rank-indexed" crate::rank_indexed::RankIndexed,
            5 RankSet "rank-set" crate::rank_indexed::RankSet,
            6 RankCounting "rank-counting" crate::rank_indexed::RankCounting,
            7 RankMap "rank-map" crate::rank_indexed::RankMap,
            8 BlockedRank "blocked-rank" crate::blocked_rank::BlockedRank,
            9 DLeft "dleft" crate::dleft::DLeft,
            10 BalancedSingle "balanced-single" crate::balanced::BalancedSingle,
            11 BalancedSequential "balanced-sequential" crate::balanced::BalancedSequential,
            12 BalancedMht "balanced-mht" crate::balanced::BalancedMht,
            13 BalancedPopcount "balanced-popcount" crate::balanced::BalancedPopcount,
            14 BalancedTwoChoice "balanced-two-choice" crate::balanced::BalancedTwoChoice,
            15 Partitioned "partitioned" crate::partitioned::PartitionedBloom,
            16 Compressed "compressed" crate::compressed::CompressedBloom,
            17 Ribbon "ribbon" crate::ribbon::Ribbon,
            18 BlockedMap "blocked-map" crate::blocked_rank::BlockedMap,
        }
    };
}
