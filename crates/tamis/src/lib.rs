//! Filters for set membership, chosen and sized for memory, memory accesses or bytes on the wire.
//!
//! A filter answers the question "is this key in the set?". It takes a few bits for each key,
//! however long the keys are. The answer no is always right, as long as only keys that are in
//! are removed. The answer yes may be wrong: an absent key is answered yes with a small
//! probability that you choose, the *rate*.
//!
//! ```
//! use tamis::Bloom;
//!
//! // A million keys, 1% false positives: 1.2 MB.
//! let mut seen = Bloom::with_rate(1_000_000, 0.01)?;
//! seen.insert("https://example.org/");
//! assert!(seen.contains("https://example.org/"));
//!
//! // The bytes are the same on every machine.
//! let copy = Bloom::from_bytes(&seen.to_bytes())?;
//! assert!(copy.contains("https://example.org/"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which filter?
//!
//! The command line and the README call a filter by the name of its kind.
//!
//! | you need | take | kind |
//! |---|---|---|
//! | to insert only, in half the time of `blocked-rank` | [`Bloom`] | `bloom` |
//! | the quickest answers, insert only: one cache line per lookup | [`BlockedBloom`] | `blocked` |
//! | few memory accesses at rates below 0.01%, insert only | [`BalancedPopcount`], [`BalancedTwoChoice`] | `balanced-popcount`, `balanced-two-choice` |
//! | to remove keys or count them, quickly: about one cache line per lookup | [`BlockedRank`] | `blocked-rank` |
//! | the same in the least memory, with more time: blocks of 2 KiB | [`BlockedRank`] with the param `block` fixed to 16384 | `blocked-rank` |
//! | to remove keys or count them in packed buckets, as the paper on rank-indexed hashing does | [`RankIndexed`] | `rank-indexed` |
//! | to count keys that come often | [`RankCounting`] | `rank-counting` |
//! | a small value for every key | [`BlockedMap`] | `blocked-map` |
//! | the same in packed buckets | [`RankMap`] | `rank-map` |
//! | removal and counts, for keys that come up to four times | [`DLeft`] | `dleft` |
//! | the textbook counting filter, for comparison: four times the memory of `blocked-rank` at 1%; its operations take longer | [`CountingBloom`] | `counting` |
//! | the least memory of all from 2,000 keys on, built once from all keys | [`Ribbon`] | `ribbon` |
//! | the same for 500 to 1,000 keys | at 0.1% and below [`CompressedBloom`]; from 0.3% to 5% [`PartitionedBloom`] | `compressed`, `partitioned` |
//! | keys that expire some time after they were last seen | [`Aging`] | |
//! | an exact map that answers no without reading its items | [`FastTable`] | |
//! | several threads that insert and ask at once | [`AtomicBloom`], [`AtomicBlockedBloom`], or any kind in a `Sharded` | |
//! | to send a filter, and later only what has changed | [`Stored::pack`], [`Delta`] | |
//! | to choose the kind at run time | [`AnyFilter`]; [`choose`] chooses for you | |
//!
//! # How it fits together
//!
//! - **Keys are bytes.** Every [`Key`] has canonical bytes. A [`Hasher`] turns them into a
//!   [`Digest`], and filters see nothing else.
//! - **Traits are small.** They are [`Filter`], [`Insert`], [`Remove`], [`Count`] and [`Stored`];
//!   [`Filter`] lists the laws that all of them keep. Common methods are on the types as well, so
//!   that simple programs import no trait.
//! - **Sizes come from goals.** A [`Goal`] says how many keys there will be, and a rate or an
//!   amount of memory. It becomes the *params* of a filter, the integers that fix its layout, and
//!   a [`Prediction`] says what they will do: rate, memory, wire size, memory accesses.
//! - **A goal can choose the kind.** It may also say what the filter must be able to do
//!   ([`Operation`]), what it may take ([`AtMost`]) and what matters most ([`Minimise`]).
//!   [`choose`] lists the kinds that meet it, best first, each with its [`Plan`]; [`Traffic`]
//!   predicts the lengths of snapshots and deltas.
//! - **Batches fetch memory ahead.** `insert_many`, `contains_many` and `remove_many` are quicker
//!   for kinds that read one cache line, and for filters that do not fit into the cache.
//! - **Threads can share a filter.** All filters are `Send` and `Sync`. Asking takes `&self`, so
//!   several threads can ask at once; inserting and removing take `&mut self`. Through `Sharded`
//!   or the [atomic filters](AtomicBloom) inserting takes `&self` too. Threads can build a filter
//!   together with `AnyParams::build_in_parallel`.
//! - **There is one wire format** ([`wire`]). Bytes that are read are checked from the first to
//!   the last; of bytes that are [opened in place](Stored::open) only the header is checked.
//!
//! # Limits
//!
//! A digest has 64 bits, so no rate is below n / 2^64 for n keys. A yes is never a proof: keep
//! the keys elsewhere if you need one.
//!
//! The default hash function is XXH3 with seed 0. Anyone can search for keys that collide under
//! it. If others choose your keys, hash with SipHash and a secret seed:
//!
//! ```
//! use tamis::{Bloom, Hasher};
//! let secret = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef; // yours: 128 random bits
//! let mut seen = Bloom::builder(1_000_000).rate(0.01).hasher(Hasher::sip13(secret)).build()?;
//! seen.insert("https://example.org/");
//! assert!(seen.contains("https://example.org/"));
//! # Ok::<(), tamis::PlanError>(())
//! ```
//!
//! The seed is part of the filter's bytes: keep them secret too.
//!
//! The library uses no clock, no randomness and no environment. Without the feature `std` it is
//! `no_std` with `alloc`, and what needs threads is left out.
//!
//! # Features
//!
//! - `std` (default): filters from readers, sharded filters, building in parallel.
//! - `mmap`: filters opened in place from a mapped file.
//! - `serde`: filters and deltas as the bytes of the wire format, checked when they are read.
//! - `huge-pages`: large filters ask the system for huge pages (Linux). It does no harm where the
//!   system refuses.

#![no_std]
#![warn(rustdoc::broken_intra_doc_links)]
// Items that only the feature `internals` shows are `pub`, and nothing reaches them without it.
#![cfg_attr(not(feature = "internals"), allow(unreachable_pub))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod address;
mod aging;
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
mod delta;
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
pub mod ribbon;
#[cfg(feature = "serde")]
mod serde;
#[cfg(feature = "std")]
pub mod sharded;
mod spec;
mod stored;
mod threads;
mod traffic;
pub mod wire;

pub use aging::Aging;
pub use any::{AnyFilter, AnyParams};
pub use balanced::{
    BalancedMht, BalancedPopcount, BalancedSequential, BalancedSingle, BalancedTwoChoice,
};
pub use bits::{OutOfMemory, SharedBytes};
pub use blocked_rank::{BlockedMap, BlockedRank};
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
pub use ribbon::Ribbon;
#[cfg(feature = "std")]
pub use sharded::Sharded;
pub use spec::{
    Absent, AtMost, BuildError, Bytes, Full, Goal, Invalid, InvalidParam, Kind, Label, Limited,
    Limits, MergeError, Minimise, Mismatch, Operation, Params, PlanError, Prediction, ResizeError,
    Size, Traffic, UpdateError, WireError,
};
pub use stored::Stored;
pub use wire::{ContentId, Encoded};

/// The README's Rust example, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
