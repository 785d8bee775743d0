//! Writes the speed table and the charts of the README from a record:
//!
//! `cargo run --release -p tamis-bench --bin readme -- records/DATE-speed.jsonl`

use std::path::Path;

use anyhow::{Context, Result};
use tamis_bench::readme;

fn main() -> Result<()> {
    let record = std::env::args().nth(1).context("which record?")?;
    readme::write(Path::new("."), &record)
}
