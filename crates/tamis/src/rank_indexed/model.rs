//! The model of rank-indexed filters: bits, rate, and the chance that the extensions run out.
//!
//! Source: Hua, Zhao, Lin, Xu, "Rank-Indexed Hashing", ICNP 2008, with the recomputation and the
//! errata of `checked-rank-indexed.md` ("the notes").
//!
//! | symbol | meaning |
//! |---|---|
//! | n | keys |
//! | B | buckets |
//! | L | chain locations of a bucket, one index bit each |
//! | r | fingerprint bits |
//! | c | bits of a cell with its index bit: 1 + r, plus counter or value bits |
//! | U | identities, B L 2^r |
//! | lambda | keys for each chain location, n / (B L) |
//! | m | keys for each bucket, n / B |
//! | Z1, Z2, Z3 | cells of a bucket, of a level-2 and of a level-3 extension |
//! | W1, W2, W3 | loads that fit levels 1, 1-2, 1-3: Z1, Z1+Z2, Z1+Z2+Z3 |
//! | J2, J3 | extensions of levels 2 and 3, of one group |
//! | S | groups: equal runs of buckets, each with its own extensions (S = 1 in the paper) |
//! | G | buckets of a group, B / S |
//! | Po | the promised bound on the chance that some key finds no cell |

use crate::math::tail::{ln_binomial_above, poisson_above};

/// Every number that a rank-indexed table is built from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// B, a multiple of `groups`.
    pub buckets: u64,
    /// L.
    pub locations: u32,
    /// r.
    pub fingerprint: u32,
    /// Counter or value bits of a cell; 0 if there is neither.
    pub extra: u32,
    /// Z1.
    pub level1: u32,
    /// Z2; 0 if and only if `second` is 0.
    pub level2: u32,
    /// Z3; 0 if and only if `third` is 0.
    pub level3: u32,
    /// J2, of each group. 0: a bucket has its first level and nothing else.
    pub second: u64,
    /// J3, of each group. 0: no bucket has a third level.
    pub third: u64,
    /// S.
    pub groups: u64,
}

impl Layout {
    /// c, the bits that a cell occupies: its index bit, its fingerprint, its counter or value.
    pub fn cell(&self) -> u64 {
        1 + u64::from(self.fingerprint) + u64::from(self.extra)
    }

    /// S1 = L + `Z1 c` + 1 + ceil(log2 J2), the bits of a bucket.
    ///
    /// The 1 is the flag of the extension. It stays when J2 = 0, so that sizes can be compared
    /// with the paper's, although both flags could be derived from the index. The printed text has
    /// lost the ceiling; Table III comes out only with it. Tested by `tables_two_and_three`.
    pub fn bucket_bits(&self) -> u64 {
        let cells = u64::from(self.level1) * self.cell();
        u64::from(self.locations) + cells + 1 + pointer_bits(self.second)
    }

    /// S2 = 1 + `Z2 c` + 1 + ceil(log2 J3), the bits of a level-2 extension. Tested with S1.
    pub fn second_bits(&self) -> u64 {
        1 + u64::from(self.level2) * self.cell() + 1 + pointer_bits(self.third)
    }

    /// S3 = 1 + `Z3 c`, the bits of a level-3 extension. Tested with S1.
    pub fn third_bits(&self) -> u64 {
        1 + u64::from(self.level3) * self.cell()
    }

    /// All bits of the table.
    ///
    /// Printed: `B S1 + J2 S2 + J3 S3`. Ours: the extensions are counted once for each group.
    pub fn bits(&self) -> u64 {
        let extensions = self.second * self.second_bits() + self.third * self.third_bits();
        let buckets = self.buckets.saturating_mul(self.bucket_bits());
        buckets.saturating_add(self.groups.saturating_mul(extensions))
    }

    /// [`bits`](Self::bits) divided by `keys`, or by 1 if there are none.
    pub fn bits_per_key(&self, keys: u64) -> f64 {
        self.bits() as f64 / keys.max(1) as f64
    }

    /// G, the buckets that share a pool of extensions.
    pub fn group_buckets(&self) -> u64 {
        self.buckets / self.groups
    }

    /// The largest load that fits a bucket with all its extensions: W3, or W2 or W1 where the
    /// levels above do not exist.
    pub fn reach(&self) -> u64 {
        u64::from(self.level1) + u64::from(self.level2) + u64::from(self.level3)
    }

