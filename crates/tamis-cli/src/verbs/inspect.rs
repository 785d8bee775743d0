//! `tamis inspect`: a filter shown byte by byte and bit by bit.

use std::fmt::{Display, Write as _};
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use tamis::wire::{Encoding, Header, Section};
use tamis::{AnyFilter, AnyParams, Goal, Kind};

use super::Outcome;
use crate::{show, store};

/// Rows of a section that are drawn.
const MOST_ROWS: u64 = 64;
const ROW_BITS: u64 = 64;
const ROW_BYTES: usize = 16;

/// Draw the header, the sections and the bits of a small filter
///
/// Shows every field of the header with its offset and its bytes, then the first rows of each
/// section: bits as # and ., counters as hexadecimal digits, blocks one by one, anything else as
/// bytes. A damaged filter whose header is whole is shown as far as it goes; the exit status is
/// then 2.
#[derive(Args)]
#[command(after_help = "\
Examples:
  printf 'apple\\npear\\n' | tamis build --keys 2 -o - | tamis inspect -
  tamis inspect --json words.tamis | jq '.fields[] | select(.name == \"seed\")'")]
pub(crate) struct Inspect {
    /// Filter to draw; - is stdin
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Print the header and the section table as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Facts {
    file_bytes: usize,
    header_bytes: usize,
    fields: Vec<Field>,
    sections: Vec<Part>,
    /// What is wrong behind the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// One field of the header.
#[derive(Serialize)]
struct Field {
    offset: usize,
    bytes: String,
    name: String,
    value: String,
}

/// One entry of the section table.
#[derive(Serialize)]
struct Part {
    role: u8,
    encoding: String,
    offset: u64,
    stored: u64,
    decoded: u64,
    checksum: String,
}

impl Inspect {
    pub(crate) fn run(self) -> Result<Outcome> {
        let bytes = store::bytes(&self.filter)?;
        let bytes = bytes.as_slice();
        let header = store::header(bytes).with_context(|| store::name(&self.filter))?;
        let decoded =
            AnyFilter::decode(bytes, store::limits(bytes.len() as u64)).map_err(store::refused);
        let facts = Facts {
            file_bytes: bytes.len(),
            header_bytes: header.encoded_len() as usize,
            fields: fields(bytes, &header),
            sections: header.sections.iter().map(Part::new).collect(),
            error: decoded.as_ref().err().map(ToString::to_string),
        };
        if self.json {
            show::print_json(&facts)?;
        } else {
            facts.print()?;
            // Params that do not fit the sections cannot tell what is in them.
            let params = decoded.as_ref().map_or(Vec::new(), |filter| filter.params().named());
            for section in &header.sections {
                show::print(&draw(section, data(bytes, section), &params).trim_end())?;
            }
        }
        if let Err(error) = decoded {
            show::complaint(&error.context(store::name(&self.filter)));
            return Ok(Outcome::Wrong);
        }
        Ok(Outcome::Fine)
    }
}

/// The bytes of a section, or as many as the file has.
fn data<'a>(bytes: &'a [u8], section: &Section) -> &'a [u8] {
    let place = |at: u64| usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()));
    &bytes[place(section.offset)..place(section.offset.saturating_add(section.stored))]
}

impl Part {
    fn new(section: &Section) -> Self {
        Self {
            role: section.role,
            encoding: encoding(section.encoding),
            offset: section.offset,
            stored: section.stored,
            decoded: section.decoded,
            checksum: format!("{:016x}", section.checksum),
        }
    }
}

impl Facts {
    fn print(&self) -> Result<()> {
        show::print(&format_args!(
            "header: {} of {}\n",
            show::bytes(self.header_bytes as u64),
            show::bytes(self.file_bytes as u64)
        ))?;
        let mut table = show::table();
        table.set_header(["offset", "bytes", "field", "value"]);
        for field in &self.fields {
            let offset = field.offset.to_string();
            table.add_row([&offset, &field.bytes, &field.name, &field.value]);
        }
        show::print_table(table, 0..1)?;
        let mut table = show::table();
        table.set_header(["section", "role", "encoding", "offset", "stored", "decoded"]);
        for (number, part) in self.sections.iter().enumerate() {
            table.add_row([
                number.to_string(),
                part.role.to_string(),
                part.encoding.clone(),
                part.offset.to_string(),
                part.stored.to_string(),
                part.decoded.to_string(),
            ]);
        }
        show::print(&"")?;
        show::print_table(table, 0..6)
    }
}

