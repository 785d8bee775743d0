//! Keys in Parquet: columns of a file of rows.

use std::borrow::Cow;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use ::parquet::basic::{ConvertedType, LogicalType, Type};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::DataType;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use anyhow::{Context, Result, bail};

use super::{BATCH, HandOn, Piece, joined};
use crate::input::{self, failed_to_read};
use crate::store::name;

/// Hands on the rows of a file that have no null in `columns`; the key is made of these. If rows
/// are `printed`, each is a line: a JSON object of all columns. Otherwise the others are not read.
pub(super) fn each_row(
    path: &Path,
    columns: &[String],
    printed: bool,
    hand_on: &mut HandOn,
) -> Result<ControlFlow<()>> {
    let failed = || failed_to_read(path);
    let reader = SerializedFileReader::new(open(path)?).with_context(failed)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns: Vec<_> = columns
        .iter()
        .map(|column| Column::find(schema, column).with_context(|| name(path)))
        .collect::<Result<_>>()?;
    for number in 0..reader.num_row_groups() {
        let flow = each_row_of(&reader, number, &columns, printed, hand_on);
        if flow.with_context(failed)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Opens a file that is to be Parquet.
pub(crate) fn open(path: &Path) -> Result<File> {
    let file = input::open(path)?;
    if !file.metadata().with_context(|| failed_to_read(path))?.is_file() {
        bail!("{} is a pipe, and a Parquet file is read from its end; name a file", name(path));
    }
    Ok(file)
}

/// The number of a column among the leaves of a schema.
pub(crate) fn leaf(schema: &SchemaDescriptor, column: &str) -> Result<usize> {
    let names = || schema.columns().iter().map(|leaf| leaf.path().string());
    names().position(|name| name == column).with_context(|| {
        let names: Vec<_> = names().collect();
        format!("the file has no column {column}; it has {}", names.join(", "))
    })
}

/// Hands on the rows of a row group.
fn each_row_of(
    reader: &SerializedFileReader<File>,
    number: usize,
    columns: &[Column],
    printed: bool,
    hand_on: &mut HandOn,
) -> Result<ControlFlow<()>> {
    let group = reader.get_row_group(number)?;
    let mut left = usize::try_from(group.metadata().num_rows())?;
    let mut readers: Vec<_> = columns
        .iter()
        .map(|column| group.get_column_reader(column.at))
        .collect::<Result<_, _>>()?;
    let mut records = if printed { Some(group.get_row_iter(None)?) } else { None };
    while left > 0 {
        let rows = left.min(BATCH);
        let texts: Vec<_> = readers
            .iter_mut()
            .zip(columns)
            .map(|(reader, column)| column.read(reader, rows))
            .collect::<Result<_>>()?;
        let parts = |row: usize| texts.iter().map(move |column| column[row].as_deref());
        let (mut keys, mut lines) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for row in 0..rows {
            let record = records.as_mut().and_then(Iterator::next).transpose()?;
            let Some(parts) = parts(row).collect::<Option<Vec<&[u8]>>>() else { continue };
            keys.push(joined(parts.into_iter().map(Cow::Borrowed)));
            lines.push(record.map_or(String::new(), |record| record.to_json_value().to_string()));
        }
        let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        left -= rows;
        let piece = Piece { lines: &lines, keys: &keys, header: None, last: false };
        if hand_on(&piece)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// A column that can be a key, or a part of one.
struct Column {
    /// Its number among the leaves of the schema.
    at: usize,
    /// Its integers have no sign.
    unsigned: bool,
    /// The level at which a value is there; below it is null.
    whole: i16,
}

impl Column {
    fn find(schema: &SchemaDescriptor, column: &str) -> Result<Self> {
        let at = leaf(schema, column)?;
        let leaf = schema.column(at);
        if leaf.max_rep_level() > 0 {
            bail!("column {column} is a list, not one value a row");
        }
        let Some(unsigned) = sign(&leaf) else {
            bail!("column {column} has neither text nor bytes nor integers");
        };
        Ok(Self { at, unsigned, whole: leaf.max_def_level() })
    }

    /// The texts of the next `rows` rows: integers as decimal numbers, everything else as it is.
    fn read(&self, reader: &mut ColumnReader, rows: usize) -> Result<Vec<Option<Vec<u8>>>> {
        let decimal = |signed: i64, unsigned: u64| {
            if self.unsigned { unsigned.to_string() } else { signed.to_string() }.into_bytes()
        };
        match reader {
            ColumnReader::Int32ColumnReader(reader) => self.texts(reader, rows, |value| {
                decimal(i64::from(*value), u64::from(value.cast_unsigned()))
            }),
            ColumnReader::Int64ColumnReader(reader) => {
                self.texts(reader, rows, |value| decimal(*value, value.cast_unsigned()))
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                self.texts(reader, rows, |value| value.data().to_vec())
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                self.texts(reader, rows, |value| value.data().to_vec())
            }
            _ => bail!("it has other columns than its schema says"),
        }
    }

    fn texts<T: DataType>(
        &self,
        reader: &mut ColumnReaderImpl<T>,
        rows: usize,
        text: impl Fn(&T::T) -> Vec<u8>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::new());
        let mut read = 0;
        // It may stop at the end of a page.
        while read < rows {
            let (more, ..) =
                reader.read_records(rows - read, Some(&mut levels), None, &mut values)?;
            if more == 0 {
                bail!("a column has fewer rows than the file says");
            }
            read += more;
        }
        let mut values = values.iter().map(text);
        if self.whole == 0 {
            return Ok(values.map(Some).collect());
        }
        let there = |level: &i16| if *level == self.whole { values.next() } else { None };
        Ok(levels.iter().map(there).collect())
    }
}

/// Whether the integers of a column are unsigned; `None` if its values are no keys.
fn sign(leaf: &ColumnDescriptor) -> Option<bool> {
    let keys = matches!(
        leaf.physical_type(),
        Type::INT32 | Type::INT64 | Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY
    );
    let (meant, unsigned) = match leaf.logical_type_ref() {
        Some(LogicalType::Integer(integer)) => (true, !integer.is_signed),
        Some(other) => {
            let texts = [
                LogicalType::String,
                LogicalType::Enum,
                LogicalType::Json,
                LogicalType::Bson,
                LogicalType::Uuid,
            ];
            (texts.contains(other), false)
        }
        None => match leaf.converted_type() {
            ConvertedType::NONE
            | ConvertedType::UTF8
            | ConvertedType::ENUM
            | ConvertedType::JSON
            | ConvertedType::BSON
            | ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::INT_64 => (true, false),
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => (true, true),
            _ => (false, false),
        },
    };
    (keys && meant).then_some(unsigned)
}
