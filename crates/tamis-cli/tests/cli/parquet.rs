//! Columns of Parquet files, written by the crate that reads them. (The tests of the Python
//! package ask for files that pyarrow wrote.)

use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::tool::{Folder, numbers};

/// Row i, from 1 to `rows`: `name` is "name i", or null for every fifth; `id` is i; `at` is a
/// time. Row groups have 700 rows.
pub(crate) fn file_with(rows: i64, properties: WriterPropertiesBuilder) -> Vec<u8> {
    let schema = "message rows {
        OPTIONAL BYTE_ARRAY name (UTF8);
        REQUIRED INT64 id;
        REQUIRED INT64 at (TIMESTAMP(MILLIS, true));
    }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties.build()))
        .expect("a writer");
    let ids: Vec<i64> = (1..=rows).collect();
    for ids in ids.chunks(700) {
        let mut group = writer.next_row_group().expect("a row group");
        let whole = |id: &&i64| *id % 5 > 0;
        let names: Vec<_> =
            ids.iter().filter(whole).map(|id| ByteArray::from(&*format!("name {id}"))).collect();
        let levels: Vec<i16> = ids.iter().map(|id| whole(&id).into()).collect();
        let mut column = group.next_column().expect("a column").expect("names");
        let typed = column.typed::<ByteArrayType>();
        typed.write_batch(&names, Some(&levels), None).expect("names");
        column.close().expect("the end of a column");
        for _ in ["id", "at"] {
            let mut column = group.next_column().expect("a column").expect("numbers");
            column.typed::<Int64Type>().write_batch(ids, None, None).expect("numbers");
            column.close().expect("the end of a column");
        }
        group.close().expect("the end of a row group");
    }
    writer.close().expect("the end of a file");
    bytes
}

fn file(rows: i64, compression: Compression) -> Vec<u8> {
    file_with(rows, WriterProperties::builder().set_compression(compression))
}

#[test]
fn columns_are_keys() {
    let folder = Folder::new();
    folder.write("ids.txt", numbers(2000));
    folder.ok(&["build", "--rate", "1e-9", "--keys", "2000", "-o", "ids", "ids.txt"]);
    folder.ok(&["build", "--integers", "--keys", "2000", "-o", "integers", "ids.txt"]);
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(parquet::basic::GzipLevel::default()),
        Compression::ZSTD(parquet::basic::ZstdLevel::default()),
        Compression::LZ4_RAW,
    ];
    for compression in codecs {
        folder.write("rows.parquet", file(2000, compression));
        let build = |options: &[&str]| {
            let fixed = ["build", "--keys", "2000", "-o", "f", "rows.parquet"];
            folder.ok(&[&fixed, options].concat());
            folder.read("f")
        };
        assert_eq!(build(&["--parquet", "id", "--rate", "1e-9"]), folder.read("ids"));
        assert_eq!(build(&["--parquet", "id", "--integers"]), folder.read("integers"));
    }
    // Nulls are no keys.
    folder.ok(&["build", "--rate", "1e-9", "--parquet", "name", "-o", "names", "rows.parquet"]);
    assert_eq!(folder.json(&["info", "--json", "names"])["keys"], 1600);
    assert_eq!(folder.ok(&["check", "-c", "--parquet", "name", "names", "rows.parquet"]), "1600\n");
    let twice = folder.ok(&["uniq", "--parquet", "name", "rows.parquet", "rows.parquet"]);
    assert_eq!(twice.lines().count(), 1600);
    // Whole rows are printed, as objects that are asked in turn.
    let row = r#"{"name":"name 6","id":6,"at":"1970-01-01 00:00:00.006 +00:00"}"#;
    assert_eq!(twice.lines().nth(4), Some(row));
    folder.write("rows.jsonl", &twice);
    assert_eq!(folder.ok(&["check", "names", "--jsonl", "name", "rows.jsonl"]), twice);
    assert_eq!(folder.ok(&["check", "names", "--parquet", "name", "rows.parquet"]), twice);
    // Several columns are a tuple, as in CSV.
    let both = ["--parquet", "name", "--parquet", "id"];
    folder.ok(&[&["build", "--rate", "1e-9", "-o", "both", "rows.parquet"], &both[..]].concat());
    let rows = (1..=2000).filter(|id| id % 5 > 0).map(|id| format!("name {id},{id}\n"));
    folder.write("rows.csv", format!("name,id\n{}", rows.collect::<String>()));
    let csv = ["check", "-c", "--csv", "name", "--csv", "id", "both", "rows.csv"];
    assert_eq!(folder.ok(&csv), "1600\n");
    // No rows.
    folder.write("none.parquet", file(0, Compression::SNAPPY));
    assert_eq!(folder.ok(&["uniq", "--parquet", "id", "none.parquet"]), "");
}

#[test]
fn what_is_no_column_of_keys_is_refused() {
    let folder = Folder::new();
    folder.write("rows.parquet", file(10, Compression::SNAPPY));
    folder.write("lines", numbers(10));
    let refused = |column: &str, file: &str, words: &[&str]| {
        folder.run(&["build", "-o", "f", "--parquet", column, file]).refused(words);
    };
    refused("mail", "rows.parquet", &["no column mail", "name, id, at"]);
    refused("at", "rows.parquet", &["column at has neither text nor bytes nor integers"]);
    refused("id", "lines", &["cannot read lines"]);
    folder.run(&["build", "-o", "f", "rows.parquet"]).refused(&["Parquet", "--parquet COLUMN"]);
    let piped = folder.feed(&["uniq", "--parquet", "id"], file(10, Compression::SNAPPY));
    piped.refused(&["stdin is a pipe"]);
    assert_eq!(folder.names(), ["lines", "rows.parquet"]);
}

#[test]
fn damaged_files_are_refused_or_read() {
    let folder = Folder::new();
    let whole = file(20, Compression::SNAPPY);
    for at in (0..whole.len()).step_by(5) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x81;
        folder.write("rows.parquet", damaged);
        let run = folder.run(&["uniq", "--parquet", "name", "rows.parquet"]);
        assert!(matches!(run.code, Some(0 | 2)), "byte {at}: {:?}, {}", run.code, run.stderr);
    }
    for len in (0..whole.len()).step_by(20) {
        folder.write("rows.parquet", &whole[..len]);
        folder.run(&["uniq", "--parquet", "name", "rows.parquet"]).refused(&["rows.parquet"]);
    }
}
