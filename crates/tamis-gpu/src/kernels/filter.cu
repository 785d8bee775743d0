// The kernels of `blocked-rank`. All arguments are 64 bits wide: numbers, and addresses on the
// device. A kernel is compiled for the shape of its own level: WORDS, LOCATIONS, CELLS, WIDTH.
// GROUP blocks are a group, whose keys are sorted together; ROOM keys fit into shared memory. An
// identity less the first of its group is a Relative.
typedef RELATIVE Relative;

// What keys are given as.
static constexpr u64 DIGESTS = 0;
static constexpr u64 INTEGERS = 1;   // keys of 64 bits, hashed here
static constexpr u64 MADE_UP = 2;    // none: keys that a benchmark makes up
static constexpr u64 IDENTITIES = 3; // of the kernel's own level
static constexpr u64 IN_FRONT = 4;   // identities of the level in front, which are now behind it

struct Keys {
    const u64 *at;
    u64 form, seed, number;
};

// The place of key number `number`: the rule of the library for digests.
DEVICE Place place_of_key(const Level &level, const Level *front, const Keys &keys, u64 number) {
    u64 key = keys.form == MADE_UP ? made_up(keys.seed + number) : load(keys.at + number);
    if (keys.form == IDENTITIES || keys.form == IN_FRONT) {
        u64 identity = keys.form == IN_FRONT ? behind_of(*front, key) : key;
        u64 block = identity / PER_BLOCK;
        return {block, identity - block * PER_BLOCK};
    }
    if (keys.form == INTEGERS) key = digest_of_u64(key, keys.seed);
    return {high_product(key, level.blocks), high_product(key * level.blocks, PER_BLOCK)};
}

DEVICE u64 threads_before() { return BLOCK * THREADS + THREAD; }

// Digests of keys of any length: key i is the bytes offsets[i] to offsets[i + 1] of `length` bytes.
// Offsets that do not rise, or lead behind the last byte, are counted.
KERNEL digest_bytes(u64 bytes, u64 length, u64 offsets, u64 number, u64 seed, u64 digests,
                    u64 faults) {
    u64 at = threads_before();
    if (at >= number) return;
    u64 from = ((const u64 *)offsets)[at], to = ((const u64 *)offsets)[at + 1];
    if (from > to || to > length)
        add((u64 *)faults, (u64)1);
    else
        ((u64 *)digests)[at] = digest_of_bytes((const u8 *)bytes + from, to - from, seed);
}

// Counts the keys of each group.
KERNEL count_groups(u64 levels, u64 own, u64 keys, u64 form, u64 seed, u64 number, u64 counts) {
    u64 at = threads_before();
    if (at >= number) return;
    const Level *all = (const Level *)levels;
    Keys given = {(const u64 *)keys, form, seed, number};
    add((u64 *)counts + place_of_key(all[own], all + own - 1, given, at).block / GROUP, (u64)1);
}

// Each of `number` numbers becomes the sum of those before it; behind them comes the sum of all.
// One block of threads.
KERNEL sum_up(u64 numbers, u64 number) {
    u64 *at = (u64 *)numbers, *sums = SHARED;
    u64 share = (number + THREADS - 1) / THREADS;
    u64 from = THREAD * share < number ? THREAD * share : number;
    u64 to = from + share < number ? from + share : number, all = 0;
    for (u64 i = from; i < to; ++i) all += at[i];
    sums[THREAD] = all;
    SYNC();
    if (THREAD == 0) {
        u64 before = 0;
        for (u32 thread = 0; thread < THREADS; ++thread) {
            u64 own = sums[thread];
            sums[thread] = before;
            before += own;
        }
        at[number] = before;
    }
    SYNC();
    u64 before = sums[THREAD];
    for (u64 i = from; i < to; ++i) {
        u64 own = at[i];
        at[i] = before;
        before += own;
    }
}

