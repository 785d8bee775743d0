//! The header of a filter, and the announcement of a part of it.
//!
//! ```text
//! header        magic (8) | asked | removed (8) | parts (4) | each part |
//!               checksum of all before (8)
//! asked         family (1) | hash (1) | seed (16) | rate as bits (8) | capacity (8) |
//!               expansion (4) | bucket size (2) | max iterations (2)
//! layer         bytes (8) | keys (8) | layout
//! table         identities (8) | keys (8) | layout
//! layout        capacity (8) | kind (2) | number of params (1) | params (8 each)
//!               of a sorted list the kind is 0 and its param the universe; of a layer in the wire
//!               format, which says the rest itself, the kind is 65535
//! announcement  magic (8) | asked | layout | checksum of all before (8)
//! ```
//!
//! Numbers are little-endian. Behind a header come chunks (`incoming.rs`). Bytes that come in may
//! be hostile: nothing is allocated for what they merely claim.

use tamis::{AnyParams, HashId, Hasher, Kind};

use crate::asked::{Asked, Family};
use crate::incoming;
use crate::memory::NoMemory;
use crate::multiset::{self, MOST_BITS, MOST_TABLES, Promised};
use crate::plans;
use crate::scaling::{self, Layer, MOST_LAYERS};
use crate::value::Filter;

/// The header of a filter.
const FILTER: [u8; 8] = *b"TAMISVK2";
/// The announcement of a layer or a table.
const PART: [u8; 8] = *b"TAMISVL2";
/// Bytes of a chunk in a rewritten log and in SCANDUMP: checked in about a millisecond.
pub(crate) const CHUNK: usize = 1 << 18;
/// In place of a kind.
const SORTED: u16 = 0;
const ENCODED: u16 = u16::MAX;

/// The bytes are not what this module writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// What a header says.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) asked: Asked,
    pub(crate) removed: u64,
    pub(crate) parts: Parts,
}

/// Layers of a set, or tables of a multiset.
#[derive(Clone, Debug)]
pub(crate) enum Parts {
    Layers(Vec<LayerPart>),
    Tables(Vec<Promised>),
}

/// What a header says of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerPart {
    pub(crate) form: Form,
    pub(crate) keys: u64,
    pub(crate) capacity: u64,
    /// Bytes of it in chunks.
    pub(crate) bytes: u64,
}

/// How a layer is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The words of a sorted list.
    Small(multiset::Plan),
    /// The words of an array of bits.
    Array(AnyParams),
    /// The wire format of the library.
    Encoded,
}

impl Header {
    /// The header of a filter.
    pub(crate) fn of(filter: &Filter) -> Result<Self, NoMemory> {
        let asked = *filter.asked();
        Ok(match filter {
            Filter::Set(set) => {
                let part = |layer: &Layer| {
                    let form = match layer {
                        Layer::Small(table) => Form::Small(Promised::of(table).plan),
                        Layer::Large(filter) if filter.words().is_some() => {
                            Form::Array(filter.params())
                        }
                        Layer::Large(_) => Form::Encoded,
                    };
                    let (keys, capacity) = (layer.keys(), layer.capacity());
                    Ok(LayerPart { form, keys, capacity, bytes: incoming::length(layer)? })
                };
                let layers = set.layers().iter().map(part).collect::<Result<_, NoMemory>>()?;
                Self { asked, removed: 0, parts: Parts::Layers(layers) }
            }
            Filter::Multiset(multiset) => {
                let tables = multiset.tables().iter().map(Promised::of).collect();
                Self { asked, removed: multiset.removed(), parts: Parts::Tables(tables) }
            }
        })
    }

    /// Bytes of memory that the filter will take at least.
    pub(crate) fn memory(&self) -> u64 {
        match &self.parts {
            Parts::Layers(layers) => {
                layers.iter().map(|part| part.bytes).fold(0, u64::saturating_add)
            }
            // An identity takes two bits and more.
            Parts::Tables(tables) => {
                tables.iter().map(|table| table.distinct / 4).fold(0, u64::saturating_add)
            }
        }
    }

