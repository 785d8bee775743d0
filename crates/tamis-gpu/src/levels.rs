//! The levels of `blocked-rank` on a machine: batches go in and out, level by level.
//!
//! A batch is dealt out to groups of blocks, and each group is read, changed and written by one
//! block of threads, in shared memory. What a level refuses is a batch for the level behind it;
//! what the last one refuses is listed by the host. So the memory is always what the library would
//! write into a file.
#![allow(unsafe_code)] // Kernels work on addresses; see `run`.

use std::collections::BTreeMap;

use tamis::internals::blocked_rank::LevelParts;

use crate::Error;
use crate::machine::{Machine, Work};
use crate::program::{self, EACH, Grouping};

/// What the kernels call the forms of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Form {
    Digests = 0,
    Integers = 1,
    MadeUp = 2,
    Identities = 3,
    InFront = 4,
}

/// Keys on the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) address: u64,
    pub(crate) form: Form,
    pub(crate) seed: u64,
    pub(crate) number: u64,
}

impl Batch {
    fn arguments(self) -> [u64; 4] {
        [self.address, self.form as u64, self.seed, self.number]
    }
}

/// A level: how it is cut, its memory and its kernels.
struct Level<M: Machine> {
    parts: LevelParts,
    grouping: Grouping,
    words: M::Buffer,
    program: M::Program,
}

/// All levels, and the list at the end.
pub(crate) struct Levels<M: Machine> {
    machine: M,
    /// The levels, those in front first.
    all: Vec<Level<M>>,
    /// The same as the kernels read them.
    described: M::Buffer,
    /// Identities that found no cell, and how often each is in.
    list: BTreeMap<u64, u64>,
    /// The same for the kernels: all identities, then all counts.
    listed: M::Buffer,
    /// Whether a change has begun and not ended: keys may be missing.
    half_done: bool,
}

/// A batch, dealt out to groups.
struct Dealt<M: Machine> {
    keys: M::Buffer,
    /// Where the groups begin; or how many keys each has, if each has `room`.
    starts: M::Buffer,
    room: u64,
    /// Identities that found no room.
    left: M::Buffer,
    number_left: u64,
}

/// What a batch left behind: how many, and what was counted beside.
struct Left<M: Machine> {
    identities: M::Buffer,
    number: u64,
    removed: u64,
}

/// From this many keys a group on, on average, a batch is dealt out at once: each group gets room
/// for some more than the average, and what finds none comes again. (Otherwise keys are counted
/// before.)
const MANY: u64 = 64;

impl<M: Machine + Clone> Levels<M> {
    /// Levels with these words each, and a list.
    pub(crate) fn new(
        machine: &M,
        parts: &[LevelParts],
        words: &[Vec<u64>],
        list: BTreeMap<u64, u64>,
    ) -> Result<Self, Error> {
        let mut levels = Vec::new();
        for (parts, words) in parts.iter().zip(words) {
            levels.push(Level::new(machine, *parts, machine.upload(words)?)?);
        }
        Self::of_levels(machine, levels, list)
    }

    /// Empty levels.
    pub(crate) fn empty(machine: &M, parts: &[LevelParts]) -> Result<Self, Error> {
        let mut levels = Vec::new();
        for parts in parts {
            let words = machine.zeroed(parts.blocks * u64::from(parts.words))?;
            levels.push(Level::new(machine, *parts, words)?);
        }
        Self::of_levels(machine, levels, BTreeMap::new())
    }

    fn of_levels(
        machine: &M,
        levels: Vec<Level<M>>,
        list: BTreeMap<u64, u64>,
    ) -> Result<Self, Error> {
        let described: Vec<u64> = levels
            .iter()
            .flat_map(|level| describe(&level.parts, machine.address(&level.words)))
            .collect();
        let described = machine.upload(&described)?;
        let listed = machine.allocate(0)?;
        let machine = machine.clone();
        let mut new = Self { machine, all: levels, described, list, listed, half_done: false };
        new.upload_list()?;
        Ok(new)
    }

    /// Identities that found no cell, and how often each is in.
    pub(crate) fn list(&self) -> &BTreeMap<u64, u64> {
        &self.list
    }

    /// Refuses levels of which a change has ended in the middle.
    fn whole(&self) -> Result<(), Error> {
        if self.half_done { Err(Error::HalfDone) } else { Ok(()) }
    }

    /// The words of every level.
    pub(crate) fn read(&self) -> Result<Vec<Vec<u64>>, Error> {
        self.whole()?;
        let words = |level: &Level<M>| {
            let number = level.parts.blocks * u64::from(level.parts.words);
            self.machine.read(&level.words, number)
        };
        self.all.iter().map(words).collect()
    }

