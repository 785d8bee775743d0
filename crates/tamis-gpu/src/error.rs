//! What can go wrong on a GPU.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

/// Why something was not done. The filter is as it was; or, where that could not be, it refuses
/// everything from then on with [`HalfDone`](Self::HalfDone).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver was not found.
    #[error("no GPU: the driver of CUDA (libcuda) was not found on this machine")]
    NoDriver,
    /// The compiler for kernels was not found.
    #[error(
        "libnvrtc, the compiler for kernels, was not found: install CUDA's, or name its folder in \
         LD_LIBRARY_PATH"
    )]
    NoCompiler,
    /// There is no device of this number.
    #[error("no GPU number {0}")]
    NoDevice(usize),
    /// The device has not this much memory left.
    #[error("the GPU has no {bytes} bytes of memory left")]
    OutOfMemory {
        /// How many were asked for.
        bytes: u64,
    },
    /// The kernels could not be compiled.
    #[error("the kernels could not be compiled: {0}")]
    Compile(String),
    /// Any other error of the driver. What the device holds is lost.
    #[error("the driver of the GPU says: {0}")]
    Driver(#[from] DriverError),
    /// Memory of others that is not memory of this GPU.
    #[error("the array at {address:#x} is not in the memory of this GPU: {why}")]
    NotOurs {
        /// Where it begins.
        address: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An operation ended in the middle.
    #[error(
        "an operation on this filter ended in the middle, perhaps for want of memory, and keys \
         may be missing: build or load it again"
    )]
    HalfDone,
    /// A buffer is too short.
    #[error("a buffer has {given} words, and {words} are needed")]
    Short {
        /// The words that it has.
        given: u64,
        /// The words that are needed.
        words: u64,
    },
    /// An offset is below the one before it, or behind the last byte.
    #[error("the offsets of the keys do not rise, or lead behind the last byte")]
    Offsets,
    /// Integers are hashed on the device with XXH3 only.
    #[error("the filter has another hash than XXH3: give digests, not integers")]
    Hash,
    /// Two filters cannot be merged.
    #[error("filters with other params, hash or seed cannot be merged on a GPU")]
    Mismatch,
    /// The bytes of the filter are not those of one.
    #[error("{0}")]
    Invalid(#[from] tamis::Invalid),
    /// The filter could not be made larger.
    #[error("the filter is full, and cannot grow: {0}")]
    Full(#[from] tamis::ResizeError),
}

impl Error {
    /// As what an allocation of `bytes` bytes failed.
    pub(crate) fn of_allocation(error: DriverError, bytes: u64) -> Self {
        match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Self::OutOfMemory { bytes },
            _ => Self::Driver(error),
        }
    }
}
