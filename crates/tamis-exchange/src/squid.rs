//! Squid's cache digests: what a proxy has, as a Bloom filter that other proxies fetch.
//!
//! A digest is a header of 128 bytes and an array of bits. A key is the MD5 of a method and a URL;
//! its four 32-bit words, modulo the bits of the array, are its positions. `docs/squid.md` has
//! every byte.
//!
//! ```text
//! site A   Squid -> digest -> Agent -> set of bit numbers -> Publisher -> store
//! site B   store -> Follower -> set of bit numbers -> Agent -> the same digest -> Squid
//! ```

mod agent;

use md5::{Digest as _, Md5};
use tamis::bloom::BloomParams;
use tamis::{AnyFilter, AnyParams, Digest, Filter, Hasher, Label, Params, Stored};

pub use agent::Agent;

use crate::error::Error;

/// Bytes of the header.
const HEADER: usize = 128;
/// The version of the format, and the oldest program that may read it.
const VERSION: [i16; 2] = [5, 3];
/// Positions of a key.
const HASHES: u8 = 4;
/// Squid's number for GET.
const GET: u8 = 1;

/// What Squid knows a page by: the MD5 of its method and its URL.
///
/// ```
/// use tamis_exchange::squid::PageKey;
/// let key = PageKey::get("http://127.0.0.1:4900/page/94");
/// // As Squid lists it.
/// assert_eq!(PageKey::parse("18E0C2882481291201BF2268F237F075"), Some(key));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageKey(pub [u8; 16]);

impl PageKey {
    /// The key of a page that is fetched with GET. The URL is as Squid writes it in its logs.
    pub fn get(url: impl AsRef<[u8]>) -> Self {
        Self(Md5::new_with_prefix([GET]).chain_update(url).finalize().into())
    }

    /// The key in 32 hexadecimal digits.
    pub fn parse(digits: &str) -> Option<Self> {
        crate::hex::decode(&digits.to_ascii_lowercase()).map(Self)
    }

    /// The bits of an array of `bits` bits that stand for it.
    fn positions(self, bits: u64) -> impl Iterator<Item = u64> {
        let words = self.0.as_chunks().0.iter().map(|word| u32::from_be_bytes(*word));
        words.map(move |word| u64::from(word) % bits).collect::<Vec<_>>().into_iter()
    }
}

/// A cache digest.
///
/// ```
/// use tamis_exchange::squid::{CacheDigest, PageKey};
/// let mut digest = CacheDigest::new(1_000, 5)?;
/// digest.insert(PageKey::get("http://example.org/"));
/// let copy = CacheDigest::decode(&digest.encode())?;
/// assert!(copy.contains(PageKey::get("http://example.org/")));
/// # Ok::<(), tamis_exchange::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheDigest {
    capacity: u32,
    count: u32,
    deleted: u32,
    bits_per_entry: u8,
    mask: Vec<u8>,
}

impl CacheDigest {
    /// An empty digest for `capacity` pages.
    pub fn new(capacity: u32, bits_per_entry: u8) -> Result<Self, Error> {
        let bytes = mask_bytes(capacity, bits_per_entry)?;
        let mut mask = Vec::new();
        let reserved = mask.try_reserve_exact(bytes as usize);
        reserved.map_err(|_| Error::format("digest", format!("no memory for {bytes} bytes")))?;
        mask.resize(bytes as usize, 0);
        Ok(Self { capacity, count: 0, deleted: 0, bits_per_entry, mask })
    }

