//! BF.*: a set that grows.

use tamis::Hasher;

use super::chunks::{self, Texts};
use super::grow;
use super::insert::{self, Insertion, Outcome};
use crate::arguments::{after, fraction, integer, is, letter};
use crate::asked::{Asked, Family};
use crate::ffi::Call;
use crate::reply::{Answer, Refusal, Reply};
use crate::scaling::{Layer, layer_rate};
use crate::settings::{self, MOST_CAPACITY, MOST_EXPANSION};
use crate::value::Filter;

const BLOOM: Option<Family> = Some(Family::Bloom);
/// The highest rate: filters with higher ones tell next to nothing.
const HIGHEST_RATE: f64 = 0.25;

/// A filter as the settings have it.
fn default() -> Asked {
    Asked {
        family: Family::Bloom,
        rate: settings::BF_RATE.get().min(HIGHEST_RATE),
        capacity: settings::BF_CAPACITY.get(),
        expansion: settings::BF_EXPANSION.get() as u32,
        bucket_size: 0,
        max_iterations: 0,
        hasher: Hasher::xxh3(settings::SEED.get()),
    }
}

/// BF.RESERVE.
pub(super) fn reserve(call: &mut Call<'_>) -> Answer {
    let rate = fraction(call.argument(2)).ok_or("ERR bad error rate")?;
    if !(rate > 0.0 && rate < 1.0) {
        return Err("ERR error rate must be in the range (0.000000, 1.000000)".into());
    }
    if rate > HIGHEST_RATE {
        call.log(&format!("error rate {rate} is capped to {HIGHEST_RATE}"));
    }
    let capacity = integer(call.argument(3)).ok_or("ERR bad capacity")?;
    if !(1..=MOST_CAPACITY).contains(&capacity) {
        return Err(format!("ERR capacity must be in the range [1, {MOST_CAPACITY}]").into());
    }
    // As RedisBloom, which looks for the words that it knows.
    let nonscaling = call.arguments_from(4).any(|option| is(option, "NONSCALING"));
    let expansion = match after(call.arguments_from(4), "EXPANSION") {
        Some(mut rest) => {
            let factor = rest.next().ok_or("ERR no expansion")?;
            let factor = integer(factor).ok_or("ERR bad expansion")?;
            if nonscaling && factor != 0 {
                return Err("Nonscaling filters cannot expand".into());
            }
            if !(0..=MOST_EXPANSION).contains(&factor) {
                let text = format!("ERR expansion must be in the range [0, {MOST_EXPANSION}]");
                return Err(text.into());
            }
            factor as u32
        }
        None if nonscaling => 0,
        None => settings::BF_EXPANSION.get() as u32,
    };
    if call.find(1, BLOOM)?.is_some() {
        return Err("ERR item exists".into());
    }
    let rate = rate.min(HIGHEST_RATE);
    let asked = Asked { rate, capacity: capacity as u64, expansion, ..default() };
    let (filter, announcement) = grow::create(call, asked)?;
    grow::put(call, filter, &announcement)?;
    Ok(Reply::OK)
}

fn insertion(call: &Call<'_>, start: usize, create: Option<Asked>) -> Insertion {
    let items = start..call.len();
    Insertion { family: Family::Bloom, items, only_new: true, create, stops: true }
}

fn element(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Added => Reply::Bool(true),
        Outcome::Known => Reply::Bool(false),
        Outcome::Refused(refusal) => Reply::Error(refusal),
    }
}

/// BF.ADD.
pub(super) fn add(call: &mut Call<'_>) -> Answer {
    let mut reply = Reply::Null;
    insertion(call, 2, Some(default())).run(call, |outcome| reply = element(outcome))?;
    Ok(reply)
}

/// BF.MADD.
pub(super) fn madd(call: &mut Call<'_>) -> Answer {
    let mut replies = Vec::new();
    insertion(call, 2, Some(default())).run(call, |outcome| replies.push(element(outcome)))?;
    Ok(Reply::Array(replies))
}

/// BF.INSERT.
pub(super) fn insert(call: &mut Call<'_>) -> Answer {
    let (mut asked, mut create, mut nonscaling) = (default(), true, false);
    let items = insert::options(call, |option, value| {
        if letter(option, 0, b'N') {
            let no_create = letter(option, 2, b'C');
            create &= !no_create;
            nonscaling |= !no_create;
            return Ok(false);
        }
        if letter(option, 0, b'C') {
            let capacity = value.ok_or(Refusal::Arity).map(integer)?;
            let capacity = capacity.filter(|capacity| (1..=MOST_CAPACITY).contains(capacity));
            asked.capacity = capacity.ok_or("Bad capacity")? as u64;
        } else if letter(option, 0, b'E') && letter(option, 1, b'R') {
            let rate = value.ok_or(Refusal::Arity).map(fraction)?;
            let rate = rate.filter(|&rate| rate > 0.0 && rate < 1.0);
            asked.rate = rate.ok_or("Bad error rate")?.min(HIGHEST_RATE);
        } else if letter(option, 0, b'E') {
            let expansion = value.ok_or(Refusal::Arity).map(integer)?;
            let expansion = expansion.filter(|factor| (0..=MOST_EXPANSION).contains(factor));
            asked.expansion = expansion.ok_or("Bad expansion")? as u32;
        } else {
            return Err("Unknown argument received".into());
        }
        Ok(true)
    })?;
    if nonscaling {
        asked.expansion = 0;
    }
    let mut replies = Vec::new();
    insertion(call, items, create.then_some(asked))
        .run(call, |outcome| replies.push(element(outcome)))?;
    Ok(Reply::Array(replies))
}