    /// Different identities in the list.
    pub(crate) fn listed(&self) -> u64 {
        self.list.len() as u64
    }

    /// Bytes of memory of the machine.
    pub(crate) fn bytes(&self) -> u64 {
        let words = |level: &Level<M>| level.parts.blocks * u64::from(level.parts.words);
        8 * (self.all.iter().map(words).sum::<u64>() + 2 * self.listed())
    }

    /// Inserts keys.
    pub(crate) fn insert(&mut self, batch: Batch) -> Result<(), Error> {
        self.whole()?;
        self.insert_from(0, batch)?;
        self.half_done = false;
        Ok(())
    }

    /// Removes each key once, and returns how many were in.
    pub(crate) fn remove(&mut self, batch: Batch) -> Result<u64, Error> {
        self.whole()?;
        let removed = self.remove_from(0, batch)?;
        self.half_done = false;
        Ok(removed)
    }

    fn insert_from(&mut self, own: usize, batch: Batch) -> Result<(), Error> {
        if batch.number == 0 {
            return Ok(());
        }
        if own == self.all.len() {
            for identity in self.identities_behind(own, batch)? {
                *self.list.entry(identity).or_default() += 1;
            }
            return self.upload_list();
        }
        let dealt = self.deal_out(own, batch)?;
        // A key may send other ones behind, but no more than there are cells.
        let most = batch.number + self.all[own].cells();
        let left = self.on_groups(own, &dealt, "insert_groups", most, Grouping::to_insert)?;
        self.insert_from(own + 1, self.behind(&left))?;
        self.insert_from(own, self.again(&dealt))
    }

    fn remove_from(&mut self, own: usize, batch: Batch) -> Result<u64, Error> {
        if batch.number == 0 {
            return Ok(0);
        }
        if own == self.all.len() {
            let mut removed = 0;
            for identity in self.identities_behind(own, batch)? {
                if let Some(count) = self.list.get_mut(&identity) {
                    removed += 1;
                    *count -= 1;
                    if *count == 0 {
                        self.list.remove(&identity);
                    }
                }
            }
            self.upload_list()?;
            return Ok(removed);
        }
        let dealt = self.deal_out(own, batch)?;
        let left =
            self.on_groups(own, &dealt, "remove_groups", batch.number, Grouping::to_remove)?;
        let mut removed = left.removed + self.remove_from(own + 1, self.behind(&left))?;
        let address = self.machine.address(&left.identities);
        let arguments = [&self.chain()[..], &[own as u64, address, left.number]].concat();
        self.run(own, "empty_locations", items(left.number), [0; 2], &arguments)?;
        self.take_back(own)?;
        removed += self.remove_from(own, self.again(&dealt))?;
        Ok(removed)
    }

    /// Takes back what fits again.
    fn take_back(&mut self, own: usize) -> Result<(), Error> {
        let behind = self.all[own + 1..].iter().map(Level::cells).sum::<u64>();
        let most = behind + self.list.values().sum::<u64>();
        if most == 0 {
            return Ok(());
        }
        // No block takes more than it has cells.
        let taken = self.machine.allocate(most.min(self.all[own].cells()))?;
        let counter = self.machine.zeroed(1)?;
        let addresses = [self.machine.address(&taken), self.machine.address(&counter)];
        let arguments = [&self.chain()[..], &[own as u64], &addresses].concat();
        self.run(own, "take_back", items(self.all[own].parts.blocks), [0; 2], &arguments)?;
        let number = self.machine.read(&counter, 1)?[0];
        let batch = Batch { address: addresses[0], form: Form::Identities, seed: 0, number };
        self.remove_from(own + 1, batch)?;
        Ok(())
    }

    /// Deals a batch out to the groups of a level.
    fn deal_out(&self, own: usize, batch: Batch) -> Result<Dealt<M>, Error> {
        let level = &self.all[own];
        let groups = level.grouping.groups(&level.parts);
        let mean = batch.number / groups;
        // What comes again has one form, and is counted, so that this ends.
        let room = if mean >= MANY && batch.form != Form::Identities {
            mean + 6 * mean.isqrt() + 16
        } else {
            0
        };
        let at = |buffer| self.machine.address(buffer);
        let keys = [&[at(&self.described), own as u64][..], &batch.arguments()].concat();
        let starts = self.machine.zeroed(groups + 1)?;
        let mut cursors = None;
        if room == 0 {
            let arguments = [&keys[..], &[at(&starts)]].concat();
            self.run(own, "count_groups", items(batch.number), [0; 2], &arguments)?;
            self.run(own, "sum_up", Work::Groups(1), [0, 1], &[at(&starts), groups])?;
            let mut copy = self.machine.allocate(groups + 1)?;
            self.machine.copy(&starts, &mut copy, groups + 1)?;
            cursors = Some(copy);
        }
        let places = if room == 0 { batch.number } else { groups * room };
        let dealt = self.machine.allocate((places * level.grouping.relative).div_ceil(8))?;
        let left = self.machine.allocate(if room == 0 { 0 } else { batch.number })?;
        let counter = self.machine.zeroed(1)?;
        let cursors = at(cursors.as_ref().unwrap_or(&starts));
        let more = [cursors, at(&dealt), room, at(&left), at(&counter)];
        let arguments = [&keys[..], &more].concat();
        self.run(own, "deal_out", items(batch.number), [0; 2], &arguments)?;
        let number_left = if room == 0 { 0 } else { self.machine.read(&counter, 1)?[0] };
        Ok(Dealt { keys: dealt, starts, room, left, number_left })
    }

