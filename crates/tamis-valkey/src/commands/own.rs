//! TAMIS.*: what BF.* and CF.* do not offer.

use tamis::wire::Frame;
use tamis::{AnyFilter, ContentId, Delta, Effort, Filter, Hasher, Limits, WireError};

use super::{aging, grow};
use crate::arguments::{fraction, integer, is};
use crate::dump;
use crate::ffi::{Call, now};
use crate::memory::{self, NoMemory};
use crate::reply::{Answer, Refusal, Reply};
use crate::scaling::{Asked, Family, MOST_LAYERS, Scaling, distinct_in};
use crate::settings::{self, MOST_CAPACITY, MOST_EXPANSION};
use crate::value::Value;

/// The most that TAMIS.INCRBY adds or removes at once: it takes a step for each.
const MOST_STEPS: i64 = 100_000;

/// TAMIS.LAYER: builds the layer that a primary has built.
pub(super) fn layer(call: &mut Call<'_>) -> Answer {
    let (asked, layer) =
        dump::decode_announcement(call.argument(2)).map_err(|_| "ERR bad announcement")?;
    let value = call.find_mut(1, Some(asked.family))?;
    let mut bytes = 0; // No limits apply to what a primary has built.
    if !call.is_replay() {
        // From a client only what this server would build itself.
        let held = value.as_ref().map(|value| value.filter()).transpose()?;
        let sane =
            asked.capacity <= MOST_CAPACITY as u64 && i64::from(asked.expansion) <= MOST_EXPANSION;
        let bad = "ERR the announcement is not what this server would plan";
        if !sane {
            return Err(bad.into());
        }
        let planned = asked.plan(held.map_or(0, |filter| filter.layers().len()))?;
        if planned.0 != layer {
            return Err(bad.into());
        }
        bytes = planned.1;
        grow::check_size(call, held.map_or(0, Scaling::memory).saturating_add(bytes))?;
    }
    if let Some(value) = value {
        let filter = value.filter_mut()?;
        if *filter.asked() != asked || filter.layers().len() >= MOST_LAYERS {
            return Err("ERR the announcement is for another filter".into());
        }
        grow::build(filter, layer, bytes)?;
        call.replicate();
    } else {
        let mut filter = Scaling::new(asked);
        grow::build(&mut filter, layer, bytes)?;
        grow::put(call, filter, call.argument(2))?;
    }
    Ok(Reply::OK)
}

fn params(layer: &AnyFilter) -> Reply {
    Reply::Map(named(layer.params().named()))
}

fn named(params: Vec<(&'static str, u64)>) -> Vec<(&'static str, Reply)> {
    params.into_iter().map(|(name, value)| (name, Reply::number(value))).collect()
}

/// The rate of each layer. This reads all of it.
fn rates(filter: &Scaling) -> Vec<f64> {
    filter.layers().iter().map(Filter::rate).collect()
}

/// The probability that some layer answers yes for an absent key.
fn joint(rates: &[f64]) -> f64 {
    1.0 - rates.iter().map(|rate| 1.0 - rate).product::<f64>()
}

/// TAMIS.INFO.
pub(super) fn info(call: &mut Call<'_>) -> Answer {
    if let Ok(Some(aged)) = call.aged() {
        return Ok(aging::info(aged, now()));
    }
    let value = call.find(1, None)?.ok_or("ERR not found")?;
    let filter = value.filter()?;
    room_to_identify(filter)?;
    let asked = filter.asked();
    let rates = rates(filter);
    let layers = filter.layers().iter().zip(&rates).map(|(layer, &rate)| {
        Reply::Map(vec![
            ("kind", Reply::text(layer.kind().name())),
            ("params", params(layer)),
            ("capacity", Reply::number(layer.capacity())),
            ("keys", Reply::number(layer.keys())),
            ("rate", Reply::Double(rate)),
            ("bytes", Reply::number(layer.footprint() / 8)),
            ("content_id", Reply::text(layer.content_id().to_string())),
        ])
    });
    Ok(Reply::Map(vec![
        ("family", Reply::text(name_of(asked.family))),
        ("asked_rate", Reply::Double(asked.rate)),
        ("rate", Reply::Double(joint(&rates))),
        ("capacity", Reply::number(filter.capacity())),
        ("keys", Reply::number(filter.keys())),
        ("removed", Reply::number(filter.removed())),
        ("expansion", Reply::number(asked.expansion.into())),
        ("hash", Reply::text(asked.hasher.id().name())),
        ("seed", Reply::text(asked.hasher.seed().to_string())),
        ("bytes", Reply::number(value.memory())),
        ("layers", Reply::Array(layers.collect())),
    ]))
}

fn name_of(family: Family) -> &'static str {
    match family {
        Family::Bloom => "bloom",
        Family::Cuckoo => "cuckoo",
    }
}

