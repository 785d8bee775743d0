//! TAMIS.*: what BF.* and CF.* do not offer.

use std::borrow::Cow;
use std::cell::RefCell;

use tamis::wire::Frame;
use tamis::{AnyFilter, ContentId, Delta, Effort, Filter as _, Hasher, Limits, WireError};

use super::{aging, grow, insert};
use crate::arguments::{fraction, integer, is};
use crate::asked::{Asked, Family};
use crate::dump::{self, Part};
use crate::ffi::{Call, now};
use crate::library;
use crate::memory;
use crate::multiset::{self, Full, MOST_TABLES, Multiset, Refused, Table};
use crate::remembered::Remembered;
use crate::reply::{Answer, Refusal, Reply};
use crate::scaling::{self, Layer, MOST_LAYERS, Scaling};
use crate::settings::{self, MOST_CAPACITY, MOST_EXPANSION};
use crate::value::{Filter, Value};

/// The most that TAMIS.INCRBY adds or removes at once.
const MOST_STEPS: i64 = 1_000_000_000;

/// TAMIS.LAYER: builds the layer or the table that a primary has built.
pub(super) fn layer(call: &mut Call<'_>) -> Answer {
    let (asked, part) =
        dump::decode_announcement(call.argument(2)).map_err(|_| "ERR bad announcement")?;
    let value = call.find_mut(1, Some(asked.family))?;
    if !call.is_replay() {
        // From a client only what this server would build itself.
        let bad = "ERR the announcement is not what this server would plan";
        if asked.capacity > MOST_CAPACITY as u64 || i64::from(asked.expansion) > MOST_EXPANSION {
            return Err(bad.into());
        }
        let new = grow::empty(asked);
        let held = value.as_ref().map(|value| value.filter()).transpose()?.unwrap_or(&new);
        if grow::plan(held)? != part {
            return Err(bad.into());
        }
        grow::check_size(call, held.memory().saturating_add(grow::bytes(held, part)))?;
    }
    if let Some(value) = value {
        let filter = value.filter_mut()?;
        let full = match filter {
            Filter::Set(set) => set.layers().len() >= MOST_LAYERS,
            Filter::Multiset(multiset) => multiset.tables().len() >= MOST_TABLES,
        };
        if *filter.asked() != asked || full {
            return Err("ERR the announcement is for another filter".into());
        }
        grow::build(call, filter, part)?;
        call.replicate();
    } else {
        let mut filter = grow::empty(asked);
        grow::build(call, &mut filter, part)?;
        grow::put(call, filter, call.argument(2))?;
    }
    Ok(Reply::OK)
}

