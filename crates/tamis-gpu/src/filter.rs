//! `blocked-rank` on a GPU.

use std::collections::BTreeMap;

use tamis::blocked_rank::BlockedRankParams;
use tamis::internals::blocked_rank as inside;
use tamis::{Entry, Filter, HashId, Hasher, Label};

use crate::Error;
use crate::cuda::{Buffer, Gpu};
use crate::levels::{Batch, Form, Levels};
use crate::machine::Machine;

/// Keys in the memory of a machine. `number` of them are meant, from the start of the buffer on.
#[derive(Debug)]
pub enum Keys<'a, B = Buffer> {
    /// Digests, as [`Hasher::digest`] makes them.
    Digests(&'a B, u64),
    /// Integers of 64 bits, which are hashed as the library hashes a `u64`. The hash must be XXH3.
    Integers(&'a B, u64),
    /// Integers that nobody has stored: the one with this number is `mix(first + number)`. For
    /// benchmarks.
    MadeUp(u64, u64),
}

impl<B> Keys<'_, B> {
    /// How many keys there are.
    pub fn number(&self) -> u64 {
        let (Self::Digests(_, number) | Self::Integers(_, number) | Self::MadeUp(_, number)) =
            *self;
        number
    }
}

/// A blocked rank-indexed filter in the memory of a GPU: the same content, bytes and answers as a
/// [`tamis::BlockedRank`] with the same params and keys.
///
/// All operations take batches. Nothing is ever lost: what finds no room in its block is behind
/// it, as in the library.
///
/// ```no_run
/// use tamis::{Goal, Hasher, Params, Stored};
/// use tamis_gpu::{BlockedRank, Gpu, Keys};
///
/// let gpu = Gpu::new(0)?;
/// let params = tamis::BlockedRank::least(&Goal::rate(1_000_000, 0.01))?;
/// let mut filter = BlockedRank::new(&gpu, params, Hasher::default())?;
/// let keys = gpu.upload(&(0..1_000_000).collect::<Vec<u64>>())?;
/// filter.insert(&Keys::Integers(&keys, 1_000_000))?;
/// assert_eq!(filter.contains(&Keys::Integers(&keys, 1_000_000))?, vec![true; 1_000_000]);
/// let same: tamis::BlockedRank = filter.to_cpu()?;
/// assert!(same.contains(&7_u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BlockedRank<M: Machine = Gpu> {
    machine: M,
    params: BlockedRankParams,
    label: Label,
    levels: Levels<M>,
}

impl<M: Machine> core::fmt::Debug for BlockedRank<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BlockedRank").field("params", &self.params).finish_non_exhaustive()
    }
}

impl<M: Machine + Clone> BlockedRank<M> {
    /// An empty filter with these params.
    pub fn new(machine: &M, params: BlockedRankParams, hasher: Hasher) -> Result<Self, Error> {
        Self::with_label(machine, params, Label::planned(hasher, params.capacity()))
    }

    /// The same, with what else a filter carries: the keys that it was planned for.
    pub fn with_label(
        machine: &M,
        params: BlockedRankParams,
        label: impl Into<Label>,
    ) -> Result<Self, Error> {
        let label = label.into();
        let levels = Levels::empty(machine, &inside::levels(&params))?;
        Ok(Self { machine: machine.clone(), params, label, levels })
    }

    /// The filter of the library, in the memory of the machine. It is checked before, as a file
    /// is.
    pub fn from_cpu(machine: &M, filter: &tamis::BlockedRank) -> Result<Self, Error> {
        tamis::Stored::validate(filter)?;
        let (words, list) = inside::take_apart(filter);
        let list: BTreeMap<u64, u64> =
            list.into_iter().map(|entry| (entry.identity, entry.count)).collect();
        let params = tamis::Stored::params(filter);
        let levels = Levels::new(machine, &inside::levels(&params), &words, list)?;
        Ok(Self { machine: machine.clone(), params, label: filter.label(), levels })
    }