fn family_of(word: &[u8]) -> Result<Family, Refusal> {
    [Family::Bloom, Family::Cuckoo]
        .into_iter()
        .find(|&family| is(word, name_of(family)))
        .ok_or_else(|| "ERR the family is BLOOM or CUCKOO".into())
}

/// Asks for the memory that it takes to look at all layers, one after the other.
fn room_to_identify(filter: &Scaling) -> Result<(), NoMemory> {
    memory::ask(filter.layers().iter().map(memory::to_identify).max().unwrap_or(0))
}

/// The layer that a command names: the only one, or that with a number.
fn chosen(filter: &Scaling, number: Option<i64>) -> Result<usize, Refusal> {
    let layers = filter.layers().len();
    match number {
        None if layers == 1 => Ok(0),
        None => Err(format!("ERR the filter has {layers} layers: name one with LAYER").into()),
        Some(number) => usize::try_from(number)
            .ok()
            .filter(|&number| number < layers)
            .ok_or_else(|| format!("ERR layers go from 0 to {}", layers - 1).into()),
    }
}

/// Reads `[LAYER n] [PACKED]` from the arguments.
fn options(call: &Call<'_>, start: usize) -> Result<(Option<i64>, bool), Refusal> {
    let (mut layer, mut packed) = (None, false);
    let mut options = call.arguments_from(start);
    while let Some(option) = options.next() {
        if is(option, "LAYER") {
            let number = options.next().and_then(integer);
            layer = Some(number.ok_or("ERR LAYER needs a number")?);
        } else if is(option, "PACKED") {
            packed = true;
        } else {
            return Err("Unknown argument received".into());
        }
    }
    Ok((layer, packed))
}

/// TAMIS.DUMP.
pub(super) fn dump(call: &mut Call<'_>) -> Answer {
    let (number, packed) = options(call, 2)?;
    let filter = call.find(1, None)?.ok_or("ERR not found")?.filter()?;
    let layer = &filter.layers()[chosen(filter, number)?];
    let work = if packed { memory::to_collect(layer) } else { memory::to_encode(layer) };
    // The bytes in one piece, and again as the server's reply.
    memory::ask(work.saturating_add(2 * (memory::bytes(layer) + memory::SPARE)))?;
    let bytes = if packed { layer.pack(Effort::Best).to_vec() } else { layer.encode().to_vec() };
    Ok(Reply::Bulk(bytes))
}

/// TAMIS.LOAD.
pub(super) fn load(call: &mut Call<'_>) -> Answer {
    let family = family_of(call.argument(2))?;
    if call.find(1, Some(family))?.is_some() {
        return Err("ERR item exists".into());
    }
    let memory = settings::FILTER_BYTES.get();
    let limits = if call.is_replay() { Limits::NONE } else { Limits::memory(memory) };
    let refuse = |error: WireError| Refusal::from(format!("ERR {error}"));
    let mut data = call.argument(3);
    let frame = Frame::read(&mut data, limits).map_err(refuse)?;
    memory::ask(memory::to_decode(frame.header()))?;
    let layer = AnyFilter::read_behind(frame).map_err(refuse)?;
    memory::ask(memory::to_merge(&layer))?; // To count what is distinct.
    let Some(capacity) = Some(layer.capacity().max(layer.keys())).filter(|&keys| keys > 0) else {
        return Err("ERR the filter does not say how many keys it is for".into());
    };
    let asked = Asked {
        family,
        rate: layer.params().predict(capacity).rate.clamp(f64::MIN_POSITIVE, 0.999),
        capacity,
        expansion: 0,
        bucket_size: 0,
        max_iterations: 0,
        hasher: layer.hasher(),
    };
    let kind = layer.kind().name();
    let distinct = vec![distinct_in(&layer)];
    let filter = Scaling::of_layers(asked, vec![layer], distinct, 0);
    let filter =
        filter.ok_or_else(|| Refusal::from(format!("ERR {} cannot be {kind}", name_of(family))))?;
    grow::check_size(call, filter.memory())?;
    call.put(1, Value::ready(filter))?;
    call.replicate();
    Ok(Reply::OK)
}

/// TAMIS.DELTA.
pub(super) fn delta(call: &mut Call<'_>) -> Answer {
    let (number, _) = options(call, 3)?;
    let text = str::from_utf8(call.argument(2)).unwrap_or_default();
    let since = u128::from_str_radix(text, 16).map_err(|_| "ERR a content id is hexadecimal")?;
    let filter = call.find(1, None)?.ok_or("ERR not found")?.filter()?;
    let layer = chosen(filter, number)?;
    // The base and what differs, and again as the server's reply.
    memory::ask(memory::to_collect(&filter.layers()[layer]).saturating_mul(3))?;
    let base = filter.recall(ContentId(since));
    let layer = &filter.layers()[layer];
    let (id, packed) = (layer.content_id(), layer.pack(Effort::Fast).to_vec());
    let delta = base.and_then(|base| Delta::between(&base, layer).ok());
    let (word, bytes) = match delta {
        Some(delta) => ("delta", delta.encode().to_vec()),
        None => ("snapshot", packed.clone()),
    };
    filter.remember(id, packed, settings::REMEMBERED_BYTES.get());
    Ok(Reply::Array(vec![Reply::text(word), Reply::text(id.to_string()), Reply::Bulk(bytes)]))
}

