// The kernels of `blocked`. They are compiled for BLOCK_WORDS words of a block and HASHES sections.

DEVICE u64 digest_at(const u64 *keys, u64 form, u64 seed, u64 number) {
    if (form == 2) return made_up(seed + number);
    return form == 1 ? digest_of_u64(keys[number], seed) : keys[number];
}

// The bit of a digest in section number `section` of its block: the rule of the library.
DEVICE u32 position(u64 digest, u32 section, u32 salt) {
    u32 start = section * (64 * BLOCK_WORDS) / HASHES;
    u32 size = (section + 1) * (64 * BLOCK_WORDS) / HASHES - start;
    u32 product = (u32)digest * salt;
    return start + (((product >> 16) * size) >> 16);
}

// The bits of a digest in word number `word` of its block.
DEVICE u64 mask_of(u64 digest, u32 word) {
    const u32 salts[HASHES] = {SALTS};
    u64 mask = 0;
    for (u32 section = 0; section < HASHES; ++section) {
        u32 at = position(digest, section, salts[section]);
        if (at / 64 == word) mask |= 1ull << (at % 64);
    }
    return mask;
}

KERNEL insert(u64 words, u64 blocks, u64 keys, u64 form, u64 seed, u64 number) {
    u64 at = BLOCK * THREADS + THREAD;
    if (at >= number) return;
    u64 digest = digest_at((const u64 *)keys, form, seed, at);
    u64 *block = (u64 *)words + high_product(digest, blocks) * BLOCK_WORDS;
    for (u32 word = 0; word < BLOCK_WORDS; ++word) {
        u64 mask = mask_of(digest, word);
        if (mask != 0) set_bits(block + word, mask);
    }
}

// A byte an answer; without `answers` only a count.
KERNEL contains(u64 words, u64 blocks, u64 keys, u64 form, u64 seed, u64 number, u64 answers,
                u64 counter) {
    u64 at = BLOCK * THREADS + THREAD;
    if (at >= number) return;
    u64 digest = digest_at((const u64 *)keys, form, seed, at), lacks = 0;
    const u64 *block = (const u64 *)words + high_product(digest, blocks) * BLOCK_WORDS;
    for (u32 word = 0; word < BLOCK_WORDS; ++word) lacks |= mask_of(digest, word) & ~load(block + word);
    if (answers != 0)
        ((u8 *)answers)[at] = lacks == 0;
    else if (lacks == 0)
        add((u64 *)counter, (u64)1);
}