    /// The header as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = FILTER.to_vec();
        put_asked(&mut out, &self.asked);
        out.extend(self.removed.to_le_bytes());
        match &self.parts {
            Parts::Layers(layers) => {
                out.extend((layers.len() as u32).to_le_bytes());
                for part in layers {
                    out.extend(part.bytes.to_le_bytes());
                    out.extend(part.keys.to_le_bytes());
                    put_form(&mut out, part.form, part.capacity);
                }
            }
            Parts::Tables(tables) => {
                out.extend((tables.len() as u32).to_le_bytes());
                for table in tables {
                    out.extend(table.distinct.to_le_bytes());
                    out.extend(table.keys.to_le_bytes());
                    put_form(&mut out, Form::Small(table.plan), table.plan.most);
                }
            }
        }
        seal(out)
    }

    /// The header that these bytes are.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut fields = Fields(open(bytes, FILTER)?);
        let asked = fields.asked()?;
        let removed = fields.u64()?;
        let number = fields.u32()? as usize;
        let most = match asked.family {
            Family::Bloom => MOST_LAYERS,
            Family::Cuckoo => MOST_TABLES,
        };
        if !(1..=most).contains(&number) {
            return Err(Damaged);
        }
        let (mut layers, mut tables) = (Vec::new(), Vec::new());
        for _ in 0..number {
            let (first, keys) = (fields.u64()?, fields.u64()?);
            let (form, capacity) = fields.form()?;
            match (asked.family, form) {
                (Family::Bloom, form) => {
                    if form.bytes().is_some_and(|bytes| bytes != first) {
                        return Err(Damaged);
                    }
                    layers.push(LayerPart { form, keys, capacity, bytes: first });
                }
                (Family::Cuckoo, Form::Small(plan)) => {
                    tables.push(Promised { plan, distinct: first, keys });
                }
                (Family::Cuckoo, _) => return Err(Damaged),
            }
        }
        if !fields.0.is_empty() {
            return Err(Damaged);
        }
        let parts = match asked.family {
            Family::Bloom => Parts::Layers(layers),
            Family::Cuckoo => Parts::Tables(tables),
        };
        Ok(Self { asked, removed, parts })
    }
}

impl Form {
    /// The bytes that an array of this form has; others may have any number.
    fn bytes(self) -> Option<u64> {
        match self {
            Self::Array(params) => Some(plans::words(&params).saturating_mul(8)),
            _ => None,
        }
    }
}

/// What is to be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Layer(scaling::Plan),
    Table(multiset::Plan),
}

/// The announcement of the next layer or table of a filter: replicas build what it says, and plan
/// nothing.
pub(crate) fn announce(asked: &Asked, part: Part) -> Vec<u8> {
    let mut out = PART.to_vec();
    put_asked(&mut out, asked);
    match part {
        Part::Layer(scaling::Plan::Large { params, capacity }) => {
            put_form(&mut out, Form::Array(params), capacity);
        }
        Part::Layer(scaling::Plan::Small(plan)) | Part::Table(plan) => {
            put_form(&mut out, Form::Small(plan), plan.most);
        }
    }
    seal(out)
}

/// What an announcement says.
pub(crate) fn decode_announcement(bytes: &[u8]) -> Result<(Asked, Part), Damaged> {
    let mut fields = Fields(open(bytes, PART)?);
    let asked = fields.asked()?;
    let (form, capacity) = fields.form()?;
    let part = match (asked.family, form) {
        (Family::Bloom, Form::Small(plan)) => Part::Layer(scaling::Plan::Small(plan)),
        (Family::Bloom, Form::Array(params)) => {
            Part::Layer(scaling::Plan::Large { params, capacity })
        }
        (Family::Cuckoo, Form::Small(plan)) => Part::Table(plan),
        _ => return Err(Damaged),
    };
    if fields.0.is_empty() { Ok((asked, part)) } else { Err(Damaged) }
}

fn put_form(out: &mut Vec<u8>, form: Form, capacity: u64) {
    let (kind, values) = match form {
        Form::Small(plan) => (SORTED, vec![plan.universe]),
        Form::Array(params) => {
            let values = params.named().iter().map(|&(_, value)| value).collect();
            (params.kind().id(), values)
        }
        Form::Encoded => (ENCODED, Vec::new()),
    };
    out.extend(capacity.to_le_bytes());
    out.extend(kind.to_le_bytes());
    out.push(values.len() as u8);
    out.extend(values.into_iter().flat_map(u64::to_le_bytes));
}

