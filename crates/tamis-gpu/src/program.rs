//! The sources of the kernels, for one shape each.

use tamis::internals::address::SECTION_SALTS;
use tamis::internals::blocked_rank::LevelParts;

const MACHINE: &str = include_str!("kernels/machine.cuh");
const DIGEST: &str = include_str!("kernels/digest.cuh");
const LEVEL: &str = include_str!("kernels/level.cuh");
const FILTER: &str = include_str!("kernels/filter.cu");
const BLOCKED: &str = include_str!("kernels/blocked.cu");

/// Keys that a thread asks for.
pub(crate) const EACH: u64 = 2;
/// Keys that are removed from a group at once.
const REMOVALS: u64 = 2048;
/// The cells that a group has about, and the most blocks.
const GROUP_CELLS: u64 = 1800;
const MOST_BLOCKS: u64 = 128;

/// How the blocks of a level are dealt with: several at once, in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grouping {
    /// Blocks of a group.
    pub(crate) blocks: u64,
    /// Entries of a group that fit into shared memory, a power of two.
    room: u64,
    /// Words of a block.
    words: u64,
    /// Bytes of an identity less the first of its group.
    pub(crate) relative: u64,
}

impl Grouping {
    pub(crate) fn of(level: &LevelParts) -> Self {
        let cells = u64::from(level.cells);
        let blocks = (GROUP_CELLS / cells).clamp(1, MOST_BLOCKS).min(level.blocks);
        let room = (blocks * cells * 5 / 4 + 2).next_power_of_two().max(REMOVALS);
        let identities = blocks * (u64::from(level.locations) << level.width);
        let relative = if identities < u64::from(u32::MAX) { 4 } else { 8 };
        Self { blocks, room, words: level.words.into(), relative }
    }

    /// Groups of a level.
    pub(crate) fn groups(&self, level: &LevelParts) -> u64 {
        level.blocks.div_ceil(self.blocks)
    }

    /// Words of shared memory to insert into a group.
    pub(crate) fn to_insert(self) -> u64 {
        // Entries twice, blocks, four numbers of 32 bits for each block and one more, and a word.
        2 * self.room * self.relative / 8 + self.blocks * self.words + 2 * (self.blocks + 1) + 1
    }

    /// Words of shared memory to remove from a group.
    pub(crate) fn to_remove(self) -> u64 {
        self.to_insert() + REMOVALS * self.relative / 8 + 2 * (self.room / 64 + 1)
    }
}

/// The kernels for a level.
pub(crate) fn of_level(level: &LevelParts) -> String {
    let Grouping { blocks, room, relative, .. } = Grouping::of(level);
    let LevelParts { words, locations, cells, width, .. } = level;
    let constants = format!(
        "#define WORDS {words}u\n#define LOCATIONS {locations}u\n#define CELLS {cells}u\n\
         #define WIDTH {width}u\n#define GROUP {blocks}ull\n#define ROOM {room}u\n\
         #define REMOVALS {REMOVALS}u\n#define EACH {EACH}u\n#define RELATIVE u{}\n",
        8 * relative
    );
    [&constants, MACHINE, DIGEST, LEVEL, FILTER].concat()
}

/// The kernels for `blocked` with blocks of `words` words, in `hashes` sections.
pub(crate) fn of_blocked(words: u32, hashes: u32) -> String {
    let salts = SECTION_SALTS[..hashes as usize].iter().map(|salt| format!("{salt}u"));
    let salts = salts.collect::<Vec<_>>().join(", ");
    let constants =
        format!("#define BLOCK_WORDS {words}u\n#define HASHES {hashes}u\n#define SALTS {salts}\n");
    [&constants, MACHINE, DIGEST, BLOCKED].concat()
}
