//! Bloom filters of Parquet files, beside those that the `parquet` crate reads. The file at hand
//! was written by pyarrow; `golden/v1/README.md` says how.

use std::collections::HashSet;

use parquet::bloom_filter::Sbbf;
use parquet::data_type::{AsBytes, ByteArray};
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
    RowGroupMetaData,
};
use parquet::file::properties::WriterProperties;

use crate::parquet::file_with;
use crate::tool::Folder;

const GOLDEN: &[u8] = include_bytes!("../../../../golden/v1/bloom-filters.parquet");
/// How many keys are asked.
const ASKED: u64 = 100_000;
/// A header of the golden file, without the bits.
const HEADER: usize = 16;

/// A number that looks random.
fn random(number: u64) -> u64 {
    let word = (number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^ (word >> 32)
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("rows.parquet", GOLDEN);
    folder
}

/// A file without its footer, and the metadata in that.
fn parts(file: &[u8]) -> (&[u8], ParquetMetaData) {
    let (rest, end) = file.split_last_chunk::<8>().expect("an end");
    let length = u32::from_le_bytes(*end.first_chunk().expect("a length"));
    let (rest, footer) = rest.split_at(rest.len() - length as usize);
    (rest, ParquetMetaDataReader::decode_metadata(footer).expect("metadata"))
}

fn metadata(file: &[u8]) -> ParquetMetaData {
    parts(file).1
}

/// The bytes of a filter, header included.
fn filter_bytes(file: &[u8], group: usize, column: usize) -> &[u8] {
    let metadata = metadata(file);
    let column = metadata.row_group(group).column(column);
    let start = column.bloom_filter_offset().expect("an offset") as usize;
    &file[start..start + column.bloom_filter_length().expect("a length") as usize]
}

/// Golden bytes with other facts about the filter of the first column in the first row group.
fn with_facts(offset: Option<i64>, length: Option<i32>) -> Vec<u8> {
    let mut groups = metadata(GOLDEN).row_groups().to_vec();
    let mut columns: Vec<ColumnChunkMetaData> = groups[0].columns().to_vec();
    let first = columns[0].clone().into_builder();
    let first = first.set_bloom_filter_offset(offset).set_bloom_filter_length(length);
    columns[0] = first.build().expect("a column");
    let group = groups[0].clone().into_builder().set_column_metadata(columns);
    groups[0] = group.build().expect("a row group");
    with_groups(groups)
}

/// Golden bytes with other row groups in the footer.
fn with_groups(groups: Vec<RowGroupMetaData>) -> Vec<u8> {
    let (rest, metadata) = parts(GOLDEN);
    let metadata = metadata.into_builder().set_row_groups(groups).build();
    let mut file = rest.to_vec();
    ParquetMetaDataWriter::new(&mut file, &metadata).finish().expect("a footer");
    file
}

/// Golden bytes with others in place of those that start at byte `at` of the filter of the first
/// column in the first row group, and no length of it in the footer.
fn with_bytes(at: usize, bytes: &[u8]) -> Vec<u8> {
    let offset = metadata(GOLDEN).row_group(0).column(0).bloom_filter_offset();
    let mut file = with_facts(offset, None);
    let at = offset.expect("an offset") as usize + at;
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

/// A key of text, as a line and as Parquet has it.
fn text(line: String) -> (String, ByteArray) {
    let key = ByteArray::from(&*line);
    (line, key)
}

/// Whether a filter answers as Parquet's does, for keys as lines spell them and as Parquet does.
/// Returns how many are in.
#[track_caller]
fn answers_alike<K: AsBytes>(
    folder: &Folder,
    check: &[&str],
    theirs: &Sbbf,
    keys: impl Iterator<Item = (String, K)>,
) -> usize {
    let (mut lines, mut expected) = (String::new(), HashSet::new());
    for (line, key) in keys {
        lines.push_str(&line);
        lines.push('\n');
        if theirs.check(&key) {
            expected.insert(line);
        }
    }
    folder.write("lines", lines);
    let found = folder.run(&[&["check"], check, &["lines"]].concat()).text();
    assert_eq!(found.lines().map(str::to_owned).collect::<HashSet<_>>(), expected);
    expected.len()
}

#[test]
fn filters_of_pyarrow_answer_as_parquet_does() {
    let folder = folder();
    let import = |options: &[&str], column: &str| {
        let fixed = ["parquet", "import", "rows.parquet", "-o", "f", "--column", column];
        let run = folder.run(&[&fixed, options].concat());
        assert_eq!((run.code, run.text()), (Some(0), String::new()), "{}", run.stderr);
        run.stderr
    };
    let columns = [
        ("name", &[][..], "", [160, 160]),
        ("id", &["--integers"][..], "INT64: ask with --integers\n", [200, 200]),
        ("code", &["--integers=32"][..], "INT32: ask with --integers=32\n", [200, 200]),
    ];
    for (at, (column, integers, said, keys)) in columns.into_iter().enumerate() {
        let here = ["f", "--parquet", column, "rows.parquet"];
        let alike = |theirs: &Sbbf| {
            let check = [&["f"], integers].concat();
            let numbers = (0..ASKED).map(random);
            let found = match column {
                "name" => {
                    let names = (0..ASKED).map(|number| format!("name {number}"));
                    answers_alike(&folder, &check, theirs, names.map(text))
                }
                "id" => {
                    let ids = numbers.map(u64::cast_signed);
                    answers_alike(&folder, &check, theirs, ids.map(|id| (id.to_string(), id)))
                }
                _ => {
                    let codes = numbers.map(|number| number as i32);
                    answers_alike(&folder, &check, theirs, codes.map(|id| (id.to_string(), id)))
                }
            };
            // At 0.1% to 1%.
            (found > 0, found < ASKED as usize / 50)
        };
        for (group, keys) in keys.into_iter().enumerate() {
            let number = group.to_string();
            assert!(import(&["--row-group", &number], column).ends_with(said));
            let theirs = filter_bytes(GOLDEN, group, at);
            assert!(alike(&Sbbf::from_bytes(theirs).expect("a filter")).1);
            folder.ok(&["parquet", "export", "f", "-o", "f.bloom"]);
            assert_eq!(folder.read("f.bloom"), theirs);
            let facts = folder.json(&["info", "--json", "f"]);
            assert_eq!((&facts["hash"], &facts["keys"]), (&"xxh64".into(), &keys.into()));
        }
        // All row groups.
        let run = import(&[], column);
        assert!(run.contains("2 row groups") && run.ends_with(if at > 0 { said } else { "one\n" }));
        let all = folder.ok(&[&["check", "-c"], integers, &here].concat());
        assert_eq!(all, format!("{}\n", keys[0] + keys[1]));
        let [one, other] = [0, 1].map(|group| &filter_bytes(GOLDEN, group, at)[HEADER..]);
        let both: Vec<u8> = one.iter().zip(other).map(|(one, other)| one | other).collect();
        assert_eq!(alike(&Sbbf::new(&both)), (true, true));
    }
}

#[test]
fn filters_that_tamis_builds_answer_as_parquet_does() {
    let folder = Folder::new();
    let words: Vec<String> = (0..20).map(|number| format!("word {number}")).collect();
    folder.write("words", words.join("\n"));
    for blocks in [1, 2, 16, 1024] {
        let param = format!("blocks={blocks}");
        let params = ["--param", "block=256", "--param", "hashes=8", "--param", &param];
        let build = ["build", "--kind", "blocked", "--hash", "xxh64", "--rate", "1%"];
        folder.ok(&[&build, &params[..], &["-o", "f", "words"]].concat());
        let bytes = folder.feed(&["parquet", "export", "-", "-o", "-"], folder.read("f")).stdout;
        let theirs = Sbbf::from_bytes(&bytes).expect("a filter");
        assert_eq!(theirs.num_blocks(), blocks);
        assert!(words.iter().all(|word| theirs.check(&**word)));
        let keys = (0..ASKED).map(|number| format!("word {number}"));
        let found = answers_alike(&folder, &["f"], &theirs, keys.map(text));
        assert!(found > 20 || blocks > 1);
    }
}

#[test]
fn filters_that_parquet_has_not_are_refused() {
    let folder = Folder::new();
    folder.write("words", "a\nb\n");
    let good = ["--hash=xxh64", "--param=block=256", "--param=hashes=8", "--param=blocks=4"];
    for (change, words) in [
        ((0, "--hash=xxh3"), "hash is xxh3, not xxh64"),
        ((0, "--hash=sip13"), "hash is sip13, not xxh64"),
        ((1, "--param=block=512"), "block is 512, not 256"),
        ((2, "--param=hashes=7"), "hashes is 7, not 8"),
        ((3, "--param=blocks=3"), "blocks are 3, not a power of two up to 4194304"),
    ] {
        let mut options = good;
        options[change.0] = change.1;
        folder.ok(&[&["build", "--kind", "blocked", "-o", "f", "words"], &options[..]].concat());
        let advice =
            "--kind blocked --hash xxh64 --param block=256 --param hashes=8 --param blocks=";
        folder.run(&["parquet", "export", "f", "-o", "g"]).refused(&["f: ", words, advice]);
    }
    folder.ok(&["build", "--seed=1", "--kind", "blocked", "--hash=xxh64", "-o", "f", "words"]);
    folder.run(&["parquet", "export", "f", "-o", "g"]).refused(&["seed is 1, not 0"]);
    folder.ok(&["build", "-o", "f", "words"]);
    folder.run(&["parquet", "export", "f", "-o", "g"]).refused(&["kind is bloom, not blocked"]);
    folder.run(&["parquet", "export", "f", "-o", "f"]).refused(&["would take its place"]);
    assert_eq!(folder.names(), ["f", "words"]);
}

#[test]
fn row_groups_have_a_union_if_it_loses_no_key() {
    let folder = Folder::new();
    let properties = || WriterProperties::builder();
    folder.write("rows.parquet", file_with(1410, properties().set_bloom_filter_enabled(true)));
    let import = |column: &str, options: &[&str]| {
        let fixed = ["parquet", "import", "-o", "f", "rows.parquet", "--column", column];
        folder.run(&[&fixed, options].concat())
    };
    // The last row group has ten rows, and a smaller filter.
    import("name", &[]).refused(&["row groups 0 and 2", "512 and 32 bytes", "--row-group"]);
    import("name", &["--row-group", "2"]).ok();
    import("name", &["--row-group", "3"]).refused(&["no row group 3", "3"]);
    import("mail", &[]).refused(&["no column mail", "name, id, at"]);
    folder.write("rows.parquet", file_with(1410, properties()));
    import("name", &[]).refused(&["no Bloom filter of column name", "build --parquet name"]);
    folder.write("rows.parquet", file_with(0, properties().set_bloom_filter_enabled(true)));
    import("name", &[]).refused(&["the file has no rows"]);
    folder.write("rows.parquet", with_facts(None, None));
    import("name", &[]).refused(&["row group 0 has no Bloom filter of column name"]);
    import("name", &["--row-group", "1"]).ok();
    // Ten row groups of different keys.
    let small = properties().set_bloom_filter_enabled(true);
    folder.write("rows.parquet", file_with(7000, small));
    import("name", &[]).refused(&["the union of 10 row groups", "--row-group"]);
    folder.run(&["parquet", "import", "f", "--column", "name", "-o", "f"]).refused(&["place"]);
    folder.write("lines", "a\n");
    let lines = ["parquet", "import", "lines", "--column", "name", "-o", "g"];
    folder.run(&lines).refused(&["cannot read lines"]);
    assert_eq!(folder.names(), ["f", "lines", "rows.parquet"]);
}

#[test]
fn filters_that_lie_are_refused_by_the_name_of_the_field() {
    let folder = folder();
    let import = || {
        let import = ["parquet", "import", "rows.parquet", "--row-group=0", "--column=name"];
        folder.run(&[&import[..], &["-o", "f"]].concat())
    };
    let refused = |file: Vec<u8>, words: &[&str]| {
        folder.write("rows.parquet", file);
        import().refused(words);
    };
    let whole = metadata(GOLDEN).row_group(0).column(0).clone();
    let (offset, length) = (whole.bloom_filter_offset(), whole.bloom_filter_length());
    // Files of writers before version 2.10 of the format have no length.
    folder.write("rows.parquet", with_facts(offset, None));
    import().ok();
    let kept = folder.read("f");
    folder.write("rows.parquet", with_facts(offset, length));
    import().ok();
    assert_eq!(folder.read("f"), kept);

    let end = GOLDEN.len() as i64;
    for lie in [-1, i64::MIN, end + 100, i64::MAX] {
        refused(with_facts(Some(lie), length), &["row group 0", "bloom_filter_offset", "outside"]);
    }
    for lie in [0, 4, offset.expect("an offset") + 1, end - 3] {
        refused(with_facts(Some(lie), length), &[&format!("bloom_filter_offset {lie}")]);
    }
    for lie in [0, -1, i32::MIN, i32::MAX, length.expect("a length") - 1] {
        refused(with_facts(offset, Some(lie)), &["bloom_filter_length", "528 bytes"]);
    }
    // numBytes as Thrift writes them: twice, seven bits a byte; negative ones less one.
    let sizes: [(&[u8], &str); 8] = [
        (&[0x80, 0x00], "numBytes 0 is no number of blocks"),
        (&[0xc2, 0x00], "numBytes 33 is no number of blocks"),
        (&[0xbf, 0x00], "numBytes -32 is no number of blocks"),
        (&[0xc0, 0x01], "numBytes 96 is no power of two"),
        (&[0x80, 0x80, 0x04], "algorithm"),
        (&[0xfe, 0xff, 0xff, 0xff, 0x0f], "algorithm"),
        (&[0xfe, 0xff, 0xff, 0xff, 0x1f], "numBytes has more than 32 bits"),
        (&[0xff, 0xff, 0xff, 0xff, 0xff], "numBytes has more than 32 bits"),
    ];
    for (bytes, words) in sizes {
        refused(with_bytes(1, bytes), &[words]);
    }
    // A length that the file does not have, and the largest that Thrift can say.
    let unions = [&[0x1c, 0x1c, 0, 0].repeat(3)[..], &[0]].concat();
    for bytes in [[0x80, 0x80, 0x80, 0x80, 0x08], [0xc0, 0xff, 0xff, 0xff, 0x0f]] {
        let header = [&bytes[..], &unions].concat();
        refused(with_bytes(1, &header), &["numBytes", "is more than the"]);
    }
    for (at, field) in [(0, "numBytes"), (3, "algorithm"), (7, "hash"), (11, "compression")] {
        refused(with_bytes(at, &[0x2c]), &[field]);
    }
    // Many row groups with one filter between them would be read for ever.
    let first = metadata(GOLDEN).row_group(0).clone();
    folder.write("rows.parquet", with_groups(vec![first; 300]));
    let union = ["parquet", "import", "rows.parquet", "--column", "name", "-o", "g"];
    folder.run(&union).refused(&["row group", "another one's"]);
    folder.write("rows.parquet", GOLDEN);
    let limited = ["parquet", "import", "rows.parquet", "--column", "name", "-o", "g"];
    folder.run(&[&limited[..], &["--limit", "511"]].concat()).refused(&["numBytes", "511"]);
    assert_eq!(folder.names(), ["f", "rows.parquet"]);
}

#[test]
fn damaged_files_are_refused_or_read() {
    let folder = folder();
    let footer = parts(GOLDEN).0.len();
    let starts = (0..2).map(|group| metadata(GOLDEN).row_group(group).column(0).clone());
    let starts = starts.map(|column| column.bloom_filter_offset().expect("an offset") as usize);
    let headers = starts.flat_map(|start| start..start + HEADER);
    for at in headers.chain((footer..GOLDEN.len()).step_by(3)) {
        let mut damaged = GOLDEN.to_vec();
        damaged[at] ^= 0x81;
        folder.write("rows.parquet", damaged);
        let run = folder.run(&["parquet", "import", "rows.parquet", "--column", "name", "-o", "f"]);
        assert!(matches!(run.code, Some(0 | 2)), "byte {at}: {:?}, {}", run.code, run.stderr);
        assert!(at >= footer || run.code == Some(2), "byte {at}");
    }
    for len in (0..GOLDEN.len()).step_by(101) {
        folder.write("rows.parquet", &GOLDEN[..len]);
        let run = folder.run(&["parquet", "import", "rows.parquet", "--column", "name", "-o", "f"]);
        run.refused(&["rows.parquet"]);
    }
}