    /// Runs a kernel on each group of a level, which changes it.
    fn on_groups(
        &mut self,
        own: usize,
        dealt: &Dealt<M>,
        kernel: &'static str,
        most: u64,
        shared: fn(Grouping) -> u64,
    ) -> Result<Left<M>, Error> {
        let level = &self.all[own];
        let identities = self.machine.allocate(most)?;
        let counter = self.machine.zeroed(2)?;
        let [described, keys, starts, to, counter_at] =
            [&self.described, &dealt.keys, &dealt.starts, &identities, &counter]
                .map(|buffer| self.machine.address(buffer));
        let arguments = [described, own as u64, keys, starts, dealt.room, to, counter_at];
        let groups = Work::Groups(level.grouping.groups(&level.parts));
        let shared = [shared(level.grouping), 0];
        self.half_done = true;
        self.run(own, kernel, groups, shared, &arguments)?;
        let counted = self.machine.read(&counter, 2)?;
        Ok(Left { identities, number: counted[0], removed: counted[1] })
    }

    /// What found no room when a batch was dealt out, as another one.
    fn again(&self, dealt: &Dealt<M>) -> Batch {
        let address = self.machine.address(&dealt.left);
        Batch { address, form: Form::Identities, seed: 0, number: dealt.number_left }
    }

    /// What a level left, as a batch for the next.
    fn behind(&self, left: &Left<M>) -> Batch {
        let address = self.machine.address(&left.identities);
        Batch { address, form: Form::InFront, seed: 0, number: left.number }
    }

    /// The identities of a batch for the list, which is level number `own`.
    fn identities_behind(&self, own: usize, batch: Batch) -> Result<Vec<u64>, Error> {
        let identities = self.machine.allocate(batch.number)?;
        let arguments = [
            self.machine.address(&self.described),
            own as u64 - 1,
            batch.address,
            batch.form as u64,
            batch.number,
            self.machine.address(&identities),
        ];
        debug_assert!(matches!(batch.form, Form::InFront | Form::Identities));
        self.run(own - 1, "send_behind", items(batch.number), [0; 2], &arguments)?;
        self.machine.read(&identities, batch.number)
    }

    /// Whether each key is in, a byte each, into `answers`; and how many are, if `answers` is 0.
    /// `machine` is this one, perhaps by another way: several may ask at once.
    pub(crate) fn contains(&self, machine: &M, batch: Batch, answers: u64) -> Result<u64, Error> {
        self.whole()?;
        let waiting = machine.allocate(batch.number)?;
        let counter = machine.zeroed(2)?;
        let [waiting_at, counter_at, described] =
            [&waiting, &counter, &self.described].map(|buffer| machine.address(buffer));
        let program = &self.all[0].program;
        let keys = [&[described, 0][..], &batch.arguments()].concat();
        let arguments = [&keys[..], &[answers, waiting_at, counter_at]].concat();
        let work = Work::Items { number: batch.number, each: EACH };
        run(machine, program, "contains", work, [2, EACH], &arguments)?;
        let waits = machine.read(&counter, 1)?[0];
        let keys = &batch.arguments()[..3];
        let more = [waiting_at, waits, answers, counter_at];
        let arguments = [&self.chain()[..], keys, &more].concat();
        run(machine, program, "contains_behind", items(waits), [0; 2], &arguments)?;
        if answers != 0 {
            return Ok(0);
        }
        Ok(machine.read(&counter, 2)?[1])
    }

    /// Reads `number` lines of 64 bytes of the blocks in front at random, which no question can
    /// beat.
    pub(crate) fn read_lines(&self, number: u64) -> Result<(), Error> {
        let counter = self.machine.zeroed(1)?;
        let LevelParts { blocks, words, .. } = self.all[0].parts;
        let address = self.machine.address(&self.all[0].words);
        let lines = blocks * u64::from(words / 8);
        let arguments = [address, lines, 1, number, self.machine.address(&counter)];
        self.run(0, "read_lines", items(number), [0; 2], &arguments)
    }

