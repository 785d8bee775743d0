//! What ages cost in memory: bits for each key beyond those of a filter without ages, for many
//! numbers of keys and of steps.
//!
//!     cargo run --release -p tamis-testkit --example expiry_sizes -- MOST_KEYS
//!
//! A line for each number of keys and of steps: on average, and the most, of the loads that cost
//! most.

use tamis_testkit::ages::{Load, Setup, run};

fn main() {
    let most = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("a number"));
    println!("|  keys | steps | even: mean | most | touched: mean | most |");
    println!("|---|---|---|---|---|---|");
    for keys in [1_000, 3_000, 10_000, 30_000, 60_000, 100_000, 300_000, 1_000_000] {
        for steps in [1, 2, 4, 8, 12, 16] {
            if keys > most {
                return;
            }
            print!("| {keys} | {steps} |");
            for load in [Load::Even, Load::Touched] {
                let operations = (12 * keys).max(200_000);
                let setup =
                    Setup { load, keys, rate: 0.01, lifetime: 3_600_000, steps, operations };
                let seen = run(setup);
                assert_eq!(seen.missing, 0);
                print!(" {:.2} | {:.2} |", seen.mean_excess, seen.excess_bits);
            }
            println!();
        }
    }
}
