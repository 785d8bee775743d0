//! What a file is, told by its first bytes.

use std::io::{self, Read};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use memchr::memchr;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use tamis::wire::MAGIC;

use super::Trust;

type Bytes = Box<dyn Read>;

/// What opens a compressed format.
type Open = fn(Bytes) -> io::Result<Bytes>;

/// What the first bytes of a file tell.
pub(super) enum Found {
    /// Keys, as they are.
    Text,
    /// Keys behind a byte-order mark of this many bytes.
    Mark(usize),
    /// Keys in UTF-16, behind a byte-order mark.
    Utf16 { big_endian: bool },
    /// Something compressed, and what opens it.
    Compressed(Open),
    /// Something else, with an article.
    Refused(&'static str),
}

/// Compressed formats that are opened: how they begin, and their names.
const COMPRESSED: [(&[u8], &str, Open); 4] = [
    (b"\x1f\x8b", "gzip", |bytes| Ok(Box::new(MultiGzDecoder::new(bytes)))),
    (b"\x28\xb5\x2f\xfd", "zstd", |bytes| Ok(Box::new(Frames { frame: None, bytes: Some(bytes) }))),
    (b"BZh", "bzip2", |bytes| Ok(Box::new(MultiBzDecoder::new(bytes)))),
    (b"\xfd7zXZ\x00", "xz", |bytes| {
        Ok(Box::new(XzReader::new_mem_limit(bytes, true, XZ_MEMORY_KIB)))
    }),
];

/// Memory for reading xz, in KiB: `xz -9` needs 65 MiB. A hostile file could ask for 4 GiB.
const XZ_MEMORY_KIB: u32 = 512 << 10;

/// Formats that are no lists of lines. Those that text could start with by chance have a magic of
/// at least four bytes.
const REFUSED: [(&[u8], &str); 33] = [
    (&MAGIC, "a tamis filter or delta"),
    (b"PAR1", "a Parquet file (its keys are a column: say --parquet COLUMN)"),
    (b"ARROW1\0\0", "an Arrow file"),
    (b"\xff\xff\xff\xff", "an Arrow stream"),
    (b"ORC\x08", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PK\x03\x04", "a zip archive (or a spreadsheet)"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x1f\x9d", "compressed with compress(1), which is not read here"),
    (b"\x04\x22\x4d\x18", "compressed with lz4, which is not read here"),
    (b"\xff\x06\x00\x00sNaPpY", "compressed with snappy, which is not read here"),
    (b"LZIP", "compressed with lzip, which is not read here"),
    (b"\x89LZO\0\r\n\x1a\n", "compressed with lzop, which is not read here"),
    (b"!<arch>\n", "an ar archive (or a Debian package)"),
    (b"\xed\xab\xee\xdb", "an RPM package"),
    (b"\x7fELF", "an ELF program"),
    (b"MZ\x90\0", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"\xca\xfe\xba\xbe", "a Java class or a Mach-O program"),
    (b"\0asm", "a WebAssembly module"),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x80\x05\x95", "a Python pickle"),
    (b"\xff\xfe\0\0", "text in UTF-32 (turn it into UTF-8 with iconv)"),
    (b"\0\0\xfe\xff", "text in UTF-32 (turn it into UTF-8 with iconv)"),
];

/// Marks of encodings.
const MARKS: [(&[u8], Found); 3] = [
    (b"\xef\xbb\xbf", Found::Mark(3)),
    (b"\xff\xfe", Found::Utf16 { big_endian: false }),
    (b"\xfe\xff", Found::Utf16 { big_endian: true }),
];

/// Where the magic of a tar archive stands.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// What these first bytes tell.
pub(super) fn recognise(first: &[u8], trust: Trust) -> Found {
    if trust == Trust::Bytes {
        return Found::Text;
    }
    if let Some((.., open)) = COMPRESSED.iter().find(|(magic, ..)| first.starts_with(magic)) {
        return Found::Compressed(*open);
    }
    if let Some((_, what)) = REFUSED.iter().find(|(magic, _)| first.starts_with(magic)) {
        return Found::Refused(what);
    }
    if let Some((_, found)) = MARKS.into_iter().find(|(mark, _)| first.starts_with(mark)) {
        return found;
    }
    if first.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) {
        return Found::Refused("a tar archive");
    }
    if trust == Trust::Nuls || memchr(0, first).is_none() {
        return Found::Text;
    }
    Found::Refused(if alternating(first) {
        "text in UTF-16 without a byte-order mark (turn it into UTF-8 with iconv)"
    } else {
        "binary, for it has NUL bytes (if they end its lines, say -0)"
    })
}

/// The name of the compressed format that starts with these bytes.
pub(crate) fn compressed_with(first: &[u8]) -> Option<&'static str> {
    let found = COMPRESSED.iter().find(|(magic, ..)| first.starts_with(magic));
    found.map(|&(_, name, _)| name)
}

/// Whether these bytes, and more that follow, could be the start of a format.
pub(super) fn may_become_one(first: &[u8]) -> bool {
    let magics = COMPRESSED.iter().map(|(magic, ..)| *magic);
    let magics = magics.chain(REFUSED.iter().map(|(magic, _)| *magic));
    let mut magics = magics.chain(MARKS.iter().map(|(mark, _)| *mark));
    magics.any(|magic| first.len() < magic.len() && magic.starts_with(first))
}

/// Whether every second byte is mostly NUL, and the others are not.
fn alternating(bytes: &[u8]) -> bool {
    let nuls = |from: usize| bytes.iter().skip(from).step_by(2).filter(|&&byte| byte == 0).count();
    let (even, odd, half) = (nuls(0), nuls(1), bytes.len() / 2);
    half > 0 && (even.min(odd) == 0) && even.max(odd) * 2 > half
}

/// A file of zstd may have several frames one after another, and the decoder reads one.
struct Frames {
    frame: Option<StreamingDecoder<Bytes, FrameDecoder>>,
    bytes: Option<Bytes>,
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
                let (bytes, frame) = self.frame.take().map(StreamingDecoder::into_parts).unzip();
                self.bytes = bytes;
                let sums = |frame: FrameDecoder| {
                    frame.get_checksum_from_data().zip(frame.get_calculated_checksum())
                };
                if frame.and_then(sums).is_some_and(|(stored, found)| stored != found) {
                    return Err(io::Error::other("zstd: the checksum is wrong"));
                }
            }
            let Some(mut bytes) = self.bytes.take() else { return Ok(0) };
            let mut first = [0];
            if bytes.read(&mut first)? == 0 {
                return Ok(0);
            }
            let bytes: Bytes = Box::new(io::Cursor::new(first).chain(bytes));
            self.frame = Some(StreamingDecoder::new(bytes).map_err(io::Error::other)?);
        }
    }
}