fn put_asked(out: &mut Vec<u8>, asked: &Asked) {
    out.push(asked.family as u8);
    out.push(asked.hasher.id() as u8);
    out.extend(asked.hasher.seed().to_le_bytes());
    out.extend(asked.rate.to_bits().to_le_bytes());
    out.extend(asked.capacity.to_le_bytes());
    out.extend(asked.expansion.to_le_bytes());
    out.extend(asked.bucket_size.to_le_bytes());
    out.extend(asked.max_iterations.to_le_bytes());
}

/// Ends a header with the checksum of what is before.
fn seal(mut out: Vec<u8>) -> Vec<u8> {
    let checksum = Hasher::default().digest_bytes(&out).0;
    out.extend(checksum.to_le_bytes());
    out
}

/// What stands between the magic and the checksum.
fn open(bytes: &[u8], magic: [u8; 8]) -> Result<&[u8], Damaged> {
    let (body, checksum) = bytes.split_last_chunk::<8>().ok_or(Damaged)?;
    if Hasher::default().digest_bytes(body).0 != u64::from_le_bytes(*checksum) {
        return Err(Damaged);
    }
    body.strip_prefix(&magic).ok_or(Damaged)
}

/// Fields that are left to read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u16(&mut self) -> Result<u16, Damaged> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Damaged> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Damaged> {
        self.take().map(u64::from_le_bytes)
    }

    /// A layout and its capacity.
    fn form(&mut self) -> Result<(Form, u64), Damaged> {
        let capacity = self.u64()?;
        let kind = self.u16()?;
        let [number] = self.take()?;
        let values: Vec<u64> = (0..number).map(|_| self.u64()).collect::<Result<_, _>>()?;
        let form = match (kind, &values[..]) {
            (SORTED, &[universe]) if (1..=1 << MOST_BITS).contains(&universe) => {
                Form::Small(multiset::Plan { universe, most: capacity })
            }
            (ENCODED, []) => Form::Encoded,
            (id, values) => {
                let kind = Kind::from_id(id).filter(|kind| plans::KINDS.contains(kind));
                let params = AnyParams::from_values(kind.ok_or(Damaged)?, values);
                Form::Array(params.map_err(|_| Damaged)?)
            }
        };
        Ok((form, capacity))
    }

    fn asked(&mut self) -> Result<Asked, Damaged> {
        let [family, hash] = self.take()?;
        let family = match family {
            0 => Family::Bloom,
            1 => Family::Cuckoo,
            _ => return Err(Damaged),
        };
        let seed = u128::from_le_bytes(self.take()?);
        let hasher = HashId::from_id(hash).and_then(|id| Hasher::from_parts(id, seed));
        let asked = Asked {
            family,
            hasher: hasher.ok_or(Damaged)?,
            rate: f64::from_bits(self.u64()?),
            capacity: self.u64()?,
            expansion: self.u32()?,
            bucket_size: self.u16()?,
            max_iterations: self.u16()?,
        };
        let sane = asked.rate > 0.0 && asked.rate < 1.0 && asked.capacity > 0;
        if sane { Ok(asked) } else { Err(Damaged) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incoming::{BadChunk, Incoming, chunk};
    use crate::multiset::Multiset;
    use crate::scaling::Scaling;

    fn filled(family: Family, rate: f64, capacity: u64, expansion: u32, keys: u64) -> Filter {
        let hasher = Hasher::default();
        let asked =
            Asked { family, rate, capacity, expansion, bucket_size: 2, max_iterations: 20, hasher };
        let digest = |key: u64| hasher.digest_bytes(&key.to_le_bytes());
        match family {
            Family::Bloom => {
                let mut set = Scaling::new(asked);
                set.push(scaling::Plan::next(&asked, 0).unwrap()).unwrap();
                for key in 0..keys {
                    while set.insert_new(digest(key)).is_err() {
                        let plan = scaling::Plan::next(&asked, set.layers().len()).unwrap();
                        set.push(plan).unwrap();
                    }
                }
                Filter::Set(set)
            }
            Family::Cuckoo => {
                let mut multiset = Multiset::new(asked);
                multiset.push(multiset::Plan::first(&asked).unwrap()).unwrap();
                for key in 0..keys {
                    while multiset.insert(digest(key / 3 * 2), key % 5 + 1).is_err() {
                        let plan = multiset::Plan::next(&multiset).unwrap();
                        multiset.push(plan).unwrap();
                    }
                }
                Filter::Multiset(multiset)
            }
        }
    }

    /// All chunks of a filter, each with the position behind it.
    fn chunks(filter: &Filter, most: usize) -> Vec<(u64, Vec<u8>)> {
        let (mut from, mut all) = (1, Vec::new());
        while let Some((to, bytes)) = chunk(filter, from, most).unwrap() {
            assert!(to > from && bytes.len() <= most + 16 + 8200);
            all.push((to, bytes));
            from = to;
        }
        all
    }

    /// Whatever is made can be dumped and loaded, in chunks of any size, empty and full, also by
    /// way of a part; what is left out, repeated, changed or too large is refused, and changes
    /// nothing.
    #[test]
    fn whatever_is_made_can_be_loaded() {
        for family in [Family::Bloom, Family::Cuckoo] {
            for (rate, capacity, expansion, keys) in [
                (0.01, 100, 2, 0),
                (0.01, 100, 2, 1),
                (0.01, 100, 2, 100),
                (0.01, 100, 2, 3_000),
                (0.25, 3, 2, 500),
                (1e-4, 5_000, 0, 4_000),
                (1e-6, 5_000, 1, 12_000),
                (1e-9, 1, 0, 1),
            ] {
                let filter = filled(family, rate, capacity, expansion, keys);
                let header = Header::decode(&Header::of(&filter).unwrap().encode()).unwrap();
                for most in [2_000, 64, 1 << 20] {
                    let chunks = chunks(&filter, most);
                    let mut incoming = Incoming::new(&header).unwrap();
                    for (number, (to, bytes)) in chunks.iter().enumerate() {
                        let mut changed = bytes.clone();
                        changed[number * 7 % bytes.len()] ^= 1;
                        assert_eq!(incoming.take(*to, &changed, u64::MAX), Err(BadChunk::Damaged));
                        if let Some((later, bytes)) = chunks.get(number + 1) {
                            assert!(incoming.take(*later, bytes, u64::MAX).is_err());
                        }
                        assert!(matches!(incoming.take(*to, bytes, 0), Err(BadChunk::Limit(_))));
                        incoming.take(*to, bytes, u64::MAX).unwrap();
                        incoming.take(*to, bytes, u64::MAX).unwrap();
                        if number % 5 == 0 && incoming.clone().complete().is_none() {
                            // What has come can be saved, and goes on after it was loaded.
                            let mut part = Incoming::new(&incoming.header()).unwrap();
                            let mut from = 1;
                            while let Some((to, bytes)) = incoming.chunk(from, most).unwrap() {
                                part.take(to, &bytes, u64::MAX).unwrap();
                                from = to;
                            }
                            incoming = part;
                        }
                    }
                    let read = incoming.complete().unwrap();
                    let again = Header::of(&read).unwrap().encode();
                    assert_eq!(again, Header::of(&filter).unwrap().encode());
                    assert_eq!(self::chunks(&read, most), chunks);
                }
            }
        }
    }

    /// A filter that changed while it was dumped is refused at the end, or is one that it was.
    #[test]
    fn a_filter_that_changes_is_noticed() {
        let mut filter = filled(Family::Cuckoo, 0.01, 1_000, 1, 3_000);
        let header = Header::of(&filter).unwrap();
        let mut incoming = Incoming::new(&header).unwrap();
        let (to, bytes) = chunk(&filter, 1, 1_000).unwrap().unwrap();
        incoming.take(to, &bytes, u64::MAX).unwrap();
        let Filter::Multiset(multiset) = &mut filter else { panic!("a set") };
        for key in 100_000..100_100u64 {
            multiset.insert(Hasher::default().digest_bytes(&key.to_le_bytes()), 1).unwrap();
        }
        let mut from = to;
        let mut last = Ok(());
        while let Some((to, bytes)) = chunk(&filter, from, 1_000).unwrap() {
            last = incoming.take(to, &bytes, u64::MAX);
            from = to;
        }
        assert_eq!(last, Err(BadChunk::Damaged));
        assert!(incoming.complete().is_none());
    }
}
