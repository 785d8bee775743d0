// What a kernel needs of the machine. With EMULATED the same sources are C++ for the processor: one
// thread a block, one block after the other, so that every kernel can be tested without a GPU.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

#ifdef EMULATED

#define DEVICE static inline
#define DEVICE_MEMBER inline
#define KERNEL extern "C" void
extern "C" {
u64 emulated_block = 0;
}
// (Not all programs need it. Those that are loaded share it.)
inline u64 emulated_shared[1 << 17];
#define SHARED emulated_shared
#define BLOCK emulated_block
#define THREAD 0u
#define THREADS 1u
#define SYNC()
#define BOUNDS(threads)

DEVICE u32 ones(u64 word) { return (u32)__builtin_popcountll(word); }
DEVICE u32 ones32(u32 word) { return (u32)__builtin_popcount(word); }
// The number of the lowest set bit; the word must have one.
DEVICE u32 lowest(u64 word) { return (u32)__builtin_ctzll(word); }
// The number of the highest set bit; the word must have one.
DEVICE u32 highest(u64 word) { return 63u - (u32)__builtin_clzll(word); }
DEVICE u64 high_product(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
template <class T> DEVICE T add(T *at, T value) {
    T before = *at;
    *at += value;
    return before;
}
DEVICE void set_bits(u64 *at, u64 bits) { *at |= bits; }
DEVICE void clear_bits(u64 *at, u64 bits) { *at &= ~bits; }
DEVICE u64 load(const u64 *at) { return *at; }
DEVICE void load_line(const u64 *at, u64 *words) {
    for (u32 word = 0; word < 8; ++word) words[word] = at[word];
}

#else

#define DEVICE static __device__ __forceinline__
#define DEVICE_MEMBER __device__ __forceinline__
#define KERNEL extern "C" __global__ void
extern __shared__ u64 shared_words[];
#define SHARED shared_words
#define BLOCK ((u64)blockIdx.x)
#define THREAD threadIdx.x
#define THREADS blockDim.x
#define SYNC() __syncthreads()
#define BOUNDS(threads) __launch_bounds__(threads)

DEVICE u32 ones(u64 word) { return (u32)__popcll(word); }
DEVICE u32 ones32(u32 word) { return (u32)__popc(word); }
DEVICE u32 lowest(u64 word) { return (u32)__ffsll(word) - 1u; }
DEVICE u32 highest(u64 word) { return 63u - (u32)__clzll(word); }
DEVICE u64 high_product(u64 a, u64 b) { return __umul64hi(a, b); }
template <class T> DEVICE T add(T *at, T value) { return atomicAdd(at, value); }
DEVICE void set_bits(u64 *at, u64 bits) { atomicOr(at, bits); }
DEVICE void clear_bits(u64 *at, u64 bits) { atomicAnd(at, ~bits); }
// A word that nothing writes while the kernel runs.
DEVICE u64 load(const u64 *at) { return __ldg(at); }
// The eight words of such a line.
DEVICE void load_line(const u64 *at, u64 *words) {
#pragma unroll
    for (u32 pair = 0; pair < 4; ++pair) {
        ulonglong2 both = __ldg((const ulonglong2 *)at + pair);
        words[2 * pair] = both.x;
        words[2 * pair + 1] = both.y;
    }
}

#endif

DEVICE u64 low(u32 width) { return width == 0 ? 0 : ~0ull >> (64 - width); }

// Set bit number `rank` of a word; 64 if there are fewer.
DEVICE u32 nth(u64 word, u32 rank) {
    u32 half = (u32)word, at = 0, below = ones32(half);
    if (rank >= below) {
        rank -= below;
        half = (u32)(word >> 32);
        at = 32;
        if (rank >= ones32(half)) return 64;
    }
    for (u32 width = 16; width > 0; width >>= 1) {
        below = ones32(half & ((1u << width) - 1u));
        if (rank >= below) {
            rank -= below;
            half >>= width;
            at += width;
        }
    }
    return at;
}
