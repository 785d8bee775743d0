//! Making filters and their layers, within the limits that are set.

use crate::dump;
use crate::ffi::Call;
use crate::memory::{self, NoMemory};
use crate::reply::Refusal;
use crate::scaling::{Asked, Family, Layer, MOST_LAYERS, Scaling};
use crate::settings;
use crate::value::Value;

/// A new filter with its first layer, and the announcement of it.
pub(super) fn create(call: &Call<'_>, asked: Asked) -> Result<(Scaling, Vec<u8>), Refusal> {
    let mut filter = Scaling::new(asked);
    let announcement = add_layer(call, &mut filter)?;
    Ok((filter, announcement))
}

/// Makes the key hold a new filter, and tells replicas and listeners.
pub(super) fn put<'a>(
    call: &mut Call<'a>,
    filter: Scaling,
    announcement: &[u8],
) -> Result<&'a mut Value, Refusal> {
    let family = filter.asked().family;
    let value = call.put(1, Value::ready(filter))?;
    call.replicate_bytes(c"TAMIS.LAYER", 1, announcement);
    call.notify(match family {
        Family::Bloom => c"bloom.reserve",
        Family::Cuckoo => c"cuckoo.reserve",
    });
    Ok(value)
}

/// Adds the next layer; its announcement comes back.
pub(super) fn add_layer(call: &Call<'_>, filter: &mut Scaling) -> Result<Vec<u8>, Refusal> {
    let asked = *filter.asked();
    let number = filter.layers().len();
    let most = match asked.family {
        Family::Bloom => MOST_LAYERS,
        Family::Cuckoo => settings::CF_EXPANSIONS.get() as usize + 1,
    };
    match asked.family {
        Family::Bloom if number > 0 && asked.expansion == 0 => {
            return Err("ERR non scaling filter is full".into());
        }
        Family::Cuckoo if number > 0 && asked.expansion == 0 => {
            return Err("Filter is full".into());
        }
        Family::Bloom if number >= most => {
            return Err("ERR bloom object reached max number of filters".into());
        }
        Family::Cuckoo if number >= most => return Err("Maximum expansions reached".into()),
        _ => {}
    }
    let (layer, bytes) = asked.plan(number)?;
    check_size(call, filter.memory().saturating_add(bytes))?;
    build(filter, layer, bytes)?;
    Ok(dump::announce(&asked, &layer))
}

/// Builds a layer of `bytes` bytes, if there is memory for it and some left for the server. A
/// layer that took all of it would end the server at its next command.
pub(super) fn build(filter: &mut Scaling, layer: Layer, bytes: u64) -> Result<(), Refusal> {
    let refusal = match (filter.layers().len(), filter.asked().family) {
        (0, _) => "ERR Insufficient memory to create filter",
        (_, Family::Bloom) => "ERR problem inserting into filter",
        (_, Family::Cuckoo) => "ERR Insufficient memory",
    };
    let built = memory::ask(bytes).and_then(|()| filter.push(layer).map_err(|_| NoMemory));
    built.map_err(|_| refusal.into())
}

/// Refuses a filter of more bytes than the settings allow, unless a primary or the AOF has already
/// made it.
pub(super) fn check_size(call: &Call<'_>, bytes: u64) -> Result<(), Refusal> {
    let most = settings::FILTER_BYTES.get();
    if bytes > most && !call.is_replay() {
        let text = "ERR operation results in filter allocation exceeding size limit";
        return Err(format!("{text}: {bytes} bytes, and bf.max-filter-bytes is {most}").into());
    }
    Ok(())
}
