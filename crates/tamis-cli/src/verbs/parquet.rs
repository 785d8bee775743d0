//! `tamis parquet`: the Bloom filters in Parquet files.

mod bitset;

use std::fs::File;
use std::path::{Path, PathBuf};

use ::parquet::basic::Type;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::statistics::Statistics;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use tamis::{AnyFilter, AnyParams, Filter, Hasher, Kind, Label, WireError};

use self::bitset::{BLOCK, Place};
use super::Outcome;
use super::build::USELESS;
use crate::input::failed_to_read;
use crate::keys::parquet::{leaf, open};
use crate::store::Loaded;
use crate::system::{self, PUBLIC};
use crate::target::Target;
use crate::{show, store};

/// Read and write the Bloom filters of Parquet files
///
/// They are filters of kind `blocked` with 8 hashes in blocks of 256 bits, a power of two of them,
/// and the hash xxh64 with seed 0. A key is the bytes of a value: text as it is, INT64 with
/// --integers, INT32 with --integers=32.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis parquet import users.parquet --column email -o emails.tamis
  tamis check emails.tamis --key ann@example.org
  tamis parquet import users.parquet --column id --row-group 0 -o ids.tamis
  tamis check --integers ids.tamis numbers.txt
  tamis build --kind blocked --hash xxh64 --param block=256 --param hashes=8 \\
      --param blocks=4096 -o words.tamis /usr/share/dict/words
  tamis parquet export words.tamis -o words.bloom")]
pub(crate) struct Parquet {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Write the Bloom filter of a column as a filter of ours
    ///
    /// The keys that `tamis info` counts in it are the values of the column, repeats included.
    Import(Import),
    /// Write a filter as the bytes that stand in a Parquet file: header, then bits
    Export(Export),
}

#[derive(Args)]
struct Import {
    /// Parquet file with Bloom filters
    #[arg(value_name = "PARQUET")]
    file: PathBuf,

    /// Column whose filter is wanted; a dot leads into a group, such as user.id
    #[arg(long, value_name = "COLUMN")]
    column: String,

    /// Take the filter of this row group, counted from 0 [default: the union of all, which must be
    /// of one size]
    ///
    /// A union holds the keys of all row groups, and its rate rises with their number: writers
    /// make each filter for the keys of its row group.
    #[arg(long, value_name = "N")]
    row_group: Option<usize>,

    /// File to write the filter to; - is stdout
    #[arg(short, long, value_name = "FILTER")]
    output: PathBuf,
}

#[derive(Args)]
struct Export {
    /// Filter as Parquet has them; - is stdin
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// File to write the bytes to; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// The hash of all Bloom filters of Parquet.
const HASHER: Hasher = Hasher::xxh64(0);
/// The bits of a block.
const BLOCK_BITS: u64 = BLOCK * 8;
const HASHES: u64 = 8;
/// The most bytes that readers of Parquet take.
const MOST_BYTES: u64 = 128 << 20;

impl Parquet {
    pub(crate) fn run(self) -> Result<Outcome> {
        match self.action {
            Action::Import(import) => import.run(),
            Action::Export(export) => export.run(),
        }
    }
}

impl Import {
    fn run(self) -> Result<Outcome> {
        refuse_to_replace(&self.file, &self.output)?;
        let target = Target::new(&self.output)?;
        let filter = self.read().with_context(|| failed_to_read(&self.file))?;
        target.write(&filter, PUBLIC)?;
        Ok(Outcome::Fine)
    }

    fn read(&self) -> Result<AnyFilter> {
        let file = open(&self.file)?;
        let file_bytes = file.metadata()?.len();
        let reader = SerializedFileReader::new(file.try_clone()?)?;
        let columns = self.columns(reader.metadata())?;
        let places = self.places(&file, file_bytes, &columns)?;
        let Some(&(_, Place { blocks, .. })) = places.first() else {
            bail!("the file has no rows, and no Bloom filter");
        };
        let (need, limit) = (blocks * BLOCK, store::limits(file_bytes).memory);
        if need > limit {
            return Err(store::refused(WireError::Limit { field: "numBytes", need, limit }));
        }
        let params = AnyParams::from_values(Kind::Blocked, &[blocks, BLOCK_BITS, HASHES])?;
        let mut label = Label::from(HASHER);
        label.keys = columns.iter().map(|(_, column)| values(column)).fold(0, u64::saturating_add);
        let mut filter = params.build(label)?;
        for (number, place) in &places {
            let words = filter.words_mut().context("a blocked filter is an array of bits")?;
            place.add_to(&file, words).with_context(|| format!("row group {number}"))?;
        }
        if places.len() > 1 {
            self.judge(&filter, places.len())?;
        }
        if let Some((_, column)) = columns.first() {
            self.say_how_to_ask(column.column_type());
        }
        Ok(filter)
    }

    /// The column in the row groups that were asked for, with their numbers.
    fn columns<'a>(
        &self,
        file: &'a ParquetMetaData,
    ) -> Result<Vec<(usize, &'a ColumnChunkMetaData)>> {
        let at = leaf(file.file_metadata().schema_descr(), &self.column)?;
        let groups = file.num_row_groups();
        if let Some(asked) = self.row_group {
            ensure!(asked < groups, "there is no row group {asked}: the file has {groups}");
        }
        let numbers = self.row_group.map_or(0..groups, |asked| asked..asked + 1);
        // (A file that lies may have fewer columns in a row group than in its schema.)
        numbers
            .map(|number| {
                let column = file.row_group(number).columns().get(at);
                let missing = || format!("row group {number} has no column {}", self.column);
                Ok((number, column.with_context(missing)?))
            })
            .collect()
    }