    /// U. It is a float, because U of a layout that was not planned here may exceed 64 bits.
    pub fn identities(&self) -> f64 {
        libm::ldexp(
            self.buckets as f64 * f64::from(self.locations),
            i32::try_from(self.fingerprint).unwrap_or(i32::MAX),
        )
    }

    /// lambda, the mean length of a chain.
    pub fn lambda(&self, keys: u64) -> f64 {
        keys as f64 / (self.buckets as f64 * f64::from(self.locations))
    }
}

/// ceil(log2 J); 0 for one extension or none.
pub(super) fn pointer_bits(extensions: u64) -> u64 {
    u64::from(u64::BITS - extensions.saturating_sub(1).leading_zeros())
}

/// The rate: the chance that an absent key has the identity of one of the keys.
///
/// Printed: eps = lambda 2^-r, see [`rate_bound`]. Ours: 1 - (1 - 1/U)^n, which is exact for
/// identities that are uniform and independent. It is lower by about the factor 1 - eps/2. Keys
/// with equal digests have equal identities, so no digest floor is added. Tested by `rates`.
pub fn rate(layout: &Layout, keys: u64) -> f64 {
    rate_of(layout.identities(), keys)
}

/// The [`rate`] of `keys` keys among `identities` identities.
pub(crate) fn rate_of(identities: f64, keys: u64) -> f64 {
    if keys == 0 {
        return 0.0;
    }
    -libm::expm1(keys as f64 * libm::log1p(-1.0 / identities))
}

/// eps = lambda 2^-r as printed: the mean number of keys at an identity, which is an upper bound
/// on the [`rate`]. The comparison columns of Tables III to V use it (erratum E3). Tested by
/// `rates`.
pub fn rate_bound(layout: &Layout, keys: u64) -> f64 {
    keys as f64 / layout.identities()
}

/// A bound on the chance that n keys do not all find a cell, clipped to 1.
///
/// Printed: the sum over l = 2, 3, 4 of `Pr[O_l > J_l]`, where `O_l` buckets hold more than
/// `W_(l-1)` and J4 = 0. By Theorem 1 the expectation of an increasing function of the loads is at
/// most twice its expectation over B independent Poisson(m) loads. So l = 2 and 3 give `2
/// Pr[Bin(B, p(W)) > J]` with `p(W) = Pr[Poisson(m) > W]`. For l = 4 the sum of B binomial(n, 1/B)
/// tails is sharper.
///
/// Ours: "a given group has more than J buckets above W" is increasing too, so Theorem 1 holds for
/// each group with G buckets and the union over groups costs the factor S. The last level is the
/// highest that exists, and the levels above it add nothing: with J3 = 0, a load above W2 is
/// already the event of l = 4. At most n / (W+1) buckets can hold more than W, so a pool of that
/// size never runs out; this matters only for a few buckets. The bound holds for every n. Tested
/// by `table_two_bounds`.
pub fn overflow_bound(layout: &Layout, keys: u64) -> f64 {
    let mean = keys as f64 / layout.buckets as f64;
    let w1 = u64::from(layout.level1);
    let w2 = w1 + u64::from(layout.level2);
    let pool = |load: u64, extensions: u64| {
        if extensions == 0 || extensions >= pool_limit(layout, keys, load) {
            return 0.0;
        }
        libm::exp(ln_pool_overflow(layout, poisson_above(load, mean), extensions))
    };
    let levels = pool(w1, layout.second) + pool(w2, layout.third);
    (levels + libm::exp(ln_beyond(layout.buckets, keys, layout.reach()))).min(1.0)
}

/// ln(2 S Pr[Bin(G, p) > J]).
pub(super) fn ln_pool_overflow(layout: &Layout, above: f64, extensions: u64) -> f64 {
    let tail = ln_binomial_above(layout.group_buckets(), above.min(1.0), extensions);
    core::f64::consts::LN_2 + libm::log(layout.groups as f64) + tail
}

/// The most buckets of a group that can hold more than `load`.
pub(super) fn pool_limit(layout: &Layout, keys: u64, load: u64) -> u64 {
    layout.group_buckets().min(keys / (load + 1))
}

/// `ln(B Pr[Bin(n, 1/B) > W])`: the chance for l = 4, where J4 = 0.
pub(super) fn ln_beyond(buckets: u64, keys: u64, load: u64) -> f64 {
    libm::log(buckets as f64) + ln_binomial_above(keys, 1.0 / buckets as f64, load)
}
