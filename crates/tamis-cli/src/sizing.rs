//! The options that decide what a new filter is like: its kind and size, its hash function and
//! seed.

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tamis::{Goal, HashId, Hasher, Kind, Label, OutOfMemory, Size};

use crate::numbers;
use crate::system::{PUBLIC, SECRET};

const DEFAULT_RATE: f64 = 0.01;

/// What `--keys` says where there are no keys to count.
pub(crate) fn keys_must_be_said(arg: clap::Arg) -> clap::Arg {
    arg.help("Keys to plan for, such as 10M or 1e6")
}

/// The one number that the size of a filter follows from.
#[derive(Args)]
#[group(id = "size", multiple = false)]
#[command(next_help_heading = "Size")]
struct Measure {
    /// Share of absent keys that are answered yes, such as 1%, 0.1% or 1e-3 [default: 1%]
    #[arg(long, value_parser = numbers::rate, allow_hyphen_values = true)]
    rate: Option<f64>,

    /// Bits of memory for each key, such as 10 or 9.6
    #[arg(long, value_name = "BITS", allow_hyphen_values = true)]
    bits_per_key: Option<f64>,

    /// Bytes of memory in all, such as 8MiB, 8MB or 1G
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_hyphen_values = true)]
    memory: Option<u64>,

    /// Bytes of a message, such as 10kB; the filter has the least rate that fits. The message is a
    /// delta with --churn, otherwise a packed snapshot
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_hyphen_values = true)]
    wire: Option<u64>,
}

/// Kind and size of a filter.
#[derive(Args)]
#[command(next_help_heading = "Size")]
pub(crate) struct Sizing {
    /// Kind of filter [default: bloom; plan shows them all]
    #[arg(long, value_name = "KIND", value_parser = kind_parser())]
    pub(crate) kind: Option<Kind>,

    #[command(flatten)]
    size: Measure,

    /// Share of --wire to leave free on average, because sizes vary, such as 1% [default: five
    /// standard deviations of the size]
    #[arg(
        long,
        requires = "wire",
        value_name = "SHARE",
        value_parser = numbers::share,
        allow_hyphen_values = true
    )]
    margin: Option<f64>,

    /// Keys to plan for, such as 10M or 1e6; may be left out: the filter is then made for all keys
    /// that come
    #[arg(
        id = "num_keys",
        long = "keys",
        value_name = "N",
        value_parser = numbers::count,
        allow_hyphen_values = true
    )]
    pub(crate) keys: Option<u64>,

    /// Fix a param of the kind, such as hashes=4 or block=512; may be repeated. docs/wire.md lists
    /// the params of each kind
    #[arg(long = "param", value_name = "NAME=N", value_parser = numbers::param)]
    params: Vec<(String, u64)>,
}

impl Sizing {
    /// What is asked of a filter for `keys` keys.
    pub(crate) fn goal(&self, keys: u64) -> Goal {
        self.goal_or(keys, DEFAULT_RATE)
    }

    /// As [`goal`](Self::goal), with another rate where none was given.
    pub(crate) fn goal_or(&self, keys: u64, default_rate: f64) -> Goal {
        let size = match self.size {
            Measure { bits_per_key: Some(bits), .. } => Size::BitsPerKey(bits),
            Measure { memory: Some(bytes), .. } => Size::Memory(bytes),
            Measure { wire: Some(bytes), .. } => Size::Wire { bytes, margin: self.margin },
            Measure { rate, .. } => Size::Rate(rate.unwrap_or(default_rate)),
        };
        Goal::sized(keys, size).params(self.params.clone())
    }

    /// Why there is no memory for a filter, with the option that asks for less.
    pub(crate) fn refused(&self, OutOfMemory { bytes, .. }: OutOfMemory) -> anyhow::Error {
        let option = match self.size {
            Measure { memory: Some(_), .. } => "a smaller --memory",
            Measure { bits_per_key: Some(_), .. } => "fewer --bits-per-key",
            _ => "fewer --keys or a higher --rate",
        };
        anyhow!("cannot allocate {bytes} bytes for the filter; say {option}")
    }

