//! Writes a small `blocked-rank` file as only large ones are written, for a golden file that is new.

use std::io::Write;

use tamis::{BlockedRank, Limits, Stored};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let filter = BlockedRank::decode(&std::fs::read(path)?, Limits::default())?;
        std::io::stdout().write_all(&filter.encode_in_place().to_vec())?;
    }
    Ok(())
}
