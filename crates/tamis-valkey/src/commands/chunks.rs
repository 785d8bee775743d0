//! SCANDUMP and LOADCHUNK, which both families have with texts of their own.
//!
//! An iterator is 1 after the header, and the number of bytes so far plus 1 after a chunk. So a
//! chunk and the iterator that came with it say where the chunk belongs. Layers carry checksums:
//! if a filter changed while it was dumped, loading its chunks fails, and no wrong answer comes
//! from them.

use super::grow;
use crate::dump::{self, CHUNK, Header};
use crate::ffi::Call;
use crate::memory;
use crate::reply::{Answer, Refusal, Reply};
use crate::scaling::Family;
use crate::settings;
use crate::value::{BadChunk, Value};

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

/// The next chunk after an iterator; `None` when there is none.
pub(super) fn scan(
    call: &Call<'_>,
    family: Family,
    iterator: i64,
) -> Result<Option<Reply>, Refusal> {
    let value = call.find(1, Some(family))?.ok_or("ERR not found")?;
    let filter = value.filter()?;
    let pair = |iterator: u64, bytes: Vec<u8>| {
        Reply::Array(vec![Reply::number(iterator), Reply::Bulk(bytes)])
    };
    if iterator == 0 {
        return Ok(Some(pair(1, Header::of(filter)?.encode())));
    }
    let Some(start) = u64::try_from(iterator).ok().and_then(|iterator| iterator.checked_sub(1))
    else {
        return Ok(None);
    };
    let bytes = dump::chunk(filter, start, CHUNK)?;
    memory::ask(bytes.len() as u64)?; // The server copies the reply.
    if bytes.is_empty() {
        return Ok(None);
    }
    Ok(Some(pair(start + bytes.len() as u64 + 1, bytes)))
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
        grow::check_size(call, header.total())?;
        call.put(1, Value::loading(header))?;
    } else {
        let value = value.ok_or("ERR not found")?;
        let end = u64::try_from(iterator).ok().and_then(|iterator| iterator.checked_sub(1));
        let most = if call.is_replay() { u64::MAX } else { settings::FILTER_BYTES.get() };
        let taken = end.map_or(Err(BadChunk::Gap), |end| value.take_chunk(end, data, most));
        taken.map_err(|bad| match bad {
            BadChunk::Gap => texts.gap,
            BadChunk::TooLong => texts.too_long,
            BadChunk::Damaged => texts.damaged,
            BadChunk::Memory => texts.memory,
        })?;
    }
    call.replicate();
    Ok(Reply::OK)
}