    /// Where the filters of the row groups are, all of one size.
    fn places(
        &self,
        file: &File,
        file_bytes: u64,
        columns: &[(usize, &ColumnChunkMetaData)],
    ) -> Result<Vec<(usize, Place)>> {
        let name = &self.column;
        let mut places: Vec<(usize, Place)> = Vec::with_capacity(columns.len());
        let mut bytes = 0;
        for &(number, column) in columns {
            let found = Place::find(file, file_bytes, column);
            let found = found.with_context(|| {
                format!("row group {number}, the Bloom filter of column {name}")
            })?;
            // Its keys would be missing from a union.
            let place = found.with_context(|| {
                format!(
                    "row group {number} has no Bloom filter of column {name}; tamis build \
                     --parquet {name} makes a filter of the keys themselves"
                )
            })?;
            if let Some((first, other)) = places.first().filter(|(_, o)| o.blocks != place.blocks) {
                bail!(
                    "row groups {first} and {number} have Bloom filters of {} and {} bytes, which \
                     have no union; --row-group N takes that of one",
                    other.blocks * BLOCK,
                    place.blocks * BLOCK
                );
            }
            bytes += place.blocks * BLOCK;
            ensure!(
                bytes <= file_bytes,
                "row group {number} has a Bloom filter of column {name} that is another one's, too"
            );
            places.push((number, place));
        }
        Ok(places)
    }

    /// Says what the rate of a union is, or refuses it.
    fn judge(&self, filter: &AnyFilter, groups: usize) -> Result<()> {
        let (rate, text) = (filter.rate(), show::rate(filter.rate()));
        ensure!(
            rate <= USELESS,
            "the union of {groups} row groups would answer yes for {text} of absent keys; \
             --row-group N takes the filter of one, and tamis build --parquet {} makes one of all \
             keys",
            self.column
        );
        show::note(&format_args!(
            "the union of {groups} row groups answers yes for {text} of absent keys; --row-group N \
             takes the filter of one"
        ));
        Ok(())
    }

    /// Says how lines spell the keys of a column, unless they are the lines.
    fn say_how_to_ask(&self, column: Type) {
        let how = match column {
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => return,
            Type::INT32 => "ask with --integers=32",
            Type::INT64 => "ask with --integers",
            _ => "programs can ask for their bytes, and lines cannot",
        };
        show::note(&format_args!("the keys of column {} are {column}: {how}", self.column));
    }
}

/// The values of a column in a row group, without nulls as far as the file counts them.
fn values(column: &ColumnChunkMetaData) -> u64 {
    let nulls = column.statistics().and_then(Statistics::null_count_opt).unwrap_or(0);
    u64::try_from(column.num_values()).unwrap_or(0).saturating_sub(nulls)
}

impl Export {
    fn run(self) -> Result<Outcome> {
        refuse_to_replace(&self.filter, &self.output)?;
        let target = Target::new(&self.output)?;
        let Loaded { filter, mode, .. } = store::load(&self.filter)?;
        let words = fitting(&filter).with_context(|| store::name(&self.filter))?;
        let bits: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        target.write_pieces(&[&bitset::header(bits.len() as u32), &bits], mode)?;
        Ok(Outcome::Fine)
    }
}

/// The words of a filter, if it is as Parquet has them.
fn fitting(filter: &AnyFilter) -> Result<&[u64]> {
    let params = filter.params().named();
    let param = |name| params.iter().find(|(other, _)| *other == name).map_or(0, |(_, is)| *is);
    let hasher = filter.hasher();
    let facts = [
        ("kind", filter.kind().name().to_owned(), Kind::Blocked.name().to_owned()),
        ("hash", hasher.id().name().to_owned(), HASHER.id().name().to_owned()),
        ("seed", hasher.seed().to_string(), HASHER.seed().to_string()),
        ("block", param("block").to_string(), BLOCK_BITS.to_string()),
        ("hashes", param("hashes").to_string(), HASHES.to_string()),
    ];
    let most = MOST_BYTES / BLOCK;
    // As many bits as the filter has, or some more.
    let enough = (filter.footprint() / BLOCK_BITS).next_power_of_two().min(most);
    let advice = format!(
        "a filter for Parquet is built with --kind blocked --hash xxh64 --param block=256 --param \
         hashes=8 --param blocks={enough}"
    );
    if let Some((name, is, must_be)) = facts.iter().find(|(_, is, must_be)| is != must_be) {
        bail!("its {name} is {is}, not {must_be}; {advice}");
    }
    let blocks = param("blocks");
    ensure!(
        blocks.is_power_of_two() && blocks <= most,
        "its blocks are {blocks}, not a power of two up to {most}; {advice}"
    );
    filter.words().context("a blocked filter is an array of bits")
}

/// Refuses an output that is the input.
fn refuse_to_replace(input: &Path, output: &Path) -> Result<()> {
    if let (Ok(one), Ok(other)) = (system::identity(input), system::identity(output)) {
        ensure!(one != other, "{} is read, and the output would take its place", input.display());
    }
    Ok(())
}
