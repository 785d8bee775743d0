//! SCANDUMP and LOADCHUNK, which both families have with texts of their own.
//!
//! An iterator is 1 after the header, and after a chunk the position behind it (`incoming.rs`). A
//! chunk is words as they lie in memory, and carries the position where it starts and a checksum.
//! If keys came to a multiset, or left it, while it was dumped, its last chunk is refused; a set
//! then has some of the keys that came.

use super::grow;
use crate::asked::Family;
use crate::dump::{CHUNK, Header};
use crate::ffi::Call;
use crate::incoming::{self, BadChunk, Incoming};
use crate::memory;
use crate::reply::{Answer, Refusal, Reply};
use crate::settings;
use crate::value::{Filter, Value};

/// What a family says when it refuses a chunk.
pub(super) struct Texts {
    pub(super) family: Family,
    /// A header for a key that exists.
    pub(super) exists: &'static str,
    /// A header that is none.
    pub(super) bad_header: &'static str,
    pub(super) gap: &'static str,
    pub(super) too_long: &'static str,
    pub(super) damaged: &'static str,
    /// There is no memory for the filter.
    pub(super) memory: &'static str,
}

/// The filter to dump. It is looked for before other arguments are read.
pub(super) fn to_scan<'a>(call: &Call<'a>, family: Family) -> Result<&'a Filter, Refusal> {
    call.find(1, Some(family))?.ok_or("ERR not found")?.filter()
}

/// The next chunk after an iterator; `None` when there is none.
pub(super) fn scan(filter: &Filter, iterator: i64) -> Result<Option<Reply>, Refusal> {
    let pair = |iterator: u64, bytes: Vec<u8>| {
        Reply::Array(vec![Reply::number(iterator), Reply::Bulk(bytes)])
    };
    if iterator == 0 {
        return Ok(Some(pair(1, Header::of(filter)?.encode())));
    }
    let Ok(from) = u64::try_from(iterator) else { return Ok(None) };
    memory::ask(2 * CHUNK as u64)?; // The server copies the reply.
    let chunk = incoming::chunk(filter, from, CHUNK)?;
    Ok(chunk.map(|(to, bytes)| pair(to, bytes)))
}

/// Takes a chunk.
pub(super) fn load(call: &mut Call<'_>, iterator: i64, texts: &Texts) -> Answer {
    let data = call.argument(3);
    let value = call.find_mut(1, Some(texts.family))?;
    if iterator == 1 {
        if value.is_some() {
            return Err(texts.exists.into());
        }
        let header = Header::decode(data).map_err(|_| texts.bad_header)?;
        if header.asked.family != texts.family {
            return Err(texts.bad_header.into());
        }
        grow::check_size(call, header.memory())?;
        call.put(1, Value::loading(&header)?)?;
    } else {
        let value = value.ok_or("ERR not found")?;
        let opens = value.as_incoming().map_or(0, Incoming::opens);
        call.room_below_maxmemory(opens).map_err(|_| texts.memory)?;
        let to = u64::try_from(iterator).ok();
        let most = if call.is_replay() { u64::MAX } else { settings::FILTER_BYTES.get() };
        let taken = to.map_or(Err(BadChunk::Gap), |to| value.take_chunk(to, data, most));
        taken.map_err(|bad| match bad {
            BadChunk::Gap => texts.gap.into(),
            BadChunk::TooLong => texts.too_long.into(),
            BadChunk::Damaged => texts.damaged.into(),
            BadChunk::Memory => texts.memory.into(),
            BadChunk::Limit(bytes) => grow::too_large(bytes, most),
        })?;
    }
    call.replicate();
    Ok(Reply::OK)
}