    /// The filter of the library with this content: the same content id and the same bytes.
    pub fn to_cpu(&self) -> Result<tamis::BlockedRank, Error> {
        let (words, list) = (self.levels.read()?, self.levels.list());
        let entry = |(&identity, &count): (&u64, &u64)| Entry { identity, value: 0, count };
        let list = list.iter().map(entry).collect();
        Ok(inside::put_together(self.params, self.label, &words, list)?)
    }

    /// The params.
    pub fn params(&self) -> &BlockedRankParams {
        &self.params
    }

    /// The hash and the seed.
    pub fn hasher(&self) -> Hasher {
        self.label.hasher
    }

    /// Insertions less removals.
    pub fn keys(&self) -> u64 {
        self.label.keys
    }

    /// Bytes of memory of the machine.
    pub fn bytes(&self) -> u64 {
        self.levels.bytes()
    }

    /// Inserts keys. If too many find no room in the blocks, the filter grows to twice the blocks,
    /// which the library does: identities, and so answers, stay. If the machine has no memory for
    /// that, it stays as large as it is, and becomes slower.
    pub fn insert(&mut self, keys: &Keys<'_, M::Buffer>) -> Result<(), Error> {
        let batch = self.batch(keys)?;
        self.levels.insert(batch)?;
        self.label.keys = self.label.keys.saturating_add(batch.number);
        self.grow_if_crowded()
    }

    /// Removes one occurrence of each key, and returns how many were removed. Those that are not
    /// in are passed over.
    pub fn remove(&mut self, keys: &Keys<'_, M::Buffer>) -> Result<u64, Error> {
        let batch = self.batch(keys)?;
        let removed = self.levels.remove(batch)?;
        self.label.keys = self.label.keys.saturating_sub(removed);
        Ok(removed)
    }

    /// Whether each key is in. `true` means probably present; an absent key passes with the
    /// filter's rate.
    pub fn contains(&self, keys: &Keys<'_, M::Buffer>) -> Result<Vec<bool>, Error> {
        let words = keys.number().div_ceil(8);
        let mut answers = self.machine.allocate(words)?;
        self.contains_into(keys, &mut answers)?;
        let answers = self.machine.read(&answers, words)?;
        let bytes = answers.iter().flat_map(|word| word.to_le_bytes());
        Ok(bytes.take(keys.number() as usize).map(|byte| byte != 0).collect())
    }

    /// The same, into memory of the machine: a byte for each key, which must have room for them.
    pub fn contains_into(
        &self,
        keys: &Keys<'_, M::Buffer>,
        answers: &mut M::Buffer,
    ) -> Result<(), Error> {
        let batch = self.batch(keys)?;
        let answers = self.machine.given(answers, batch.number.div_ceil(8))?;
        self.levels.contains(&self.machine, batch, answers)?;
        Ok(())
    }

    /// How many of the keys are in.
    pub fn contained(&self, keys: &Keys<'_, M::Buffer>) -> Result<u64, Error> {
        self.levels.contains(&self.machine, self.batch(keys)?, 0)
    }

    /// Reads `number` lines of the filter at random, for benchmarks: no question can take less.
    pub fn read_lines(&self, number: u64) -> Result<(), Error> {
        self.levels.read_lines(number)
    }

    /// How often each key is in: an upper bound, which other keys of the same identity may raise.
    pub fn count(&self, keys: &Keys<'_, M::Buffer>) -> Result<Vec<u64>, Error> {
        let mut counts = self.machine.allocate(keys.number())?;
        self.count_into(keys, &mut counts)?;
        self.machine.read(&counts, keys.number())
    }

    /// The same, into memory of the machine: a word for each key, which must have room for them.
    pub fn count_into(
        &self,
        keys: &Keys<'_, M::Buffer>,
        counts: &mut M::Buffer,
    ) -> Result<(), Error> {
        let batch = self.batch(keys)?;
        self.levels.count(batch, self.machine.given(counts, batch.number)?)
    }

