//! A router finds the longest prefix that matches an address.
//!
//! There is one exact table for every length of prefix. An address is cut to each length in turn,
//! from the longest, and the first table that has it knows where to send the packet. Most tables
//! do not have it: that is what the counters of a fast table are for. They are small enough to
//! stay on chip, and turn away nearly all questions before any large memory is read:
//!
//! ```text
//! address 192.0.2.77     /32  /31 ... /25   /24      ... /8
//! counters (on chip)      no   no     no    maybe
//! list (off chip)                           192.0.2.0/24 -> next hop 7
//! ```
//!
//! Compared are fast tables and chained tables with as many buckets. Every answer is compared with
//! that of a plain binary trie, before and after routes come and go.
//!
//! ```text
//! cargo run --release -p tamis-report --example route_lookup
//! ```
//!
//! After S. Dharmapurikar, P. Krishnamurthy, D. Taylor, "Longest prefix matching using Bloom
//! filters", 2003, with the tables of H. Song and others, 2005.

use std::collections::BTreeSet;

use tamis::fast_table::{Accesses, Counters, Layout, Pruned, TableParams};
use tamis::{Digest, FastTable, Hasher, OutOfMemory};
use tamis_report::papers::fast_tables::Chained;

type Hop = u16;

const ADDRESSES: u64 = 200_000;
/// Routes that go and others that come.
const CHANGES: usize = 10_000;
const BUCKETS_PER_ROUTE: u64 = 8;
const HASHES: u32 = 5;

/// IPv4 or IPv6: addresses and prefixes are the top bits of 128.
struct Family {
    name: &'static str,
    routes: usize,
    /// Where addresses that are in use begin and end, by their first 16 bits.
    space: (u64, u64),
    /// Lengths of prefixes and how many of a thousand routes have them: about as in the tables of
    /// large routers.
    lengths: &'static [(u32, u64)],
}

const FAMILIES: [Family; 2] = [
    Family {
        name: "IPv4",
        routes: 120_000,
        space: (0x0100, 0xe000),
        lengths: &[
            (8, 1),
            (10, 1),
            (11, 1),
            (12, 1),
            (13, 2),
            (14, 2),
            (15, 3),
            (16, 14),
            (17, 9),
            (18, 14),
            (19, 26),
            (20, 46),
            (21, 54),
            (22, 112),
            (23, 104),
            (24, 600),
            (32, 10),
        ],
    },
    Family {
        name: "IPv6",
        routes: 40_000,
        space: (0x2000, 0x2c00),
        lengths: &[
            (20, 1),
            (24, 2),
            (28, 6),
            (29, 26),
            (30, 4),
            (31, 3),
            (32, 120),
            (33, 14),
            (34, 12),
            (35, 8),
            (36, 34),
            (38, 12),
            (40, 84),
            (42, 22),
            (44, 112),
            (45, 12),
            (46, 30),
            (47, 28),
            (48, 460),
            (64, 10),
        ],
    },
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Prefix {
    length: u32,
    bits: u128,
}

impl Prefix {
    /// The first bits of an address.
    fn of(address: u128, length: u32) -> Self {
        Self { length, bits: address & u128::MAX.checked_shl(128 - length).unwrap_or(0) }
    }
}

/// Numbers without a pattern, the same in every run.
struct Dice(u64);

impl Dice {
    fn word(&mut self) -> u64 {
        self.0 += 1;
        Digest(self.0).word(0)
    }

    fn below(&mut self, range: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(range)) >> 64) as u64
    }

    fn address(&mut self) -> u128 {
        u128::from(self.word()) << 64 | u128::from(self.word())
    }
}

impl Family {
    /// An address in use.
    fn address(&self, dice: &mut Dice) -> u128 {
        let top = self.space.0 + dice.below(self.space.1 - self.space.0);
        u128::from(top) << 112 | dice.address() >> 16
    }

    fn length(&self, dice: &mut Dice) -> u32 {
        let all = self.lengths.iter().map(|(_, share)| share).sum();
        let mut at = dice.below(all);
        for &(length, share) in self.lengths {
            if at < share {
                return length;
            }
            at -= share;
        }
        0
    }

    /// Different prefixes, half of them inside others, and the default route.
    fn prefixes(&self, dice: &mut Dice) -> Vec<Prefix> {
        let mut known = BTreeSet::from([Prefix::of(0, 0)]);
        let mut prefixes = vec![Prefix::of(0, 0)];
        while prefixes.len() < self.routes {
            let length = self.length(dice);
            let inside = prefixes[dice.below(prefixes.len() as u64) as usize];
            let address = if dice.below(2) == 0 && (8..length).contains(&inside.length) {
                inside.bits | dice.address() >> inside.length
            } else {
                self.address(dice)
            };
            let prefix = Prefix::of(address, length);
            if known.insert(prefix) {
                prefixes.push(prefix);
            }
        }
        prefixes
    }
}

/// A plain binary trie: what the tables must agree with.
struct Trie {
    /// The two children, 0 for none, and the next hop of the prefix that ends here.
    nodes: Vec<([u32; 2], Option<Hop>)>,
}

impl Trie {
    fn new() -> Self {
        Self { nodes: vec![([0; 2], None)] }
    }

    fn set(&mut self, prefix: Prefix, hop: Option<Hop>) {
        let mut at = 0;
        for depth in 0..prefix.length {
            let side = (prefix.bits >> (127 - depth) & 1) as usize;
            if self.nodes[at].0[side] == 0 {
                self.nodes[at].0[side] = self.nodes.len() as u32;
                self.nodes.push(([0; 2], None));
            }
            at = self.nodes[at].0[side] as usize;
        }
        self.nodes[at].1 = hop;
    }

