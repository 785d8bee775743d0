//! Small files that claim much memory are read within the memory that is allowed, and in a second
//! of processor time for each gigabyte of it.

use std::time::Duration;

use tamis::bloom::BloomParams;
use tamis::internals::coder::{Coder, encode_as};
use tamis::wire::{Encoding, Object};
use tamis::{
    AnyFilter, AnyParams, Delta, Digest, Effort, Filter, Goal, Hasher, Kind, Label, Limits, Params,
};
use tamis_report::memory;
use tamis_testkit::bombs::{Bomb, bombs, file, processor_time};

/// The memory allowed: `TAMIS_BOMB_MEMORY` bytes, or else little enough that all files take
/// seconds.
fn allowed() -> u64 {
    let set = std::env::var("TAMIS_BOMB_MEMORY").ok();
    set.map_or(64 << 20, |bytes| bytes.parse().expect("TAMIS_BOMB_MEMORY: a number of bytes"))
}

/// What planning and small allocations take beside the memory allowed.
const SPARE_MEMORY: u64 = 1 << 20;
const SPARE_TIME: Duration = Duration::from_millis(30);

/// Reads a bomb, and looks up a key if it is accepted.
fn detonate(bomb: &Bomb, limits: Limits) -> bool {
    if bomb.delta {
        return Delta::decode(&bomb.bytes, limits).is_ok();
    }
    let filter = AnyFilter::decode(&bomb.bytes, limits);
    filter.is_ok_and(|filter| {
        filter.contains_digest(Digest(0x1234_5678_9abc_def0));
        true
    })
}

#[test]
fn every_bomb_is_answered_or_refused_in_time_and_memory() {
    let limits = Limits::memory(allowed());
    let most_time = Duration::from_nanos(limits.memory) + SPARE_TIME;
    let bombs = bombs(limits.memory);
    assert!(bombs.len() >= 100);
    let (mut accepted, mut slowest, mut faults) = (0, Duration::ZERO, Vec::new());
    for bomb in &bombs {
        assert!(bomb.bytes.len() < 8192, "{}: {} bytes", bomb.name, bomb.bytes.len());
        let mut took = Duration::MAX;
        let mut peak = 0;
        // On a busy machine page faults take longer, never shorter: the least of three times
        // counts.
        for _ in 0..3 {
            let before = processor_time();
            let (was_accepted, held) = memory::peak_of(|| detonate(bomb, limits));
            took = took.min(processor_time().saturating_sub(before));
            peak = peak.max(held);
            if took <= most_time {
                accepted += usize::from(was_accepted);
                break;
            }
        }
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

/// The time that a byte of input may take, beside the memory, as `Limits` and `docs/wire.md` say.
const BYTE_TIME: Duration = Duration::from_micros(4);

/// Processor time of reading, for each byte, and whether it was accepted.
fn time_for_a_byte(bytes: &[u8]) -> (Duration, bool) {
    const ROUNDS: u32 = 5;
    let before = processor_time();
    let accepted = (0..ROUNDS).all(|_| AnyFilter::decode(bytes, Limits::default()).is_ok());
    (processor_time().saturating_sub(before) / ROUNDS / bytes.len() as u32, accepted)
}

/// An array of `bits` bits with `ones` ones, spread at random.
fn spread(bits: u64, ones: u64) -> Vec<u64> {
    let mut words = vec![0; bits.div_ceil(64) as usize];
    for key in 0..ones {
        let at = ((u128::from(Digest(key).word(1)) * u128::from(bits)) >> 64) as u64;
        words[(at / 64) as usize] |= 1 << (at % 64);
    }
    words
}

/// A frame of `ones` ones that are spread over `bits` bits.
fn frame(coder: Coder, bits: u64, ones: u64) -> Vec<u8> {
    let words = spread(bits, ones);
    let ones = words.iter().map(|word| u64::from(word.count_ones())).sum();
    encode_as(coder, &words, bits, ones)
}

/// The most work that a byte can ask for: coders at their limit, full planes, identities to be
/// laid out.
#[test]
fn a_byte_takes_four_microseconds_at_most() {
    let bits = 1 << 23;
    let bloom = BloomParams::new(bits, 3).unwrap().values();
    let packed = |kind, params: &[u64], bytes: Vec<u8>, decoded| {
        file(Object::Filter, kind, params, &[(0, Encoding::Packed, bytes, decoded)])
    };
    let mut inputs = Vec::new();
    for coder in [Coder::Static, Coder::Adaptive, Coder::Rans, Coder::Gaps] {
        for share in [290, 100, 20, 3] {
            let frame = frame(coder, bits, bits / share);
            let name = format!("{} with a one in {share} bits", coder.name());
            inputs.push((name, packed(Kind::Bloom, &bloom, frame, bits / 8)));
        }
    }
    // Half of the counters are 15, which costs a bit for each and a few bytes for all.
    let counters = 1 << 18;
    let plane = frame(Coder::Plain, counters, counters * 7 / 10);
    let plane_len =
        [plane.len() as u8 | 0x80, (plane.len() >> 7) as u8 | 0x80, (plane.len() >> 14) as u8];
    let full = [2, 0x84, 0].repeat(14);
    let planes = [&plane_len[..], &plane, &full, &[2, 4, 0]].concat();
    let name = "counters that are 0 or 15".to_owned();
    inputs.push((name, packed(Kind::Counting, &[counters, 3, 4], planes, counters / 2)));
    let hasher = Hasher::default();
    let digests: Vec<Digest> = (0..20_000_u64).map(|key| hasher.digest(&key)).collect();
    for &kind in Kind::ALL {
        for rate in [0.3, 0.01] {
            let params = AnyParams::plan(kind, &Goal::rate(20_000, rate)).unwrap();
            let filter = params.build_from(Label::planned(hasher, 20_000), &digests).unwrap();
            inputs.push((format!("{} at {rate}", kind.name()), filter.encode().to_vec()));
            let packed = filter.pack(Effort::Best).to_vec();
            inputs.push((format!("{} at {rate}, packed", kind.name()), packed));
        }
    }
    for (name, bytes) in inputs {
        let (took, accepted) = time_for_a_byte(&bytes);
        println!("{name}: {took:?} for each of {} bytes", bytes.len());
        assert!(accepted, "{name}");
        assert!(took <= BYTE_TIME, "{name}: {took:?} for each of {} bytes", bytes.len());
    }
}