// Deals keys out to their groups. Without `room`, `cursors` are where the groups begin in `dealt`;
// they are where they end afterwards. With it each group has room for that many, `cursors` count
// from 0, and the identities of keys that find no room go to `left`, which `counter` counts.
KERNEL deal_out(u64 levels, u64 own, u64 keys, u64 form, u64 seed, u64 number, u64 cursors,
                u64 dealt, u64 room, u64 left, u64 counter) {
    u64 at = threads_before();
    if (at >= number) return;
    const Level *all = (const Level *)levels;
    Keys given = {(const u64 *)keys, form, seed, number};
    Place place = place_of_key(all[own], all + own - 1, given, at);
    u64 group = place.block / GROUP, to = add((u64 *)cursors + group, (u64)1);
    if (room != 0 && to >= room) {
        ((u64 *)left)[add((u64 *)counter, (u64)1)] = place.block * PER_BLOCK + place.rest;
        return;
    }
    ((Relative *)dealt)[group * room + to] =
        (Relative)((place.block - group * GROUP) * PER_BLOCK + place.rest);
}

// The keys of a group among those that were dealt out.
struct Dealt {
    const Relative *keys;
    u64 number;
};

DEVICE Dealt dealt_to(u64 dealt, u64 starts, u64 room) {
    const u64 *at = (const u64 *)starts + BLOCK;
    if (room == 0) return {(const Relative *)dealt + at[0], at[1] - at[0]};
    return {(const Relative *)dealt + BLOCK * room, at[0] < room ? at[0] : room};
}