fn named(params: Vec<(&'static str, u64)>) -> Reply {
    Reply::Map(params.into_iter().map(|(name, value)| (name, Reply::number(value))).collect())
}

fn about_table(table: &Table) -> Reply {
    Reply::Map(vec![
        ("kind", Reply::text(multiset::KIND)),
        ("params", named(vec![("universe", table.universe())])),
        ("capacity", Reply::number(table.most())),
        ("keys", Reply::number(table.keys())),
        ("rate", Reply::Double(table.rate())),
        ("bytes", Reply::number(table.memory())),
    ])
}

fn about_layer(layer: &Layer) -> Reply {
    let filter = match layer {
        Layer::Small(table) => return about_table(table),
        Layer::Large(filter) => filter,
    };
    Reply::Map(vec![
        ("kind", Reply::text(filter.kind().name())),
        ("params", named(filter.params().named())),
        ("capacity", Reply::number(filter.capacity())),
        ("keys", Reply::number(filter.keys())),
        ("rate", Reply::Double(layer.rate())),
        ("bytes", Reply::number(layer.memory())),
    ])
}

/// TAMIS.INFO: from counters and models; nothing of the content is read.
pub(super) fn info(call: &mut Call<'_>) -> Answer {
    if let Ok(Some(aged)) = call.aged(1) {
        return Ok(aging::info(aged, now()));
    }
    let value = call.find(1, None)?.ok_or("ERR not found")?;
    let filter = value.filter()?;
    let asked = filter.asked();
    let (rate, capacity, removed, layers) = match filter {
        Filter::Set(set) => {
            let layers = set.layers().iter().map(about_layer).collect();
            (set.rate(), set.capacity(), 0, layers)
        }
        Filter::Multiset(multiset) => {
            let layers = multiset.tables().iter().map(about_table).collect();
            (multiset.rate(), asked.capacity, multiset.removed(), layers)
        }
    };
    Ok(Reply::Map(vec![
        ("family", Reply::text(name_of(asked.family))),
        ("asked_rate", Reply::Double(asked.rate)),
        ("rate", Reply::Double(rate)),
        ("capacity", Reply::number(capacity)),
        ("keys", Reply::number(filter.keys())),
        ("removed", Reply::number(removed)),
        ("expansion", Reply::number(asked.expansion.into())),
        ("hash", Reply::text(asked.hasher.id().name())),
        ("seed", Reply::text(asked.hasher.seed().to_string())),
        ("bytes", Reply::number(value.memory())),
        ("layers", Reply::Array(layers)),
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

/// The layer or the table that a command names, as a filter of the library: the only one, or that
/// with a number.
fn chosen(filter: &Filter, number: Option<i64>) -> Result<Cow<'_, AnyFilter>, Refusal> {
    let layers = match filter {
        Filter::Set(set) => set.layers().len(),
        Filter::Multiset(multiset) => multiset.tables().len(),
    };
    let number = match number {
        None if layers == 1 => 0,
        None => {
            return Err(format!("ERR the filter has {layers} layers: name one with LAYER").into());
        }
        Some(number) => usize::try_from(number)
            .ok()
            .filter(|&number| number < layers)
            .ok_or_else(|| Refusal::from(format!("ERR layers go from 0 to {}", layers - 1)))?,
    };
    let hasher = filter.asked().hasher;
    match filter {
        Filter::Set(set) => library::of_layer(&set.layers()[number], hasher),
        Filter::Multiset(multiset) => {
            library::exported(&multiset.tables()[number], hasher).map(Cow::Owned)
        }
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
    if let Ok(Some(aged)) = call.aged(1) {
        return aging::dump(aged, packed);
    }
    let filter = call.find(1, None)?.ok_or("ERR not found")?.filter()?;
    let layer = chosen(filter, number)?;
    let work = if packed { memory::to_pack(&layer) } else { memory::to_encode(&layer) };
    // The bytes in one piece, and again as the server's reply.
    memory::ask(work.saturating_add(2 * (memory::bytes(&layer) + memory::SPARE)))?;
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
    let limit = if call.is_replay() { u64::MAX } else { memory };
    let refuse = |error: WireError| Refusal::from(format!("ERR {error}"));
    let mut data = call.argument(3);
    let frame = Frame::read(&mut data, Limits::memory(limit)).map_err(refuse)?;
    let asked = memory::to_decode(frame.header()).min(limit);
    // (No more on a replica: what its primary has taken must not be missing here.)
    memory::ask(asked.min(memory))?;
    // Again, so that reading takes no more than was asked for.
    let mut data = call.argument(3);
    let frame = Frame::read(&mut data, Limits::memory(asked)).map_err(refuse)?;
    let decoded = frame.header().sections.iter().map(|section| section.decoded);
    call.room_below_maxmemory(decoded.fold(0, u64::saturating_add))?;
    let layer = AnyFilter::read_behind(frame).map_err(refuse)?;
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
    let kind = layer.kind();
    let filter = match family {
        Family::Bloom => {
            Scaling::of_layers(asked, vec![Layer::Large(Box::new(layer))]).map(Filter::Set)
        }
        Family::Cuckoo if library::MULTISETS.contains(&kind) => {
            memory::ask(memory::to_merge(&layer))?; // To collect what is in.
            let table = library::imported(&layer, capacity)?;
            Some(Filter::Multiset(Multiset::of_tables(asked, vec![table], 0)))
        }
        Family::Cuckoo => None,
    };
    let refuse = || Refusal::from(format!("ERR {} cannot be {}", name_of(family), kind.name()));
    let value = Value::ready(filter.ok_or_else(refuse)?);
    grow::check_size(call, value.memory())?;
    call.put(1, value)?;
    call.replicate();
    Ok(Reply::OK)
}

/// TAMIS.DELTA.
pub(super) fn delta(call: &mut Call<'_>) -> Answer {
    let (number, _) = options(call, 3)?;
    let text = str::from_utf8(call.argument(2)).unwrap_or_default();
    let since = u128::from_str_radix(text, 16).map_err(|_| "ERR a content id is hexadecimal")?;
    let since = ContentId(since);
    if let Ok(Some(aged)) = call.aged(1) {
        return aging::delta(call, aged, since);
    }
    let value = call.find(1, None)?.ok_or("ERR not found")?;
    let layer = chosen(value.filter()?, number)?;
    // The base and what differs, and again as the server's reply.
    memory::ask(memory::to_collect(&layer).saturating_mul(3))?;
    let (id, packed) = (layer.content_id(), layer.pack(Effort::Fast).to_vec());
    Ok(since_base(call, &value.remembered, since, id, packed, |base| {
        let base = AnyFilter::decode(base, Limits::NONE).ok()?;
        Some(Delta::between(&base, &layer).ok()?.encode().to_vec())
    }))
}

/// The reply of TAMIS.DELTA: a delta from the version `since` if that is remembered, and otherwise
/// all of this one, which is then remembered.
pub(super) fn since_base(
    call: &Call<'_>,
    remembered: &RefCell<Remembered>,
    since: ContentId,
    id: ContentId,
    packed: Vec<u8>,
    delta: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Reply {
    let delta = remembered.borrow().get(since).and_then(delta);
    let (word, bytes) = match delta {
        Some(delta) => ("delta", delta),
        None => ("snapshot", packed.clone()),
    };
    // A question may not make the server pass its limit.
    let room = call.room_below_maxmemory(packed.len() as u64).is_ok();
    let most = if room { settings::REMEMBERED_BYTES.get() } else { 0 };
    remembered.borrow_mut().remember(id, packed, most);
    Reply::Array(vec![Reply::text(word), Reply::text(id.to_string()), Reply::Bulk(bytes)])
}

/// TAMIS.COUNT.
pub(super) fn count(call: &mut Call<'_>) -> Answer {
    let filter = call.find(1, None)?.map(|value| value.filter()).transpose()?;
    let count = |item| filter.map_or(0, |filter| filter.count(item));
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
    let before = filter.count(item);
    if steps > 0 {
        grow::check_size(call, filter.memory())?;
        let mut inserted = filter.multiset_mut()?.insert(digest, steps.unsigned_abs());
        if inserted == Err(Full::NeedsPart) {
            let announcement = grow::add_part(call, filter)?;
            call.replicate_bytes(c"TAMIS.LAYER", 1, &announcement);
            inserted = filter.multiset_mut()?.insert(digest, steps.unsigned_abs());
        }
        inserted.map_err(|full| insert::no_room(Family::Cuckoo, full))?;
    } else {
        filter.multiset_mut()?.remove(digest, steps.unsigned_abs());
    }
    let after = filter.count(item);
    if after != before {
        call.replicate();
        call.notify(if after > before { c"cuckoo.add" } else { c"cuckoo.del" });
    }
    Ok(Reply::number(after))
}

/// TAMIS.MERGE.
pub(super) fn merge(call: &mut Call<'_>) -> Answer {
    if let Ok(Some(_)) = call.aged(2) {
        return aging::merge(call);
    }
    let mut all: Vec<&Filter> = Vec::new();
    let mut family = None;
    for at in 2..call.len() {
        let source = call.find(at, family)?.ok_or("ERR not found")?.filter()?;
        family = Some(source.asked().family);
        all.push(source);
    }
    if let Some(old) = call.find(1, family)? {
        all.insert(0, old.filter()?);
    }
    let asked = *all[0].asked();
    if all.iter().any(|filter| filter.asked().hasher != asked.hasher) {
        return Err("ERR the filters differ in hash or seed".into());
    }
    let total = all.iter().map(|filter| filter.memory()).fold(0, u64::saturating_add);
    grow::check_size(call, total)?;
    memory::ask(total.saturating_mul(2))?;
    call.room_below_maxmemory(total)?;
    // Beside the old one, so that it is unchanged if something does not fit.
    let merged = match all[0] {
        Filter::Set(first) => {
            let mut merged = first.clone();
            all[1..].iter().try_for_each(|filter| merged.merge(filter.set()?))?;
            Filter::Set(merged)
        }
        Filter::Multiset(_) => {
            let all = all.iter().map(|filter| filter.multiset()).collect::<Result<Vec<_>, _>>()?;
            let merged = Multiset::merged(asked, &all).map_err(|refused| match refused {
                Refused::Memory => Refusal::from("ERR Insufficient memory"),
                Refused::Count => "Filter is full".into(),
            })?;
            Filter::Multiset(merged.ok_or("ERR the universes differ by no power of two")?)
        }
    };
    let rate = match &merged {
        Filter::Set(set) => set.rate(),
        Filter::Multiset(multiset) => multiset.rate(),
    };
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
    let part = grow::plan(&grow::empty(asked))?;
    let (kind, params, rate, bytes) = match part {
        Part::Layer(scaling::Plan::Large { params, .. }) => {
            let predicted = params.predict(capacity);
            let bytes = crate::plans::bytes(&params);
            (params.kind().name(), params.named(), predicted.rate, bytes)
        }
        Part::Layer(scaling::Plan::Small(plan)) | Part::Table(plan) => {
            let rate = capacity as f64 / plan.universe as f64;
            (multiset::KIND, vec![("universe", plan.universe)], rate, plan.bytes())
        }
    };
    Ok(Reply::Map(vec![
        ("kind", Reply::text(kind)),
        ("params", named(params)),
        ("rate", Reply::Double(rate)),
        ("bits_per_key", Reply::Double(8.0 * bytes as f64 / capacity as f64)),
        ("bytes", Reply::number(bytes)),
    ]))
}
