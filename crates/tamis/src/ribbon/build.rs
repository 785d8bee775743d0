//! How a level is built: keys in the order of their starts, bucket by bucket, and then the rows
//! from the last to the first.
//!
//! A level is cut into segments that do not touch, so that threads can build them: the keys that
//! start in the last bucket of a segment are all bumped. A reader does not know of segments.

use alloc::vec;
use alloc::vec::Vec;

use super::level::{BUCKET, BUMPED_BELOW, CODES, Equation, Level, ROWS};
use super::params::MAX_COLUMNS;
use crate::bits::{self, OutOfMemory};
use crate::digest::Digest;
use crate::threads::{self, Dealt, deal};

/// Starts of a segment. What is lost at its end, less than a bucket, is little, and several
/// threads have work at a million keys.
pub(super) const SEGMENT: u64 = 1 << 18;

/// Fills the rows and codes of a level, and returns the keys that were bumped.
pub(super) fn build_level(
    level: &Level,
    number: usize,
    array: &mut [u64],
    keys: &[Digest],
    threads: usize,
) -> Result<Vec<Digest>, OutOfMemory> {
    let segments = level.starts.div_ceil(SEGMENT) as usize;
    let segment_of = |key| (level.start(key, number) / SEGMENT) as usize;
    let mut keys = deal(keys, segments, segment_of)?;
    if segments == 0 {
        return Ok(keys.digests);
    }
    let (rows, codes) = array.split_at_mut(level.codes as usize);
    let mut rows = &mut rows[level.first as usize..level.block_at(level.blocks()) as usize];
    let mut codes = &mut codes[..level.buckets().div_ceil(CODES) as usize];
    let mut rest = keys.digests.as_mut_slice();
    let mut bumped = vec![Ok(0); segments];
    let mut work = Vec::with_capacity(segments);
    let ends = keys.ends.iter().zip(&mut bumped).enumerate();
    let mut begin = 0;
    for (index, (&end, bumped)) in ends {
        let first_block = index as u64 * (SEGMENT / ROWS);
        let last = index + 1 == segments;
        let end_block = if last { level.blocks() } else { first_block + SEGMENT / ROWS };
        let words = (level.block_at(end_block) - level.block_at(first_block)) as usize;
        let code_words = if last { codes.len() } else { (SEGMENT / BUCKET / CODES) as usize };
        let own_keys = rest.split_off_mut(..end - begin).unwrap_or_default();
        let own_rows = rows.split_off_mut(..words).unwrap_or_default();
        let own_codes = codes.split_off_mut(..code_words).unwrap_or_default();
        begin = end;
        let segment = Segment { level, number, first_block, end_block, last };
        work.push((segment, own_keys, own_rows, own_codes, bumped));
    }
    threads::for_each(
        threads.min(segments),
        work.into_iter(),
        |(segment, keys, rows, codes, bumped)| {
            *bumped = segment.build(keys, rows, codes);
        },
    );
    let bumped = bumped.into_iter().collect::<Result<Vec<usize>, _>>()?;
    first_of_each(&keys, &bumped)
}

/// The first `counts` keys of each segment.
fn first_of_each(keys: &Dealt, counts: &[usize]) -> Result<Vec<Digest>, OutOfMemory> {
    let mut chosen = bits::with_room(counts.iter().sum::<usize>() as u64)?;
    let begins = [0].iter().chain(&keys.ends);
    for (&begin, &count) in begins.zip(counts) {
        chosen.extend_from_slice(&keys.digests[begin..begin + count]);
    }
    Ok(chosen)
}

/// A part of a level that is built alone.
struct Segment<'a> {
    level: &'a Level,
    number: usize,
    first_block: u64,
    end_block: u64,
    /// Whether it is the last of its level, where no bucket need be given up.
    last: bool,
}