// The first of `number` sorted words that is not below `word`.
DEVICE u32 first_from(const Relative *words, u32 number, u64 word) {
    u32 from = 0, to = number;
    while (from < to) {
        u32 middle = (from + to) / 2;
        if (words[middle] < word)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

// Sorts words in shared memory; there must be room up to the next power of two.
DEVICE void sort_any(Relative *words, u32 number) {
    u32 size = 1;
    while (size < number) size *= 2;
    for (u32 at = number + THREAD; at < size; at += THREADS) words[at] = ~(Relative)0;
    SYNC();
    for (u32 run = 2; run <= size; run *= 2) {
        for (u32 apart = run / 2; apart > 0; apart /= 2) {
            for (u32 pair = THREAD; pair < size / 2; pair += THREADS) {
                u32 left = 2 * pair - (pair & (apart - 1)), right = left + apart;
                Relative a = words[left], b = words[right];
                if ((a > b) == ((left & run) == 0)) {
                    words[left] = b;
                    words[right] = a;
                }
            }
            SYNC();
        }
    }
}

// Sorts `number` entries: those of a block are put together, and each is compared with the others of
// its block, which all threads read at once. That is quick where blocks have few cells. `spare` has
// as much room, and `from` a number for each block and one more.
DEVICE void sort(Relative *words, u32 number, Relative *spare, u32 *from) {
    if (CELLS > 128) return sort_any(words, number);
    for (u32 block = THREAD; block <= GROUP; block += THREADS) from[block] = 0;
    SYNC();
    for (u32 at = THREAD; at < number; at += THREADS) add(from + words[at] / (Relative)PER_BLOCK, 1u);
    SYNC();
    if (THREAD == 0) {
        u32 before = 0;
        for (u32 block = 0; block <= GROUP; ++block) {
            u32 own = from[block];
            from[block] = before;
            before += own;
        }
    }
    SYNC();
    for (u32 at = THREAD; at < number; at += THREADS)
        spare[add(from + words[at] / (Relative)PER_BLOCK, 1u)] = words[at];
    SYNC();
    // Now each number is where its block ends.
    for (u32 at = THREAD; at < number; at += THREADS) {
        Relative own = spare[at];
        u32 block = (u32)(own / (Relative)PER_BLOCK), start = block == 0 ? 0 : from[block - 1];
        u32 to = start, end = from[block];
        for (u32 other = start; other < end; ++other) {
            Relative word = spare[other];
            to += word < own || (word == own && other < at);
        }
        words[to] = own;
    }
    SYNC();
}

// The blocks of a group in shared memory, and what is known of each.
struct Group {
    u64 first, blocks;
    Relative *entries, *spare;
    u64 *lines;
    // Of each block: the lowest location behind, the first entry, the first that is not here, and
    // how many were refused by those before it.
    u32 *behind, *from, *cut, *refused;
    // How many other groups refused before.
    u64 *before;
};

DEVICE Group group_of(const Level &level) {
    Group group;
    group.first = BLOCK * GROUP;
    u64 left = level.blocks - group.first;
    group.blocks = left < GROUP ? left : GROUP;
    group.lines = SHARED;
    group.entries = (Relative *)(group.lines + (u64)GROUP * WORDS);
    group.spare = group.entries + ROOM;
    group.behind = (u32 *)(group.spare + ROOM);
    group.from = group.behind + GROUP + 1;
    group.cut = group.from + GROUP + 1;
    group.refused = group.cut + GROUP + 1;
    group.before = (u64 *)(group.refused + GROUP + 1);
    return group;
}

// Lists the cells of all blocks: entries are identities less the first of the group. Returns their
// number.
DEVICE u32 list(const Group &group) {
    Own shape;
    for (u32 block = THREAD; block < group.blocks; block += THREADS) {
        const u64 *line = group.lines + (u64)block * WORDS;
        group.behind[block] = lowest_behind(shape, line);
        group.from[block] = used_of(shape, line);
    }
    SYNC();
    if (THREAD == 0) {
        u32 before = 0;
        for (u32 block = 0; block < group.blocks; ++block) {
            u32 used = group.from[block];
            group.from[block] = before;
            before += used;
        }
        group.from[group.blocks] = before;
    }
    SYNC();
    u32 number = group.from[group.blocks];
    for (u32 at = THREAD; at < number; at += THREADS) {
        u32 block = 0, above = (u32)group.blocks;
        while (above - block > 1) {
            u32 middle = (block + above) / 2;
            if (group.from[middle] <= at)
                block = middle;
            else
                above = middle;
        }
        const u64 *line = group.lines + (u64)block * WORDS;
        u32 cell = at - group.from[block];
        u32 location = nth_in(line, 0, LOCATIONS, ones_in(line, ends_at(shape), cell));
        group.entries[at] = (Relative)(
            block * PER_BLOCK + ((u64)location << WIDTH | print_of(shape, line, cell)));
    }
    SYNC();
    return number;
}

// Writes `number` sorted entries into the blocks, as far as they fit: runs in order of location, and
// nothing from the lowest location behind on. `kept` says which occupied locations stay so. What
// does not fit goes to `refused`, with identities of the level in front; `counter` counts it.
template <class F>
DEVICE void lay_out(const Group &group, u32 number, F kept, u64 *refused, u64 *counter) {
    Own shape;
    u64 *lines = group.lines;
    for (u32 at = THREAD; at < group.blocks * WORDS; at += THREADS) {
        u32 first = at % WORDS * 64;
        u64 locations = first < LOCATIONS ? low(LOCATIONS - first < 64 ? LOCATIONS - first : 64) : 0;
        lines[at] &= locations & kept(at / WORDS, first);
    }
    for (u32 block = THREAD; block <= group.blocks; block += THREADS)
        group.from[block] = first_from(group.entries, number, block * PER_BLOCK);
    SYNC();
    for (u32 block = THREAD; block < group.blocks; block += THREADS) {
        u32 from = group.from[block], end = group.from[block + 1];
        u32 cut = first_from(group.entries, end,
                             block * PER_BLOCK + ((u64)group.behind[block] << WIDTH));
        // Runs are here or behind as a whole.
        if (cut - from > CELLS)
            cut = first_from(group.entries, end, group.entries[from + CELLS] >> WIDTH << WIDTH);
        group.cut[block] = cut;
    }
    SYNC();
    if (THREAD == 0) {
        u32 all = 0;
        for (u32 block = 0; block < group.blocks; ++block) {
            group.refused[block] = all;
            all += group.from[block + 1] - group.cut[block];
        }
        *group.before = all == 0 ? 0 : add(counter, (u64)all);
    }
    SYNC();
    u64 before = *group.before;
    for (u32 at = THREAD; at < number; at += THREADS) {
        u64 entry = group.entries[at];
        u32 block = (u32)((Relative)entry / (Relative)PER_BLOCK);
        u64 within = entry - block * PER_BLOCK, *line = lines + (u64)block * WORDS;
        u32 location = (u32)(within >> WIDTH);
        set_bits(line + location / 64, 1ull << (location % 64));
        u32 cut = group.cut[block];
        if (at >= cut) {
            refused[before + group.refused[block] + (at - cut)] = group.first * PER_BLOCK + entry;
            continue;
        }
        u32 cell = at - group.from[block];
        u64 print = within & low(WIDTH);
        u32 bit = LOCATIONS + cell * WIDTH;
        set_bits(line + bit / 64, print << (bit % 64));
        if (bit % 64 + WIDTH > 64) set_bits(line + bit / 64 + 1, print >> (64 - bit % 64));
        if (at + 1 == cut || group.entries[at + 1] >> WIDTH != entry >> WIDTH) {
            u32 end = ends_at(shape) + cell;
            set_bits(line + end / 64, 1ull << (end % 64));
        }
    }
    SYNC();
}

// Inserts what was dealt to each group into its blocks. What they refuse goes to `refused`.
KERNEL insert_groups(u64 levels, u64 own, u64 dealt, u64 starts, u64 room, u64 refused,
                     u64 counter) {
    const Level &level = ((const Level *)levels)[own];
    Group group = group_of(level);
    Dealt keys = dealt_to(dealt, starts, room);
    if (keys.number == 0) return;
    u64 *memory = level.words + group.first * WORDS;
    for (u32 at = THREAD; at < group.blocks * WORDS; at += THREADS) group.lines[at] = memory[at];
    SYNC();
    while (keys.number > 0) {
        u32 held = list(group);
        u32 taken = (u32)(keys.number < ROOM - held ? keys.number : ROOM - held);
        for (u32 at = THREAD; at < taken; at += THREADS) group.entries[held + at] = keys.keys[at];
        SYNC();
        sort(group.entries, held + taken, group.spare, group.cut);
        lay_out(group, held + taken, [](u32, u32) { return ~0ull; }, (u64 *)refused, (u64 *)counter);
        keys.keys += taken;
        keys.number -= taken;
    }
    for (u32 at = THREAD; at < group.blocks * WORDS; at += THREADS) memory[at] = group.lines[at];
}

// Removes what was dealt to each group from its blocks, each once for each time that it comes. Those
// whose location is behind go to `refused`; the second counter counts those that were removed. Runs
// that would fit now are not taken back yet.
KERNEL remove_groups(u64 levels, u64 own, u64 dealt, u64 starts, u64 room, u64 refused,
                     u64 counter) {
    const Level &level = ((const Level *)levels)[own];
    Group group = group_of(level);
    Dealt keys = dealt_to(dealt, starts, room);
    if (keys.number == 0) return;
    u64 first = group.first * PER_BLOCK, *memory = level.words + group.first * WORDS;
    for (u32 at = THREAD; at < group.blocks * WORDS; at += THREADS) group.lines[at] = memory[at];
    // In shared memory behind the group: what is to be removed, a bit for each entry that goes, and
    // how many go before each word of these bits.
    Relative *removed = (Relative *)(group.before + 1);
    u64 *goes = (u64 *)(removed + REMOVALS);
    u32 *before = (u32 *)(goes + ROOM / 64 + 1);
    SYNC();
    while (keys.number > 0) {
        u32 held = list(group);
        u32 taken = (u32)(keys.number < REMOVALS ? keys.number : REMOVALS);
        for (u32 at = THREAD; at < taken; at += THREADS) removed[at] = keys.keys[at];
        for (u32 at = THREAD; at <= ROOM / 64; at += THREADS) goes[at] = 0;
        SYNC();
        sort(removed, taken, group.spare, group.cut);
        for (u32 at = THREAD; at < taken; at += THREADS) {
            u32 block = (u32)(removed[at] / PER_BLOCK);
            u32 location = (u32)((removed[at] - block * PER_BLOCK) >> WIDTH);
            const u64 *line = group.lines + (u64)block * WORDS;
            bool is_occupied = line[location / 64] >> (location % 64) & 1;
            if (is_occupied && location >= group.behind[block])
                ((u64 *)refused)[add((u64 *)counter, (u64)1)] = first + removed[at];
        }
        // Entry number k of those that are equal goes if more than k such identities come.
        for (u32 at = THREAD; at < held; at += THREADS) {
            Relative entry = group.entries[at];
            u32 k = at - first_from(group.entries, held, entry);
            u32 comes = first_from(removed, taken, entry);
            if (comes + k < taken && removed[comes + k] == entry)
                set_bits(goes + at / 64, 1ull << (at % 64));
        }
        SYNC();
        // What stays moves down.
        if (THREAD == 0) {
            u32 gone = 0;
            for (u32 word = 0; word <= ROOM / 64; ++word) {
                before[word] = gone;
                gone += ones(goes[word]);
            }
            add((u64 *)counter + 1, (u64)gone);
        }
        SYNC();
        for (u32 at = THREAD; at < held; at += THREADS) {
            u64 word = goes[at / 64];
            u32 gone = before[at / 64] + ones(word & low(at % 64));
            if ((word >> (at % 64) & 1) == 0) group.spare[at - gone] = group.entries[at];
        }
        u32 left = held - before[ROOM / 64] - ones(goes[ROOM / 64]);
        SYNC();
        Relative *stays = group.spare;
        group.spare = group.entries;
        group.entries = stays;
        const u32 *behind = group.behind;
        lay_out(
            group, left,
            [behind](u32 block, u32 bit) {
                if (behind[block] <= bit) return ~0ull;
                return behind[block] - bit >= 64 ? 0ull : ~low(behind[block] - bit);
            },
            (u64 *)refused, (u64 *)counter);
        keys.keys += taken;
        keys.number -= taken;
    }
    for (u32 at = THREAD; at < group.blocks * WORDS; at += THREADS) memory[at] = group.lines[at];
}

DEVICE Chain chain_of(u64 levels, u64 number, u64 list, u64 listed) {
    return {(const Level *)levels, (u32)number, (const u64 *)list, listed};
}

// The identities behind a level of what it refused, or of identities that already are those.
KERNEL send_behind(u64 levels, u64 own, u64 refused, u64 form, u64 number, u64 identities) {
    u64 at = threads_before();
    if (at >= number) return;
    u64 identity = ((const u64 *)refused)[at];
    const Level &level = ((const Level *)levels)[own];
    ((u64 *)identities)[at] = form == IN_FRONT ? behind_of(level, identity) : identity;
}

// After identities were removed behind: says of their locations that they have no keys, if they have
// none left.
KERNEL empty_locations(u64 levels, u64 number, u64 list, u64 listed, u64 own, u64 identities,
                       u64 removed) {
    u64 at = threads_before();
    if (at >= removed) return;
    Chain chain = chain_of(levels, number, list, listed);
    const Level &level = chain.levels[own];
    u64 identity = ((const u64 *)identities)[at] >> WIDTH << WIDTH;
    if (count_behind(chain, (u32)own + 1, behind_of(level, identity), WIDTH) > 0) return;
    u64 block = identity / PER_BLOCK;
    u32 location = (u32)((identity - block * PER_BLOCK) >> WIDTH);
    clear_bits(level.words + block * WORDS + location / 64, 1ull << (location % 64));
}

// Takes runs back from behind, as long as the lowest that is there fits. What is taken goes to
// `taken`, with identities of the levels behind, which still hold it.
KERNEL take_back(u64 levels, u64 number, u64 list, u64 listed, u64 own, u64 taken, u64 counter) {
    u64 block = threads_before();
    Chain chain = chain_of(levels, number, list, listed);
    const Level &level = chain.levels[own];
    if (block >= level.blocks) return;
    Own shape;
    u64 *line = level.words + block * WORDS;
    u32 runs = runs_of(shape, line), occupied = occupied_of(shape, line);
    if (runs == occupied) return;
    u32 used = used_of(shape, line);
    while (runs < occupied && used < CELLS) {
        u32 location = nth_in(line, 0, LOCATIONS, runs);
        u64 first = behind_of(level, block * PER_BLOCK + ((u64)location << WIDTH));
        u64 count = count_behind(chain, (u32)own + 1, first, WIDTH);
        if (count > CELLS - used) return;
        u64 to = add((u64 *)counter, count);
        for_each_behind(chain, (u32)own + 1, first, WIDTH, [&](u64 print, u64 times) {
            for (u64 time = 0; time < times; ++time) {
                u32 bit = LOCATIONS + used * WIDTH;
                line[bit / 64] |= print << (bit % 64);
                if (bit % 64 + WIDTH > 64) line[bit / 64 + 1] |= print >> (64 - bit % 64);
                used += 1;
                ((u64 *)taken)[to++] = first + print;
            }
        });
        u32 end = ends_at(shape) + used - 1;
        line[end / 64] |= 1ull << (end % 64);
        runs += 1;
    }
}

// Whether each key is in: a byte an answer. The numbers of keys whose location is behind go to
// `waiting`; `counter` counts them. Without `answers`, only the second counter counts what is in.
KERNEL contains(u64 levels, u64 own, u64 keys, u64 form, u64 seed, u64 number, u64 answers,
                u64 waiting, u64 counter) {
    const Level level = ((const Level *)levels)[own];
    Keys given = {(const u64 *)keys, form, seed, number};
    // Shared memory: where what waits goes, how much of it there is, how much was found, and which
    // keys wait.
    u64 *base = SHARED;
    u32 *count = (u32 *)(base + 1), *found = count + 1, *waits = count + 2;
    if (THREAD == 0) *count = *found = 0;
    SYNC();
    u64 first = BLOCK * THREADS * EACH;
    u32 inside = 0;
#pragma unroll
    for (u32 turn = 0; turn < EACH; ++turn) {
        u32 at = turn * THREADS + THREAD;
        if (first + at >= number) continue;
        Place place = place_of_key(level, 0, given, first + at);
        Answer answer = find(level.words + place.block * WORDS, (u32)(place.rest >> WIDTH),
                             place.rest & low(WIDTH));
        if (answer == BEHIND) waits[add(count, 1u)] = at;
        if (answers != 0) ((u8 *)answers)[first + at] = answer == PRESENT;
        inside += answer == PRESENT;
    }
    if (answers == 0 && inside > 0) add(found, inside);
    SYNC();
    u32 all = *count;
    if (THREAD == 0) {
        *base = all == 0 ? 0 : add((u64 *)counter, (u64)all);
        if (answers == 0 && *found > 0) add((u64 *)counter + 1, (u64)*found);
    }
    SYNC();
    for (u32 at = THREAD; at < all; at += THREADS) ((u64 *)waiting)[*base + at] = first + waits[at];
}

// The answers for keys that wait.
KERNEL contains_behind(u64 levels, u64 number, u64 list, u64 listed, u64 keys, u64 form, u64 seed,
                       u64 waiting, u64 waits, u64 answers, u64 counter) {
    u64 at = threads_before();
    if (at >= waits) return;
    Chain chain = chain_of(levels, number, list, listed);
    const Level &level = chain.levels[0];
    Keys given = {(const u64 *)keys, form, seed, 0};
    u64 key = ((const u64 *)waiting)[at];
    Place place = place_of_key(level, 0, given, key);
    u64 behind = behind_of(level, place.block * PER_BLOCK + place.rest);
    bool is_in = count_behind(chain, 1, behind, 0) > 0;
    if (answers != 0)
        ((u8 *)answers)[key] = is_in;
    else if (is_in)
        add((u64 *)counter + 1, (u64)1);
}

// How often each key is in.
KERNEL count(u64 levels, u64 number, u64 list, u64 listed, u64 keys, u64 form, u64 seed, u64 asked,
             u64 counts) {
    u64 at = threads_before();
    if (at >= asked) return;
    Chain chain = chain_of(levels, number, list, listed);
    Keys given = {(const u64 *)keys, form, seed, asked};
    Place place = place_of_key(chain.levels[0], 0, given, at);
    ((u64 *)counts)[at] = count_behind(chain, 0, place.block * PER_BLOCK + place.rest, 0);
}

// How many keys each block has, here and behind.
KERNEL count_blocks(u64 levels, u64 number, u64 list, u64 listed, u64 counts) {
    u64 block = threads_before();
    Chain chain = chain_of(levels, number, list, listed);
    const Level &level = chain.levels[0];
    if (block >= level.blocks) return;
    Own shape;
    const u64 *line = level.words + block * WORDS;
    u64 all = used_of(shape, line);
    for (u32 rank = runs_of(shape, line), occupied = occupied_of(shape, line); rank < occupied; ++rank) {
        u64 location = nth_in(line, 0, LOCATIONS, rank);
        all += count_behind(chain, 1, behind_of(level, block * PER_BLOCK + (location << WIDTH)), WIDTH);
    }
    ((u64 *)counts)[block] = all;
}

// The identities of each block, here and behind, each as often as it is in, from `starts` on.
KERNEL list_blocks(u64 levels, u64 number, u64 list, u64 listed, u64 starts, u64 identities) {
    u64 block = threads_before();
    Chain chain = chain_of(levels, number, list, listed);
    const Level &level = chain.levels[0];
    if (block >= level.blocks) return;
    Own shape;
    const u64 *line = level.words + block * WORDS;
    u64 *to = (u64 *)identities + ((const u64 *)starts)[block];
    u32 runs = runs_of(shape, line), occupied = occupied_of(shape, line), cell = 0;
    for (u32 rank = 0; rank < occupied; ++rank) {
        u64 location = nth_in(line, 0, LOCATIONS, rank);
        u64 first = block * PER_BLOCK + (location << WIDTH);
        if (rank < runs) {
            u32 last = next_in(line, ends_at(shape), CELLS, cell);
            for (; cell <= last; ++cell) *to++ = first + print_of(shape, line, cell);
        } else {
            for_each_behind(chain, 1, behind_of(level, first), WIDTH, [&](u64 print, u64 times) {
                for (u64 time = 0; time < times; ++time) *to++ = first + print;
            });
        }
    }
}

// The floor of a question: a line of a table of `lines` lines, at random, all of it.
KERNEL read_lines(u64 words, u64 lines, u64 seed, u64 number, u64 counter) {
    u64 at = threads_before(), all = 0, line[8];
    if (at >= number) return;
    load_line((const u64 *)words + 8 * high_product(made_up(seed + at), lines), line);
    for (u32 word = 0; word < 8; ++word) all |= line[word];
    if (all == 0x123456789abcdef) add((u64 *)counter, (u64)1);
}