/// TAMIS.COUNT.
pub(super) fn count(call: &mut Call<'_>) -> Answer {
    let filter = call.find(1, None)?.map(|value| value.filter()).transpose()?;
    let count = |item| filter.map_or(0, |filter| filter.count(filter.digest(item)));
    Ok(Reply::Array(call.arguments_from(2).map(|item| Reply::number(count(item))).collect()))
}

/// TAMIS.INCRBY.
pub(super) fn incrby(call: &mut Call<'_>) -> Answer {
    let steps = integer(call.argument(3)).ok_or("ERR the increment is a whole number")?;
    if !(-MOST_STEPS..=MOST_STEPS).contains(&steps) {
        return Err(format!("ERR the increment is at most {MOST_STEPS}").into());
    }
    let item = call.argument(2);
    let value = call.find_mut(1, Some(Family::Cuckoo))?.ok_or("ERR not found")?;
    let filter = value.filter_mut()?;
    let digest = filter.digest(item);
    let before = filter.count(digest);
    for _ in 0..steps {
        // Only the first step can need a layer: the others go where it went.
        if filter.insert(digest).is_err() {
            let announcement = grow::add_layer(call, filter)?;
            call.replicate_bytes(c"TAMIS.LAYER", 1, &announcement);
            filter.insert(digest).map_err(|_| "ERR Insufficient memory")?;
        }
    }
    for _ in steps..0 {
        if !filter.remove(digest) {
            break;
        }
    }
    let after = filter.count(digest);
    if after != before {
        call.replicate();
        call.notify(if after > before { c"cuckoo.add" } else { c"cuckoo.del" });
    }
    Ok(Reply::number(after))
}

/// TAMIS.MERGE.
pub(super) fn merge(call: &mut Call<'_>) -> Answer {
    let mut sources = Vec::new();
    let mut family = None;
    for at in 2..call.len() {
        let source = call.find(at, family)?.ok_or("ERR not found")?.filter()?;
        family = Some(source.asked().family);
        sources.push(source);
    }
    let old = call.find(1, family)?.map(|value| value.filter()).transpose()?;
    let all = || sources.iter().copied().chain(old);
    let total = all().map(Scaling::memory).fold(0, u64::saturating_add);
    grow::check_size(call, total)?;
    let work = all().flat_map(Scaling::layers).map(memory::to_merge);
    memory::ask(work.fold(total.saturating_mul(2), u64::saturating_add))?;
    // Beside the old one, so that it is unchanged if something does not fit.
    let mut merged = old.cloned();
    for source in sources {
        match &mut merged {
            None => merged = Some(source.clone()),
            Some(merged) => merged.merge(source)?,
        }
    }
    let merged = merged.ok_or("ERR not found")?;
    room_to_identify(&merged)?;
    let rate = joint(&rates(&merged));
    call.put(1, Value::ready(merged))?;
    call.replicate();
    call.notify(c"tamis.merge");
    Ok(Reply::Double(rate))
}

/// TAMIS.PLAN.
pub(super) fn plan(call: &mut Call<'_>) -> Answer {
    let capacity = integer(call.argument(1)).filter(|keys| (1..=MOST_CAPACITY).contains(keys));
    let capacity = capacity.ok_or("ERR bad capacity")? as u64;
    let rate = fraction(call.argument(2)).filter(|&rate| rate > 0.0 && rate < 1.0);
    let rate = rate.ok_or("ERR bad error rate")?;
    let family = if call.len() == 4 { family_of(call.argument(3))? } else { Family::Bloom };
    let hasher = Hasher::xxh3(settings::SEED.get());
    let asked =
        Asked { family, rate, capacity, expansion: 0, bucket_size: 0, max_iterations: 0, hasher };
    let (layer, bytes) = asked.plan(0)?;
    let predicted = layer.params.predict(capacity);
    Ok(Reply::Map(vec![
        ("kind", Reply::text(layer.params.kind().name())),
        ("params", Reply::Map(named(layer.params.named()))),
        ("rate", Reply::Double(predicted.rate)),
        ("bits_per_key", Reply::Double(predicted.bits_per_key)),
        ("bytes", Reply::number(bytes)),
    ]))
}
