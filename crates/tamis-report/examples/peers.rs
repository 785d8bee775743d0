//! Proxies that tell each other what is in their caches, 16 to 1,000 of them: a line of JSON for
//! each setting. `cargo run --release -p tamis-report --example peers [PROXIES]`

use std::error::Error;

use tamis_report::peers::{Sent, Setting, simulate};
use tamis_report::trials::in_parallel;

fn main() -> Result<(), Box<dyn Error>> {
    let only: Option<usize> = std::env::args().nth(1).map(|arg| arg.parse()).transpose()?;
    let mut settings = Vec::new();
    for (proxies, periods) in [(16, 20), (64, 10), (256, 4), (1000, 1)] {
        if only.is_some_and(|only| only != proxies) {
            continue;
        }
        for every in [60, 300, 1800] {
            for rate in [0.01, 0.001] {
                for sent in [Sent::Whole, Sent::Compressed, Sent::Deltas] {
                    settings.push(Setting {
                        proxies,
                        cache: 1000,
                        pages: 20_000,
                        requests: 3600,
                        every,
                        // The same time for all intervals, and one period at least.
                        periods: (periods * 60_u64).div_ceil(every),
                        rate,
                        sent,
                    });
                }
            }
        }
    }
    let mut lines = in_parallel(settings.len() as u64, |number| {
        let setting = &settings[number as usize];
        let tally = simulate(setting).expect("a plan");
        let found = tally.found();
        let hour = tally.bytes_an_hour(setting);
        let line = serde_json::json!({
            "setting": setting,
            "tally": tally,
            "found": found,
            "bytes_an_hour": hour,
            "icp_bytes_an_hour": hour * tally.icp_bytes as f64 / tally.bytes as f64,
        });
        (number, line)
    });
    lines.sort_by_key(|(number, _)| *number);
    for (_, line) in &lines {
        println!("{line}");
    }
    Ok(())
}
