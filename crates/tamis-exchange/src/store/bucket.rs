//! A set in a bucket: S3 and its like, Google Cloud Storage, Azure.

use std::any::Any;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion as Tag,
};
use reqwest::Url;
use tokio::runtime::Runtime;

use super::{Source, Store, Tagged, check_name, is_object};
use crate::error::Error;

/// Objects are read in pieces of this many bytes.
const PIECE: u64 = 8 << 20;
/// What nobody names is deleted when it is older: no publisher takes longer between an object and
/// the manifest that names it.
const PUBLISHING_TIME: Duration = Duration::from_secs(3600);

/// A set in a bucket.
///
/// Credentials come from the environment, by the names that each cloud's own tools use, such as
/// `AWS_ACCESS_KEY_ID`. No lock keeps other publishers out; the conditional put of the manifest
/// decides who wins.
pub struct Bucket {
    reach: Reach,
    path: Path,
    url: String,
}

/// A bucket, and what waits for it.
#[derive(Clone)]
struct Reach {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
}

impl Bucket {
    /// The set `name` in the bucket at an address such as `s3://bucket/sets`.
    pub fn new(address: &str, name: &str) -> Result<Self, Error> {
        check_name(name)?;
        let wrong = |fault: &dyn std::fmt::Display| {
            Error::format(
                "address",
                format!("{address}: {fault}; write for example s3://bucket/sets"),
            )
        };
        // Another part of the program may have chosen before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = Url::parse(address).map_err(|fault| wrong(&fault))?;
        let (store, path) =
            object_store::parse_url_opts(&url, std::env::vars()).map_err(|fault| wrong(&fault))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = Arc::new(runtime.map_err(Error::io(&address))?);
        let url = format!("{}/{name}", address.trim_end_matches('/'));
        Ok(Self { reach: Reach { store: store.into(), runtime }, path: path.join(name), url })
    }

    fn manifest_path(&self) -> Path {
        self.path.clone().join("manifest")
    }

    fn objects(&self) -> Path {
        self.path.clone().join("objects")
    }

    fn fault(&self) -> impl Fn(object_store::Error) -> Error {
        let place = self.url.clone();
        move |error| Error::Io { place: place.clone(), source: io::Error::other(error) }
    }
}

impl Source for Bucket {
    fn place(&self) -> String {
        self.url.clone()
    }

    fn manifest(&self, known: Option<&str>, most: u64) -> Result<Option<Tagged>, Error> {
        let options = GetOptions {
            if_none_match: known.and_then(|tag| Tag::parse(tag).e_tag),
            range: Some(GetRange::Bounded(0..most + 1)),
            ..GetOptions::default()
        };
        let path = self.manifest_path();
        let read = self.reach.runtime.block_on(async {
            let found = self.reach.store.get_opts(&path, options).await?;
            let tag = Tag { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
            Ok(Tagged { bytes: found.bytes().await?.into(), tag: Some(tag.text()) })
        });
        match read {
            Ok(tagged) => Ok(Some(tagged)),
            Err(object_store::Error::NotModified { .. }) => Ok(None),
            Err(object_store::Error::NotFound { .. }) => Err(Error::NoSet { place: self.place() }),
            Err(error) => Err(self.fault()(error)),
        }
    }

    fn object(&self, name: &str, from: u64, bytes: u64) -> Result<(u64, Box<dyn Read>), Error> {
        let path = self.objects().join(name);
        let pieces = Pieces {
            reach: self.reach.clone(),
            path,
            from,
            end: bytes,
            piece: bytes::Bytes::new(),
        };
        Ok((from, Box::new(pieces)))
    }
}

/// A tag as text: some clouds compare tags, and some count versions.
trait AsText {
    fn text(self) -> String;
    fn parse(text: &str) -> Self;
}

impl AsText for Tag {
    fn text(self) -> String {
        format!("{}\n{}", self.e_tag.unwrap_or_default(), self.version.unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let (e_tag, version) = text.split_once('\n').unwrap_or((text, ""));
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self { e_tag: some(e_tag), version: some(version) }
    }
}

/// An object, read in pieces.
struct Pieces {
    reach: Reach,
    path: Path,
    from: u64,
    end: u64,
    piece: bytes::Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() && self.from < self.end {
            let range = self.from..self.end.min(self.from + PIECE);
            let piece = self.reach.store.get_range(&self.path, range);
            self.piece = self.reach.runtime.block_on(piece).map_err(|error| match error {
                object_store::Error::NotFound { .. } => {
                    io::Error::new(io::ErrorKind::NotFound, error)
                }
                error => io::Error::other(error),
            })?;
            self.from += self.piece.len() as u64;
        }
        let bytes = buffer.len().min(self.piece.len());
        buffer[..bytes].copy_from_slice(&self.piece.split_to(bytes));
        Ok(bytes)
    }
}

impl Store for Bucket {
    fn lock(&self) -> Result<Option<Box<dyn Any>>, Error> {
        Ok(None)
    }

    /// An object that is there is written again: its age must say that it is needed.
    fn put_object(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.objects().join(name);
        let put = self.reach.store.put(&path, PutPayload::from(bytes.to_vec()));
        self.reach.runtime.block_on(put).map(drop).map_err(self.fault())
    }

    fn put_manifest(&self, bytes: &[u8], expected: Option<&Tagged>) -> Result<bool, Error> {
        let mode = expected.map_or(PutMode::Create, |tagged| {
            PutMode::Update(Tag::parse(tagged.tag.as_deref().unwrap_or_default()))
        });
        let path = self.manifest_path();
        let put = self.reach.store.put_opts(&path, PutPayload::from(bytes.to_vec()), mode.into());
        match self.reach.runtime.block_on(put) {
            Ok(_) => Ok(true),
            Err(
                object_store::Error::Precondition { .. }
                | object_store::Error::AlreadyExists { .. },
            ) => Ok(false),
            Err(error) => Err(self.fault()(error)),
        }
    }

    fn clean(&self, keep: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        let old = SystemTime::now() - PUBLISHING_TIME;
        let clean = async {
            let found = self.reach.store.list_with_delimiter(Some(&self.objects())).await?;
            for object in found.objects {
                let name = object.location.filename().unwrap_or_default();
                let is_old = SystemTime::from(object.last_modified) < old;
                if is_old && is_object(name) && !keep(name) {
                    self.reach.store.delete(&object.location).await?;
                }
            }
            Ok(())
        };
        self.reach.runtime.block_on(clean).map_err(self.fault())
    }
}
