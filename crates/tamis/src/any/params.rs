//! Plans and builds any filter.

use alloc::vec::Vec;

use super::AnyFilter;
use crate::balanced::{
    BalancedMht, BalancedParams, BalancedPopcount, BalancedSequential, BalancedSingle,
    BalancedTwoChoice, Mht, Popcount, Sequential, Single, TwoChoice,
};
use crate::bits::OutOfMemory;
use crate::blocked_rank::{BlockedRank, BlockedRankParams};
use crate::bloom::{
    BlockedBloom, BlockedParams, Bloom, BloomParams, CountingBloom, CountingParams, model,
};
use crate::compressed::{self, CompressedBloom, CompressedParams};
use crate::digest::Digest;
use crate::dleft::{DLeft, DLeftParams};
use crate::filter::Stored;
use crate::partitioned::{self, PartitionedBloom, PartitionedParams};
use crate::plan::{in_proportion, message};
use crate::rank_indexed::{RankCounting, RankIndexed, RankMap, RankParams, RankSet};
use crate::spec::{
    BuildError, Goal, InvalidParam, Kind, Label, Params, PlanError, Prediction, Size,
};

/// The layout of a filter of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "one variant a kind")]
pub enum AnyParams {
    Bloom(BloomParams),
    Counting(CountingParams),
    Blocked(BlockedParams),
    RankIndexed(RankParams),
    RankSet(RankParams),
    RankCounting(RankParams),
    RankMap(RankParams),
    BlockedRank(BlockedRankParams),
    DLeft(DLeftParams),
    Partitioned(PartitionedParams),
    BalancedSingle(BalancedParams<Single>),
    BalancedSequential(BalancedParams<Sequential>),
    BalancedMht(BalancedParams<Mht>),
    BalancedPopcount(BalancedParams<Popcount>),
    BalancedTwoChoice(BalancedParams<TwoChoice>),
    Compressed(CompressedParams),
}

impl AnyParams {
    /// The layout of a filter of this kind that meets the goal in the least memory.
    pub fn plan(kind: Kind, goal: &Goal) -> Result<Self, PlanError> {
        if let Size::Wire { bytes, margin } = goal.size {
            return message::plan(kind, goal, bytes, margin);
        }
        let bits_per_key = |params: &Self| params.predict(goal.sized_keys()).bits_per_key;
        in_proportion(kind, goal, |goal| Self::least(kind, goal), bits_per_key)
    }

    /// The same, in proportion or not.
    pub(crate) fn least(kind: Kind, goal: &Goal) -> Result<Self, PlanError> {
        match kind {
            Kind::Bloom => model::plan_bloom(goal).map(Self::Bloom),
            Kind::Counting => model::plan_counting(goal).map(Self::Counting),
            Kind::Blocked => model::plan_blocked(goal).map(Self::Blocked),
            Kind::RankIndexed => RankIndexed::plan(goal).map(Self::RankIndexed),
            Kind::RankSet => RankSet::plan(goal).map(Self::RankSet),
            Kind::RankCounting => RankCounting::plan(goal).map(Self::RankCounting),
            Kind::RankMap => RankMap::plan(goal).map(Self::RankMap),
            Kind::BlockedRank => BlockedRank::plan(goal).map(Self::BlockedRank),
            Kind::DLeft => DLeft::plan(goal).map(Self::DLeft),
            Kind::Partitioned => partitioned::plan(goal).map(Self::Partitioned),
            Kind::BalancedSingle => BalancedSingle::plan(goal).map(Self::BalancedSingle),
            Kind::BalancedSequential => {
                BalancedSequential::plan(goal).map(Self::BalancedSequential)
            }
            Kind::BalancedMht => BalancedMht::plan(goal).map(Self::BalancedMht),
            Kind::BalancedPopcount => BalancedPopcount::plan(goal).map(Self::BalancedPopcount),
            Kind::BalancedTwoChoice => BalancedTwoChoice::plan(goal).map(Self::BalancedTwoChoice),
            Kind::Compressed => compressed::plan(goal).map(Self::Compressed),
        }
    }