    /// The rate, or `default_rate` where none was given.
    pub(crate) fn rate_or(&self, default_rate: f64) -> f64 {
        self.size.rate.unwrap_or(default_rate)
    }

    /// Whether the filter is as large as its keys need, rather than as an option says.
    pub(crate) fn follows_keys(&self) -> bool {
        self.size.memory.is_none() && self.size.wire.is_none()
    }
}

/// Whether a filter may become larger than `--keys` says.
#[derive(Args)]
#[command(next_help_heading = "Size")]
pub(crate) struct Fixed {
    /// Stop with an error, and write nothing, when more keys come than --keys says. (Otherwise the
    /// filter becomes larger; for that the digests of keys from a pipe are kept in a temporary
    /// file, 8 bytes per key)
    #[arg(long, requires = "num_keys")]
    pub(crate) fixed: bool,
}

/// Why a key is one too many for `--fixed`.
pub(crate) fn one_too_many(line: u64, capacity: u64) -> anyhow::Error {
    anyhow!(
        "line {line} is one key more than --keys {capacity}, and --fixed forbids it; say a larger \
         --keys, or leave out --fixed"
    )
}

/// Hash function and seed of a filter.
#[derive(Args)]
#[command(next_help_heading = "Hash")]
pub(crate) struct Hashing {
    /// Seed of the hash function, such as 42 or 0x2a; only filters with equal seeds can be merged
    /// [default: 0]
    #[arg(long, value_name = "N", value_parser = numbers::seed, allow_hyphen_values = true)]
    seed: Option<u128>,

    /// Hash function: xxh3 (64-bit seed) is quick, sip13 (128-bit seed) is keyed, xxh64 (64-bit
    /// seed) is that of the Bloom filters in Parquet files [default: xxh3]
    #[arg(long, value_name = "HASH", value_parser = hash_parser())]
    hash: Option<HashId>,

    /// Hash with sip13 under a random 128-bit seed: for keys that an adversary may choose. The
    /// seed is stored in the filter, so keep the file secret; a new file can be read by its owner
    /// alone
    #[arg(long, conflicts_with = "seed")]
    random_seed: bool,
}

impl Hashing {
    /// The hasher that was asked for.
    pub(crate) fn hasher(&self) -> Result<Hasher> {
        if self.random_seed {
            if let Some(hash) = self.hash.filter(|&hash| hash != HashId::Sip13) {
                bail!(
                    "--random-seed is for keys that an adversary may choose, and {} cannot \
                     withstand one; leave out --hash, or say --hash sip13",
                    hash.name()
                );
            }
            let mut seed = [0; 16];
            getrandom::fill(&mut seed).context("the system gave no random seed")?;
            return Ok(Hasher::sip13(u128::from_le_bytes(seed)));
        }
        let hash = self.hash.unwrap_or(HashId::Xxh3);
        Hasher::from_parts(hash, self.seed.unwrap_or(0)).with_context(|| {
            format!("--seed: {} takes 64 bits; use a smaller seed, or --hash sip13", hash.name())
        })
    }

    /// The widest permissions for a new file with such a filter in it.
    pub(crate) fn mode(&self) -> u32 {
        if self.random_seed { SECRET } else { PUBLIC }
    }
}

/// The label of a filter for `planned` keys.
pub(crate) fn label(hasher: Hasher, planned: u64) -> Label {
    // A capacity of 0 means that nothing was planned; then `info` could not say that the filter is
    // crowded.
    Label::planned(hasher, planned.max(1))
}

fn kind_parser() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.iter().map(|kind| kind.name())).try_map(|name| {
        Kind::from_name(&name).ok_or("unknown kind") // only supported names come this far
    })
}

fn hash_parser() -> impl TypedValueParser<Value = HashId> {
    PossibleValuesParser::new(HashId::ALL.iter().map(|hash| hash.name())).try_map(|name| {
        let known = HashId::ALL.iter().find(|hash| hash.name() == name);
        known.copied().ok_or("unknown hash function")
    })
}
