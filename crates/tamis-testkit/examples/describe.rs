//! Prints what is pinned of a golden file, for a file that is new.

use tamis::{AnyFilter, Limits};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let filter = AnyFilter::decode(&std::fs::read(path)?, Limits::default())?;
        print!("{}", tamis_testkit::golden::describe(&filter));
    }
    Ok(())
}