/// The fields of the header in the order in which `docs/wire.md` gives them.
fn fields(bytes: &[u8], header: &Header) -> Vec<Field> {
    let mut fields = Fields { bytes, list: Vec::new(), next: 0 };
    let hasher = header.hasher;
    fields.push(8, "magic", &"tamis file");
    fields.push(2, "version", &tamis::wire::Header::VERSION);
    fields.push(1, "object", &format!("{:?}", header.object).to_lowercase());
    fields.push(1, "hash", &hasher.id().name());
    fields.push(2, "kind", &header.kind.name());
    fields.push(1, "params", &header.params.len());
    fields.push(1, "sections", &header.sections.len());
    fields.push(16, "seed", &hasher.seed());
    fields.push(8, "keys", &header.keys);
    fields.push(8, "capacity", &header.capacity);
    let names = param_names(header.kind);
    for (number, value) in header.params.iter().enumerate() {
        let name = names.get(number).map(|(name, _)| (*name).to_owned());
        fields.push(8, name.unwrap_or_else(|| format!("param {number}")), value);
    }
    for (number, section) in header.sections.iter().enumerate() {
        let mut push = |size, name: &str, value: u64| {
            fields.push(size, format!("section {number} {name}"), &value);
        };
        push(1, "role", section.role.into());
        push(1, "encoding", section.encoding as u64);
        push(6, "reserved", 0);
        push(8, "offset", section.offset);
        push(8, "stored", section.stored);
        push(8, "decoded", section.decoded);
        fields.push(8, format!("section {number} checksum"), &"xxh3 of its chunks' checksums");
    }
    fields.push(8, "checksum", &"xxh3 of all above");
    fields.list
}

/// The names of the params of a kind. Any plan of the kind has them, also where the params in the
/// file are wrong.
fn param_names(kind: Kind) -> Vec<(&'static str, u64)> {
    let goal = Goal::rate(1, 0.01);
    AnyParams::plan(kind, &goal).map_or(Vec::new(), |params| params.named())
}

struct Fields<'a> {
    bytes: &'a [u8],
    list: Vec<Field>,
    next: usize,
}

impl Fields<'_> {
    fn push(&mut self, size: usize, name: impl Into<String>, value: &dyn Display) {
        self.list.push(Field {
            offset: self.next,
            bytes: hex(&self.bytes[self.next..self.next + size]),
            name: name.into(),
            value: value.to_string(),
        });
        self.next += size;
    }
}

fn encoding(encoding: Encoding) -> String {
    format!("{encoding:?}").to_lowercase()
}

/// What a section is made of: cells of `width` bits, perhaps in blocks.
struct Grain {
    cells: u64,
    width: u64,
    block: Option<u64>,
}

impl Grain {
    /// Params with well-known names tell, if the length that follows from them is that of the
    /// section.
    fn new(section: &Section, params: &[(&str, u64)]) -> Option<Self> {
        let param = |wanted| {
            let found = params.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| *value)
        };
        let grain = if let Some(cells) = param("bits") {
            Self { cells, width: 1, block: None }
        } else if let (Some(cells), Some(width)) = (param("counters"), param("width")) {
            Self { cells, width, block: None }
        } else {
            let block = param("block")?;
            Self { cells: param("blocks")?.checked_mul(block)?, width: 1, block: Some(block) }
        };
        let words = grain.cells.checked_mul(grain.width)?.div_ceil(64);
        let fits = section.encoding == Encoding::Raw && words.checked_mul(8)? == section.stored;
        fits.then_some(grain)
    }
}

