//! CF.*: a multiset that grows.

use tamis::Hasher;

use super::bloom::{ask_many, ask_one, to_ask};
use super::chunks::{self, Texts};
use super::grow;
use super::insert::{self, Insertion, Outcome};
use crate::arguments::{after, fraction, integer, letter};
use crate::asked::{Asked, Family};
use crate::ffi::Call;
use crate::reply::{Answer, Refusal, Reply};
use crate::settings::{self, MOST_CAPACITY, MOST_EXPANSION};

const CUCKOO: Option<Family> = Some(Family::Cuckoo);

/// A filter as the settings have it.
fn default() -> Asked {
    Asked {
        family: Family::Cuckoo,
        rate: settings::CF_RATE.get(),
        capacity: settings::CF_CAPACITY.get(),
        expansion: settings::CF_EXPANSION.get() as u32,
        bucket_size: settings::CF_BUCKET.get() as u16,
        max_iterations: settings::CF_ITERATIONS.get() as u16,
        hasher: Hasher::xxh3(settings::SEED.get()),
    }
}

/// CF.RESERVE. Options are looked for one after the other, and others are passed over, as
/// RedisBloom does it.
pub(super) fn reserve(call: &mut Call<'_>) -> Answer {
    if call.len().is_multiple_of(2) {
        return Err(Refusal::Arity);
    }
    let capacity = integer(call.argument(2)).ok_or("Bad capacity")?;
    let mut asked = default();
    let option = |name, least, most| {
        let Some(mut rest) = after(call.arguments_from(3), name) else { return Ok(None) };
        let value = rest.next().and_then(integer);
        let value = value.ok_or_else(|| Refusal::from(format!("Couldn't parse {name}")))?;
        if !(least..=most).contains(&value) {
            let text = format!("{name}: value must be in the range [{least}, {most}]");
            return Err(Refusal::from(text));
        }
        Ok(Some(value))
    };
    if let Some(value) = option("MAXITERATIONS", 1, 65535)? {
        asked.max_iterations = value as u16;
    }
    if let Some(value) = option("BUCKETSIZE", 1, 255)? {
        asked.bucket_size = value as u16;
    }
    if let Some(value) = option("EXPANSION", 0, MOST_EXPANSION)? {
        asked.expansion = value as u32;
    }
    if let Some(mut rest) = after(call.arguments_from(3), "ERROR") {
        let rate = rest.next().and_then(fraction).ok_or("Couldn't parse ERROR")?;
        if !(rate > 0.0 && rate < 1.0) {
            return Err("ERROR: value must be in the range (0, 1)".into());
        }
        asked.rate = rate;
    }
    if !(2 * i64::from(asked.bucket_size)..=MOST_CAPACITY).contains(&capacity) {
        let text = format!("Capacity must be in the range [2 * BUCKETSIZE, {MOST_CAPACITY}]");
        return Err(text.into());
    }
    asked.capacity = capacity as u64;
    if call.find(1, CUCKOO)?.is_some() {
        return Err("ERR item exists".into());
    }
    let (filter, announcement) = grow::create(call, asked)?;
    grow::put(call, filter, &announcement)?;
    Ok(Reply::OK)
}

fn insert_one(call: &mut Call<'_>, only_new: bool) -> Answer {
    let create = Some(default());
    let insertion =
        Insertion { family: Family::Cuckoo, items: 2..3, only_new, create, stops: true };
    let mut answer = Ok(Reply::Null);
    insertion.run(call, |outcome| {
        answer = match outcome {
            Outcome::Added => Ok(Reply::Bool(true)),
            Outcome::Known => Ok(Reply::Bool(false)),
            Outcome::Refused(refusal) => Err(refusal),
        }
    })?;
    answer
}

/// CF.ADD.
pub(super) fn add(call: &mut Call<'_>) -> Answer {
    insert_one(call, false)
}

/// CF.ADDNX.
pub(super) fn addnx(call: &mut Call<'_>) -> Answer {
    insert_one(call, true)
}

fn insert_many(call: &mut Call<'_>, only_new: bool) -> Answer {
    let (mut asked, mut create) = (default(), true);
    let items = insert::options(call, |option, value| {
        if letter(option, 0, b'N') {
            create = false;
            return Ok(false);
        }
        if letter(option, 0, b'C') {
            let capacity = value.ok_or(Refusal::Arity).map(integer)?.ok_or("Bad capacity")?;
            if !(2 * settings::CF_BUCKET.get() as i64..=MOST_CAPACITY).contains(&capacity) {
                let range = format!("[cf-bucket-size * 2, {MOST_CAPACITY}]");
                return Err(format!("Capacity must be in the range {range}").into());
            }
            asked.capacity = capacity as u64;
        } else if letter(option, 0, b'E') {
            let rate = value.ok_or(Refusal::Arity).map(fraction)?;
            let rate = rate.filter(|&rate| rate > 0.0 && rate < 1.0);
            asked.rate = rate.ok_or("Bad error rate")?;
        } else {
            return Err("Unknown argument received".into());
        }
        Ok(true)
    })?;
    let create = create.then_some(asked);
    // Where the reply is true or false there is no -1.
    let (yes, no, full) = if call.speaks_resp3() && !only_new {
        (Reply::Bool(true), Reply::Bool(false), Reply::Bool(false))
    } else {
        (Reply::Int(1), Reply::Int(0), Reply::Int(-1))
    };
    let items = items..call.len();
    let insertion = Insertion { family: Family::Cuckoo, items, only_new, create, stops: false };
    let mut replies = Vec::new();
    insertion.run(call, |outcome| {
        replies.push(match outcome {
            Outcome::Added => yes.clone(),
            Outcome::Known => no.clone(),
            Outcome::Refused(_) => full.clone(),
        });
    })?;
    Ok(Reply::Array(replies))
}

