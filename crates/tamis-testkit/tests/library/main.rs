//! The tests of the library: one binary, so that it is linked once.

tamis_testkit::install_counting_allocator!();

mod balanced;
mod bits;
mod blocked_rank;
mod blocked_rank_in_place;
mod bombs;
mod compressed_sets;
mod delta;
mod digest;
mod dleft;
mod faithful;
mod fast_table;
mod golden;
mod hostile;
mod laws;
mod math;
mod messages;
mod model;
mod optimise_compressed;
mod optimise_rank_indexed;
mod packed_counters;
mod papers_balanced;
mod papers_compressed;
mod papers_dleft;
mod papers_fast_table;
mod papers_partitioned;
mod papers_rank_indexed;
mod params;
mod partitioned;
mod partitioned_functions;
mod pieces;
mod plan;
mod rank_indexed;
mod rates;
mod threads;
mod traffic;
