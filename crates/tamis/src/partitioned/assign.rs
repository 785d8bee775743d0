//! The greedy choice of hash functions: the paper.
//!
//! Groups come one after the other. A group takes its functions in rounds. In each round it takes,
//! of all candidates that it has not taken yet, the one that sets the fewest new bits for the
//! group's keys (the first of several such), and sets its bits.
//!
//! Taken literally, every round would insert the group by every candidate, count the fill of the
//! whole array, and remove the group again. The same choices come from far less work:
//!
//! - only new bits are counted, and counting ends when there are as many as the best candidate so
//!   far has;
//! - from round to round the new bits of a candidate hardly change, so that a short list of those
//!   with the fewest at the beginning serves all rounds. Bits are only ever set, so the new bits
//!   that a candidate would still add after the last round are the fewest that it would have added
//!   in any round. After the last round this number is computed for every other candidate; one
//!   that might have won joins the list, and the group is done again.

use alloc::vec::Vec;

use crate::bits;

/// How many keys are counted between tests whether the candidate can still win. The branch cannot
/// be predicted, so it is not taken for every key.
const STRIDE: usize = 8;
/// Stamps, which find keys of a group that may share a bit: few enough for the first-level cache,
/// and enough that in large groups few keys share a stamp without sharing a bit.
const STAMPS: usize = 4096;
const STAMPS_A_KEY: usize = 64;
const MOST_STAMPS: usize = 1 << 20;
/// A candidate is on the short list if it has at most this many more new bits than the last
/// function to be taken.
const MARGIN: u32 = 2;

/// Chooses functions for groups; holds memory that is used again from one group to the next.
#[derive(Debug, Default)]
pub struct Assigner {
    /// The candidate that stamped each slot last; a power of two of them.
    stamps: Vec<u16>,
    stamp: u16,
    /// A lower bound on the new bits of every candidate.
    bounds: Vec<u32>,
    list: Vec<u32>,
    /// Bits that were set and may have to be cleared again.
    set: Vec<u64>,
}

impl Assigner {
    /// Sets the bits of a group's keys by `hashes` functions out of `candidates` candidates, which
    /// must be at least as many, and returns the numbers of the functions in the order of choice.
    /// `position` gives a bit of `words` for a key and a candidate.
    pub fn assign<K: Copy>(
        &mut self,
        words: &mut [u64],
        keys: &[K],
        candidates: u32,
        hashes: u32,
        position: impl Fn(K, u32) -> u64,
    ) -> Vec<u32> {
        if hashes == 0 {
            return Vec::new();
        }
        let wanted = keys.len().saturating_mul(STAMPS_A_KEY).clamp(STAMPS, MOST_STAMPS);
        if self.stamps.len() < wanted {
            self.stamps.resize(wanted.next_power_of_two(), 0);
        }
        let listed = self.look(words, keys, candidates, hashes, &position);
        loop {
            self.list.clear();
            self.list.extend((0..candidates).filter(|&j| self.bounds[j as usize] <= listed));
            let (chosen, most) = self.choose(words, keys, hashes, &position);
            let mut complete = true;
            for candidate in 0..candidates {
                if self.bounds[candidate as usize] > listed {
                    let least = self.bound(words, keys, |key| position(key, candidate), most + 1);
                    if least <= most {
                        self.bounds[candidate as usize] = 0;
                        complete = false;
                    }
                }
            }
            if complete {
                self.set.clear();
                return chosen;
            }
            self.put_back(words, 0);
        }
    }

    /// Computes the bounds of all candidates, and returns the bound up to which they are on the
    /// short list.
    fn look<K: Copy>(
        &mut self,
        words: &[u64],
        keys: &[K],
        candidates: u32,
        hashes: u32,
        position: &impl Fn(K, u32) -> u64,
    ) -> u32 {
        self.bounds.clear();
        // Functions of a large group share bits so often that the bounds of the first round say
        // little: all candidates are listed.
        let meetings = (keys.len() as u64).saturating_pow(2).saturating_mul(hashes.into());
        if meetings > 2 * 64 * words.len() as u64 || candidates <= 2 * hashes {
            self.bounds.resize(candidates as usize, 0);
            return 0;
        }
        // The lowest bounds so far, one for each function to be taken.
        let mut lowest = alloc::vec![u32::MAX - MARGIN - 1; hashes as usize];
        for candidate in 0..candidates {
            let last = lowest[hashes as usize - 1];
            let bound = self.bound(words, keys, |key| position(key, candidate), last + MARGIN + 1);
            self.bounds.push(bound);
            if bound < last {
                let place = lowest.partition_point(|&low| low <= bound);
                lowest.insert(place, bound);
                lowest.pop();
            }
        }
        lowest[hashes as usize - 1] + MARGIN
    }

    /// The rounds, with the listed candidates. Returns the functions taken, and the most new bits
    /// that one of them has set.
    fn choose<K: Copy>(
        &mut self,
        words: &mut [u64],
        keys: &[K],
        hashes: u32,
        position: &impl Fn(K, u32) -> u64,
    ) -> (Vec<u32>, u32) {
        let mut chosen = Vec::with_capacity(hashes as usize);
        let mut most = 0;
        for _ in 0..hashes {
            let (mut best, mut fewest) = (None, u32::MAX);
            for index in 0..self.list.len() {
                let candidate = self.list[index];
                let bound = self.bound(words, keys, |key| position(key, candidate), fewest);
                if bound >= fewest {
                    continue;
                }
                let before = self.set.len();
                let new = self.set(words, keys, |key| position(key, candidate));
                self.put_back(words, before);
                if new < fewest {
                    (best, fewest) = (Some(index), new);
                }
                if fewest == 0 {
                    break;
                }
            }
            let Some(best) = best else { break };
            let candidate = self.list.remove(best);
            self.set(words, keys, |key| position(key, candidate));
            chosen.push(candidate);
            most = most.max(fewest);
        }
        (chosen, most)
    }

    /// A lower bound on the new bits of a candidate, counted up to `enough`. It is too low where
    /// keys share a bit, or only a stamp.
    #[inline]
    fn bound<K: Copy>(
        &mut self,
        words: &[u64],
        keys: &[K],
        position: impl Fn(K) -> u64,
        enough: u32,
    ) -> u32 {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.stamps.fill(0);
            self.stamp = 1;
        }
        let (stamp, mask) = (self.stamp, self.stamps.len() - 1);
        let mut bound = 0;
        for keys in keys.chunks(STRIDE) {
            for &key in keys {
                let at = position(key);
                let new = !words[(at >> 6) as usize] >> (at & 63) & 1;
                let place = &mut self.stamps[at as usize & mask];
                bound += new as u32 & u32::from(*place != stamp);
                // Without a condition, because the compiler would make it a branch.
                *place ^= (*place ^ stamp) & (new as u16).wrapping_neg();
            }
            if bound >= enough {
                break;
            }
        }
        bound
    }

    /// Sets the bits of the keys; returns how many were new.
    fn set<K: Copy>(&mut self, words: &mut [u64], keys: &[K], position: impl Fn(K) -> u64) -> u32 {
        let before = self.set.len();
        self.set.extend(keys.iter().map(|&key| position(key)).filter(|&at| bits::set(words, at)));
        (self.set.len() - before) as u32
    }

    /// Clears the bits that were set after the first `kept`.
    fn put_back(&mut self, words: &mut [u64], kept: usize) {
        for at in self.set.drain(kept..) {
            words[(at >> 6) as usize] &= !(1 << (at & 63));
        }
    }
}
