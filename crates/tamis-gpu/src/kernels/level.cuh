// Levels of `blocked-rank`: blocks of runs, and what is behind them. See docs/wire.md and the room
// `blocked_rank` of the library, which these functions follow.

// A level as the host describes it.
struct Level {
    u64 *words;
    u64 blocks;
    // Identities of a block, and floor(2^64 / that).
    u64 per_block, inverse;
    // Locations of all blocks, and how they are spread behind: times `factor`, modulo their number;
    // `quotient` is floor(factor 2^64 / that).
    u64 all_locations, factor, quotient;
    // How a block is cut.
    u64 block_words, locations, cells, width;
};

// The levels of a filter, and the list at the end: `listed` identities in order, then their counts.
struct Chain {
    const Level *levels;
    u32 number;
    const u64 *list;
    u64 listed;
};

// A shape that is known when the kernel is compiled: that of its own level.
struct Own {
    DEVICE_MEMBER u32 words() const { return WORDS; }
    DEVICE_MEMBER u32 locations() const { return LOCATIONS; }
    DEVICE_MEMBER u32 cells() const { return CELLS; }
    DEVICE_MEMBER u32 width() const { return WIDTH; }
};

// A shape that is not: that of a level behind.
struct Any {
    u32 w, l, z, r;
    DEVICE_MEMBER explicit Any(const Level &level)
        : w((u32)level.block_words), l((u32)level.locations), z((u32)level.cells),
          r((u32)level.width) {}
    DEVICE_MEMBER u32 words() const { return w; }
    DEVICE_MEMBER u32 locations() const { return l; }
    DEVICE_MEMBER u32 cells() const { return z; }
    DEVICE_MEMBER u32 width() const { return r; }
};

// The identities of a block of the kernel's own level.
static constexpr u64 PER_BLOCK = (u64)LOCATIONS << WIDTH;

// The `width` bits from bit `at` of a block on.
DEVICE u64 bits_at(const u64 *block, u32 at, u32 width) {
    u32 word = at / 64, offset = at % 64;
    u64 bits = block[word] >> offset;
    if (offset + width > 64) bits |= block[word + 1] << (64 - offset);
    return bits & low(width);
}

template <class S> DEVICE u32 ends_at(const S &s) { return 64 * s.words() - s.cells(); }

template <class S> DEVICE u64 print_of(const S &s, const u64 *block, u32 cell) {
    return bits_at(block, s.locations() + cell * s.width(), s.width());
}

// How many of the `count` bits from bit `from` on are set.
DEVICE u32 ones_in(const u64 *block, u32 from, u32 count) {
    u32 all = 0;
    while (count > 0) {
        u32 offset = from % 64, here = count < 64 - offset ? count : 64 - offset;
        all += ones(block[from / 64] >> offset & low(here));
        from += here;
        count -= here;
    }
    return all;
}

// Set bit number `rank` among the `count` bits from bit `from` on; `count` if there are fewer.
DEVICE u32 nth_in(const u64 *block, u32 from, u32 count, u32 rank) {
    u32 passed = 0;
    while (passed < count) {
        u32 offset = (from + passed) % 64;
        u32 here = count - passed < 64 - offset ? count - passed : 64 - offset;
        u64 word = block[(from + passed) / 64] >> offset & low(here);
        u32 found = ones(word);
        if (rank < found) return passed + nth(word, rank);
        rank -= found;
        passed += here;
    }
    return count;
}

// The first set bit among the bits `passed` to `count` from bit `from` on; `count` if there is none.
DEVICE u32 next_in(const u64 *block, u32 from, u32 count, u32 passed) {
    while (passed < count) {
        u32 offset = (from + passed) % 64;
        u32 here = count - passed < 64 - offset ? count - passed : 64 - offset;
        u64 word = block[(from + passed) / 64] >> offset & low(here);
        if (word != 0) return passed + lowest(word);
        passed += here;
    }
    return count;
}

// Runs here, occupied locations, and cells in use.
template <class S> DEVICE u32 runs_of(const S &s, const u64 *block) {
    return ones_in(block, ends_at(s), s.cells());
}
template <class S> DEVICE u32 occupied_of(const S &s, const u64 *block) {
    return ones_in(block, 0, s.locations());
}
template <class S> DEVICE u32 used_of(const S &s, const u64 *block) {
    u32 from = ends_at(s), word = s.words();
    while (word-- > from / 64) {
        u64 bits = block[word];
        if (word == from / 64) bits &= ~low(from % 64);
        if (bits != 0) return 64 * word + highest(bits) - from + 1;
    }
    return 0;
}

// The lowest location behind a block; as many as there are locations if none is.
template <class S> DEVICE u32 lowest_behind(const S &s, const u64 *block) {
    return nth_in(block, 0, s.locations(), runs_of(s, block));
}

// Where the run of a location is.
struct Spot {
    bool is_occupied, is_here;
    // Its cells.
    u32 start, end;
};

template <class S> DEVICE Spot spot_of(const S &s, const u64 *block, u32 location) {
    Spot spot = {false, false, 0, 0};
    spot.is_occupied = block[location / 64] >> (location % 64) & 1;
    if (!spot.is_occupied) return spot;
    u32 rank = ones_in(block, 0, location), from = ends_at(s), cells = s.cells();
    u32 start = rank == 0 ? 0 : nth_in(block, from, cells, rank - 1) + 1;
    u32 last = next_in(block, from, cells, start);
    spot.is_here = last < cells;
    spot.start = start;
    spot.end = last + 1;
    return spot;
}

