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
    for (path, _, draw) in CHARTS {
        let chart = fs::read_to_string(root.join(path)).unwrap();
        assert!(draw(&records[0]) == chart, "{path}: {again}");
    }
}

/// The one figure of a GPU is typed, because no machine of this project makes it again.
#[test]
fn the_figure_of_the_gpu_is_that_of_its_record() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, after) = readme.split_once(" billion keys a second").expect("a figure");
    let shown = before.rsplit(' ').next().unwrap();
    let (_, link) = after.split_once("[record](").expect("a record behind it");
    let record = fs::read_to_string(root.join(link.split(')').next().unwrap())).unwrap();
    let row = record.lines().find_map(|line| line.strip_prefix("| blocked-rank | build | "));
    let median: f64 = row.and_then(|row| row.split(' ').next()).unwrap().parse().unwrap();
    assert_eq!(shown, format!("{median:.1}"));
}
