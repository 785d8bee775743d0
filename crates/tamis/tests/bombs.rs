//! Small files that claim much, against the memory that is allowed and a second of processor time for each gigabyte of it.

use std::time::Duration;

use tamis::{AnyFilter, Delta, Digest, Filter, Limits};
use tamis_report::memory;
use tamis_testkit::bombs::{bombs, processor_time};

tamis_testkit::install_counting_allocator!();

/// Memory allowed: `TAMIS_BOMB_MEMORY` bytes, or what takes seconds for all of them.
fn allowed() -> u64 {
    let set = std::env::var("TAMIS_BOMB_MEMORY").ok();
    set.map_or(64 << 20, |bytes| bytes.parse().expect("TAMIS_BOMB_MEMORY: a number of bytes"))
}

/// What planning and small things take, whatever the memory.
const SPARE_MEMORY: u64 = 1 << 20;
const SPARE_TIME: Duration = Duration::from_millis(30);

#[test]
fn every_bomb_is_answered_or_refused_in_time_and_memory() {
    let limits = Limits { memory: allowed() };
    let most_time = Duration::from_nanos(limits.memory) + SPARE_TIME;
    let bombs = bombs(limits.memory);
    assert!(bombs.len() >= 100);
    let (mut accepted, mut slowest, mut faults) = (0, Duration::ZERO, Vec::new());
    for bomb in &bombs {
        assert!(bomb.bytes.len() < 8192, "{}: {} bytes", bomb.name, bomb.bytes.len());
        let before = processor_time();
        let (_, peak) = memory::peak_of(|| {
            if bomb.delta {
                accepted += usize::from(Delta::decode(&bomb.bytes, limits).is_ok());
            } else if let Ok(filter) = AnyFilter::decode(&bomb.bytes, limits) {
                accepted += 1;
                filter.contains_digest(Digest(0x1234_5678_9abc_def0));
            }
        });
        let took = processor_time().saturating_sub(before);
        slowest = slowest.max(took);
        if took > most_time || peak > limits.memory + SPARE_MEMORY {
            let (name, len) = (&bomb.name, bomb.bytes.len());
            faults.push(format!("{name} ({len} bytes): {took:?}, {} KiB", peak >> 10));
        }
    }
    println!("{} bombs, {accepted} accepted, the slowest {slowest:?}", bombs.len());
    assert!(accepted > 20, "some are legal: {accepted}");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
