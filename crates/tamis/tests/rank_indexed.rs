//! Rank-indexed tables: laws, an exact multiset, growth, merging, hostile streams.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tamis::rank_indexed::RankParams;
use tamis::{
    Absent, Count, Digest, Filter, Goal, Hasher, Insert, Limits, RankCounting, RankIndexed,
    RankMap, RankSet, Remove, Stored,
};
use tamis_report::keys::KeyStream;
use tamis_testkit::{laws, operations};

tamis_testkit::install_counting_allocator!();

fn make<F: Stored<Params = RankParams>>(params: RankParams) -> impl Fn(Hasher) -> F {
    move |hasher| F::new(params, hasher).unwrap()
}

/// Two buckets, short fingerprints, few keys planned: everything collides, overflows and grows.
fn crowded() -> RankParams {
    RankParams::new(2, 5, 3, 0, 6, 1).unwrap()
}

#[test]
fn all_variants_keep_the_laws() {
    for (keys, rate) in [(1, 0.1), (2, 0.01), (37, 0.02), (1000, 0.001), (3000, 0.5)] {
        let goal = Goal::rate(keys, rate);
        laws::check(make::<RankIndexed>(RankIndexed::plan(&goal).unwrap()), keys);
        laws::check(make::<RankSet>(RankSet::plan(&goal).unwrap()), keys);
        laws::check(make::<RankCounting>(RankCounting::plan(&goal).unwrap()), keys);
        laws::check(make::<RankMap>(RankMap::plan(&goal).unwrap()), keys);
        laws::check_removal(make::<RankIndexed>(RankIndexed::plan(&goal).unwrap()), keys);
        laws::check_removal(make::<RankCounting>(RankCounting::plan(&goal).unwrap()), keys);
        laws::check_removal(make::<RankMap>(RankMap::plan(&goal).unwrap()), keys);
    }
    laws::check(make::<RankIndexed>(crowded()), 300);
    laws::check(make::<RankCounting>(crowded()), 300);
    laws::check(make::<RankSet>(crowded()), 300);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tables_agree_with_an_exact_multiset(sequence in operations::sequences(60, 250)) {
        operations::run(make::<RankIndexed>(crowded())(Hasher::xxh3(0)), &sequence);
        operations::run(make::<RankCounting>(crowded())(Hasher::xxh3(0)), &sequence);
    }
}