/// The filter to ask; a key that does not exist, or holds something else, has nothing in it.
pub(super) fn to_ask<'a>(call: &Call<'a>, family: Family) -> Result<Option<&'a Filter>, Refusal> {
    match call.find(1, Some(family)) {
        Ok(Some(value)) => value.filter().map(Some),
        Ok(None) | Err(_) => Ok(None),
    }
}

fn may_contain(filter: Option<&Filter>, item: &[u8]) -> Reply {
    Reply::Bool(filter.is_some_and(|filter| filter.contains(item)))
}

/// BF.EXISTS.
pub(super) fn exists(call: &mut Call<'_>) -> Answer {
    ask_one(call, Family::Bloom)
}

/// BF.MEXISTS.
pub(super) fn mexists(call: &mut Call<'_>) -> Answer {
    ask_many(call, Family::Bloom)
}

/// Whether an item may be in.
pub(super) fn ask_one(call: &Call<'_>, family: Family) -> Answer {
    Ok(may_contain(to_ask(call, family)?, call.argument(2)))
}

/// Whether items may be in.
pub(super) fn ask_many(call: &Call<'_>, family: Family) -> Answer {
    let filter = to_ask(call, family)?;
    Ok(Reply::Array(call.arguments_from(2).map(|item| may_contain(filter, item)).collect()))
}

/// BF.CARD.
pub(super) fn card(call: &mut Call<'_>) -> Answer {
    let value = call.find(1, BLOOM)?;
    Ok(Reply::number(value.map(|value| value.filter()).transpose()?.map_or(0, Filter::keys)))
}

/// BF.INFO.
pub(super) fn info(call: &mut Call<'_>) -> Answer {
    let value = call.find(1, BLOOM)?.ok_or("ERR not found")?;
    let filter = value.filter()?.set()?;
    let expansion = match filter.asked().expansion {
        0 => Reply::Null,
        expansion => Reply::number(expansion.into()),
    };
    let all = [
        ("CAPACITY", "Capacity", Reply::number(filter.capacity())),
        ("SIZE", "Size", Reply::number(value.memory())),
        ("FILTERS", "Number of filters", Reply::number(filter.layers().len() as u64)),
        ("ITEMS", "Number of items inserted", Reply::number(filter.keys())),
        ("EXPANSION", "Expansion rate", expansion),
    ];
    if call.len() == 2 {
        return Ok(Reply::Map(all.into_iter().map(|(_, name, value)| (name, value)).collect()));
    }
    let wanted = call.argument(2);
    let one = all.into_iter().find(|(word, ..)| is(wanted, word));
    let (_, name, value) = one.ok_or("Invalid information value")?;
    Ok(if call.speaks_resp3() {
        Reply::Map(vec![(name, value)])
    } else {
        Reply::Array(vec![value])
    })
}

/// BF.SCANDUMP.
pub(super) fn scandump(call: &mut Call<'_>) -> Answer {
    let filter = chunks::to_scan(call, Family::Bloom)?;
    let iterator = integer(call.argument(2)).ok_or("Second argument must be numeric")?;
    let end = || Reply::Array(vec![Reply::Int(0), Reply::Bulk(Vec::new())]);
    Ok(chunks::scan(filter, iterator)?.unwrap_or_else(end))
}

/// BF.LOADCHUNK.
pub(super) fn loadchunk(call: &mut Call<'_>) -> Answer {
    let iterator = integer(call.argument(2)).ok_or("ERR Second argument must be numeric")?;
    let texts = Texts {
        family: Family::Bloom,
        exists: "ERR received bad data",
        bad_header: "ERR received bad data",
        gap: "ERR invalid offset - no link found",
        too_long: "ERR invalid chunk - Too big for current filter",
        damaged: "ERR received bad data",
        memory: "ERR Insufficient memory to create filter",
    };
    chunks::load(call, iterator, &texts)
}

/// BF.DEBUG.
pub(super) fn debug(call: &mut Call<'_>) -> Answer {
    let value = call.find(1, BLOOM)?.ok_or("ERR not found")?;
    let filter = value.filter()?.set()?;
    let line = |(number, layer): (usize, &Layer)| {
        let bits = 8 * layer.memory();
        let (hashes, capacity, size) = (layer.kind(), layer.capacity(), layer.keys());
        let rate = layer_rate(filter.asked(), number);
        Reply::text(format!(
            "bytes:{} bits:{bits} hashes:{hashes} hashwidth:64 capacity:{capacity} size:{size} ratio:{rate}",
            bits / 8
        ))
    };
    let mut lines = vec![Reply::text(format!("size:{}", filter.keys()))];
    lines.extend(filter.layers().iter().enumerate().map(line));
    Ok(Reply::Array(lines))
}