impl Segment<'_> {
    /// Fills rows and codes. Moves the keys that were bumped to the front, and returns how many
    /// there are.
    fn build(
        &self,
        keys: &mut [Digest],
        rows: &mut [u64],
        codes: &mut [u64],
    ) -> Result<usize, OutOfMemory> {
        let (level, number) = (self.level, self.number);
        keys.sort_unstable_by_key(|&key| super::level::position(key, number));
        let distinct = without_copies(keys);
        let columns = level.columns + u32::from(self.first_block < level.wide);
        let compared = bits::low(columns);
        let mut system = System::new((self.end_block - self.first_block) * ROWS)?;
        let first_start = self.first_block * ROWS;
        let end_bucket = if self.last { u64::MAX } else { (self.end_block * ROWS - 1) / BUCKET };
        let (mut from, mut bumped) = (0, 0);
        while from < distinct {
            let bucket = level.start(keys[from], number) / BUCKET;
            let starts = |key: &Digest| level.start(*key, number) - bucket * BUCKET;
            let len = keys[from..distinct].iter().take_while(|key| starts(key) < BUCKET).count();
            let all = &keys[from..from + len];
            let (mut code, mut end) = (0, len);
            if bucket != end_bucket {
                for below in &BUMPED_BELOW[1..] {
                    let begin = all[..end].partition_point(|key| starts(key) < *below);
                    let equations = all[begin..end].iter().map(|&key| {
                        let Equation { coefficients, value } = Equation::of(key);
                        let start = level.start(key, number) - first_start;
                        (start as usize, Equation { coefficients, value: value & compared })
                    });
                    if !system.add_all(equations) {
                        break;
                    }
                    (code, end) = (code + 1, begin);
                }
            }
            let at = bucket - first_start / BUCKET;
            codes[(at / CODES) as usize] |= code << (at % CODES * 2);
            keys.copy_within(from..from + end, bumped);
            (from, bumped) = (from + len, bumped + end);
        }
        let first = level.block_at(self.first_block);
        system.solve(columns, |block, solved| {
            let block = self.first_block + block;
            let at = (level.block_at(block) - first) as usize;
            let own = (level.block_at(block + 1) - first) as usize - at;
            rows[at..at + own].copy_from_slice(&solved[..own]);
        });
        Ok(bumped)
    }
}

/// Moves what differs from the one before to the front, and returns how many those are.
fn without_copies(keys: &mut [Digest]) -> usize {
    let mut distinct = keys.len().min(1);
    for at in 1..keys.len() {
        if keys[at] != keys[distinct - 1] {
            keys[distinct] = keys[at];
            distinct += 1;
        }
    }
    distinct
}

/// Equations in echelon form: row i, where there is one, has its first coefficient at i.
struct System {
    rows: Vec<Equation>,
    /// The rows that the equations which are being added took.
    taken: Vec<usize>,
}

/// What adding an equation came to.
enum Step {
    Goes,
    Done,
    Contradicts,
}

const NONE: Equation = Equation { coefficients: 0, value: 0 };

impl System {
    fn new(rows: u64) -> Result<Self, OutOfMemory> {
        Ok(Self { rows: bits::filled(rows, NONE)?, taken: Vec::new() })
    }

    /// Adds equations, each with its start, or none of them if they contradict what is there.
    ///
    /// Two are added at once, in turn, because a processor waits for the row of one while it works
    /// on the other. Which rows are taken does not depend on the order.
    fn add_all(&mut self, mut equations: impl Iterator<Item = (usize, Equation)>) -> bool {
        self.taken.clear();
        let (mut one, mut other) = (equations.next(), equations.next());
        while let Some(first) = &mut one {
            match self.step(first) {
                Step::Goes => {}
                Step::Done => one = equations.next(),
                Step::Contradicts => return self.undo(),
            }
            if let Some(second) = &mut other {
                match self.step(second) {
                    Step::Goes => {}
                    Step::Done => other = equations.next(),
                    Step::Contradicts => return self.undo(),
                }
            }
            if one.is_none() {
                one = other.take();
            }
        }
        true
    }

    #[inline]
    fn step(&mut self, (at, equation): &mut (usize, Equation)) -> Step {
        let row = &mut self.rows[*at];
        if row.coefficients == 0 {
            *row = *equation;
            self.taken.push(*at);
            return Step::Done;
        }
        equation.coefficients ^= row.coefficients;
        equation.value ^= row.value;
        if equation.coefficients == 0 {
            // It follows from the others, or contradicts them.
            return if equation.value == 0 { Step::Done } else { Step::Contradicts };
        }
        let shift = equation.coefficients.trailing_zeros();
        equation.coefficients >>= shift;
        *at += shift as usize;
        Step::Goes
    }

    /// Takes out the equations that were added last.
    fn undo(&mut self) -> bool {
        for &row in &self.taken {
            self.rows[row] = NONE;
        }
        false
    }

    /// Solves for the rows, from the last to the first; rows that nothing determines are zero.
    /// `write` gets every block of rows as words, a word for each column.
    fn solve(&self, columns: u32, mut write: impl FnMut(u64, &[u64])) {
        let mut solved = [0_u64; MAX_COLUMNS as usize];
        let solved = &mut solved[..columns as usize];
        let (blocks, _) = self.rows.as_chunks::<{ ROWS as usize }>();
        for (block, rows) in blocks.iter().enumerate().rev() {
            for &Equation { coefficients, value } in rows.iter().rev() {
                for (column, bits) in solved.iter_mut().enumerate() {
                    *bits <<= 1;
                    let sum = u64::from((*bits & coefficients).count_ones()) ^ value >> column;
                    *bits |= sum & 1;
                }
            }
            write(block as u64, solved);
        }
    }
}
