//! The params of a filter of any kind: planned, predicted and built.

use alloc::vec::Vec;

use super::{AnyFilter, Listed, by_kind, each};
use crate::bits::OutOfMemory;
use crate::digest::Digest;
use crate::spec::{
    BuildError, Goal, InvalidParam, Kind, Label, Lines, Params, PlanError, Prediction, Traffic,
};
use crate::stored::Stored;

macro_rules! define {
    ($($id:literal $kind:ident $name:literal $type:ty,)*) => {
        /// The params of a filter of any kind: they fix its layout.
        ///
        /// ```
        /// use tamis::{AnyParams, Filter, Goal, Hasher, Insert, Kind};
        /// let params = AnyParams::plan(Kind::BlockedRank, &Goal::rate(1_000, 0.001))?;
        /// assert!(params.predict(1_000).rate <= 0.001);
        /// let mut filter = params.build(Hasher::default())?;
        /// filter.insert("apple")?;
        /// assert!(filter.contains("apple"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum AnyParams {
            $(#[doc = concat!("`", $name, "`.")] $kind(<$type as Stored>::Params),)*
        }
    };
}
kinds!(define);

impl AnyParams {
    /// The params of a filter of `kind` that meet `goal` in the least memory, even if that is out
    /// of proportion to its rate.
    pub(crate) fn least(kind: Kind, goal: &Goal) -> Result<Self, PlanError> {
        by_kind!(kind, F => F::least(goal).map(F::hold_params))
    }

    /// The same, or an error if the memory is out of proportion to the rate.
    pub(crate) fn in_proportion(kind: Kind, goal: &Goal) -> Result<Self, PlanError> {
        by_kind!(kind, F => F::plan(goal).map(F::hold_params))
    }

    /// What a filter with these params and `keys` keys will do.
    pub fn predict(&self, keys: u64) -> Prediction {
        each!(AnyParams: self, F, params => F::predict(params, keys))
    }

    /// The bytes on the wire of a filter with these params and `keys` keys and, if `churn` is
    /// given, of its delta after the share `churn` of the keys was replaced.
    pub fn traffic(&self, keys: u64, churn: Option<f64>) -> Traffic {
        self.traffic_as_predicted(keys, churn, &self.predict(keys))
    }

    /// As [`traffic`](Self::traffic), for callers that have the prediction already.
    pub(crate) fn traffic_as_predicted(
        &self,
        keys: u64,
        churn: Option<f64>,
        predicted: &Prediction,
    ) -> Traffic {
        let replaced = churn.map(|churn| libm::round(churn.clamp(0.0, 1.0) * keys as f64) as u64);
        let traffic =
            each!(AnyParams: self, F, params => F::traffic(params, keys, predicted, replaced));
        // Where there are no deltas a new snapshot is sent.
        let delta = traffic.delta.or(replaced.map(|_| traffic.snapshot));
        Traffic { delta, ..traffic }
    }

    /// Writes to `out` how the prediction comes about.
    pub(crate) fn explain(&self, keys: u64, predicted: &Prediction, out: &mut Lines) {
        each!(AnyParams: self, F, params => F::explain(params, keys, predicted, out));
    }

    /// An empty filter. `label` is a [`Hasher`](crate::Hasher), or a [`Label`] that also says for
    /// how many keys the filter was planned.
    pub fn build(self, label: impl Into<Label>) -> Result<AnyFilter, OutOfMemory> {
        each!(AnyParams: self, F, params => F::new(params, label).map(Into::into))
    }

    /// A filter of the keys with the digests `keys`. Every kind can be built so, also those that
    /// are built once.
    pub fn build_from(
        self,
        label: impl Into<Label>,
        keys: &[Digest],
    ) -> Result<AnyFilter, BuildError> {
        self.build_in_parallel(label, keys, 1)
    }

    /// As [`build_from`](Self::build_from), by `threads` threads if the kind can use them. The
    /// bytes are the same for any number of threads.
    ///
    /// `bloom` and `blocked` can use them, because their bits do not depend on the order in which
    /// they are set, and `ribbon`, whose segments do not touch. `partitioned` is built by all
    /// cores, whatever `threads` is. All other kinds are built by one thread; in most of them the
    /// order of the keys decides where they lie.
    pub fn build_in_parallel(
        self,
        label: impl Into<Label>,
        keys: &[Digest],
        threads: usize,
    ) -> Result<AnyFilter, BuildError> {
        each!(AnyParams: self, F, params => {
            F::build_in_parallel(params, label, keys, threads).map(Into::into)
        })
    }

    /// The params of `kind` with these values, in stored order. Every value is checked.
    pub fn from_values(kind: Kind, values: &[u64]) -> Result<Self, InvalidParam> {
        by_kind!(kind, F => Params::from_values(values).map(F::hold_params))
    }

    /// The kind that these params belong to.
    pub fn kind(&self) -> Kind {
        each!(AnyParams: self, F, _params => F::KIND)
    }

    /// Names and values, in stored order.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        fn pairs<P: Params>(params: &P) -> Vec<(&'static str, u64)> {
            P::NAMES.iter().copied().zip(params.values()).collect()
        }
        each!(AnyParams: self, F, params => pairs(params))
    }
}