/// The first rows of a section.
fn draw(section: &Section, data: &[u8], params: &[(&str, u64)]) -> String {
    let Some(Grain { cells, width, block }) = Grain::new(section, params) else {
        return draw_bytes(section, data);
    };
    let per_row = ROW_BITS.min(ROW_BITS * 4 / width.next_multiple_of(4));
    let what = if width == 1 { "bits" } else { "counters" };
    let mut picture = format!("\n{cells} {what} from byte {} on:\n", section.offset);
    let rows = cells.div_ceil(per_row);
    for row in 0..rows.min(MOST_ROWS) {
        let first = row * per_row;
        if let Some(block) = block.filter(|block| first.is_multiple_of(*block)) {
            let _ = writeln!(picture, "block {}", first / block);
        }
        let row = draw_row(data, first..cells.min(first + per_row), width);
        let _ = writeln!(picture, "{first:>8}  {row}");
    }
    if rows > MOST_ROWS {
        let left = cells - MOST_ROWS * per_row;
        let _ = writeln!(picture, "and {left} {what} more");
    }
    picture
}

/// The first rows of a section that only its kind can read.
fn draw_bytes(section: &Section, data: &[u8]) -> String {
    let mut picture = format!("\n{} bytes from byte {} on:\n", data.len(), section.offset);
    for (row, bytes) in data.chunks(ROW_BYTES).enumerate().take(MOST_ROWS as usize) {
        let halves: Vec<_> = bytes.chunks(ROW_BYTES / 2).map(hex).collect();
        let _ = writeln!(picture, "{:>8}  {}", row * ROW_BYTES, halves.join("  "));
    }
    let left = data.len().saturating_sub(MOST_ROWS as usize * ROW_BYTES);
    if left > 0 {
        let _ = writeln!(picture, "and {left} bytes more");
    }
    picture
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Cells in groups of eight.
fn draw_row(data: &[u8], cells: Range<u64>, width: u64) -> String {
    let digits = width.div_ceil(4) as usize;
    let mut row = String::new();
    for (index, cell) in cells.enumerate() {
        if index > 0 && index % 8 == 0 {
            row.push(' ');
        }
        let _ = match (cell_value(data, cell, width), width) {
            (0, _) => write!(row, "{:.>digits$}", ""),
            (_, 1) => write!(row, "#"),
            (value, _) => write!(row, "{value:0digits$x}"),
        };
    }
    row
}

fn cell_value(data: &[u8], cell: u64, width: u64) -> u64 {
    let bit = |at: u64| u64::from(data[(at / 8) as usize] >> (at % 8) & 1);
    (0..width).map(|i| bit(cell * width + i) << i).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_params_do_not_explain_is_drawn_as_bytes() {
        let header = store::header(&tamis::Bloom::with_rate(1, 0.01).unwrap().to_bytes()).unwrap();
        let mut section = header.sections[0];
        (section.offset, section.stored, section.decoded) = (128, 24, 24);
        let data: Vec<u8> = (0..24).collect();
        for params in [&[][..], &[("buckets", 7), ("locations", 3)], &[("bits", 64)]] {
            let picture = draw(&section, &data, params);
            let rows = "       0  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f\n      \
                        16  10 11 12 13 14 15 16 17\n";
            assert_eq!(picture, format!("\n24 bytes from byte 128 on:\n{rows}"), "{params:?}");
        }
        assert!(draw(&section, &data, &[("bits", 130)]).contains("130 bits"));
        let picture = draw(&section, &vec![0; 16 * 64 + 1], &[]);
        assert!(picture.ends_with("and 1 bytes more\n"), "{picture}");
    }

    #[test]
    fn rows_show_bits_and_counters() {
        assert_eq!(draw_row(&[0b1000_0001, 2], 0..10, 1), "#......# .#");
        assert_eq!(draw_row(&[0xa1, 0x00], 0..4, 4), "1a..");
        assert_eq!(draw_row(&[0xa1, 0x00, 0x07], 0..3, 8), "a1..07");
        assert_eq!(draw_row(&[0xa1, 0x02, 0, 0], 0..2, 16), "02a1....");
    }
}
