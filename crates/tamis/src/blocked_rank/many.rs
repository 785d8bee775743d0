//! Many digests at once: loops over blocks, with lines fetched ahead, that return only at a block
//! that refuses.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use super::backend::Backend;
use super::block::{self, Block, Inserted, Removed};
use super::place::{Cut, Place};
use crate::bits::{AHEAD, prefetch};
use crate::digest::Digest;

/// Starts fetching the lines of digests.
#[inline(always)]
pub(super) fn fetch(blocks: &[Block], cut: &Cut, digests: &[Digest]) {
    for &digest in digests {
        prefetch(blocks.as_flattened(), cut.block_of(digest) * 8);
    }
}

/// Answers for digests from number `from` on, up to the first whose location is in the back table;
/// returns its number and its place. There must be as many answers as digests. Lines are fetched
/// ahead, except the first.
#[inline(always)]
pub(super) fn find_many<B: Backend>(
    blocks: &[Block],
    cut: &Cut,
    (digests, answers): (&[Digest], &mut [bool]),
    from: usize,
) -> Option<(usize, Place)> {
    let answers = &mut answers[..digests.len()];
    for number in from..digests.len() {
        if let Some(&next) = digests.get(number + AHEAD) {
            prefetch(blocks.as_flattened(), cut.block_of(next) * 8);
        }
        let place = cut.place(digests[number]);
        let block = &blocks[place.block as usize];
        match block::find::<B>(block, &cut.shape, place.location, place.print) {
            Some(here) => answers[number] = here,
            None => return Some((number, place)),
        }
    }
    None
}

/// Inserts digests from number `from` on, up to the first that finds no room; returns its number,
/// its place, and why. Lines are fetched ahead, except the first.
#[inline(always)]
pub(super) fn insert_many<B: Backend>(
    blocks: &mut [Block],
    cut: &Cut,
    digests: &[Digest],
    from: usize,
) -> Option<(usize, Place, Inserted)> {
    for number in from..digests.len() {
        if let Some(&next) = digests.get(number + AHEAD) {
            prefetch(blocks.as_flattened(), cut.block_of(next) * 8);
        }
        let place = cut.place(digests[number]);
        let block = &mut blocks[place.block as usize];
        let inserted = block::insert::<B>(block, &cut.shape, place.location, place.print);
        if !matches!(inserted, Inserted::Here(_)) {
            return Some((number, place, inserted));
        }
    }
    None
}

/// Removes digests from number `from` on, up to the first after which something is left to do;
/// returns its number, its place, and the result. Lines are fetched ahead, except the first.
#[inline(always)]
pub(super) fn remove_many<B: Backend>(
    blocks: &mut [Block],
    cut: &Cut,
    digests: &[Digest],
    from: usize,
) -> Option<(usize, Place, Removed)> {
    for number in from..digests.len() {
        if let Some(&next) = digests.get(number + AHEAD) {
            prefetch(blocks.as_flattened(), cut.block_of(next) * 8);
        }
        let place = cut.place(digests[number]);
        let block = &mut blocks[place.block as usize];
        let removed = block::remove::<B>(block, &cut.shape, place.location, place.print);
        if removed != (Removed::Here { spilled: false }) {
            return Some((number, place, removed));
        }
    }
    None
}