/// CF.INSERT.
pub(super) fn insert(call: &mut Call<'_>) -> Answer {
    insert_many(call, false)
}

/// CF.INSERTNX.
pub(super) fn insertnx(call: &mut Call<'_>) -> Answer {
    insert_many(call, true)
}

/// CF.DEL.
pub(super) fn del(call: &mut Call<'_>) -> Answer {
    let item = call.argument(2);
    // A key that holds something else is not a filter that could be found.
    let value = call.find_mut(1, CUCKOO).ok().flatten().ok_or("Not found")?;
    let filter = value.filter_mut()?.multiset_mut()?;
    let removed = filter.remove(filter.asked().digest(item), 1) > 0;
    if removed {
        call.replicate();
        call.notify(c"cuckoo.del");
    }
    Ok(Reply::Bool(removed))
}

/// CF.COUNT.
pub(super) fn count(call: &mut Call<'_>) -> Answer {
    let filter = to_ask(call, Family::Cuckoo)?;
    let count = filter.map_or(0, |filter| filter.count(call.argument(2)));
    Ok(Reply::number(count))
}

/// CF.EXISTS.
pub(super) fn exists(call: &mut Call<'_>) -> Answer {
    ask_one(call, Family::Cuckoo)
}

/// CF.MEXISTS.
pub(super) fn mexists(call: &mut Call<'_>) -> Answer {
    ask_many(call, Family::Cuckoo)
}

/// The buckets that a cuckoo filter would have.
fn buckets(asked: &Asked) -> u64 {
    asked.capacity.div_ceil(u64::from(asked.bucket_size).max(1))
}

/// CF.INFO. Buckets are what the filter would have if it were a cuckoo filter.
pub(super) fn info(call: &mut Call<'_>) -> Answer {
    let value = call.find(1, CUCKOO)?.ok_or("ERR not found")?;
    let filter = value.filter()?.multiset()?;
    let asked = filter.asked();
    Ok(Reply::Map(vec![
        ("Size", Reply::number(value.memory())),
        ("Number of buckets", Reply::number(buckets(asked))),
        ("Number of filters", Reply::number(filter.tables().len() as u64)),
        ("Number of items inserted", Reply::number(filter.keys())),
        ("Number of items deleted", Reply::number(filter.removed())),
        ("Bucket size", Reply::number(asked.bucket_size.into())),
        ("Expansion rate", Reply::number(asked.expansion.into())),
        ("Max iterations", Reply::number(asked.max_iterations.into())),
    ]))
}

/// CF.SCANDUMP. Clients expect no chunk of an empty filter.
pub(super) fn scandump(call: &mut Call<'_>) -> Answer {
    let filter = chunks::to_scan(call, Family::Cuckoo)?;
    let iterator = integer(call.argument(2)).filter(|&iterator| iterator >= 0);
    let iterator = iterator.ok_or("Invalid position")?;
    let chunk = if filter.keys() == 0 { None } else { chunks::scan(filter, iterator)? };
    Ok(chunk.unwrap_or_else(|| Reply::Array(vec![Reply::Int(0), Reply::Null])))
}

/// CF.LOADCHUNK.
pub(super) fn loadchunk(call: &mut Call<'_>) -> Answer {
    let iterator = integer(call.argument(2)).filter(|&iterator| iterator != 0);
    let iterator = iterator.ok_or("Invalid position")?;
    let texts = Texts {
        family: Family::Cuckoo,
        exists: "ERR item exists",
        bad_header: "Invalid header",
        gap: "Couldn't load chunk!",
        too_long: "Couldn't load chunk!",
        damaged: "Couldn't load chunk!",
        memory: "Couldn't create filter!",
    };
    chunks::load(call, iterator, &texts)
}

/// CF.COMPACT: memory follows the keys without it.
pub(super) fn compact(call: &mut Call<'_>) -> Answer {
    let value = call.find(1, CUCKOO).ok().flatten().ok_or("Cuckoo filter was not found")?;
    value.filter()?;
    Ok(Reply::OK)
}

/// CF.DEBUG.
pub(super) fn debug(call: &mut Call<'_>) -> Answer {
    let value = call.find(1, CUCKOO)?.ok_or("ERR not found")?;
    let filter = value.filter()?.multiset()?;
    let asked = filter.asked();
    Ok(Reply::text(format!(
        "bktsize:{} buckets:{} items:{} deletes:{} filters:{} max_iterations:{} expansion:{}",
        asked.bucket_size,
        buckets(asked),
        filter.keys(),
        filter.removed(),
        filter.tables().len(),
        asked.max_iterations,
        asked.expansion
    )))
}