    /// The digest that a Squid sent.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |field: &'static str, fault: String| Err(Error::format(field, fault));
        let Some((header, mask)) = bytes.split_first_chunk::<HEADER>() else {
            return wrong("digest", format!("{} bytes are not even a header", bytes.len()));
        };
        let number = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let required = i16::from_be_bytes([header[2], header[3]]);
        if required > VERSION[0] || required < 1 {
            return wrong("version", format!("a reader of version {required} is required"));
        }
        let (capacity, bits_per_entry) = (number(4), header[20]);
        let expected = mask_bytes(capacity, bits_per_entry)?;
        if number(16) != expected {
            let fault = format!("{} where the capacity says {expected}", number(16));
            return wrong("mask_size", fault);
        }
        if header[21] != HASHES {
            return wrong("hash_func_count", format!("{} and not {HASHES}", header[21]));
        }
        if mask.len() as u64 != u64::from(expected) {
            return wrong("mask", format!("{} bytes of {expected}", mask.len()));
        }
        let (count, deleted) = (number(8), number(12));
        Ok(Self { capacity, count, deleted, bits_per_entry, mask: mask.to_vec() })
    }

    /// The header, as Squid sends it in front of [`mask`](Self::mask).
    pub fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let [current, required] = VERSION.map(i16::to_be_bytes);
        header[..2].copy_from_slice(&current);
        header[2..4].copy_from_slice(&required);
        let numbers = [self.capacity, self.count, self.deleted, self.mask.len() as u32];
        for (field, number) in header[4..20].chunks_exact_mut(4).zip(numbers) {
            field.copy_from_slice(&number.to_be_bytes());
        }
        header[20] = self.bits_per_entry;
        header[21] = HASHES;
        header
    }

    /// The array of bits.
    pub fn mask(&self) -> &[u8] {
        &self.mask
    }

    /// The digest as Squid sends it.
    pub fn encode(&self) -> Vec<u8> {
        [&self.header()[..], &self.mask].concat()
    }

    /// Pages that it was made for.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Bits for each of them.
    pub fn bits_per_entry(&self) -> u8 {
        self.bits_per_entry
    }

    /// Pages that were added, as the header says. Squid counts a page again when it makes its
    /// digest anew, so this may be more than it has.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bits of the array.
    pub fn bits(&self) -> u64 {
        self.mask.len() as u64 * 8
    }

    /// Bits that are set.
    pub fn ones(&self) -> u64 {
        self.mask.iter().map(|byte| u64::from(byte.count_ones())).sum()
    }

    /// The part of all pages that it claims wrongly: four bits are set by chance.
    pub fn rate(&self) -> f64 {
        (self.ones() as f64 / self.bits() as f64).powi(HASHES.into())
    }

    /// Pages that are probably in, estimated from the bits.
    pub fn estimated(&self) -> f64 {
        let (bits, ones) = (self.bits() as f64, self.ones() as f64);
        -bits / f64::from(HASHES) * (-ones / bits).ln_1p()
    }

    /// Adds a page.
    pub fn insert(&mut self, key: PageKey) {
        for at in key.positions(self.bits()) {
            self.mask[(at / 8) as usize] |= 1 << (at % 8);
        }
        self.count = self.count.saturating_add(1);
    }

    /// Whether a page is probably in.
    pub fn contains(&self, key: PageKey) -> bool {
        key.positions(self.bits()).all(|at| self.has(at))
    }

    fn has(&self, at: u64) -> bool {
        self.mask[(at / 8) as usize] >> (at % 8) & 1 > 0
    }

    /// The set of the numbers of all bits that are set, for a [`Publisher`](crate::Publisher). It
    /// is exact, and its deltas are flipped bits.
    pub fn to_filter(&self) -> Result<AnyFilter, Error> {
        let wrong = |fault: &dyn std::fmt::Display| Error::format("digest", fault.to_string());
        let bits = self.bits();
        let params = BloomParams::new(bits, 1).map_err(|fault| wrong(&fault))?;
        let label = Label::planned(Hasher::default(), self.capacity.into());
        let set = (0..bits).filter(|&at| self.has(at)).map(|at| number(at, bits));
        let set: Vec<Digest> = set.collect();
        AnyParams::Bloom(params).build_from(label, &set).map_err(|fault| wrong(&fault))
    }

    /// The digest whose bits are the numbers in a set that [`to_filter`](Self::to_filter) made.
    pub fn from_filter(filter: &AnyFilter) -> Result<Self, Error> {
        let other = || Error::format("digest", "this set was not made of a cache digest");
        let AnyFilter::Bloom(set) = filter else { return Err(other()) };
        let [bits, 1] = set.params().values()[..] else { return Err(other()) };
        let capacity = u32::try_from(filter.capacity()).map_err(|_| other())?;
        // (Bits are rounded up to bytes, so one page may seem to have 256.)
        let per_entry = bits.checked_div(capacity.into()).map(|bits| bits.min(255) as u8);
        let mut digest = Self::new(capacity, per_entry.ok_or_else(other)?)?;
        if digest.bits() != bits {
            return Err(other());
        }
        for at in (0..bits).filter(|&at| set.contains_digest(number(at, bits))) {
            digest.mask[(at / 8) as usize] |= 1 << (at % 8);
        }
        // (Infinite where all bits are set.)
        digest.count = digest.estimated().round() as u32;
        Ok(digest)
    }
}

