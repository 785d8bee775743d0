//! Params from stored values.

use tamis::Params;
use tamis::balanced::{BalancedParams, Mht, Popcount, Sequential, Single, TwoChoice};
use tamis::blocked_rank::{BlockedMapParams, BlockedRankParams};
use tamis::bloom::{BlockedParams, BloomParams, CountingParams};
use tamis::compressed::CompressedParams;
use tamis::dleft::DLeftParams;
use tamis::partitioned::PartitionedParams;
use tamis::rank_indexed::RankParams;
use tamis::ribbon::RibbonParams;

#[test]
fn params_of_every_type_refuse_too_few_and_too_many_values() {
    fn check<P: Params>() {
        for count in (0..30).filter(|&count| count != P::NAMES.len()) {
            let fault = P::from_values(&vec![1; count]).err().unwrap();
            assert_eq!((fault.name, fault.value), ("params", count as u64), "{:?}", P::NAMES);
        }
    }
    check::<BloomParams>();
    check::<CountingParams>();
    check::<BlockedParams>();
    check::<RankParams>();
    check::<BlockedRankParams>();
    check::<BlockedMapParams>();
    check::<DLeftParams>();
    check::<BalancedParams<Single>>();
    check::<BalancedParams<Sequential>>();
    check::<BalancedParams<Mht>>();
    check::<BalancedParams<Popcount>>();
    check::<BalancedParams<TwoChoice>>();
    check::<PartitionedParams>();
    check::<CompressedParams>();
    check::<RibbonParams>();
}