    /// What a filter with this layout and so many keys will do.
    pub fn predict(&self, keys: u64) -> Prediction {
        match self {
            Self::Bloom(params) => model::predict_bloom(params, keys),
            Self::Counting(params) => model::predict_counting(params, keys),
            Self::Blocked(params) => model::predict_blocked(params, keys),
            Self::RankIndexed(params) => RankIndexed::predict(params, keys),
            Self::RankSet(params) => RankSet::predict(params, keys),
            Self::RankCounting(params) => RankCounting::predict(params, keys),
            Self::RankMap(params) => RankMap::predict(params, keys),
            Self::BlockedRank(params) => BlockedRank::predict(params, keys),
            Self::DLeft(params) => DLeft::predict(params, keys),
            Self::Partitioned(params) => partitioned::model::predict(params, keys),
            Self::BalancedSingle(params) => BalancedSingle::predict(params, keys),
            Self::BalancedSequential(params) => BalancedSequential::predict(params, keys),
            Self::BalancedMht(params) => BalancedMht::predict(params, keys),
            Self::BalancedPopcount(params) => BalancedPopcount::predict(params, keys),
            Self::BalancedTwoChoice(params) => BalancedTwoChoice::predict(params, keys),
            Self::Compressed(params) => compressed::predict(params, keys),
        }
    }

    /// An empty filter.
    pub fn build(self, label: impl Into<Label>) -> Result<AnyFilter, OutOfMemory> {
        match self {
            Self::Bloom(params) => Bloom::new(params, label).map(AnyFilter::Bloom),
            Self::Counting(params) => CountingBloom::new(params, label).map(AnyFilter::Counting),
            Self::Blocked(params) => BlockedBloom::new(params, label).map(AnyFilter::Blocked),
            Self::RankIndexed(params) => {
                RankIndexed::new(params, label).map(AnyFilter::RankIndexed)
            }
            Self::RankSet(params) => RankSet::new(params, label).map(AnyFilter::RankSet),
            Self::RankCounting(params) => {
                RankCounting::new(params, label).map(AnyFilter::RankCounting)
            }
            Self::RankMap(params) => RankMap::new(params, label).map(AnyFilter::RankMap),
            Self::BlockedRank(params) => {
                BlockedRank::new(params, label).map(AnyFilter::BlockedRank)
            }
            Self::DLeft(params) => DLeft::new(params, label).map(AnyFilter::DLeft),
            Self::Partitioned(params) => {
                PartitionedBloom::new(params, label).map(AnyFilter::Partitioned)
            }
            Self::BalancedSingle(params) => {
                BalancedSingle::new(params, label).map(AnyFilter::BalancedSingle)
            }
            Self::BalancedSequential(params) => {
                BalancedSequential::new(params, label).map(AnyFilter::BalancedSequential)
            }
            Self::BalancedMht(params) => {
                BalancedMht::new(params, label).map(AnyFilter::BalancedMht)
            }
            Self::BalancedPopcount(params) => {
                BalancedPopcount::new(params, label).map(AnyFilter::BalancedPopcount)
            }
            Self::BalancedTwoChoice(params) => {
                BalancedTwoChoice::new(params, label).map(AnyFilter::BalancedTwoChoice)
            }
            Self::Compressed(params) => {
                CompressedBloom::new(params, label).map(AnyFilter::Compressed)
            }
        }
    }

    /// A filter of these keys, for kinds that are built once and for all others.
    pub fn build_from(
        self,
        label: impl Into<Label>,
        keys: &[Digest],
    ) -> Result<AnyFilter, BuildError> {
        match self {
            Self::Partitioned(params) => {
                Ok(AnyFilter::Partitioned(PartitionedBloom::build(params, label, keys)?))
            }
            Self::Compressed(params) => {
                Ok(AnyFilter::Compressed(CompressedBloom::build(params, label, keys)?))
            }
            _ => {
                let mut filter = self.build(label)?;
                if let Some(insert) = filter.as_insert() {
                    insert.insert_many(keys)?;
                }
                Ok(filter)
            }
        }
    }