/// The digest that a Bloom filter with one hash function and `bits` bits keeps in bit `at`: the
/// inverse of its reduction.
fn number(at: u64, bits: u64) -> Digest {
    Digest((u128::from(at) << 64).div_ceil(bits.into()) as u64)
}

/// Bytes of the array, as Squid computes them.
fn mask_bytes(capacity: u32, bits_per_entry: u8) -> Result<u32, Error> {
    if bits_per_entry == 0 || capacity == 0 {
        let field = if capacity == 0 { "capacity" } else { "bits_per_entry" };
        return Err(Error::format(field, "0 is none that a digest has"));
    }
    let bytes = (u64::from(capacity) * u64::from(bits_per_entry)).div_ceil(8);
    let most = i32::MAX as u64;
    if bytes > most || u64::from(capacity) > most {
        return Err(Error::format("capacity", format!("{capacity} is more than Squid can read")));
    }
    Ok(bytes as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(pages: u32, bits_per_entry: u8) -> CacheDigest {
        let mut digest = CacheDigest::new(pages, bits_per_entry).unwrap();
        (0..pages)
            .for_each(|page| digest.insert(PageKey::get(format!("http://example.org/{page}"))));
        digest
    }

    #[test]
    fn what_travels_is_the_digest() {
        for (pages, bits_per_entry) in [(1, 1), (1, 5), (1, 255), (3, 5), (17, 7), (1000, 5)] {
            let digest = digest(pages, bits_per_entry);
            assert_eq!(CacheDigest::decode(&digest.encode()).unwrap(), digest);
            let copy = CacheDigest::from_filter(&digest.to_filter().unwrap()).unwrap();
            assert_eq!(copy.mask, digest.mask, "{pages} {bits_per_entry}");
            // Squid takes it: its size is what its header says.
            let copy = CacheDigest::decode(&copy.encode()).unwrap();
            assert_eq!((copy.capacity, &copy.mask), (digest.capacity, &digest.mask));
            for page in 0..pages {
                assert!(copy.contains(PageKey::get(format!("http://example.org/{page}"))));
            }
        }
    }

    #[test]
    fn false_hits_are_what_the_bits_say() {
        for bits_per_entry in [5, 12] {
            let digest = digest(10_000, bits_per_entry);
            let absent =
                (0..100_000).map(|page| PageKey::get(format!("http://example.net/{page}")));
            let wrong = absent.filter(|&key| digest.contains(key)).count() as f64;
            let expected = 100_000.0 * digest.rate();
            assert!((wrong - expected).abs() < 4.0 * expected.sqrt(), "{wrong} and {expected}");
            assert!((digest.estimated() - 10_000.0).abs() < 300.0);
        }
    }

    #[test]
    fn damaged_digests_are_refused_by_field() {
        let sound = digest(100, 5).encode();
        let says = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = sound.clone();
            change(&mut bytes);
            CacheDigest::decode(&bytes).unwrap_err().to_string()
        };
        assert!(says(&|bytes| bytes.truncate(127)).starts_with("digest"));
        assert!(says(&|bytes| bytes[3] = 6).starts_with("version"));
        assert!(says(&|bytes| bytes[4..8].fill(0)).starts_with("capacity"));
        assert!(says(&|bytes| bytes[4..8].fill(255)).starts_with("capacity"));
        assert!(says(&|bytes| bytes[7] += 10).starts_with("mask_size"));
        assert!(says(&|bytes| bytes[16] = 9).starts_with("mask_size"));
        assert!(says(&|bytes| bytes[20] = 0).starts_with("bits_per_entry"));
        assert!(says(&|bytes| bytes[21] = 3).starts_with("hash_func_count"));
        assert!(says(&|bytes| bytes.truncate(150)).starts_with("mask"));
        assert!(says(&|bytes| bytes.push(0)).starts_with("mask"));
    }

    #[test]
    fn other_sets_are_no_digests() {
        let bloom = tamis::Bloom::with_rate(100, 0.01).unwrap();
        assert!(CacheDigest::from_filter(&bloom.into()).is_err());
        for (capacity, bits) in [(0, 8), (100, 8), (1, 1 << 20), (u64::MAX, 800)] {
            let params = AnyParams::Bloom(BloomParams::new(bits, 1).unwrap());
            let filter = params.build(Label::planned(Hasher::default(), capacity)).unwrap();
            assert!(CacheDigest::from_filter(&filter).is_err(), "{capacity} {bits}");
        }
    }
}