    /// Adds all keys of a filter with the same params, hash and seed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if self.params != other.params || self.label.hasher != other.label.hasher {
            return Err(Error::Mismatch);
        }
        let (identities, number) = other.levels.identities()?;
        let address = self.machine.address(&identities);
        self.levels.insert(Batch { address, form: Form::Identities, seed: 0, number })?;
        self.label.keys = self.label.keys.saturating_add(other.label.keys);
        self.grow_if_crowded()
    }

    /// Digests of keys of any length: key i is the bytes `offsets[i]` to `offsets[i + 1]` of
    /// `bytes`, whose eight in a word are in little-endian order.
    pub fn digests(
        &self,
        bytes: &M::Buffer,
        offsets: &M::Buffer,
        number: u64,
    ) -> Result<M::Buffer, Error> {
        let offsets = self.machine.given(offsets, number.saturating_add(1))?;
        let length = 8 * self.machine.words(bytes);
        let bytes = [self.machine.address(bytes), length];
        self.levels.digests(bytes, offsets, number, self.seed()?)
    }

    fn seed(&self) -> Result<u64, Error> {
        let hasher = self.label.hasher;
        if hasher.id() == HashId::Xxh3 { Ok(hasher.seed() as u64) } else { Err(Error::Hash) }
    }

    fn batch(&self, keys: &Keys<'_, M::Buffer>) -> Result<Batch, Error> {
        Ok(match *keys {
            Keys::Digests(buffer, number) => {
                let address = self.machine.given(buffer, number)?;
                Batch { address, form: Form::Digests, seed: 0, number }
            }
            Keys::Integers(buffer, number) => {
                let address = self.machine.given(buffer, number)?;
                Batch { address, form: Form::Integers, seed: self.seed()?, number }
            }
            Keys::MadeUp(first, number) => {
                Batch { address: 0, form: Form::MadeUp, seed: first, number }
            }
        })
    }

    fn grow_if_crowded(&mut self) -> Result<(), Error> {
        loop {
            let (listed, room) = inside::grows_above(&self.params);
            if self.levels.listed() <= listed || self.label.keys < room {
                return Ok(());
            }
            let mut filter = self.to_cpu()?;
            tamis::Stored::grow(&mut filter)?;
            match Self::from_cpu(&self.machine, &filter) {
                Ok(larger) => *self = larger,
                // The keys are in.
                Err(Error::OutOfMemory { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Keys that are copied at once.
const COPIED: usize = 1 << 23;
/// Copies and questions that are under way at once.
const UNDER_WAY: usize = 3;

impl BlockedRank<Gpu> {
    /// Whether each of some integers in the memory of the host is in. Copies and questions go on
    /// at once. Copies are quick if both slices are [`Pinned`](crate::Pinned).
    ///
    /// # Panics
    ///
    /// If there are not as many answers as keys.
    pub fn contains_on_host(&self, keys: &[u64], answers: &mut [bool]) -> Result<(), Error> {
        assert_eq!(keys.len(), answers.len(), "an answer for each key");
        let seed = self.seed()?;
        let pieces = keys.chunks(COPIED).zip(answers.chunks_mut(COPIED));
        let pieces = std::sync::Mutex::new(pieces);
        let next = || pieces.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
        std::thread::scope(|scope| {
            let work = || -> Result<(), Error> {
                let gpu = self.machine.beside()?;
                let mut memory = gpu.allocate(COPIED.min(keys.len()) as u64)?;
                let answered = gpu.allocate(COPIED.min(keys.len()).div_ceil(8) as u64)?;
                while let Some((keys, answers)) = next() {
                    gpu.write(&mut memory, keys)?;
                    let (address, number) = (gpu.address(&memory), keys.len() as u64);
                    let batch = Batch { address, form: Form::Integers, seed, number };
                    self.levels.contains(&gpu, batch, gpu.address(&answered))?;
                    gpu.read_answers(&answered, answers)?;
                }
                Ok(())
            };
            let threads: Vec<_> = (0..UNDER_WAY).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
    }
}
