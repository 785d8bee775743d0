//! `blocked` on a GPU.
#![allow(unsafe_code)] // Kernels work on addresses; see `Blocked::run`.

use tamis::bloom::BlockedParams;
use tamis::{Filter, HashId, Hasher, Invalid, Label, Stored};

use crate::machine::{Machine, Work};
use crate::{Error, Gpu, Keys, program};

/// A blocked Bloom filter in the memory of a GPU: the same bits as a [`tamis::BlockedBloom`].
pub struct Blocked<M: Machine = Gpu> {
    machine: M,
    params: BlockedParams,
    label: Label,
    words: M::Buffer,
    program: M::Program,
}

impl<M: Machine> core::fmt::Debug for Blocked<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Blocked").field("params", &self.params).finish_non_exhaustive()
    }
}

impl<M: Machine + Clone> Blocked<M> {
    /// An empty filter with these params.
    pub fn new(machine: &M, params: BlockedParams, hasher: Hasher) -> Result<Self, Error> {
        Self::with_label(machine, params, hasher)
    }

    /// The same, with what else a filter carries: the keys that it was planned for.
    pub fn with_label(
        machine: &M,
        params: BlockedParams,
        label: impl Into<Label>,
    ) -> Result<Self, Error> {
        let words = machine.zeroed(params.bits() / 64)?;
        Self::with_words(machine, params, label.into(), words)
    }

    /// The filter of the library, in the memory of the machine.
    pub fn from_cpu(machine: &M, filter: &tamis::BlockedBloom) -> Result<Self, Error> {
        let words: Vec<u64> = filter.blocks().flatten().copied().collect();
        Self::with_words(machine, filter.params(), filter.label(), machine.upload(&words)?)
    }

    fn with_words(
        machine: &M,
        params: BlockedParams,
        label: Label,
        words: M::Buffer,
    ) -> Result<Self, Error> {
        let source = program::of_blocked(params.block() / 64, params.hashes());
        let program = machine.compile(&source)?;
        Ok(Self { machine: machine.clone(), params, label, words, program })
    }

    /// The filter of the library with this content: the same content id and the same bytes.
    pub fn to_cpu(&self) -> Result<tamis::BlockedBloom, Error> {
        let words = self.words()?;
        let filter = tamis::BlockedBloom::new(self.params, self.label);
        let mut filter = filter.map_err(|_| Invalid("no memory"))?;
        filter.words_mut().unwrap_or_default().copy_from_slice(&words);
        Ok(filter)
    }

    /// The hash and the seed.
    pub fn hasher(&self) -> Hasher {
        self.label.hasher
    }

    /// Insertions.
    pub fn keys(&self) -> u64 {
        self.label.keys
    }

    /// Inserts keys.
    pub fn insert(&mut self, keys: &Keys<'_, M::Buffer>) -> Result<(), Error> {
        self.run("insert", keys, &[])?;
        self.label.keys = self.label.keys.saturating_add(keys.number());
        Ok(())
    }

    /// Whether each key is in, into memory of the machine: a byte for each key.
    pub fn contains_into(
        &self,
        keys: &Keys<'_, M::Buffer>,
        answers: &mut M::Buffer,
    ) -> Result<(), Error> {
        let words = keys.number().div_ceil(8);
        self.run("contains", keys, &[self.machine.given(answers, words)?, 0])
    }

    /// How many of the keys are in.
    pub fn contained(&self, keys: &Keys<'_, M::Buffer>) -> Result<u64, Error> {
        let counter = self.machine.zeroed(1)?;
        self.run("contains", keys, &[0, self.machine.address(&counter)])?;
        Ok(self.machine.read(&counter, 1)?[0])
    }

    /// The words of all blocks.
    pub fn words(&self) -> Result<Vec<u64>, Error> {
        self.machine.read(&self.words, self.params.bits() / 64)
    }

    fn run(
        &self,
        kernel: &'static str,
        keys: &Keys<'_, M::Buffer>,
        more: &[u64],
    ) -> Result<(), Error> {
        let (address, form, seed, number) = match *keys {
            Keys::Digests(buffer, number) => (self.machine.given(buffer, number)?, 0, 0, number),
            Keys::Integers(buffer, number) => {
                let hasher = self.label.hasher;
                if hasher.id() != HashId::Xxh3 {
                    return Err(Error::Hash);
                }
                (self.machine.given(buffer, number)?, 1, hasher.seed() as u64, number)
            }
            Keys::MadeUp(first, number) => (0, 2, first, number),
        };
        let words = self.machine.address(&self.words);
        let arguments =
            [&[words, self.params.blocks(), address, form, seed, number], more].concat();
        let work = Work::Items { number, each: 1 };
        // SAFETY: the arguments are those of these kernels, and the buffers are large enough.
        unsafe { self.machine.launch(&self.program, kernel, work, [0; 2], &arguments) }
    }
}
