//! The only list of all filters: [`Kind`] names them, [`AnyParams`] plans and builds them, [`AnyFilter`] is one
//! of them. Whatever lies outside this library knows only these.

mod params;

use alloc::vec::Vec;

pub use params::AnyParams;

use crate::balanced::{
    BalancedMht, BalancedPopcount, BalancedSequential, BalancedSingle, BalancedTwoChoice,
};
use crate::bits::{OutOfMemory, SharedBytes, Words};
use crate::blocked_rank::BlockedRank;
use crate::bloom::{BlockedBloom, Bloom, CountingBloom};
use crate::coder::{self, Effort, Packing};
use crate::compressed::CompressedBloom;
use crate::delta::Change;
use crate::digest::Digest;
use crate::dleft::DLeft;
use crate::filter::{Count, Filter, Insert, Remove, Stored};
use crate::group::Group;
use crate::partitioned::PartitionedBloom;
use crate::rank_indexed::{RankCounting, RankIndexed, RankMap, RankSet};
use crate::spec::{Invalid, Kind, Label, Limits, Mismatch, WireError};
use crate::wire::{ContentId, Encoded, Frame, Source};

/// A filter of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "one variant a kind")]
pub enum AnyFilter {
    Bloom(Bloom),
    Counting(CountingBloom),
    Blocked(BlockedBloom),
    RankIndexed(RankIndexed),
    RankSet(RankSet),
    RankCounting(RankCounting),
    RankMap(RankMap),
    BlockedRank(BlockedRank),
    DLeft(DLeft),
    Partitioned(PartitionedBloom),
    BalancedSingle(BalancedSingle),
    BalancedSequential(BalancedSequential),
    BalancedMht(BalancedMht),
    BalancedPopcount(BalancedPopcount),
    BalancedTwoChoice(BalancedTwoChoice),
    Compressed(CompressedBloom),
}

/// The same expression for whichever filter is inside.
macro_rules! each {
    ($any:expr, $filter:ident => $value:expr) => {
        match $any {
            Self::Bloom($filter) => $value,
            Self::Counting($filter) => $value,
            Self::Blocked($filter) => $value,
            Self::RankIndexed($filter) => $value,
            Self::RankSet($filter) => $value,
            Self::RankCounting($filter) => $value,
            Self::RankMap($filter) => $value,
            Self::BlockedRank($filter) => $value,
            Self::DLeft($filter) => $value,
            Self::Partitioned($filter) => $value,
            Self::BalancedSingle($filter) => $value,
            Self::BalancedSequential($filter) => $value,
            Self::BalancedMht($filter) => $value,
            Self::BalancedPopcount($filter) => $value,
            Self::BalancedTwoChoice($filter) => $value,
            Self::Compressed($filter) => $value,
        }
    };
}

impl AnyFilter {
    /// The kind.
    pub fn kind(&self) -> Kind {
        self.params().kind()
    }

    /// The layout.
    pub fn params(&self) -> AnyParams {
        match self {
            Self::Bloom(filter) => AnyParams::Bloom(filter.params()),
            Self::Counting(filter) => AnyParams::Counting(filter.params()),
            Self::Blocked(filter) => AnyParams::Blocked(filter.params()),
            Self::RankIndexed(filter) => AnyParams::RankIndexed(filter.params()),
            Self::RankSet(filter) => AnyParams::RankSet(filter.params()),
            Self::RankCounting(filter) => AnyParams::RankCounting(filter.params()),
            Self::RankMap(filter) => AnyParams::RankMap(filter.params()),
            Self::BlockedRank(filter) => AnyParams::BlockedRank(filter.params()),
            Self::DLeft(filter) => AnyParams::DLeft(filter.params()),
            Self::Partitioned(filter) => AnyParams::Partitioned(filter.params()),
            Self::BalancedSingle(filter) => AnyParams::BalancedSingle(filter.params()),
            Self::BalancedSequential(filter) => AnyParams::BalancedSequential(filter.params()),
            Self::BalancedMht(filter) => AnyParams::BalancedMht(filter.params()),
            Self::BalancedPopcount(filter) => AnyParams::BalancedPopcount(filter.params()),
            Self::BalancedTwoChoice(filter) => AnyParams::BalancedTwoChoice(filter.params()),
            Self::Compressed(filter) => AnyParams::Compressed(filter.params()),
        }
    }

