//! What the tests of every filter share: the law suite, random histories against an exact
//! multiset, attacks on the decoder, golden files, printed numbers. Used from `tests/`, never from
//! the library.
//!
//! Test binaries that use it install the counting allocator:
//!
//! ```
//! tamis_testkit::install_counting_allocator!();
//! ```

pub mod ages;
pub mod bombs;
pub mod golden;
pub mod hostile;
pub mod laws;
pub mod model;
pub mod printed;

/// Installs the allocator that counts the memory held, in a test binary.
#[macro_export]
macro_rules! install_counting_allocator {
    () => {
        #[global_allocator]
        static ALLOCATOR: $crate::CountingAllocator = $crate::CountingAllocator;
    };
}

pub use model::clock::processor_time;
pub use tamis_report::memory::CountingAllocator;