    /// The layout of this kind with these values, in stored order; every one is checked.
    pub fn from_values(kind: Kind, values: &[u64]) -> Result<Self, InvalidParam> {
        match kind {
            Kind::Bloom => Params::from_values(values).map(Self::Bloom),
            Kind::Counting => Params::from_values(values).map(Self::Counting),
            Kind::Blocked => Params::from_values(values).map(Self::Blocked),
            Kind::RankIndexed => Params::from_values(values).map(Self::RankIndexed),
            Kind::RankSet => Params::from_values(values).map(Self::RankSet),
            Kind::RankCounting => Params::from_values(values).map(Self::RankCounting),
            Kind::RankMap => Params::from_values(values).map(Self::RankMap),
            Kind::BlockedRank => Params::from_values(values).map(Self::BlockedRank),
            Kind::DLeft => Params::from_values(values).map(Self::DLeft),
            Kind::Partitioned => Params::from_values(values).map(Self::Partitioned),
            Kind::BalancedSingle => Params::from_values(values).map(Self::BalancedSingle),
            Kind::BalancedSequential => Params::from_values(values).map(Self::BalancedSequential),
            Kind::BalancedMht => Params::from_values(values).map(Self::BalancedMht),
            Kind::BalancedPopcount => Params::from_values(values).map(Self::BalancedPopcount),
            Kind::BalancedTwoChoice => Params::from_values(values).map(Self::BalancedTwoChoice),
            Kind::Compressed => Params::from_values(values).map(Self::Compressed),
        }
    }

    /// The kind that this is the layout of.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Bloom(_) => Kind::Bloom,
            Self::Counting(_) => Kind::Counting,
            Self::Blocked(_) => Kind::Blocked,
            Self::RankIndexed(_) => Kind::RankIndexed,
            Self::RankSet(_) => Kind::RankSet,
            Self::RankCounting(_) => Kind::RankCounting,
            Self::RankMap(_) => Kind::RankMap,
            Self::BlockedRank(_) => Kind::BlockedRank,
            Self::DLeft(_) => Kind::DLeft,
            Self::Partitioned(_) => Kind::Partitioned,
            Self::BalancedSingle(_) => Kind::BalancedSingle,
            Self::BalancedSequential(_) => Kind::BalancedSequential,
            Self::BalancedMht(_) => Kind::BalancedMht,
            Self::BalancedPopcount(_) => Kind::BalancedPopcount,
            Self::BalancedTwoChoice(_) => Kind::BalancedTwoChoice,
            Self::Compressed(_) => Kind::Compressed,
        }
    }

    /// Names and values, in stored order.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        fn pairs<P: Params>(params: &P) -> Vec<(&'static str, u64)> {
            P::NAMES.iter().copied().zip(params.values()).collect()
        }
        match self {
            Self::Bloom(params) => pairs(params),
            Self::Counting(params) => pairs(params),
            Self::Blocked(params) => pairs(params),
            Self::RankIndexed(params)
            | Self::RankSet(params)
            | Self::RankCounting(params)
            | Self::RankMap(params) => pairs(params),
            Self::BlockedRank(params) => pairs(params),
            Self::DLeft(params) => pairs(params),
            Self::Partitioned(params) => pairs(params),
            Self::BalancedSingle(params) => pairs(params),
            Self::BalancedSequential(params) => pairs(params),
            Self::BalancedMht(params) => pairs(params),
            Self::BalancedPopcount(params) => pairs(params),
            Self::BalancedTwoChoice(params) => pairs(params),
            Self::Compressed(params) => pairs(params),
        }
    }
}
