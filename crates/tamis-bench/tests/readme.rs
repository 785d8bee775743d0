//! The README shows what its record tells, to the byte.

use std::fs;
use std::path::Path;

use tamis_bench::readme::{CHARTS, source, written};
use tamis_bench::record::Record;

#[test]
fn the_readme_shows_what_its_record_tells() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let name = format!("records/{}", source(&readme).unwrap());
    let records = Record::read(&root.join(&name)).unwrap();
    let again = "run scripts/speed, or `cargo run -p tamis-bench --bin readme -- RECORD`";
    assert!(written(&readme, &name, &records).unwrap() == readme, "{name}: {again}");
    for (path, draw) in CHARTS {
        let chart = fs::read_to_string(root.join(path)).unwrap();
        assert!(draw(&records[0]) == chart, "{path}: {again}");
    }
}
