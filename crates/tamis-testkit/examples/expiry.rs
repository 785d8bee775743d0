//! Filters whose keys expire, beside an exact list of ages, with a virtual clock:
//!
//!     cargo run --release -p tamis-testkit --example expiry -- OPERATIONS KEYS
//!
//! A line for each load and number of steps; OPERATIONS are those of all lines together.

use tamis_testkit::ages::{LOADS, Setup, run};

fn main() {
    let mut args = std::env::args().skip(1).map(|text| text.parse().expect("a whole number"));
    let (all, keys) = (args.next().unwrap_or(10_000_000), args.next().unwrap_or(200_000));
    let operations = all / (3 * LOADS.len() as u64);
    println!(
        "load     steps |      young missing |        old    found expected | bits over: mean  most \
         | expired ns each | ns an operation"
    );
    for steps in [1, 4, 8] {
        for load in LOADS {
            let setup = Setup { load, keys, rate: 0.01, lifetime: 3_600_000, steps, operations };
            let seen = run(setup);
            println!(
                "{:8} {steps:5} | {:10} {:7} | {:10} {:8} {:8.0} | {:15.2} {:5.2} | {:9} {:5.2} | \
                 {:4}",
                format!("{load:?}"),
                seen.young,
                seen.missing,
                seen.old,
                seen.found,
                seen.expected,
                seen.mean_excess,
                seen.excess_bits,
                seen.expired,
                seen.sweep_ns as f64 / seen.expired.max(1) as f64,
                seen.all_ns / operations,
            );
        }
    }
}
