//! Small files that claim much memory: for every kind, every coder, and every length that a file
//! states.
//!
//! Each is as small as the format allows, has valid checksums, and asks for about as much memory
//! as is allowed. Some are valid, because an array of zeros takes few bytes; most claim what is
//! not true. A reader must accept or refuse each within the allowed memory, and in a time that
//! this memory and the few bytes justify.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tamis::wire::{Encoding, Header, MAGIC, Object, Section as Stored};
use tamis::{AnyParams, Goal, Kind};
use xxhash_rust::xxh3::xxh3_64;

/// A small file that claims much memory.
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

/// A file with these sections and valid checksums, whatever the sections hold.
pub fn file(object: Object, kind: Kind, params: &[u64], sections: &[Section]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(Header::VERSION.to_le_bytes());
    out.extend([object as u8, 1]);
    out.extend(kind.id().to_le_bytes());
    out.extend([params.len() as u8, sections.len() as u8]);
    out.extend([0; 16]);
    out.extend([0; 16]);
    out.extend(params.iter().flat_map(|param| param.to_le_bytes()));
    let mut end = out.len() + 40 * sections.len() + 8;
    let mut data = Vec::new();
    for (role, encoding, bytes, decoded) in sections {
        let chunks = bytes.chunks(Stored::CHUNK);
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

/// Frames of every coder for an array of `bits` bits, valid or not.
fn frames(bits: u64) -> Vec<(&'static str, Vec<u8>)> {
    let headed =
        |id: u8, ones: u64, payload: &[u8]| [vec![id], number(ones), payload.to_vec()].concat();
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

/// The params of a filter planned for `keys` keys and `rate`.
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
        AnyParams::BlockedRank(_) | AnyParams::BlockedMap(_) => {
            let values = values(params);
            // Bits of a block and blocks, of every level.
            [0, 6, 11].map(|at| values[at] * values[at + 1] / 8).iter().sum()
        }
        AnyParams::DLeft(params) => params.bits().div_ceil(8),
        _ => 0,
    }
}

/// Files that claim about `memory` bytes of memory.
///
/// # Panics
///
/// When a planned filter cannot be planned.
pub fn bombs(memory: u64) -> Vec<Bomb> {
    let mut bombs = Bombs(Vec::new());
    // The arrays leave some memory for the frame itself and for whole lines.
    let bits = (memory - (1 << 16)) / 64 * 64 * 8;
    for (name, frame) in frames(bits) {
        bombs.arrays(name, &frame, bits);
        bombs.choices(name, &frame, bits);
        bombs.ribbons(name, &frame, bits);
        bombs.counters(name, &frame, bits);
    }
    bombs.full_planes(bits);
    bombs.steps(memory);
    for kind in [
        Kind::RankIndexed,
        Kind::RankSet,
        Kind::RankCounting,
        Kind::RankMap,
        Kind::BlockedRank,
        Kind::BlockedMap,
        Kind::DLeft,
    ] {
        bombs.identities(kind, memory);
        bombs.moves(kind);
    }
    bombs.hidden_backs(memory);
    bombs.positions(memory);
    bombs.0
}

fn packed(role: u8, bytes: Vec<u8>, decoded: u64) -> Section {
    (role, Encoding::Packed, bytes, decoded)
}

/// The content ids of a delta.
fn ids() -> Section {
    (0, Encoding::Trimmed, vec![7; 32], 32)
}

/// A list that claims `claimed` identities, with these gaps and counts.
fn groups(claimed: u64, gaps: &[u8], counts: &[u8]) -> Vec<u8> {
    let gaps = if claimed == 0 { Vec::new() } else { with_length(gaps) };
    [number(claimed), gaps, counts.to_vec()].concat()
}

/// Lists of identities: a name, the number of identities that is claimed, and the bytes.
fn lists() -> Vec<(&'static str, u64, Vec<u8>)> {
    let often = [vec![3, 3], with_length(&[0x10]), number(u64::MAX).repeat(3)].concat();
    let one_place = [0x11; 6000];
    vec![
        ("nothing", 0, groups(0, &[], &[0, 0])),
        ("few often", 3, groups(6, &[0; 30], &often)),
        ("many claimed", 1 << 20, groups(1 << 20, &[0; 30], &[0, 0])),
        ("all in one place", 800, groups(800, &one_place, &[0, 0])),
        ("all twice", 800, groups(1600, &[0; 6000], &[number(800), vec![0]].concat())),
        ("a count without end", 0, vec![0xff; 40]),
    ]
}

struct Bombs(Vec<Bomb>);

impl Bombs {
    fn filter(&mut self, name: String, kind: Kind, params: &[u64], sections: &[Section]) {
        let bytes = file(Object::Filter, kind, params, sections);
        self.0.push(Bomb { name, bytes, delta: false });
    }

    fn delta(&mut self, name: String, kind: Kind, params: &[u64], sections: &[Section]) {
        let bytes = file(Object::Delta, kind, params, sections);
        self.0.push(Bomb { name, bytes, delta: true });
    }

    /// Adds `frame` as the array of every kind that has one, and as a change of it.
    fn arrays(&mut self, name: &str, frame: &[u8], bits: u64) {
        let array = || packed(0, frame.to_vec(), bits / 8);
        let change = || packed(1, frame.to_vec(), bits / 8);
        self.filter(format!("bloom: {name}"), Kind::Bloom, &[bits, 3], &[array()]);
        self.delta(format!("bloom delta: {name}"), Kind::Bloom, &[bits, 3], &[ids(), change()]);
        self.filter(format!("blocked: {name}"), Kind::Blocked, &[bits / 512, 512, 8], &[array()]);
        for kind in [Kind::BalancedSingle, Kind::BalancedMht, Kind::BalancedTwoChoice] {
            let mut params = values(&planned(kind, 1000, 0.01));
            (params[0], params[7]) = (bits / params[1], 0);
            self.filter(format!("{}: {name}", kind.name()), kind, &params, &[array()]);
            let listed = (2, Encoding::Trimmed, Vec::new(), 0);
            let sections = [ids(), change(), listed];
            self.delta(format!("{} delta: {name}", kind.name()), kind, &params, &sections);
        }
    }

    /// Adds `frame` as the choices of a partitioned filter.
    fn choices(&mut self, name: &str, frame: &[u8], bits: u64) {
        for (candidates, hashes, fields) in [(3, 1, 2), (2, 1, 2), (4, 2, 4), (5, 2, 6)] {
            let groups = bits / fields;
            let decoded = (groups * fields).div_ceil(64) * 8;
            let sections = [packed(0, vec![4, 0], 8), packed(1, frame.to_vec(), decoded)];
            let params = [64, 1, groups, candidates, hashes];
            let name = format!("partitioned {candidates} {hashes}: {name}");
            self.filter(name, Kind::Partitioned, &params, &sections);
        }
    }

    /// Adds `frame` as the array of a ribbon: rows of almost no column, of one and of many, and a
    /// list alone. What rows and codes leave of the words is the list.
    fn ribbons(&mut self, name: &str, frame: &[u8], bits: u64) {
        let words = bits / 64;
        for (columns, rows) in [(1, 4000), (1 << 16, 63), (64 << 16, 1), (1, 0)] {
            let blocks = words / 66 * 65 * rows / 64;
            let codes = (blocks.saturating_sub(1) * 64).div_ceil(128).div_ceil(32);
            let listed = words - blocks * columns / (1 << 16) - codes;
            let params = [columns, blocks * 64, 0, 0, listed];
            let section = packed(0, frame.to_vec(), bits / 8);
            self.filter(format!("ribbon {columns}: {name}"), Kind::Ribbon, &params, &[section]);
        }
    }

    /// Adds counters with `planes` as the bytes of their planes.
    fn planes(&mut self, name: &str, planes: &[u8], width: u64, bits: u64) {
        let counters = bits / width * 3 / 4;
        let section = packed(0, planes.to_vec(), (counters * width).div_ceil(64) * 8);
        let name = format!("counting of {width} bits: {name}");
        self.filter(name, Kind::Counting, &[counters, 3, width], &[section]);
    }

    /// Adds `frame` as the first plane of counters.
    fn counters(&mut self, name: &str, frame: &[u8], bits: u64) {
        let full = with_length(&[0x84, 0]).repeat(400);
        for width in [1, 2, 4, 8, 16] {
            let behind = [("", &[][..]), (", then full planes", &full), (", a list", &[5; 900])];
            for (more, rest) in behind {
                let planes = [&with_length(frame), rest].concat();
                self.planes(&format!("{name}{more}"), &planes, width, bits);
            }
        }
    }

    fn full_planes(&mut self, bits: u64) {
        for planes in [1, 15, 16, 17, 300] {
            let bytes = with_length(&[0x84, 0]).repeat(planes);
            for width in [1, 4, 16] {
                self.planes(&format!("{planes} full planes"), &bytes, width, bits);
            }
        }
    }

    /// Adds changes of counters.
    fn steps(&mut self, memory: u64) {
        for claimed in [0, 700, 800, memory / 16] {
            let gaps = [number(claimed), with_length(&[0; 100])].concat();
            let bytes = [gaps, with_length(&[0x84, 0]).repeat(300)].concat();
            let sections = [ids(), packed(1, bytes, claimed * 16)];
            let name = format!("counting delta of {claimed}");
            self.delta(name, Kind::Counting, &[1 << 40, 3, 16], &sections);
        }
    }

    /// Adds tables of a kind that keeps identities, with few identities in them.
    fn identities(&mut self, kind: Kind, memory: u64) {
        for rate in [0.5_f64, 0.01] {
            // About what a key takes, so that some tables come close to `memory` and others exceed
            // it.
            let per_key = 1.4 * (2.5 - rate.log2());
            let most = (memory as f64 * 8.0 / per_key) as u64;
            for keys in [most / 2, most] {
                let params = planned(kind, keys, rate);
                let (table, params) = (table_bytes(&params), values(&params));
                let about = format!("{} {keys} {rate}", kind.name());
                for (name, _, bytes) in lists() {
                    let sections = [packed(2, bytes, table)];
                    self.filter(format!("{about}: {name}"), kind, &params, &sections);
                }
                let cells = (0, Encoding::Trimmed, vec![0xff; 200], table);
                self.filter(format!("{about}: trimmed"), kind, &params, &[cells]);
            }
        }
    }

    /// Adds deltas of identities that go and come.
    fn moves(&mut self, kind: Kind) {
        let universe = 1 << 40;
        let params: &[u64] = if kind == Kind::BlockedRank { &[universe] } else { &[universe, 8] };
        for (name, count, bytes) in lists() {
            let goes = packed(1, [&[0][..], &bytes].concat(), count * 24);
            let sections = [ids(), goes, packed(2, groups(0, &[], &[0, 0]), 0)];
            self.delta(format!("{} delta: {name} go", kind.name()), kind, params, &sections);
            let gone = [vec![1], number(u64::MAX), vec![0, 0]].concat();
            let sections = [ids(), packed(1, gone, 0), packed(2, bytes, count * 24)];
            self.delta(format!("{} delta: {name} come", kind.name()), kind, params, &sections);
        }
    }

    /// Adds tables whose back tables take more than the file claims.
    fn hidden_backs(&mut self, memory: u64) {
        for (share, per_block) in [(2, 256), (4, 256), (2, 40), (1, 1)] {
            let blocks = memory / 64 / share;
            for (locations, cells, fingerprint) in [(1, 1, 1), (64, 49, 8), (60, 26, 16)] {
                let mut params =
                    vec![512, blocks, locations, cells, fingerprint, blocks * per_block];
                params.resize(16, 0);
                let sections = [packed(2, groups(0, &[], &[0, 0]), blocks * 64)];
                let name = format!("blocked-rank {params:?}");
                self.filter(name, Kind::BlockedRank, &params, &sections);
            }
        }
    }

    /// Adds positions of a compressed filter.
    fn positions(&mut self, memory: u64) {
        let all = [(1 << 62, 0), (1 << 62, 50), (1 << 62, memory / 8), (1 << 20, 1 << 20)];
        for (positions, ones) in all {
            let section = packed(2, groups(ones, &[0; 100], &[]), ones * 8);
            let name = format!("compressed {ones} of {positions}");
            self.filter(name, Kind::Compressed, &[positions, 2, ones], &[section]);
        }
    }
}

/// The processor time of this thread; on other systems than Linux, the time that has passed.
///
/// # Panics
///
/// When the system does not say.
pub fn processor_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    if cfg!(target_os = "linux") {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
        let ran = text.split(' ').next().and_then(|ran| ran.parse().ok());
        return Duration::from_nanos(ran.expect("nanoseconds"));
    }
    START.get_or_init(Instant::now).elapsed()
}
