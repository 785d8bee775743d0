//! Filters of `tamis` on a GPU, with the same bytes.
//!
//! For keys that already live in the memory of a GPU, and are many: a batch is inserted, asked for
//! or removed at billions of keys per second. What the GPU holds is at all times what the library
//! would write into a file, so that filters go back and forth by a copy
//! ([`BlockedRank::from_cpu`], [`BlockedRank::to_cpu`]), with the same content id.
//!
//! Nothing of CUDA is needed to build this crate. The driver (libcuda) and the compiler for
//! kernels (libnvrtc) are found at run time; without them [`Gpu::new`] says what is missing.

mod blocked;
mod cuda;
mod error;
mod filter;
mod levels;
mod machine;
mod program;
#[cfg(test)]
mod tests;

pub use self::blocked::Blocked;
pub use self::cuda::{Borrowed, Buffer, Gpu, Pinned, Program};
pub use self::error::Error;
pub use self::filter::{BlockedRank, Keys};
