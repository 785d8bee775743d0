//! What it takes to keep many followers current, beside whole filters and zstd's patches: prints
//! a line of JSON, and fails if a promise is missed.
//!
//! ```text
//! cargo run --release -p tamis-exchange --example followers -- \
//!     KEYS SHARE VERSIONS FOLLOWERS [WHICH]
//! ```
//!
//! SHARE is the part of the keys that each version replaces; WHICH of them is `oldest` (the
//! default), `newest` or `random`.

#[allow(missing_docs, reason = "a part of this program")]
mod run;

use std::process::{Command, ExitCode};

use run::{Paid, Run, Which, digest};
use tamis::{AnyFilter, Bloom, Insert};

/// Steps whose patches are made: they take longer than everything else.
const PATCHES: u64 = 5;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<f64> = args.iter().take(4).map(|arg| arg.parse().unwrap()).collect();
    let which = match args.get(4).map(String::as_str) {
        None | Some("oldest") => Some(Which::Oldest),
        Some("newest") => Some(Which::Newest),
        Some("random") => Some(Which::Random),
        Some(_) => None,
    };
    let (&[keys, share, versions, followers], Some(which)) = (&numbers[..], which) else {
        eprintln!("usage: followers KEYS SHARE VERSIONS FOLLOWERS [oldest|newest|random]");
        return ExitCode::from(2);
    };
    let (keys, versions) = (keys as u64, versions as u64);
    let distances = (1..versions).collect();
    let run = Run { keys, share, which, versions, followers: followers as usize, distances };
    let paid = run.run();
    let (whole, patch) = others(&run);
    let bytes = mean(paid.bytes.iter().map(|&bytes| bytes as f64));
    let most = paid.bytes.iter().max().copied().unwrap_or(0);
    let mut work = paid.work.clone();
    work.sort_by(f64::total_cmp);
    let ((worst, far), in_all) = (paid.worst(), paid.worst_in_all());
    println!(
        "{{\"keys\":{keys},\"share\":{share},\"versions\":{versions},\"followers\":{followers},\
         \"which\":\"{which:?}\",\
         \"step_bytes\":{bytes:.0},\"step_bytes_most\":{most},\"whole_bytes\":{whole},\
         \"zstd_patch_bytes\":{patch:.0},\"snapshot_bytes\":{},\
         \"work_ms\":{:.1},\"work_ms_median\":{:.1},\"work_ms_most\":{:.1},\
         \"far\":{},\"far_worst\":{worst:.3},\"far_worst_behind\":{},\"far_worst_bytes\":{},\
         \"far_worst_beside\":{},\"far_worst_direct\":{},\"far_worst_in_all\":{in_all:.3}}}",
        paid.snapshot,
        mean(paid.work.iter().copied()),
        work[work.len() / 2],
        work[work.len() - 1],
        paid.far.len(),
        far.behind,
        far.bytes,
        far.beside,
        far.direct,
    );
    let missed = missed(&paid, share, bytes, whole, patch, [worst, in_all]);
    for promise in &missed {
        eprintln!("missed: {promise}");
    }
    ExitCode::from(u8::from(!missed.is_empty()))
}

/// The promises of docs/exchange.md for a million keys that were missed; for fewer keys those
/// that do not depend on their number.
fn missed(
    paid: &Paid,
    share: f64,
    bytes: f64,
    whole: u64,
    patch: f64,
    [worst, in_all]: [f64; 2],
) -> Vec<&'static str> {
    let work = mean(paid.work.iter().copied());
    let is_million = whole > 1_000_000;
    let promises = [
        (share > 0.005 || !is_million || bytes <= 4_200.0, "4.2 kB a step of 0.1%"),
        (share < 0.005 || !is_million || bytes <= 30_000.0, "30 kB a step of 1%"),
        (bytes * 40.0 <= whole as f64, "a fortieth of whole filters"),
        (share < 0.005 || bytes * 5.0 <= patch, "a fifth of zstd's patches"),
        (work <= 60.0, "60 ms of work a step"),
        (worst <= 1.0, "1.3 times a direct delta, or a snapshot"),
        (!is_million || in_all <= 1.0, "the same with manifest and table"),
    ];
    promises.into_iter().filter(|promise| !promise.0).map(|promise| promise.1).collect()
}

fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = numbers.fold((0.0, 0.0), |(count, sum), number| (count + 1.0, sum + number));
    sum / f64::max(count, 1.0)
}

/// Bytes of a whole Bloom filter of these keys, and of zstd's patch from one version of it to the
/// next.
fn others(run: &Run) -> (u64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let replaced = (run.keys as f64 * run.share) as u64;
    let write = |version: u64| {
        let mut filter = Bloom::with_rate(run.keys, 0.01).unwrap();
        for key in version * replaced..version * replaced + run.keys {
            let _ = filter.insert_digest(digest(key));
        }
        let path = folder.path().join(version.to_string());
        std::fs::write(&path, AnyFilter::from(filter).encode().to_vec()).unwrap();
        path
    };
    let mut before = write(0);
    let whole = std::fs::metadata(&before).unwrap().len();
    let patches = (1..=PATCHES).map(|version| {
        let path = write(version);
        let patch = folder.path().join("patch");
        let status = Command::new("zstd")
            .args(["-q", "-f", "-19", "--long=27", "--patch-from"])
            .args([&before, &path])
            .arg("-o")
            .arg(&patch)
            .stderr(std::process::Stdio::null()) // It has advice for slower patches.
            .status();
        assert!(status.expect("zstd is installed").success());
        before = path;
        std::fs::metadata(patch).unwrap().len() as f64
    });
    let patch = mean(patches);
    (whole, patch)
}