    /// How often each key is in, a word each, into `counts`.
    pub(crate) fn count(&self, batch: Batch, counts: u64) -> Result<(), Error> {
        self.whole()?;
        let arguments = [&self.chain()[..], &batch.arguments(), &[counts]].concat();
        self.run(0, "count", items(batch.number), [0; 2], &arguments)
    }

    /// All identities, each as often as it is in, and their number.
    pub(crate) fn identities(&self) -> Result<(M::Buffer, u64), Error> {
        self.whole()?;
        let blocks = self.all[0].parts.blocks;
        let starts = self.machine.zeroed(blocks + 1)?;
        let starts_at = self.machine.address(&starts);
        let arguments = [&self.chain()[..], &[starts_at]].concat();
        self.run(0, "count_blocks", items(blocks), [0; 2], &arguments)?;
        self.run(0, "sum_up", Work::Groups(1), [0, 1], &[starts_at, blocks])?;
        let number = self.machine.read(&starts, blocks + 1)?[blocks as usize];
        let identities = self.machine.allocate(number)?;
        let arguments =
            [&self.chain()[..], &[starts_at, self.machine.address(&identities)]].concat();
        self.run(0, "list_blocks", items(blocks), [0; 2], &arguments)?;
        Ok((identities, number))
    }

    /// Digests of keys of any length: key i is the bytes offsets[i] to offsets[i + 1] of some
    /// bytes, which are given by address and number.
    pub(crate) fn digests(
        &self,
        [bytes, length]: [u64; 2],
        offsets: u64,
        number: u64,
        seed: u64,
    ) -> Result<M::Buffer, Error> {
        let digests = self.machine.allocate(number)?;
        let faults = self.machine.zeroed(1)?;
        let [to, faults_at] = [&digests, &faults].map(|buffer| self.machine.address(buffer));
        let arguments = [bytes, length, offsets, number, seed, to, faults_at];
        self.run(0, "digest_bytes", items(number), [0; 2], &arguments)?;
        if self.machine.read(&faults, 1)?[0] == 0 { Ok(digests) } else { Err(Error::Offsets) }
    }

    /// What kernels that look behind are told.
    fn chain(&self) -> [u64; 4] {
        let at = |buffer| self.machine.address(buffer);
        [at(&self.described), self.all.len() as u64, at(&self.listed), self.listed()]
    }

    fn upload_list(&mut self) -> Result<(), Error> {
        let words: Vec<u64> = self.list.keys().chain(self.list.values()).copied().collect();
        self.listed = self.machine.upload(&words)?;
        Ok(())
    }

    fn run(
        &self,
        own: usize,
        kernel: &'static str,
        work: Work,
        shared: [u64; 2],
        arguments: &[u64],
    ) -> Result<(), Error> {
        run(&self.machine, &self.all[own].program, kernel, work, shared, arguments)
    }
}

fn run<M: Machine>(
    machine: &M,
    program: &M::Program,
    kernel: &'static str,
    work: Work,
    shared: [u64; 2],
    arguments: &[u64],
) -> Result<(), Error> {
    // SAFETY: the arguments are made in this file, each for its kernel, from buffers that are
    // freed after what was started before, and that are as large as the kernel may fill them.
    // Blocks are those that the library has checked, or that kernels made of such.
    unsafe { machine.launch(program, kernel, work, shared, arguments) }
}

impl<M: Machine> Level<M> {
    fn new(machine: &M, parts: LevelParts, words: M::Buffer) -> Result<Self, Error> {
        let program = machine.compile(&program::of_level(&parts))?;
        Ok(Self { parts, grouping: Grouping::of(&parts), words, program })
    }

    /// Cells of all blocks.
    fn cells(&self) -> u64 {
        self.parts.blocks * u64::from(self.parts.cells)
    }
}

fn items(number: u64) -> Work {
    Work::Items { number, each: 1 }
}

/// A level as `struct Level` of the kernels.
fn describe(parts: &LevelParts, words: u64) -> [u64; 11] {
    let per_block = u64::from(parts.locations) << parts.width;
    let all_locations = parts.blocks * u64::from(parts.locations);
    // floor(2^64 / per_block), as far as it fits.
    let over = |number: u128, by: u64| u64::try_from(number / u128::from(by)).unwrap_or(u64::MAX);
    [
        words,
        parts.blocks,
        per_block,
        over(1 << 64, per_block),
        all_locations,
        parts.factor,
        over(u128::from(parts.factor) << 64, all_locations),
        parts.words.into(),
        parts.locations.into(),
        parts.cells.into(),
        parts.width.into(),
    ]
}
