//! The manifest: what the newest version of a set is, in some two hundred signed bytes.
//!
//! Followers fetch it often, and usually it is all they fetch, or all but one delta. So it names
//! the newest delta itself, and everything else in a [table](crate::table) of its own.

use tamis::{ContentId, Digest};

use crate::error::Error;
use crate::key::{ID_BYTES, PublicKey, SIGNATURE_BYTES, SecretKey};
use crate::object::{Hash, Object};

/// The first bytes of every manifest. Frozen.
const MAGIC: [u8; 8] = *b"tamis\x1amf";
/// The version of the format.
const FORMAT: u32 = 1;
/// Bytes before the digests. Frozen.
const FIXED: usize = 120;
/// Bytes behind the digests. Frozen.
const SIGNED: usize = ID_BYTES + SIGNATURE_BYTES;
/// The most keys that a manifest lists.
pub(crate) const MOST_RECENT: usize = 4096;
/// No manifest has more bytes.
pub(crate) const MOST_BYTES: u64 = (FIXED + 8 * MOST_RECENT + SIGNED) as u64;
/// What is signed begins with this, and with the name of the set.
const CONTEXT: &[u8] = b"tamis exchange manifest 1\0";

/// What the newest version of a set is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Manifest {
    /// Counts layouts: kind, params, hash or seed change only with it.
    pub epoch: u32,
    /// Counts contents; it only rises.
    pub version: u64,
    /// When it was signed, in seconds since 1970.
    pub time: u64,
    /// Seconds that followers should wait between two requests.
    pub wait: u32,
    /// Keys in the set.
    pub keys: u64,
    /// The rate at which an absent key passes.
    pub rate: f64,
    /// What the filter of this version holds.
    pub content: ContentId,
    /// The delta from the version before, if there is one.
    pub(crate) newest: Option<Object>,
    /// The table of all objects.
    pub(crate) table: Object,
    /// Digests of keys that are too new to be in the filter.
    pub recent: Vec<Digest>,
}

impl Manifest {
    /// The bytes to publish under `name`; unsigned if there is no key.
    pub(crate) fn encode(&self, name: &str, key: Option<&SecretKey>) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(MAGIC);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(self.epoch.to_le_bytes());
        bytes.extend(self.version.to_le_bytes());
        bytes.extend(self.time.to_le_bytes());
        bytes.extend(self.wait.to_le_bytes());
        bytes.extend((self.recent.len() as u32).to_le_bytes());
        bytes.extend(self.keys.to_le_bytes());
        bytes.extend(self.rate.to_le_bytes());
        bytes.extend(self.content.0.to_le_bytes());
        for object in [self.newest.unwrap_or_default(), self.table] {
            bytes.extend(object.bytes.to_le_bytes());
            bytes.extend(object.hash.0);
        }
        bytes.extend(self.recent.iter().flat_map(|digest| digest.0.to_le_bytes()));
        let (id, signature) = key.map_or(([0; ID_BYTES], [0; SIGNATURE_BYTES]), |key| {
            (key.public().id(), key.sign(&signed(name, &bytes)))
        });
        bytes.extend(id);
        bytes.extend(signature);
        bytes
    }

    /// The manifest in `bytes`. With a key, its signature must be that key's; without one, it
    /// must be unsigned.
    pub(crate) fn decode(bytes: &[u8], name: &str, key: Option<&PublicKey>) -> Result<Self, Error> {
        let not = |fault: &str| Error::format("manifest", fault);
        if !bytes.starts_with(&MAGIC) {
            return Err(not("this is not a manifest; is it the address of a store?"));
        }
        let mut rest = Fields(&bytes[MAGIC.len()..]);
        let format = u32::from_le_bytes(rest.take()?);
        if format != FORMAT {
            return Err(not(&format!(
                "it has format {format}, and this program knows {FORMAT}; get a newer tamis"
            )));
        }
        let epoch = u32::from_le_bytes(rest.take()?);
        let version = u64::from_le_bytes(rest.take()?);
        let time = u64::from_le_bytes(rest.take()?);
        let wait = u32::from_le_bytes(rest.take()?);
        let recent = u32::from_le_bytes(rest.take()?) as usize;
        let keys = u64::from_le_bytes(rest.take()?);
        let rate = f64::from_le_bytes(rest.take()?);
        let content = ContentId(u128::from_le_bytes(rest.take()?));
        let mut object = || -> Result<Object, Error> {
            let bytes = u64::from_le_bytes(rest.take()?);
            Ok(Object { bytes, hash: Hash(rest.take()?) })
        };
        let (newest, table) = (object()?, object()?);
        if recent > MOST_RECENT || bytes.len() != FIXED + 8 * recent + SIGNED {
            return Err(not("its length is not what its fields say"));
        }
        let digests = rest.0[..8 * recent].as_chunks().0.iter();
        let recent = digests.map(|bytes| Digest(u64::from_le_bytes(*bytes))).collect();
        let mut rest = Fields(&bytes[bytes.len() - SIGNED..]);
        let (id, signature) = (rest.take()?, rest.take()?);
        match key {
            Some(_) if id == [0; ID_BYTES] => {
                return Err(Error::Signature("the manifest is not signed"));
            }
            Some(key) => {
                key.verify(&signed(name, &bytes[..bytes.len() - SIGNED]), id, signature)?;
            }
            None if id != [0; ID_BYTES] => {
                return Err(Error::Signature("the manifest is signed; give the publisher's key"));
            }
            None => {}
        }
        if !(0.0..=1.0).contains(&rate) || version == 0 {
            return Err(not("a field is out of range"));
        }
        let newest = (newest != Object::default()).then_some(newest);
        Ok(Self { epoch, version, time, wait, keys, rate, content, newest, table, recent })
    }
}

