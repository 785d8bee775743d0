//! Keys thrown at blocks, without the filter around them: what load models are held against.

use tamis::Digest;

/// Numbers below a bound, the same for every run of a seed.
struct Source {
    digest: Digest,
    drawn: u64,
}

impl Source {
    fn new(seed: u64) -> Self {
        Self { digest: Digest(Digest(seed).word(7)), drawn: 0 }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        ((u128::from(self.digest.word(self.drawn)) * u128::from(bound)) >> 64) as u64
    }

    fn chance(&mut self, probability: f64) -> bool {
        // 2^53 steps of [0, 1).
        (self.below(1 << 53) as f64) < probability * 9_007_199_254_740_992.0
    }
}

/// The loads of `blocks` blocks after each of `keys` keys has gone to a random one.
pub fn thrown(blocks: u64, keys: u64, seed: u64) -> Vec<u32> {
    let mut source = Source::new(seed);
    let mut loads = vec![0; blocks as usize];
    for _ in 0..keys {
        loads[source.below(blocks) as usize] += 1;
    }
    loads
}

/// The loads after `thrown_keys` keys were thrown and all beyond `keys` were removed from the
/// fullest blocks: the bound of paper 001, Theorem 1, built as its proof builds it.
pub fn thrown_and_levelled(blocks: u64, thrown_keys: u64, keys: u64, seed: u64) -> Vec<u32> {
    let mut loads = thrown(blocks, thrown_keys, seed);
    loads.sort_unstable();
    for _ in keys..thrown_keys {
        // The first of the fullest: the order stays.
        let fullest = loads.last().copied().unwrap_or(0);
        let first = loads.partition_point(|&load| load < fullest);
        loads[first] -= 1;
    }
    loads
}

/// A walk of paper 001: a key tries a block of each subtable (or of the one table) until one takes
/// it. A block below the threshold takes any key, one at the threshold takes it with the chance of
/// the coin, one above refuses.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Blocks of each choice's subtable.
    pub subtables: Vec<u64>,
    /// Whether all choices share the first subtable.
    pub shared: bool,
    /// The threshold h.
    pub threshold: u32,
    /// The coin p.
    pub coin: f64,
}

/// What became of the keys.
#[derive(Clone, Debug)]
pub struct Walked {
    /// The loads of all blocks.
    pub loads: Vec<u32>,
    /// Blocks read by all insertions.
    pub read: u64,
    /// Keys that no block took.
    pub refused: u64,
    /// Keys for which no block was read, because the budget was spent.
    pub unread: u64,
}

impl Walk {
    /// Lets `keys` keys walk. After each of them `watch` sees the loads, for curves over time.
    pub fn run(&self, keys: u64, seed: u64, watch: impl FnMut(u64, &[u32])) -> Walked {
        self.walk(keys, u64::MAX, seed, watch)
    }

    /// The same, until `budget` blocks have been read. A key that might read more blocks than are
    /// left is listed without reading any.
    pub fn run_within(&self, keys: u64, budget: u64, seed: u64) -> Walked {
        self.walk(keys, budget, seed, |_, _| {})
    }

    fn walk(
        &self,
        keys: u64,
        budget: u64,
        seed: u64,
        mut watch: impl FnMut(u64, &[u32]),
    ) -> Walked {
        let mut source = Source::new(seed);
        let tables = if self.shared { &self.subtables[..1] } else { &self.subtables[..] };
        let starts: Vec<u64> = tables
            .iter()
            .scan(0, |start, blocks| Some(std::mem::replace(start, *start + blocks)))
            .collect();
        let mut loads = vec![0_u32; tables.iter().sum::<u64>() as usize];
        let (mut read, mut refused, mut unread) = (0, 0, 0);
        for key in 0..keys {
            if read + self.subtables.len() as u64 > budget {
                unread += 1;
                continue;
            }
            let mut taken = false;
            for choice in 0..self.subtables.len() {
                let table = if self.shared { 0 } else { choice };
                let load = &mut loads[(starts[table] + source.below(tables[table])) as usize];
                read += 1;
                taken =
                    *load < self.threshold || (*load == self.threshold && source.chance(self.coin));
                if taken {
                    *load += 1;
                    break;
                }
            }
            refused += u64::from(!taken);
            watch(key + 1, &loads);
        }
        Walked { loads, read, refused, unread }
    }
}