// What a block says of a fingerprint.
enum Answer { ABSENT, PRESENT, BEHIND };

#if WORDS == 8

// Fingerprints are compared as lanes of a word.
DEVICE constexpr u64 ones_of_lanes() {
    u64 ones = 0;
    for (u32 at = 0; at + WIDTH <= 64; at += WIDTH) ones |= 1ull << at;
    return ones;
}
static constexpr u64 ONES = ones_of_lanes(), TOPS = ONES << (WIDTH - 1), OTHERS = TOPS - ONES;
static constexpr u32 LANES = 64 / WIDTH;

// Word number `number` of a line in registers, which have no numbers.
DEVICE u64 word_of(const u64 *line, u32 number) {
    u64 word = line[0];
#pragma unroll
    for (u32 other = 1; other < 8; ++other) word = number == other ? line[other] : word;
    return word;
}

// Whether a fingerprint is in a block of one cache line, which is read at once. Each map is a word.
DEVICE Answer find(const u64 *block, u32 location, u64 print) {
    u64 line[8];
    load_line(block, line);
    u64 occupied = line[0], ends = line[7] >> (64 - CELLS);
    if ((occupied >> location & 1) == 0) return ABSENT;
    u32 rank = ones(occupied & low(location));
    u32 start = rank == 0 ? 0 : nth(ends, rank - 1) + 1;
    u64 rest = start < 64 ? ends >> start : 0;
    if (rest == 0) return BEHIND;
    for (u32 left = lowest(rest) + 1;;) {
        u32 at = LOCATIONS + start * WIDTH, offset = at % 64;
        u64 window = word_of(line, at / 64) >> offset;
        if (offset > 0) window |= word_of(line, at / 64 + 1) << (64 - offset);
        u64 differs = window ^ print * ONES, equal = ~(((differs & OTHERS) + OTHERS) | differs) & TOPS;
        if (left < LANES) equal &= low(left * WIDTH);
        if (equal != 0) return PRESENT;
        if (left <= LANES) return ABSENT;
        left -= LANES;
        start += LANES;
    }
}

#else

DEVICE Answer find(const u64 *block, u32 location, u64 print) {
    Own shape;
    Spot spot = spot_of(shape, block, location);
    if (!spot.is_here) return spot.is_occupied ? BEHIND : ABSENT;
    for (u32 cell = spot.start; cell < spot.end; ++cell)
        if (print_of(shape, block, cell) == print) return PRESENT;
    return ABSENT;
}

#endif

// A place: a block, and location and fingerprint in one.
struct Place {
    u64 block, rest;
};

DEVICE Place place_of(const Level &level, u64 identity) {
    u64 block = high_product(identity, level.inverse);
    u64 rest = identity - block * level.per_block;
    if (rest >= level.per_block) {
        block += 1;
        rest -= level.per_block;
    }
    return {block, rest};
}

// The identity behind of an identity: locations are spread, fingerprints stay.
DEVICE u64 behind_of(const Level &level, u64 identity) {
    u32 width = (u32)level.width;
    u64 location = identity >> width;
    u64 whole = high_product(level.quotient, location);
    u64 rest = level.factor * location - whole * level.all_locations;
    if (rest >= level.all_locations) rest -= level.all_locations;
    return rest << width | (identity & low(width));
}

// The first listed identity that is not below `identity`.
DEVICE u64 first_listed(const Chain &chain, u64 identity) {
    u64 from = 0, to = chain.listed;
    while (from < to) {
        u64 middle = (from + to) / 2;
        if (chain.list[middle] < identity)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

// Calls `take(identity - first, count)` for what the levels from number `number` on hold of the
// 2^width identities from `first` on, which are neighbours in one location there.
template <class F>
DEVICE void for_each_behind(const Chain &chain, u32 number, u64 first, u32 width, F take) {
    for (; number < chain.number; ++number) {
        const Level &level = chain.levels[number];
        Any shape(level);
        Place place = place_of(level, first);
        const u64 *block = level.words + place.block * level.block_words;
        Spot spot = spot_of(shape, block, (u32)(place.rest >> shape.width()));
        if (!spot.is_occupied) return;
        if (spot.is_here) {
            u64 print = place.rest & low(shape.width());
            for (u32 cell = spot.start; cell < spot.end; ++cell) {
                u64 held = print_of(shape, block, cell);
                if (held >= print && held - print < 1ull << width) take(held - print, 1ull);
            }
            return;
        }
        first = behind_of(level, first);
    }
    for (u64 at = first_listed(chain, first); at < chain.listed; ++at) {
        u64 identity = chain.list[at];
        if (identity - first >= 1ull << width) return;
        take(identity - first, chain.list[chain.listed + at]);
    }
}

DEVICE u64 count_behind(const Chain &chain, u32 number, u64 first, u32 width) {
    u64 all = 0;
    for_each_behind(chain, number, first, width, [&all](u64, u64 count) { all += count; });
    return all;
}