/// What is signed: a manifest of one set is none of another.
fn signed(name: &str, bytes: &[u8]) -> Vec<u8> {
    let length = (name.len() as u32).to_le_bytes();
    [CONTEXT, &length, name.as_bytes(), bytes].concat()
}

/// Bytes that are cut into fields from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (field, rest) = self.0.split_first_chunk().ok_or_else(|| {
            Error::format("manifest", "it is cut off; the server or a cache on the way cuts it")
        })?;
        self.0 = rest;
        Ok(*field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            epoch: 2,
            version: 7,
            time: 1_700_000_000,
            wait: 20,
            keys: 1_000_000,
            rate: 0.01,
            content: ContentId(5),
            newest: Some(Object::of(b"delta")),
            table: Object::of(b"table"),
            recent: vec![Digest(1), Digest(2)],
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let key = SecretKey::generate().unwrap();
        for key in [Some(&key), None] {
            let bytes = manifest().encode("set", key);
            let public = key.map(SecretKey::public);
            let decoded = Manifest::decode(&bytes, "set", public.as_ref()).unwrap();
            assert_eq!(decoded, manifest());
            let none = Manifest { newest: None, recent: vec![], ..manifest() };
            let bytes = none.encode("set", key);
            assert_eq!(bytes.len(), 192);
            assert_eq!(Manifest::decode(&bytes, "set", public.as_ref()).unwrap(), none);
        }
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let key = SecretKey::generate().unwrap();
        let (bytes, public) = (manifest().encode("set", Some(&key)), key.public());
        for bit in 0..8 * bytes.len() {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&bytes, "set", Some(&public)).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..len], "set", Some(&public)).is_err());
        }
        assert!(Manifest::decode(&bytes, "other", Some(&public)).is_err());
        assert!(Manifest::decode(&bytes, "set", None).is_err());
        let other = SecretKey::generate().unwrap().public();
        assert!(Manifest::decode(&bytes, "set", Some(&other)).is_err());
        let unsigned = manifest().encode("set", None);
        assert!(Manifest::decode(&unsigned, "set", Some(&public)).is_err());
    }
}
