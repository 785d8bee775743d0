//! `tamis`: set membership on the command line, in the fewest bits.

mod growing;
mod input;
mod keys;
mod mapped;
mod numbers;
mod progress;
mod recent;
mod resp;
mod runs;
mod show;
mod sizing;
mod spool;
mod store;
mod system;
mod target;
mod verbs;
mod wishes;

use std::process::ExitCode;

use clap::Parser;

use crate::verbs::Cli;

/// Counts what is held, so that `bench` reports memory as it is.
#[global_allocator]
static ALLOCATOR: tamis_report::memory::CountingAllocator = tamis_report::memory::CountingAllocator;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(outcome) => outcome.into(),
        Err(error) => show::failure(&error),
    }
}
