//! Small files that claim much: every kind, every coder, every length that a file states.
//!
//! Each is as small as the format allows, has right checksums, and asks for about as much memory as is allowed. Some are legal (an
//! array of zeros has few bytes), most are lies. Reading must answer or refuse all of them within the memory, and in a time
//! that the memory and the few bytes justify.

use std::time::Duration;

use tamis::wire::{CHUNK, Encoding, MAGIC, Object, VERSION};
use tamis::{AnyParams, Goal, Kind};
use xxhash_rust::xxh3::xxh3_64;

/// A file that claims much.
#[derive(Debug)]
pub struct Bomb {
    /// What it is.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it is a delta.
    pub delta: bool,
}

/// A section: role, encoding, stored bytes, claimed memory.
pub type Section = (u8, Encoding, Vec<u8>, u64);

/// A file with these sections and right checksums, whatever they hold.
pub fn file(object: Object, kind: Kind, params: &[u64], sections: &[Section]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    out.extend([object as u8, 1]);
    out.extend(kind.id().to_le_bytes());
    out.extend([params.len() as u8, sections.len() as u8]);
    out.extend([0; 16]);
    out.extend([0; 16]);
    out.extend(params.iter().flat_map(|param| param.to_le_bytes()));
    let mut end = out.len() + 40 * sections.len() + 8;
    let mut data = Vec::new();
    for (role, encoding, bytes, decoded) in sections {
        let chunks = bytes.chunks(CHUNK);
        let list: Vec<u8> = chunks.flat_map(|chunk| xxh3_64(chunk).to_le_bytes()).collect();
        let mut offset = end + list.len();
        if *encoding == Encoding::Raw {
            offset = offset.next_multiple_of(64);
        }
        data.extend(vec![0; offset - end - list.len()]);
        data.extend(&list);
        data.extend(bytes);
        end = offset + bytes.len();
        out.extend([*role, *encoding as u8, 0, 0, 0, 0, 0, 0]);
        for word in [offset as u64, bytes.len() as u64, *decoded, xxh3_64(&list)] {
            out.extend(word.to_le_bytes());
        }
    }
    out.extend(xxh3_64(&out).to_le_bytes());
    out.extend(data);
    out
}