    fn lookup(&self, address: u128) -> Option<Hop> {
        let (mut at, mut best) = (0, self.nodes[0].1);
        for depth in 0..128 {
            at = self.nodes[at].0[(address >> (127 - depth) & 1) as usize] as usize;
            if at == 0 {
                break;
            }
            best = self.nodes[at].1.or(best);
        }
        best
    }
}

/// One table a length, from the longest.
struct Routes<L> {
    tables: Vec<(u32, FastTable<u128, Hop, L>)>,
}

impl<L: Layout> Routes<L> {
    fn new(prefixes: &[Prefix]) -> Result<Self, Box<dyn std::error::Error>> {
        let mut counts = [0; 129];
        for prefix in prefixes {
            counts[prefix.length as usize] += 1;
        }
        let mut tables = Vec::new();
        for length in (0..=128).rev().filter(|&length| counts[length as usize] > 0) {
            let buckets = counts[length as usize] * BUCKETS_PER_ROUTE;
            let params = TableParams::new(buckets, HASHES)?;
            tables.push((length, FastTable::new(params, Hasher::xxh3(length.into()))?));
        }
        Ok(Self { tables })
    }

    fn table(&mut self, prefix: Prefix) -> Option<&mut FastTable<u128, Hop, L>> {
        let mut tables = self.tables.iter_mut();
        tables.find(|(length, _)| *length == prefix.length).map(|(_, table)| table)
    }

    fn announce(&mut self, prefix: Prefix, hop: Hop) -> Result<Option<Hop>, OutOfMemory> {
        self.table(prefix).map_or(Ok(None), |table| table.insert(prefix.bits, hop))
    }

    fn withdraw(&mut self, prefix: Prefix) -> Option<Hop> {
        self.table(prefix)?.remove(&prefix.bits)
    }

    fn lookup(&self, address: u128, accesses: &mut Accesses) -> Option<Hop> {
        let mut longest_first = self.tables.iter();
        longest_first.find_map(|(length, table)| {
            table.get_traced(&Prefix::of(address, *length).bits, accesses).copied()
        })
    }

    /// Bits of all counters, and of everything.
    fn footprint(&self) -> (u64, u64) {
        let tables = || self.tables.iter().map(|(_, table)| table);
        let counters = tables().filter_map(FastTable::counters).map(Counters::footprint).sum();
        (counters, tables().map(FastTable::footprint).sum())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "family  tables          routes  lengths  on chip   in all  counters     heads     nodes   off-chip reads"
    );
    println!(
        "                                            KiB      KiB         read for a lookup        for a lookup"
    );
    for family in &FAMILIES {
        let mut dice = Dice(family.routes as u64);
        let prefixes = family.prefixes(&mut dice);
        let fast = run::<Pruned>("fast", family, &prefixes, &mut Dice(1))?;
        let chained = run::<Chained>("chained", family, &prefixes, &mut Dice(1))?;
        println!("{:8}{:.1} times fewer reads off chip\n", "", chained / fast);
        assert!(fast < chained, "the counters save nothing");
    }
    Ok(())
}

/// Fills tables of one layout, compares them with a trie, and returns the off-chip reads of a
/// lookup.
fn run<L: Layout>(
    name: &str,
    family: &Family,
    prefixes: &[Prefix],
    dice: &mut Dice,
) -> Result<f64, Box<dyn std::error::Error>> {
    let (mut routes, mut trie) = (Routes::<L>::new(prefixes)?, Trie::new());
    for &prefix in prefixes {
        let hop = dice.below(64) as Hop;
        assert_eq!(routes.announce(prefix, hop)?, None);
        trie.set(prefix, Some(hop));
    }
    let accesses = compare(family, &routes, &trie, prefixes, dice);
    report(name, family, &routes, prefixes.len(), &accesses);

    // Routes go, and others come in their place.
    for _ in 0..CHANGES {
        let gone = prefixes[dice.below(prefixes.len() as u64) as usize];
        routes.withdraw(gone);
        trie.set(gone, None);
        let new = Prefix::of(family.address(dice), family.length(dice));
        let hop = dice.below(64) as Hop;
        routes.announce(new, hop)?;
        trie.set(new, Some(hop));
    }
    for (_, table) in &routes.tables {
        table.validate()?;
    }
    compare(family, &routes, &trie, prefixes, dice);
    Ok((accesses.heads + accesses.nodes) as f64 / ADDRESSES as f64)
}

/// Looks up addresses, most of them under some prefix, and checks each against the trie.
fn compare<L: Layout>(
    family: &Family,
    routes: &Routes<L>,
    trie: &Trie,
    prefixes: &[Prefix],
    dice: &mut Dice,
) -> Accesses {
    let mut accesses = Accesses::default();
    for _ in 0..ADDRESSES {
        let address = if dice.below(4) == 0 {
            family.address(dice)
        } else {
            let prefix = prefixes[dice.below(prefixes.len() as u64) as usize];
            prefix.bits | dice.address().checked_shr(prefix.length).unwrap_or(0)
        };
        assert_eq!(routes.lookup(address, &mut accesses), trie.lookup(address), "{address:x}");
    }
    accesses
}

fn report<L: Layout>(
    name: &str,
    family: &Family,
    routes: &Routes<L>,
    count: usize,
    accesses: &Accesses,
) {
    let (counters, all) = routes.footprint();
    let each = |count: u64| count as f64 / ADDRESSES as f64;
    println!(
        "{:8}{name:12}{count:>10}{:>9}{:>9}{:>9}{:>10.2}{:>10.3}{:>10.3}{:>17.2}",
        family.name,
        routes.tables.len(),
        counters >> 13,
        all >> 13,
        each(accesses.counters),
        each(accesses.heads),
        each(accesses.nodes),
        each(accesses.heads + accesses.nodes),
    );
}
