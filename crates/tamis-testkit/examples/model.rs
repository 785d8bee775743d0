//! Every failing case of a range of the model test, the first of each kind and law made short:
//!
//!     cargo run -p tamis-testkit --example model -- FIRST CASES

use std::collections::BTreeMap;
use std::time::Instant;

use tamis_testkit::model;

tamis_testkit::install_counting_allocator!();

fn main() {
    let mut args = std::env::args().skip(1).map(|text| text.parse().expect("a whole number"));
    let (first, cases) = (args.next().unwrap_or(0), args.next().unwrap_or(1000));
    std::panic::set_hook(Box::new(|_| ()));
    let (start, mut operations) = (Instant::now(), 0);
    let mut seen: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for number in first..first + cases {
        let case = model::draw(number);
        match model::judge(&case) {
            Ok(done) => operations += done,
            Err(failure) => {
                let times = seen.entry((case.kind.name(), failure.law)).or_default();
                *times += 1;
                if *times == 1 {
                    println!("case {number}: {}\n", failure.shortened());
                }
            }
        }
    }
    println!("{cases} cases, {operations} operations in {:.1?}", start.elapsed());
    for ((kind, law), times) in seen {
        println!("{times:6} {kind}: {law}");
    }
}
