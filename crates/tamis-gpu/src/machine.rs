//! What a filter needs of the machine that runs its kernels: a GPU, or in tests the processor.

#![allow(unsafe_code)] // Kernels work on addresses: to start one is unsafe.

use crate::Error;

/// How often a kernel runs.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// For each item; a thread takes `each` of them.
    Items {
        /// How many there are.
        number: u64,
        /// How many a thread takes.
        each: u64,
    },
    /// For each group, by a block of threads.
    Groups(u64),
}

/// A machine that runs kernels. All of its memory is words of 64 bits.
pub trait Machine {
    /// Memory of the machine.
    type Buffer;
    /// Kernels that were compiled.
    type Program;

    /// Compiles kernels.
    fn compile(&self, source: &str) -> Result<Self::Program, Error>;

    /// Memory for `words` words, with anything in it.
    fn allocate(&self, words: u64) -> Result<Self::Buffer, Error>;

    /// Makes all words 0.
    fn clear(&self, buffer: &mut Self::Buffer) -> Result<(), Error>;

    /// Writes words to the start of a buffer.
    fn write(&self, buffer: &mut Self::Buffer, words: &[u64]) -> Result<(), Error>;

    /// The first `words` words of a buffer.
    fn read(&self, buffer: &Self::Buffer, words: u64) -> Result<Vec<u64>, Error>;

    /// Copies the first `words` words of a buffer.
    fn copy(&self, from: &Self::Buffer, to: &mut Self::Buffer, words: u64) -> Result<(), Error>;

    /// How many words a buffer has.
    fn words(&self, buffer: &Self::Buffer) -> u64;

    /// Where the buffer is, for a kernel.
    fn address(&self, buffer: &Self::Buffer) -> u64;

    /// Starts a kernel, after all that was started before. `shared` is how many words of shared
    /// memory a block of threads has, and how many more for each of its threads.
    ///
    /// # Safety
    ///
    /// The arguments must be those that the kernel takes, and what they point to must be large
    /// enough and live until the kernel has ended.
    unsafe fn launch(
        &self,
        program: &Self::Program,
        kernel: &str,
        work: Work,
        shared: [u64; 2],
        arguments: &[u64],
    ) -> Result<(), Error>;

    /// Where a buffer is that a caller gave, if it has at least `words` words.
    fn given(&self, buffer: &Self::Buffer, words: u64) -> Result<u64, Error> {
        let given = self.words(buffer);
        if given < words { Err(Error::Short { given, words }) } else { Ok(self.address(buffer)) }
    }

    /// A buffer of `words` words, all 0.
    fn zeroed(&self, words: u64) -> Result<Self::Buffer, Error> {
        let mut buffer = self.allocate(words)?;
        self.clear(&mut buffer)?;
        Ok(buffer)
    }

    /// A buffer with these words.
    fn upload(&self, words: &[u64]) -> Result<Self::Buffer, Error> {
        let mut buffer = self.allocate(words.len() as u64)?;
        self.write(&mut buffer, words)?;
        Ok(buffer)
    }
}