    /// The filter as one that takes keys, if it does.
    pub fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        match self {
            Self::Bloom(filter) => Some(filter),
            Self::Counting(filter) => Some(filter),
            Self::Blocked(filter) => Some(filter),
            Self::RankIndexed(filter) => Some(filter),
            Self::RankSet(filter) => Some(filter),
            Self::RankCounting(filter) => Some(filter),
            Self::RankMap(filter) => Some(filter),
            Self::BlockedRank(filter) => Some(filter),
            Self::DLeft(filter) => Some(filter),
            Self::BalancedSingle(filter) => Some(filter),
            Self::BalancedSequential(filter) => Some(filter),
            Self::BalancedMht(filter) => Some(filter),
            Self::BalancedPopcount(filter) => Some(filter),
            Self::BalancedTwoChoice(filter) => Some(filter),
            Self::Partitioned(_) | Self::Compressed(_) => None,
        }
    }

    /// The filter as one that gives keys up, if it does.
    pub fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        match self {
            Self::Counting(filter) => Some(filter),
            Self::RankIndexed(filter) => Some(filter),
            Self::RankCounting(filter) => Some(filter),
            Self::RankMap(filter) => Some(filter),
            Self::BlockedRank(filter) => Some(filter),
            Self::DLeft(filter) => Some(filter),
            Self::Bloom(_)
            | Self::Blocked(_)
            | Self::RankSet(_)
            | Self::BalancedSingle(_)
            | Self::BalancedSequential(_)
            | Self::BalancedMht(_)
            | Self::BalancedPopcount(_)
            | Self::BalancedTwoChoice(_)
            | Self::Partitioned(_)
            | Self::Compressed(_) => None,
        }
    }

    /// The filter as one that counts, if it does.
    pub fn as_count(&self) -> Option<&dyn Count> {
        match self {
            Self::Counting(filter) => Some(filter),
            Self::RankIndexed(filter) => Some(filter),
            Self::RankCounting(filter) => Some(filter),
            Self::BlockedRank(filter) => Some(filter),
            Self::DLeft(filter) => Some(filter),
            Self::Bloom(_)
            | Self::Blocked(_)
            | Self::RankSet(_)
            | Self::RankMap(_)
            | Self::Partitioned(_)
            | Self::BalancedSingle(_)
            | Self::BalancedSequential(_)
            | Self::BalancedMht(_)
            | Self::BalancedPopcount(_)
            | Self::BalancedTwoChoice(_)
            | Self::Compressed(_) => None,
        }
    }

    /// Adds the keys of another filter of the same kind, layout, hash and seed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        match (self, other) {
            (Self::Bloom(this), Self::Bloom(other)) => this.union(other),
            (Self::Counting(this), Self::Counting(other)) => this.merge(other),
            (Self::Blocked(this), Self::Blocked(other)) => this.union(other),
            (Self::RankIndexed(this), Self::RankIndexed(other)) => this.merge(other),
            (Self::RankSet(this), Self::RankSet(other)) => this.merge(other),
            (Self::RankCounting(this), Self::RankCounting(other)) => this.merge(other),
            (Self::RankMap(this), Self::RankMap(other)) => this.merge(other),
            (Self::BlockedRank(this), Self::BlockedRank(other)) => this.merge(other),
            (Self::DLeft(this), Self::DLeft(other)) => this.merge(other),
            (Self::BalancedSingle(this), Self::BalancedSingle(other)) => this.merge(other),
            (Self::BalancedSequential(this), Self::BalancedSequential(other)) => this.merge(other),
            (Self::BalancedMht(this), Self::BalancedMht(other)) => this.merge(other),
            (Self::BalancedPopcount(this), Self::BalancedPopcount(other)) => this.merge(other),
            (Self::BalancedTwoChoice(this), Self::BalancedTwoChoice(other)) => this.merge(other),
            (Self::Partitioned(_), Self::Partitioned(_))
            | (Self::Compressed(_), Self::Compressed(_)) => Err(Mismatch {
                field: "keys, and filters of this kind are built once",
                left: "merge the keys of the first".into(),
                right: "of the second instead".into(),
            }),
            (this, other) => Mismatch::check("kind", this.kind().name(), other.kind().name()),
        }
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        each!(self, filter => filter.clear());
    }

    /// Checks every invariant.
    pub fn validate(&self) -> Result<(), Invalid> {
        each!(self, filter => filter.validate())
    }

    /// A name for what the filter holds.
    pub fn content_id(&self) -> ContentId {
        each!(self, filter => filter.content_id())
    }

    /// The filter as bytes.
    pub fn encode(&self) -> Encoded<'_> {
        each!(self, filter => filter.encode())
    }

    /// The filter as fewer bytes, entropy-coded.
    pub fn pack(&self, how: impl Into<Packing>) -> Encoded<'_> {
        let how = how.into();
        each!(self, filter => filter.pack(how))
    }

    /// What readers need of this filter: of a counting Bloom filter the plain one that answers alike, while the counters stay
    /// at home; of any other kind all of it.
    pub fn projection(&self) -> Result<Self, OutOfMemory> {
        match self {
            Self::Counting(filter) => filter.to_bloom().map(Self::Bloom),
            _ => Ok(self.clone()),
        }
    }

    /// What the content takes at least on the wire if only its size and its density are known: no coder does much better.
    pub fn entropy_bits(&self) -> f64 {
        let set = |universe: u64, count: u64| {
            crate::math::gamma::ln_choose(universe, count) / core::f64::consts::LN_2
        };
        match self {
            Self::Bloom(filter) => coder::entropy_bits(filter.bits().len(), filter.bits().ones()),
            Self::Blocked(filter) => {
                let ones = filter.blocks().flatten().map(|word| u64::from(word.count_ones()));
                coder::entropy_bits(filter.params().bits(), ones.sum())
            }
            Self::BalancedSingle(_)
            | Self::BalancedSequential(_)
            | Self::BalancedMht(_)
            | Self::BalancedPopcount(_)
            | Self::BalancedTwoChoice(_) => {
                let (bits, ones, listed) = self.balanced_array();
                // A listed digest is any 64 bits.
                coder::entropy_bits(bits, ones) + 64.0 * listed as f64
            }
            Self::Counting(filter) => coder::planes::entropy_bits(filter.counters().iter()),
            // Choices look random, however they are counted.
            Self::Partitioned(filter) => {
                let array = coder::entropy_bits(filter.bits().len(), filter.bits().ones());
                array + filter.params().choice_bits() as f64
            }
            Self::Compressed(filter) => set(filter.params().positions(), filter.positions().len()),
            Self::RankIndexed(_)
            | Self::RankSet(_)
            | Self::RankCounting(_)
            | Self::RankMap(_)
            | Self::BlockedRank(_)
            | Self::DLeft(_) => {
                let (groups, params) = (self.groups(), self.content_params());
                let has_values = matches!(self.kind(), Kind::RankMap | Kind::DLeft);
                let values = if has_values { params[1].1 } else { 0 };
                set(params[0].1, groups.len() as u64) + groups.len() as f64 * values as f64
            }
        }
    }

    /// What [`pack`](Self::pack) codes with.
    pub fn coder_name(&self, effort: Effort) -> &'static str {
        let array = |bits, ones| coder::choose(bits, ones, effort).name();
        match self {
            Self::Bloom(filter) => array(filter.bits().len(), filter.bits().ones()),
            Self::Partitioned(filter) => array(filter.bits().len(), filter.bits().ones()),
            Self::Blocked(filter) => {
                let ones = filter.blocks().flatten().map(|word| u64::from(word.count_ones()));
                array(filter.params().bits(), ones.sum())
            }
            Self::BalancedSingle(_)
            | Self::BalancedSequential(_)
            | Self::BalancedMht(_)
            | Self::BalancedPopcount(_)
            | Self::BalancedTwoChoice(_) => {
                let (bits, ones, _) = self.balanced_array();
                array(bits, ones)
            }
            Self::Counting(_) => "planes",
            _ => "gaps",
        }
    }

    /// Bits and ones of the array of a balanced kind, and entries of its list; nothing for the others.
    fn balanced_array(&self) -> (u64, u64, u64) {
        let Some((words, list)) = self.array_and_list() else { return (0, 0, 0) };
        let ones = words.as_slice().iter().map(|word| u64::from(word.count_ones())).sum();
        (words.len() as u64 * 64, ones, list.len() as u64)
    }

    /// The array of a balanced kind and its list; `None` for the others.
    pub(crate) fn array_and_list(&self) -> Option<(&Words, Vec<u64>)> {
        match self {
            Self::BalancedSingle(filter) => Some((filter.words(), filter.listed())),
            Self::BalancedSequential(filter) => Some((filter.words(), filter.listed())),
            Self::BalancedMht(filter) => Some((filter.words(), filter.listed())),
            Self::BalancedPopcount(filter) => Some((filter.words(), filter.listed())),
            Self::BalancedTwoChoice(filter) => Some((filter.words(), filter.listed())),
            _ => None,
        }
    }

    /// Names and values of all that decides answers beside hash, seed and content.
    pub(crate) fn content_params(&self) -> Vec<(&'static str, u64)> {
        match self.params() {
            AnyParams::RankIndexed(params)
            | AnyParams::RankSet(params)
            | AnyParams::RankCounting(params)
            | AnyParams::RankMap(params) => params.content_params().to_vec(),
            AnyParams::BlockedRank(params) => params.content_params().to_vec(),
            AnyParams::DLeft(params) => params.content_params().to_vec(),
            params => params.named(),
        }
    }

    /// What a fingerprint kind holds; nothing for the others.
    pub(crate) fn groups(&self) -> Vec<Group> {
        match self {
            Self::RankIndexed(filter) => filter.groups(),
            Self::RankSet(filter) => filter.groups(),
            Self::RankCounting(filter) => filter.groups(),
            Self::RankMap(filter) => filter.groups(),
            Self::BlockedRank(filter) => filter.groups(),
            Self::DLeft(filter) => filter.groups(),
            _ => Vec::new(),
        }
    }

    /// Changes the content; on an error it is half changed.
    pub(crate) fn change(&mut self, change: &Change) -> Result<(), &'static str> {
        let base = self.groups();
        match (self, change) {
            (Self::Bloom(filter), Change::Bits(flips)) => filter.flip(flips),
            (Self::Blocked(filter), Change::Bits(flips)) => filter.flip(flips),
            (Self::Counting(filter), Change::Counters(steps)) => filter.step(steps),
            (Self::BalancedSingle(filter), Change::Listed(listed)) => filter.change(listed),
            (Self::BalancedSequential(filter), Change::Listed(listed)) => filter.change(listed),
            (Self::BalancedMht(filter), Change::Listed(listed)) => filter.change(listed),
            (Self::BalancedPopcount(filter), Change::Listed(listed)) => filter.change(listed),
            (Self::BalancedTwoChoice(filter), Change::Listed(listed)) => filter.change(listed),
            (this, Change::Identities(moves)) => {
                let (removed, inserted) = moves.for_base(&base)?;
                match this {
                    Self::RankIndexed(filter) => filter.change(&removed, inserted),
                    Self::RankSet(filter) => filter.change(&removed, inserted),
                    Self::RankCounting(filter) => filter.change(&removed, inserted),
                    Self::RankMap(filter) => filter.change(&removed, inserted),
                    Self::BlockedRank(filter) => filter.change(&removed, inserted),
                    Self::DLeft(filter) => filter.change(&removed, inserted),
                    _ => Err("the delta is for another kind"),
                }
            }
            _ => Err("the delta is for another kind"),
        }
    }

    /// Takes over keys and planned keys from a label.
    pub(crate) fn set_keys(&mut self, label: Label) {
        let own: &mut Label = each!(self, filter => filter.label_mut());
        (own.keys, own.capacity) = (label.keys, label.capacity);
    }

    /// A filter of whatever kind from bytes, everything checked.
    pub fn decode(mut bytes: &[u8], limits: Limits) -> Result<Self, WireError> {
        Self::read(&mut bytes, limits)
    }

    /// A filter of whatever kind from any source of bytes, everything checked.
    pub fn read(source: &mut dyn Source, limits: Limits) -> Result<Self, WireError> {
        Self::read_behind(Frame::read(source, limits)?)
    }

    /// A filter of whatever kind behind a header that was read and looked at, everything checked.
    pub fn read_behind(frame: Frame<'_>) -> Result<Self, WireError> {
        Self::from_frame(frame, true)
    }

    /// A filter of whatever kind that answers from bytes kept elsewhere; only the header is checked.
    pub fn open(bytes: &SharedBytes) -> Result<Self, WireError> {
        Self::from_frame(Frame::share(bytes)?, false)
    }

    fn from_frame(frame: Frame<'_>, checked: bool) -> Result<Self, WireError> {
        /// The filter of one kind.
        fn one<F: Stored>(frame: Frame<'_>, checked: bool) -> Result<F, WireError> {
            if checked { frame.into_checked_filter() } else { frame.into_filter() }
        }
        match frame.header().kind {
            Kind::Bloom => one(frame, checked).map(Self::Bloom),
            Kind::Counting => one(frame, checked).map(Self::Counting),
            Kind::Blocked => one(frame, checked).map(Self::Blocked),
            Kind::RankIndexed => one(frame, checked).map(Self::RankIndexed),
            Kind::RankSet => one(frame, checked).map(Self::RankSet),
            Kind::RankCounting => one(frame, checked).map(Self::RankCounting),
            Kind::RankMap => one(frame, checked).map(Self::RankMap),
            Kind::BlockedRank => one(frame, checked).map(Self::BlockedRank),
            Kind::DLeft => one(frame, checked).map(Self::DLeft),
            Kind::Partitioned => one(frame, checked).map(Self::Partitioned),
            Kind::BalancedSingle => one(frame, checked).map(Self::BalancedSingle),
            Kind::BalancedSequential => one(frame, checked).map(Self::BalancedSequential),
            Kind::BalancedMht => one(frame, checked).map(Self::BalancedMht),
            Kind::BalancedPopcount => one(frame, checked).map(Self::BalancedPopcount),
            Kind::BalancedTwoChoice => one(frame, checked).map(Self::BalancedTwoChoice),
            Kind::Compressed => one(frame, checked).map(Self::Compressed),
        }
    }
}

impl Filter for AnyFilter {
    fn label(&self) -> Label {
        each!(self, filter => filter.label())
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        each!(self, filter => filter.contains_digest(digest))
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        each!(self, filter => filter.contains_many(digests, answers));
    }

    fn prefetch(&self, digest: Digest) {
        each!(self, filter => filter.prefetch(digest));
    }

    fn footprint(&self) -> u64 {
        each!(self, filter => filter.footprint())
    }

    fn rate(&self) -> f64 {
        each!(self, filter => filter.rate())
    }

    fn fill(&self) -> f64 {
        each!(self, filter => filter.fill())
    }

    fn overflow(&self) -> Option<u64> {
        each!(self, filter => filter.overflow())
    }

    fn is_crowded(&self) -> bool {
        each!(self, filter => filter.is_crowded())
    }

    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        each!(self, filter => filter.blocks_to_contain(digest))
    }
}
