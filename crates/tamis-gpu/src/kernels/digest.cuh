// Digests as the library makes them: XXH3 with 64 bits and a seed.

static constexpr u64 P32_1 = 0x9E3779B1ull, P32_2 = 0x85EBCA77ull, P32_3 = 0xC2B2AE3Dull;
static constexpr u64 P64_1 = 0x9E3779B185EBCA87ull, P64_2 = 0xC2B2AE3D27D4EB4Full,
                     P64_3 = 0x165667B19E3779F9ull, P64_4 = 0x85EBCA77C2B2AE63ull,
                     P64_5 = 0x27D4EB2F165667C5ull;
static constexpr u64 MX_1 = 0x165667919E3779F9ull, MX_2 = 0x9FB21C651E98DF25ull;

// The default secret, as words from byte 0 on. Parts of it are also read from bytes between.
#ifdef EMULATED
static const u64 SECRET[24] = {
#else
__device__ const u64 SECRET[24] = {
#endif
    0xbe4ba423396cfeb8ull, 0x1cad21f72c81017cull, 0xdb979083e96dd4deull, 0x1f67b3b7a4a44072ull,
    0x78e5c0cc4ee679cbull, 0x2172ffcc7dd05a82ull, 0x8e2443f7744608b8ull, 0x4c263a81e69035e0ull,
    0xcb00c391bb52283cull, 0xa32e531b8b65d088ull, 0x4ef90da297486471ull, 0xd8acdea946ef1938ull,
    0x3f349ce33f76faa8ull, 0x1d4f0bc7c7bbdcf9ull, 0x3159b4cd4be0518aull, 0x647378d9c97e9fc8ull,
    0xc3ebd33483acc5eaull, 0xeb6313faffa081c5ull, 0x49daf0b751dd0d17ull, 0x9e68d429265516d3ull,
    0xfca1477d58be162bull, 0xce31d07ad1b8f88full, 0x280416958f3acb45ull, 0x7e404bbbcafbd7afull,
};

// Eight bytes of the secret from byte `at` on.
DEVICE u64 secret(u32 at) {
    u32 word = at / 8, shift = 8 * (at % 8);
    return shift == 0 ? SECRET[word] : SECRET[word] >> shift | SECRET[word + 1] << (64 - shift);
}

DEVICE u64 swapped(u64 x) {
    x = (x & 0x00ff00ff00ff00ffull) << 8 | (x >> 8 & 0x00ff00ff00ff00ffull);
    x = (x & 0x0000ffff0000ffffull) << 16 | (x >> 16 & 0x0000ffff0000ffffull);
    return x << 32 | x >> 32;
}
DEVICE u64 swapped32(u64 x) { return swapped(x) >> 32; }
DEVICE u64 rotated(u64 x, u32 by) { return x << by | x >> (64 - by); }
DEVICE u64 folded(u64 a, u64 b) { return a * b ^ high_product(a, b); }
DEVICE u64 xxh64_avalanche(u64 h) {
    h = (h ^ h >> 33) * P64_2;
    h = (h ^ h >> 29) * P64_3;
    return h ^ h >> 32;
}
DEVICE u64 avalanche(u64 h) {
    h = (h ^ h >> 37) * MX_1;
    return h ^ h >> 32;
}

// Keys of 4 to 8 bytes: their first four bytes and their last four.
DEVICE u64 digest_4_to_8(u64 first, u64 last, u64 length, u64 seed) {
    seed ^= swapped32(seed & 0xffffffffull) << 32;
    u64 h = (last + (first << 32)) ^ ((secret(8) ^ secret(16)) - seed);
    h = (h ^ rotated(h, 49) ^ rotated(h, 24)) * MX_2;
    h = (h ^ ((h >> 35) + length)) * MX_2;
    return h ^ h >> 28;
}

// A key that is an integer of 64 bits.
DEVICE u64 digest_of_u64(u64 key, u64 seed) {
    return digest_4_to_8(key & 0xffffffffull, key >> 32, 8, seed);
}

// Bytes at any address.
DEVICE u64 read32(const u8 *at) {
    return (u64)at[0] | (u64)at[1] << 8 | (u64)at[2] << 16 | (u64)at[3] << 24;
}
DEVICE u64 read64(const u8 *at) { return read32(at) | read32(at + 4) << 32; }

DEVICE u64 mixed_16(const u8 *at, u32 from, u64 seed) {
    return folded(read64(at) ^ (secret(from) + seed), read64(at + 8) ^ (secret(from + 8) - seed));
}

DEVICE u64 digest_long(const u8 *key, u64 length, u64 seed) {
    // The secret with the seed: words are changed by turns.
    u64 own[24];
    for (u32 word = 0; word < 24; ++word) own[word] = word % 2 ? SECRET[word] - seed : SECRET[word] + seed;
    u64 sums[8] = {P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1};
    // A block has 16 stripes of 64 bytes; stripe s is mixed with the secret from byte 8 s on.
    u64 stripes = (length - 1) / 64;
    for (u64 stripe = 0; stripe <= stripes; ++stripe) {
        bool is_last = stripe == stripes;
        const u8 *at = is_last ? key + length - 64 : key + 64 * stripe;
        for (u32 lane = 0; lane < 8; ++lane) {
            // The last stripe takes the secret from byte 121 on.
            u32 from = is_last ? 121 + 8 * lane : 8 * (u32)(stripe % 16) + 8 * lane;
            u32 word = from / 8, shift = 8 * (from % 8);
            u64 hidden = shift == 0 ? own[word] : own[word] >> shift | own[word + 1] << (64 - shift);
            u64 value = read64(at + 8 * lane), keyed = value ^ hidden;
            sums[lane ^ 1] += value;
            sums[lane] += (keyed & 0xffffffffull) * (keyed >> 32);
        }
        if (!is_last && stripe % 16 == 15) {
            for (u32 lane = 0; lane < 8; ++lane)
                sums[lane] = (sums[lane] ^ sums[lane] >> 47 ^ own[16 + lane]) * P32_1;
        }
    }
    u64 h = length * P64_1;
    for (u32 pair = 0; pair < 4; ++pair) {
        // From byte 11 of the secret on.
        u64 hidden[2];
        for (u32 half = 0; half < 2; ++half) {
            u32 from = 11 + 16 * pair + 8 * half, word = from / 8, shift = 8 * (from % 8);
            hidden[half] = own[word] >> shift | own[word + 1] << (64 - shift);
        }
        h += folded(sums[2 * pair] ^ hidden[0], sums[2 * pair + 1] ^ hidden[1]);
    }
    return avalanche(h);
}

// A key of any length.
DEVICE u64 digest_of_bytes(const u8 *key, u64 length, u64 seed) {
    if (length == 0) return xxh64_avalanche(seed ^ secret(56) ^ secret(64));
    if (length < 4) {
        u64 joined = (u64)key[0] << 16 | (u64)key[length / 2] << 24 | key[length - 1] | length << 8;
        u64 flip = ((secret(0) ^ secret(0) >> 32) & 0xffffffffull) + seed;
        return xxh64_avalanche(joined ^ flip);
    }
    if (length <= 8) return digest_4_to_8(read32(key), read32(key + length - 4), length, seed);
    if (length <= 16) {
        u64 first = read64(key) ^ ((secret(24) ^ secret(32)) + seed);
        u64 last = read64(key + length - 8) ^ ((secret(40) ^ secret(48)) - seed);
        return avalanche(length + swapped(first) + last + folded(first, last));
    }
    u64 h = length * P64_1;
    if (length <= 128) {
        for (u32 part = (u32)(length - 1) / 32 + 1; part-- > 0;)
            h += mixed_16(key + 16 * part, 32 * part, seed) +
                 mixed_16(key + length - 16 * (part + 1), 32 * part + 16, seed);
        return avalanche(h);
    }
    if (length <= 240) {
        for (u32 part = 0; part < 8; ++part) h += mixed_16(key + 16 * part, 16 * part, seed);
        h = avalanche(h);
        for (u32 part = 8; part < (u32)length / 16; ++part)
            h += mixed_16(key + 16 * part, 16 * (part - 8) + 3, seed);
        h += mixed_16(key + length - 16, 136 - 17, seed);
        return avalanche(h);
    }
    return digest_long(key, length, seed);
}

// Stafford's mixer, for keys that a benchmark makes up.
DEVICE u64 made_up(u64 number) {
    u64 x = number * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}
