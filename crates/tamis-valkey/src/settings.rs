//! What an administrator can set: `CONFIG GET bf.*`.

use std::ffi::CStr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::arguments::{integer, is};

/// A whole number, `bf.<name>`.
pub(crate) struct Number {
    pub(crate) name: &'static CStr,
    pub(crate) default: i64,
    pub(crate) least: i64,
    pub(crate) most: i64,
    pub(crate) value: AtomicI64,
}

impl Number {
    const fn new(name: &'static CStr, default: i64, least: i64, most: i64) -> Self {
        Self { name, default, least, most, value: AtomicI64::new(default) }
    }

    /// The value; none is negative except a seed.
    pub(crate) fn get(&self) -> u64 {
        self.value.load(Relaxed) as u64
    }
}

/// A probability, `bf.<name>`, which the server keeps as text.
pub(crate) struct Rate {
    pub(crate) name: &'static CStr,
    pub(crate) default: &'static CStr,
    bits: AtomicU64,
}

impl Rate {
    const fn new(name: &'static CStr, default: &'static CStr) -> Self {
        Self { name, default, bits: AtomicU64::new(0) }
    }

    /// The value.
    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.bits.load(Relaxed))
    }

    /// Takes a new value, if it is one.
    pub(crate) fn set(&self, text: &[u8]) -> bool {
        let rate = str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
        let Some(rate) = rate.filter(|&rate| rate > 0.0 && rate < 1.0) else { return false };
        self.bits.store(rate.to_bits(), Relaxed);
        true
    }
}

/// The most keys that a filter may be reserved for.
pub(crate) const MOST_CAPACITY: i64 = 1 << 30;
/// The largest expansion.
pub(crate) const MOST_EXPANSION: i64 = 32768;

pub(crate) static BF_RATE: Rate = Rate::new(c"bf-error-rate", c"0.01");
pub(crate) static BF_CAPACITY: Number = Number::new(c"bf-initial-size", 100, 1, MOST_CAPACITY);
pub(crate) static BF_EXPANSION: Number = Number::new(c"bf-expansion-factor", 2, 0, MOST_EXPANSION);
pub(crate) static CF_RATE: Rate = Rate::new(c"cf-error-rate", c"0.01");
pub(crate) static CF_CAPACITY: Number = Number::new(c"cf-initial-size", 1024, 2, MOST_CAPACITY);
pub(crate) static CF_BUCKET: Number = Number::new(c"cf-bucket-size", 2, 1, 255);
pub(crate) static CF_ITERATIONS: Number = Number::new(c"cf-max-iterations", 20, 1, 65535);
pub(crate) static CF_EXPANSION: Number = Number::new(c"cf-expansion-factor", 1, 0, MOST_EXPANSION);
pub(crate) static CF_EXPANSIONS: Number = Number::new(c"cf-max-expansions", 32, 1, 1023);
/// Below the server's limit of 512 MiB on one string, so that every filter can be dumped, restored
/// and migrated.
pub(crate) static FILTER_BYTES: Number =
    Number::new(c"max-filter-bytes", 500_000_000, 1024, i64::MAX);
/// What one filter may spend on versions that deltas can start from.
pub(crate) static REMEMBERED_BYTES: Number =
    Number::new(c"max-remembered-bytes", 64 << 20, 0, i64::MAX);
/// The same for all filters, so that they can be merged; an administrator changes it if an
/// adversary may choose keys.
pub(crate) static SEED: Number = Number::new(c"hash-seed", 0, i64::MIN, i64::MAX);

/// All numbers.
pub(crate) static NUMBERS: [&Number; 10] = [
    &BF_CAPACITY,
    &BF_EXPANSION,
    &CF_CAPACITY,
    &CF_BUCKET,
    &CF_ITERATIONS,
    &CF_EXPANSION,
    &CF_EXPANSIONS,
    &FILTER_BYTES,
    &REMEMBERED_BYTES,
    &SEED,
];

/// All probabilities.
pub(crate) static RATES: [&Rate; 2] = [&BF_RATE, &CF_RATE];

/// Takes an argument of the module, by the names that RedisBloom has; false if it is none, or the
/// value is bad.
pub(crate) fn take(name: &[u8], value: &[u8]) -> bool {
    if is(name, "ERROR_RATE") {
        return BF_RATE.set(value);
    }
    let names = [
        ("INITIAL_SIZE", &BF_CAPACITY),
        ("EXPANSION", &BF_EXPANSION),
        ("CF_MAX_EXPANSIONS", &CF_EXPANSIONS),
    ];
    let Some((_, setting)) = names.into_iter().find(|(word, _)| is(name, word)) else {
        return false;
    };
    let value = integer(value).filter(|value| (setting.least..=setting.most).contains(value));
    value.is_some_and(|value| {
        setting.value.store(value, Relaxed);
        true
    })
}