/// A number as the packed forms write it.
fn number(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

/// Bytes with their length in front.
fn with_length(bytes: &[u8]) -> Vec<u8> {
    [number(bytes.len() as u64), bytes.to_vec()].concat()
}

/// Frames of every coder that stand for this many bits, or say so.
fn frames(bits: u64) -> Vec<(&'static str, Vec<u8>)> {
    let headed = |id: u8, ones: u64, payload: &[u8]| {
        [vec![id], number(ones), payload.to_vec()].concat()
    };
    // Pieces of one frame each.
    let pieces = |log: u32, frame: &[u8]| {
        let count = bits.div_ceil(1 << log) as usize;
        let ends = (1..=count).flat_map(|end| ((end * frame.len()) as u32).to_le_bytes());
        let width = 4 - (count * frame.len()).leading_zeros().saturating_sub(32) as usize / 8;
        let mut out = vec![5, log as u8, width as u8];
        out.extend(ends.collect::<Vec<_>>().chunks(4).flat_map(|end| &end[..width]));
        out.extend(frame.repeat(count));
        out
    };
    let large = bits.ilog2().saturating_sub(5).max(6);
    let states = |state: u64| state.to_le_bytes().repeat(8);
    vec![
        ("plain", vec![0, 1]),
        ("range without ones", headed(1, 0, &[])),
        ("range with a one", headed(1, 1, &[0x80])),
        ("range half full", headed(1, bits / 2, &[0x55; 8])),
        ("range flipped", headed(0x81, 1, &[0x40])),
        ("adaptive of nothing", vec![2]),
        ("adaptive", vec![2, 0x80]),
        ("adaptive, longer", [&[2][..], &[1; 16]].concat()),
        ("rans", headed(3, bits / 20, &states(1 << 31))),
        ("rans of zeros", headed(3, 0, &states((1 << 63) - 1))),
        ("gaps without ones", headed(4, 0, &[])),
        ("gaps without zeros", headed(0x84, 0, &[])),
        ("gaps half full", headed(4, bits / 2, &[])),
        ("gaps of many", headed(4, bits / 3, &[0xff; 40])),
        ("one piece", pieces(62, &[2, 0x80])),
        ("pieces, adaptive", pieces(large, &[2, 0x80])),
        ("pieces, range", pieces(large, &headed(1, 1, &[0x80]))),
        ("pieces of ones", pieces(large, &headed(0x84, 0, &[]))),
    ]
}

/// The params of a planned filter by their numbers.
fn planned(kind: Kind, keys: u64, rate: f64) -> AnyParams {
    AnyParams::plan(kind, &Goal::rate(keys, rate)).expect("a plan")
}

fn values(params: &AnyParams) -> Vec<u64> {
    params.named().iter().map(|(_, value)| *value).collect()
}

/// Bytes of the table of a kind that keeps identities.
fn table_bytes(params: &AnyParams) -> u64 {
    match params {
        AnyParams::RankIndexed(params)
        | AnyParams::RankSet(params)
        | AnyParams::RankCounting(params)
        | AnyParams::RankMap(params) => params.layout().bits().div_ceil(8),
        AnyParams::BlockedRank(params) => params.bits().div_ceil(8),
        AnyParams::DLeft(params) => params.bits().div_ceil(8),
        _ => 0,
    }
}

/// Files that claim about as much memory as is allowed.
///
/// # Panics
///
/// When a planned filter cannot be planned.
pub fn bombs(memory: u64) -> Vec<Bomb> {
    let mut bombs = Vec::new();
    let mut put = |name: String, delta: bool, kind, params: &[u64], sections: &[Section]| {
        let object = if delta { Object::Delta } else { Object::Filter };
        bombs.push(Bomb { name, bytes: file(object, kind, params, sections), delta });
    };
    // What arrays leave for the frame itself and for lines.
    let bits = (memory - (1 << 16)) / 64 * 64 * 8;
    let ids = || (0, Encoding::Trimmed, vec![7; 32], 32);
    let packed = |role, bytes: Vec<u8>, decoded| (role, Encoding::Packed, bytes, decoded);

    let small_balanced = |kind| values(&planned(kind, 1000, 0.01));
    for (name, frame) in frames(bits) {
        let array = |frame: &[u8]| packed(0, frame.to_vec(), bits / 8);
        let change = |frame: &[u8]| packed(1, frame.to_vec(), bits / 8);
        put(format!("bloom: {name}"), false, Kind::Bloom, &[bits, 3], &[array(&frame)]);
        put(format!("bloom delta: {name}"), true, Kind::Bloom, &[bits, 3], &[ids(), change(&frame)]);
        let blocks = [bits / 512, 512, 8];
        put(format!("blocked: {name}"), false, Kind::Blocked, &blocks, &[array(&frame)]);
        for kind in [Kind::BalancedSingle, Kind::BalancedMht, Kind::BalancedTwoChoice] {
            let mut params = small_balanced(kind);
            (params[0], params[7]) = (bits / params[1], 0);
            put(format!("{}: {name}", kind.name()), false, kind, &params, &[array(&frame)]);
            let listed = (2, Encoding::Trimmed, Vec::new(), 0);
            let sections = [ids(), change(&frame), listed];
            put(format!("{} delta: {name}", kind.name()), true, kind, &params, &sections);
        }
        for (candidates, hashes, fields) in [(3, 1, 2), (2, 1, 2), (4, 2, 4), (5, 2, 6)] {
            let groups = bits / fields;
            let params = [64, 1, groups, candidates, hashes];
            let sections = [
                packed(0, vec![4, 0], 8),
                packed(1, frame.clone(), (groups * fields).div_ceil(64) * 8),
            ];
            let name = format!("partitioned {candidates} {hashes}: {name}");
            put(name, false, Kind::Partitioned, &params, &sections);
        }
        for width in [1, 2, 4, 8, 16] {
            let counters = bits / width * 3 / 4;
            let decoded = (counters * width).div_ceil(64) * 8;
            let full = with_length(&[0x84, 0]).repeat(400);
            for (more, rest) in [("", &[][..]), (", then full planes", &full), (", a list", &[5; 900])]
            {
                let planes = [with_length(&frame), rest.to_vec()].concat();
                let name = format!("counting of {width} bits: {name}{more}");
                put(name, false, Kind::Counting, &[counters, 3, width], &[packed(0, planes, decoded)]);
            }
        }
    }
    for planes in [1, 15, 16, 17, 300] {
        for width in [1, 4, 16] {
            let counters = bits / width * 3 / 4;
            let bytes = with_length(&[0x84, 0]).repeat(planes);
            let decoded = (counters * width).div_ceil(64) * 8;
            let name = format!("counting of {width} bits: {planes} full planes");
            put(name, false, Kind::Counting, &[counters, 3, width], &[packed(0, bytes, decoded)]);
        }
    }
    let steps = |claimed: u64| {
        let gaps = [number(claimed), with_length(&[0; 100])].concat();
        packed(1, [gaps, with_length(&[0x84, 0]).repeat(300)].concat(), claimed * 16)
    };
    for claimed in [0, 700, 800, memory / 16] {
        let name = format!("counting delta of {claimed}");
        put(name, true, Kind::Counting, &[1 << 40, 3, 16], &[ids(), steps(claimed)]);
    }

    let groups = |claimed: u64, gaps: &[u8], counts: &[u8]| {
        let gaps = if claimed == 0 { Vec::new() } else { with_length(gaps) };
        [number(claimed), gaps, counts.to_vec()].concat()
    };
    let often = [vec![3], with_length(&[0x10]), number(u64::MAX).repeat(3)].concat();
    let forms: Vec<(&str, u64, Vec<u8>)> = vec![
        ("nothing", 0, groups(0, &[], &[0])),
        ("few often", 3, groups(3, &[0; 30], &often)),
        ("many claimed", 1 << 20, groups(1 << 20, &[0; 30], &[0])),
        ("all in one place", 800, groups(800, &[0; 6000], &[0])),
        ("a count without end", 0, vec![0xff; 40]),
    ];
    let identities = [
        Kind::RankIndexed,
        Kind::RankSet,
        Kind::RankCounting,
        Kind::RankMap,
        Kind::BlockedRank,
        Kind::DLeft,
    ];
    for kind in identities {
        for rate in [0.5_f64, 0.01, 1e-4] {
            // A bit a key less than any of them takes, so that they come close to the memory or go beyond it.
            let per_key = 1.4 * (2.5 - rate.log2());
            let keys = (memory as f64 * 8.0 / per_key) as u64;
            for keys in [keys / 4, keys / 2, keys] {
                let params = planned(kind, keys, rate);
                let (table, params) = (table_bytes(&params), values(&params));
                for (name, count, bytes) in &forms {
                    let sections = [packed(2, bytes.clone(), table + count * 24)];
                    let name = format!("{} {keys} {rate}: {name}", kind.name());
                    put(name, false, kind, &params, &sections);
                }
                let cells = (0, Encoding::Trimmed, vec![0xff; 200], table);
                let name = format!("{} {keys} {rate}: trimmed", kind.name());
                put(name, false, kind, &params, &[cells]);
            }
        }
        let universe = 1 << 40;
        let params: &[u64] = if kind == Kind::BlockedRank { &[universe] } else { &[universe, 8] };
        for (name, count, bytes) in &forms {
            let none = groups(0, &[], &[0]);
            let sections =
                [ids(), packed(1, [&[0][..], bytes].concat(), count * 24), packed(2, none, 0)];
            put(format!("{} delta: {name} go", kind.name()), true, kind, params, &sections);
            let gone = [vec![1], number(u64::MAX), vec![0, 0]].concat();
            let sections = [ids(), packed(1, gone, 0), packed(2, bytes.clone(), count * 24)];
            put(format!("{} delta: {name} come", kind.name()), true, kind, params, &sections);
        }
    }
    // What lies behind the blocks is not in the claim.
    for (share, per_block) in [(2, 256), (4, 256), (2, 40), (1, 1)] {
        let blocks = memory / 64 / share;
        for (locations, cells, fingerprint) in [(1, 1, 1), (64, 49, 8), (60, 26, 16)] {
            let params = [blocks, locations, cells, fingerprint, blocks * per_block];
            let sections = [packed(2, groups(0, &[], &[0]), blocks * 64)];
            let name = format!("blocked-rank {params:?}");
            put(name, false, Kind::BlockedRank, &params, &sections);
        }
    }
    for (positions, ones) in [(1 << 62, 0), (1 << 62, 50), (1 << 62, memory / 8), (1 << 20, 1 << 20)] {
        let bytes = groups(ones, &[0; 100], &[]);
        let name = format!("compressed {ones} of {positions}");
        put(name, false, Kind::Compressed, &[positions, 2, ones], &[packed(2, bytes, ones * 8)]);
    }
    bombs
}

/// Processor time of this thread. (Elsewhere than on Linux the time that has passed.)
///
/// # Panics
///
/// When the system does not say.
pub fn processor_time() -> Duration {
    if cfg!(target_os = "linux") {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
        let ran = text.split(' ').next().and_then(|ran| ran.parse().ok());
        return Duration::from_nanos(ran.expect("nanoseconds"));
    }
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}
