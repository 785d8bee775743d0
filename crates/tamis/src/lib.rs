//! Set membership in the fewest bits, the fewest memory accesses and the fewest bytes on the wire.
//!
//! A filter answers "is this key in the set?". No means no. Yes means yes, or, with a small probability that
//! you choose (the *rate*), no: in a few bits a key, whatever the length of the keys.
//!
//! ```
//! use tamis::Bloom;
//!
//! let mut seen = Bloom::with_rate(1_000_000, 0.01)?; // a million keys, 1% false positives: 1.2 MB
//! seen.insert("https://example.org/");
//! assert!(seen.contains("https://example.org/"));
//!
//! let copy = Bloom::from_bytes(&seen.to_bytes())?; // the same bytes on every machine
//! assert!(copy.contains("https://example.org/"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which filter?
//!
//! | you need | take |
//! |---|---|
//! | the least memory of the Bloom kinds, insert only | [`Bloom`] |
//! | the quickest answer: one cache line a question | [`BlockedBloom`] |
//! | few memory accesses at rates below 0.01% | [`BalancedPopcount`], [`BalancedTwoChoice`] |
//! | to remove keys or count them, quickly: one cache line a question | [`BlockedRank`] |
//! | the same in the least memory at 1%, and below 0.001% | [`RankIndexed`] |
//! | a small value for every key | [`RankMap`] |
//! | to remove keys and count them in less than half of a counting filter, with d-left buckets | [`DLeft`] |
//! | to remove keys with quick inserts, memory no matter | [`CountingBloom`] |
//! | the least memory of all, built once | [`CompressedBloom`]; above 0.4% [`PartitionedBloom`], built for seconds |
//! | an exact map that says no without reading its items | [`FastTable`] |
//! | several threads that insert and ask at once | [`AtomicBloom`], [`AtomicBlockedBloom`], or any kind in a `Sharded` |
//! | to send a filter, and then what changes | [`Stored::pack`], [`Delta`] |
//! | to decide at run time | [`AnyFilter`], and [`choose`] to choose for you |
//!
//! # Themes
//!
//! - **Keys are bytes** ([`Key`]); a [`Hasher`] turns them into [`Digest`]s, and filters see only those.
//! - **Small traits**: [`Filter`], [`Insert`], [`Remove`], [`Count`], [`Stored`], with their laws at
//!   [`Filter`]; common methods are on the types as well.
//! - **Sizes come from goals**: a [`Goal`] (keys and a rate, or memory) becomes params, and [`Prediction`] says what
//!   they will do: rate, memory, wire size, memory accesses. A goal may also say what the filter must be able to do
//!   ([`Operation`]), what it may take ([`AtMost`]) and what matters most ([`Minimise`]); [`choose`] then lists the kinds that meet it, best
//!   first, each with its [`Plan`], and [`Traffic`] says how long snapshots and deltas are.
//! - **Batches** (`insert_many`, `contains_many`, `remove_many`) fetch memory ahead; **threads** share a filter through `Sharded` or the
//!   [atomic filters](AtomicBloom), and build one together with `AnyParams::build_in_parallel`.
//! - **One wire format** ([`wire`]): checked from the first byte to the last, or opened in place.
//!
//! # Limits
//!
//! A digest has 64 bits, so that no rate goes below n / 2^64. Filters never shrink the answer "yes" to a
//! proof: keep the keys elsewhere if you need one. The library uses no clock, no randomness, no environment; it
//! is `no_std` with `alloc` when the feature `std` is off; what uses threads is then left out.
//!
//! # Features
//!
//! - `std` (default): filters from readers, sharded filters, building in parallel.
//! - `mmap`: filters opened in place from a mapped file.
//! - `serde`: filters and deltas as the bytes of the wire format, checked when they are read.
//! - `huge-pages`: large filters ask the system for huge pages (Linux); ignored where refused.

#![no_std]
#![warn(rustdoc::broken_intra_doc_links)]
// What only `internals` shows is public to it.
#![cfg_attr(not(feature = "internals"), allow(unreachable_pub))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod address;
#[macro_use]
mod face;
#[macro_use]
mod kinds;

mod any;
pub mod balanced;
mod bits;
mod block;
pub mod blocked_rank;
pub mod bloom;
mod builder;
mod change;
mod coder;
pub mod compressed;
pub mod delta;
mod digest;
pub mod dleft;
mod entry;
pub mod fast_table;
mod filter;
mod identities;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod key;
mod math;
pub mod partitioned;
mod permutation;
mod plan;
pub mod rank_indexed;
#[cfg(feature = "serde")]
mod serde;
#[cfg(feature = "std")]
pub mod sharded;
mod spec;
mod stored;
mod traffic;
pub mod wire;

pub use any::{AnyFilter, AnyParams};
pub use balanced::{
    BalancedMht, BalancedPopcount, BalancedSequential, BalancedSingle, BalancedTwoChoice,
};
pub use bits::{OutOfMemory, SharedBytes};
pub use blocked_rank::BlockedRank;
#[cfg(target_has_atomic = "64")]
pub use bloom::{AtomicBlockedBloom, AtomicBloom};
pub use bloom::{BlockedBloom, Bloom, CountingBloom};
pub use builder::Builder;
pub use coder::{Effort, Packing};
pub use compressed::CompressedBloom;
pub use delta::{Delta, DeltaError};
pub use digest::{Digest, HashId, Hasher};
pub use dleft::DLeft;
pub use entry::Entry;
pub use fast_table::FastTable;
pub use filter::{Count, Filter, Insert, Remove};
pub use identities::Identities;
pub use key::Key;
pub use partitioned::PartitionedBloom;
pub use plan::{Plan, choose};
pub use rank_indexed::{RankCounting, RankIndexed, RankMap, RankSet};
#[cfg(feature = "std")]
pub use sharded::Sharded;
pub use spec::{
    Absent, AtMost, BuildError, Bytes, Full, Goal, Invalid, InvalidParam, Kind, Label, Limited,
    Limits, MergeError, Minimise, Mismatch, Operation, Params, PlanError, Prediction, ResizeError,
    Size, Traffic, WireError,
};
pub use stored::Stored;
pub use wire::{ContentId, Encoded};

/// The README's Rust example, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
