//! Where sets are published, and where followers read them: one folder of plain files a set.
//!
//! ```text
//! STORE/NAME/manifest            the newest version, signed; the one file that changes
//! STORE/NAME/objects/SHA256      snapshots, deltas and tables, which never change
//! ```

#[cfg(feature = "bucket")]
mod bucket;
mod folder;
#[cfg(feature = "http")]
mod http;

use std::any::Any;
use std::io::{self, Read};
use std::path::Path;

#[cfg(feature = "bucket")]
pub use bucket::Bucket;
pub use folder::Folder;
#[cfg(feature = "http")]
pub use http::Http;

use crate::error::Error;
use crate::object::{Hash, Object};

/// Bytes of a manifest, and a tag that changes when they do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The tag; `None` where the server has none.
    pub tag: Option<String>,
}

/// Where one set is read from.
///
/// It is not trusted: whatever it returns is checked against the signature.
pub trait Source: Send {
    /// What errors call it.
    fn place(&self) -> String;

    /// The manifest, at most `most` bytes and one more of it; `None` if its tag is still `known`.
    fn manifest(&self, known: Option<&str>, most: u64) -> Result<Option<Tagged>, Error>;

    /// The object of this name, from byte `from` on or from its start, as the number says. Bytes
    /// that come slower than a thousand a second may be cut off.
    fn object(&self, name: &str, from: u64, bytes: u64) -> Result<(u64, Box<dyn Read>), Error>;
}

/// Where one set is published.
pub trait Store: Source {
    /// Keeps other publishers out as long as the result lives, where that can be done.
    fn lock(&self) -> Result<Option<Box<dyn Any>>, Error>;

    /// Writes an object. It is there in whole or not at all.
    fn put_object(&self, name: &str, bytes: &[u8]) -> Result<(), Error>;

    /// Replaces the manifest whose tag is `expected`, or puts the first one. Returns false if
    /// there is another by now.
    fn put_manifest(&self, bytes: &[u8], expected: Option<&Tagged>) -> Result<bool, Error>;

    /// Deletes objects that are not in `keep`, and older than publishing may take.
    fn clean(&self, keep: &dyn Fn(&str) -> bool) -> Result<(), Error>;
}

/// Reads an object that is expected to be whole.
pub(crate) fn read(source: &(impl Source + ?Sized), object: &Object) -> Result<Vec<u8>, Error> {
    let name = object.hash.to_string();
    let place = || format!("{}/{name}", source.place());
    let (start, reader) = source.object(&name, 0, object.bytes)?;
    let mut bytes = Vec::new();
    let read = reader.take(object.bytes.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(Error::io(&place()))?;
    if start != 0 || Object::of(&bytes) != *object {
        return Err(Error::Damaged { place: place() });
    }
    Ok(bytes)
}

/// Whether a name can be that of a set.
pub fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    let fits = (1..=100).contains(&name.len()) && !name.starts_with('.');
    if fits && name.chars().all(is_plain) { Ok(()) } else { Err(Error::Name(name.to_owned())) }
}

/// The set at an address: the name of a set behind a folder, a URL or a bucket.
///
/// ```
/// assert_eq!(tamis_exchange::source("/srv/sets/words")?.0, "words");
/// assert!(tamis_exchange::source("https://example.org/").is_err());
/// # Ok::<(), tamis_exchange::Error>(())
/// ```
pub fn source(address: &str) -> Result<(String, Box<dyn Source>), Error> {
    let (scheme, path) = split(address);
    let path = path.trim_end_matches('/');
    let (store, name) = match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(parts) => parts,
        None if scheme.is_empty() => (".", path),
        None => {
            return Err(Error::format("address", "the name of a set must follow the store's"));
        }
    };
    check_name(name)?;
    let source: Box<dyn Source> = match scheme {
        "" => Box::new(Folder::new(Path::new(store), name)?),
        #[cfg(feature = "http")]
        "http" | "https" => Box::new(Http::new(&format!("{scheme}://{path}"))),
        #[cfg(feature = "bucket")]
        _ if is_bucket(scheme) => Box::new(Bucket::new(&format!("{scheme}://{store}"), name)?),
        _ => return Err(unsupported(scheme)),
    };
    Ok((name.to_owned(), source))
}

/// The set `name` of the store at an address, a folder or a bucket, for a publisher.
///
/// ```
/// assert!(tamis_exchange::store("sets", "words").is_ok());
/// assert!(tamis_exchange::store("https://example.org/sets", "words").is_err());
/// # Ok::<(), tamis_exchange::Error>(())
/// ```
pub fn store(address: &str, name: &str) -> Result<Box<dyn Store>, Error> {
    match split(address).0 {
        "" => Ok(Box::new(Folder::new(Path::new(address), name)?)),
        #[cfg(feature = "bucket")]
        scheme if is_bucket(scheme) => Ok(Box::new(Bucket::new(address, name)?)),
        scheme @ ("http" | "https") => {
            let fault =
                format!("{scheme} serves sets; publish into the folder or bucket behind it");
            Err(Error::format("address", fault))
        }
        scheme => Err(unsupported(scheme)),
    }
}

/// The scheme of an address, which a folder has not, and the rest of it.
fn split(address: &str) -> (&str, &str) {
    address.split_once("://").unwrap_or(("", address))
}

#[cfg(feature = "bucket")]
fn is_bucket(scheme: &str) -> bool {
    matches!(scheme, "s3" if cfg!(feature = "s3"))
        || matches!(scheme, "gs" if cfg!(feature = "gcs"))
        || matches!(scheme, "az" if cfg!(feature = "azure"))
}

fn unsupported(scheme: &str) -> Error {
    let fault = match scheme {
        "s3" | "gs" | "az" => {
            format!(
                "this tamis was built without {scheme}; build it with its feature s3, gcs or azure"
            )
        }
        _ => format!("{scheme} is not supported; use http, https, s3 or a folder"),
    };
    Error::format("address", fault)
}

/// The tag of bytes that have no other.
fn tag_of(bytes: &[u8]) -> String {
    Object::of(bytes).hash.to_string()
}

/// Whether a file name can be that of an object.
fn is_object(name: &str) -> bool {
    crate::hex::decode(name).map(Hash).is_some()
}

/// The kind of error for what is not there.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
