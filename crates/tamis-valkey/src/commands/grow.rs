//! Making filters and their layers and tables, within the limits that are set.

use crate::asked::{Asked, Family};
use crate::dump::{self, Part};
use crate::ffi::Call;
use crate::memory;
use crate::multiset::{self, MOST_BITS, MOST_TABLES, Multiset};
use crate::plans::Unreachable;
use crate::reply::Refusal;
use crate::scaling::{self, MOST_LAYERS, Scaling};
use crate::settings;
use crate::value::{Filter, Value};

/// A filter without layers or tables.
pub(super) fn empty(asked: Asked) -> Filter {
    match asked.family {
        Family::Bloom => Filter::Set(Scaling::new(asked)),
        Family::Cuckoo => Filter::Multiset(Multiset::new(asked)),
    }
}

/// A new filter with its first layer or table, and the announcement of it.
pub(super) fn create(call: &Call<'_>, asked: Asked) -> Result<(Filter, Vec<u8>), Refusal> {
    let mut filter = empty(asked);
    let announcement = add_part(call, &mut filter)?;
    Ok((filter, announcement))
}

/// Makes the key hold a new filter, and tells replicas and listeners.
pub(super) fn put<'a>(
    call: &mut Call<'a>,
    filter: Filter,
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

/// The layer or the table that a filter needs next.
pub(super) fn plan(filter: &Filter) -> Result<Part, Refusal> {
    let expands = filter.asked().expansion > 0;
    match filter {
        Filter::Set(set) => {
            let layers = set.layers().len();
            if layers > 0 && !expands {
                return Err("ERR non scaling filter is full".into());
            }
            if layers >= MOST_LAYERS {
                return Err("ERR bloom object reached max number of filters".into());
            }
            let plan = scaling::Plan::next(set.asked(), layers);
            plan.map(Part::Layer).map_err(|Unreachable { nearest }| {
                let reason = "digests of 64 bits give a rate of";
                format!("ERR could not create filter: {reason} {nearest:.1e} at best").into()
            })
        }
        Filter::Multiset(multiset) => {
            let tables = multiset.tables().len();
            if tables > 0 && !expands {
                return Err("Filter is full".into());
            }
            let most = (settings::CF_EXPANSIONS.get() as usize).min(MOST_TABLES);
            let full = || Refusal::from("Maximum expansions reached");
            if tables >= most {
                return Err(full());
            }
            multiset::Plan::next(multiset).map(Part::Table).map_err(|_| match tables {
                0 => format!(
                    "ERR Could not create filter: capacity over rate is at most 2^{MOST_BITS}"
                )
                .into(),
                _ => full(),
            })
        }
    }
}

/// Adds the next layer or table; its announcement comes back.
pub(super) fn add_part(call: &Call<'_>, filter: &mut Filter) -> Result<Vec<u8>, Refusal> {
    let part = plan(filter)?;
    check_size(call, filter.memory().saturating_add(bytes(filter, part)))?;
    build(call, filter, part)?;
    Ok(dump::announce(filter.asked(), part))
}

/// Bytes that a layer will take; of the first table, those of the capacity.
pub(super) fn bytes(filter: &Filter, part: Part) -> u64 {
    match part {
        Part::Layer(plan) => plan.bytes(),
        Part::Table(plan) if filter.keys() == 0 => {
            multiset::Plan { most: filter.asked().capacity, ..plan }.bytes()
        }
        Part::Table(_) => 0,
    }
}

/// Builds a layer or a table, if there is memory for it and some left for the server. A layer that
/// took all of it would end the server at its next command.
pub(super) fn build(call: &Call<'_>, filter: &mut Filter, part: Part) -> Result<(), Refusal> {
    let bytes = if call.is_replay() { 0 } else { bytes(filter, part) };
    let refusal = |first: bool, other: &'static str| -> Refusal {
        if first { "ERR Insufficient memory to create filter".into() } else { other.into() }
    };
    let now = if matches!(part, Part::Layer(_)) { bytes } else { 0 };
    let room = memory::ask(bytes).and_then(|()| call.room_below_maxmemory(now));
    let (built, refusal) = match (filter, part) {
        (Filter::Set(set), Part::Layer(plan)) => {
            let first = set.layers().is_empty();
            let built = room.and_then(|()| set.push(plan));
            (built, refusal(first, "ERR problem inserting into filter"))
        }
        (Filter::Multiset(multiset), Part::Table(plan)) => {
            let first = multiset.tables().is_empty();
            let built = room.and_then(|()| multiset.push(plan));
            (built, refusal(first, "ERR Insufficient memory"))
        }
        _ => return Err("ERR the announcement is for another filter".into()),
    };
    built.map_err(|_| refusal)
}

/// Refuses a filter of more bytes than the settings allow, unless a primary or the AOF has already
/// made it.
pub(super) fn check_size(call: &Call<'_>, bytes: u64) -> Result<(), Refusal> {
    let most = settings::FILTER_BYTES.get();
    if bytes > most && !call.is_replay() { Err(too_large(bytes, most)) } else { Ok(()) }
}

/// What is said of a filter that would be too large.
pub(super) fn too_large(bytes: u64, most: u64) -> Refusal {
    let text = "ERR operation results in filter allocation exceeding size limit";
    format!("{text}: {bytes} bytes, and bf.max-filter-bytes is {most}").into()
}
