//! `tamis pack` and `tamis unpack`: a filter in fewer bytes, and back.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use tamis::{Effort, Packing};

use super::Outcome;
use crate::store::Loaded;
use crate::target::Target;
use crate::{numbers, show, store};

/// Write a filter in fewer bytes, for transfer
///
/// The result is entropy-coded. All verbs take a packed filter as they take any other, but it
/// cannot be used in place (check --mmap).
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis pack words.tamis -o words.packed
  tamis pack --pieces 4KiB words.tamis -o words.packed
  tamis pack --best seen.tamis -o - | ssh host 'tamis unpack - -o seen.tamis'")]
pub(crate) struct Pack {
    /// Filter to pack; - is stdin
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// File to write the packed filter to; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The fewest bytes, at tens of megabytes per second instead of hundreds
    #[arg(long)]
    best: bool,

    /// Cut the array into pieces of BYTES bytes, rounded up to a power of two, and pack each on
    /// its own: somewhat longer, but a reader need unpack only the pieces that it looks at. For
    /// kinds that are arrays of bits: bloom, blocked, partitioned, ribbon and the balanced
    /// ones
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_hyphen_values = true)]
    pieces: Option<u64>,

    /// Of a counting filter pack only the bloom filter that readers need, without the counters
    #[arg(long)]
    plain: bool,

    /// Print facts as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Facts {
    kind: &'static str,
    coder: &'static str,
    /// Bytes of array in a piece; null if it is whole.
    piece_bytes: Option<u64>,
    raw_bytes: u64,
    packed_bytes: u64,
    /// The entropy: no coder does much better.
    entropy_bytes: f64,
    bits_per_key: f64,
    megabytes_per_second: f64,
}

impl Pack {
    pub(crate) fn run(self) -> Result<Outcome> {
        let target = Target::new(&self.output)?;
        let Loaded { mut filter, mode, .. } = store::load(&self.filter)?;
        if self.plain {
            filter = filter.projection()?;
        }
        if self.pieces.is_some() && !filter.packs_an_array() {
            bail!(
                "--pieces: {} is not packed as an array of bits, so it cannot be cut; leave --pieces out",
                filter.kind().name()
            );
        }
        let effort = if self.best { Effort::Best } else { Effort::Fast };
        let started = Instant::now();
        let piece_bytes = self.pieces.map(|bytes| bytes.clamp(8, 1 << 59).next_power_of_two());
        let mut packing = Packing::from(effort);
        packing.piece_bits = piece_bytes.map(|bytes| bytes * 8);
        let packed = filter.pack(packing);
        let seconds = started.elapsed().as_secs_f64();
        target.write_encoded(&packed, mode)?;
        if self.json {
            let raw_bytes = filter.encode().len();
            show::print_json(&Facts {
                kind: filter.kind().name(),
                coder: filter.coder_name(effort),
                piece_bytes,
                raw_bytes,
                packed_bytes: packed.len(),
                entropy_bytes: filter.entropy_bits() / 8.0,
                bits_per_key: packed.len() as f64 * 8.0
                    / tamis::Filter::keys(&filter).max(1) as f64,
                megabytes_per_second: raw_bytes as f64 / 1e6 / seconds,
            })?;
        }
        Ok(Outcome::Fine)
    }
}

/// Write a packed filter as it is in memory, so that it can be used in place
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis unpack words.packed -o words.tamis
  curl -s https://example.org/seen.packed | tamis unpack - -o seen.tamis")]
pub(crate) struct Unpack {
    /// Packed filter; - is stdin
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// File to write the filter to; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Unpack {
    pub(crate) fn run(self) -> Result<Outcome> {
        let target = Target::new(&self.output)?;
        let Loaded { filter, mode, .. } = store::load(&self.filter)?;
        target.write(&filter, mode)?;
        Ok(Outcome::Fine)
    }
}
