//! TAMIS.RESERVE and what works on its filters: items that expire.
//!
//! A command takes the time of the primary's clock, and replicas and the AOF are told that time
//! (`TAMIS.AT`): the same commands at the same times make the same filter.

use std::ffi::CStr;

use tamis::{Aging, ContentId, Effort, Full, Hasher, Limits};

use super::grow::check_size;
use super::own::since_base;
use crate::aged::Aged;
use crate::arguments::{fraction, integer, is};
use crate::ffi::{Call, now};
use crate::memory;
use crate::reply::{Answer, Refusal, Reply};
use crate::settings::{self, MOST_CAPACITY};

/// The steps of a lifetime where none are given.
const STEPS: i64 = 4;
/// The most seconds that an item may live: in milliseconds they fit into an integer of the server.
const MOST_SECONDS: i64 = i64::MAX / 1000;

/// What is done with items.
#[derive(Clone, Copy)]
enum Action {
    Add,
    Touch,
    Exists,
    Del,
}

/// Their names in `TAMIS.AT`.
const ACTIONS: [(Action, &CStr); 4] = [
    (Action::Add, c"ADD"),
    (Action::Touch, c"TOUCH"),
    (Action::Exists, c"EXISTS"),
    (Action::Del, c"DEL"),
];

/// TAMIS.RESERVE.
pub(super) fn reserve(call: &mut Call<'_>) -> Answer {
    let rate = fraction(call.argument(2)).filter(|&rate| rate > 0.0 && rate < 1.0);
    let rate = rate.ok_or("ERR bad error rate")?;
    let capacity = integer(call.argument(3)).filter(|keys| (1..=MOST_CAPACITY).contains(keys));
    let capacity = capacity.ok_or("ERR bad capacity")? as u64;
    let (mut seconds, mut steps) = (None, STEPS);
    let options: Vec<&[u8]> = call.arguments_from(4).collect();
    for option in options.chunks(2) {
        match option {
            [name, value] if is(name, "EX") => {
                let value = integer(value).filter(|value| (1..=MOST_SECONDS).contains(value));
                seconds = Some(value.ok_or("ERR bad EX: seconds, 1 or more")? as u64);
            }
            [name, value] if is(name, "STEPS") => {
                let value = integer(value).filter(|value| (1..=64).contains(value));
                steps = value.ok_or("ERR bad STEPS: 1 to 64")?;
            }
            _ => return Err("ERR syntax error".into()),
        }
    }
    let seconds = seconds.ok_or("ERR EX is missing: how many seconds an item is found")?;
    if call.aged(1)?.is_some() {
        return Err("ERR item exists".into());
    }
    let hasher = Hasher::xxh3(settings::SEED.get());
    let filter = Aging::new(hasher, capacity, rate, seconds * 1000, steps as u32)
        .map_err(|error| Refusal::from(format!("ERR {error}")))?;
    let aged = Aged::new(filter);
    let bytes = aged.encode()?;
    call.put(1, aged)?;
    // Replicas may have another seed.
    call.replicate_bytes(c"TAMIS.AGES", 1, &bytes);
    call.notify(c"tamis.reserve");
    Ok(Reply::OK)
}

/// TAMIS.AGES: takes a filter as it was.
pub(super) fn ages(call: &mut Call<'_>) -> Answer {
    if call.aged(1)?.is_some() {
        return Err("ERR item exists".into());
    }
    let aged = Aged::decode(call.argument(2)).ok_or("ERR received bad data")?;
    check_size(call, aged.memory())?;
    call.room_below_maxmemory(aged.memory())?;
    call.put(1, aged)?;
    call.replicate();
    Ok(Reply::OK)
}

/// TAMIS.ADD.
pub(super) fn add(call: &mut Call<'_>) -> Answer {
    run(call, now(), Action::Add, 2)
}

/// TAMIS.TOUCH.
pub(super) fn touch(call: &mut Call<'_>) -> Answer {
    run(call, now(), Action::Touch, 2)
}

/// TAMIS.DEL.
pub(super) fn del(call: &mut Call<'_>) -> Answer {
    run(call, now(), Action::Del, 2)
}

/// TAMIS.EXISTS.
pub(super) fn exists(call: &mut Call<'_>) -> Answer {
    let (value, now) = (call.aged(1)?, now());
    let found = |item| value.is_some_and(|aged| aged.filter.contains(item, now));
    Ok(Reply::Array(call.arguments_from(2).map(|item| Reply::Int(found(item).into())).collect()))
}

/// TAMIS.AT: any of them, at a time that is said.
pub(super) fn at(call: &mut Call<'_>) -> Answer {
    let now = integer(call.argument(2)).and_then(|now| u64::try_from(now).ok());
    let now = now.ok_or("ERR bad time: milliseconds, 0 or more")?;
    let named =
        |(_, name): &&(Action, &CStr)| name.to_str().is_ok_and(|name| is(call.argument(3), name));
    let unknown = "ERR what is to be done: ADD, TOUCH, EXISTS or DEL";
    let &(action, _) = ACTIONS.iter().find(named).ok_or(unknown)?;
    run(call, now, action, 4)
}

/// Does something with the arguments from `from` on. If there is no room for one of them, its
/// error is the last element of the reply.
fn run(call: &mut Call<'_>, now: u64, action: Action, from: usize) -> Answer {
    let Some(aged) = call.aged_mut(1)? else {
        if matches!(action, Action::Add) {
            return Err("ERR not found; make the filter with TAMIS.RESERVE".into());
        }
        return Ok(Reply::Array(call.arguments_from(from).map(|_| Reply::Int(0)).collect()));
    };
    let needs_room = matches!(action, Action::Add | Action::Touch);
    if needs_room {
        // What has expired goes first: it must not count against the limit.
        aged.filter.advance(now);
    }
    let (mut replies, mut has_changed) = (Vec::new(), false);
    for item in call.arguments_from(from) {
        // A table that grows takes an eighth more.
        let bytes = aged.filter.footprint() / 8;
        let room = if needs_room { check_size(call, bytes + bytes / 8) } else { Ok(()) };
        let full = |_: Full| Refusal::from("ERR Insufficient memory");
        let done = room.and_then(|()| match action {
            Action::Add => aged.filter.insert(item, now).map_err(full),
            Action::Touch => aged.filter.touch(item, now).map_err(full),
            Action::Exists => Ok(aged.filter.contains(item, now)),
            Action::Del => Ok(aged.filter.remove(item, now).is_ok()),
        });
        match done {
            Ok(done) => {
                // An item that is added again is renewed.
                has_changed |= match action {
                    Action::Add => true,
                    Action::Touch | Action::Del => done,
                    Action::Exists => false,
                };
                replies.push(Reply::Int(done.into()));
            }
            Err(refusal) => {
                replies.push(Reply::Error(refusal));
                break;
            }
        }
    }
    if needs_room || has_changed {
        // Without items too: replicas drop what was dropped here.
        let done = replies.iter().filter(|reply| matches!(reply, Reply::Int(_))).count();
        let (_, name) = ACTIONS[action as usize];
        call.replicate_at(now, name, from..from + done);
    }
    if has_changed {
        call.notify(c"tamis.change");
    }
    Ok(Reply::Array(replies))
}

/// TAMIS.INFO of such a filter.
pub(super) fn info(aged: &Aged, now: u64) -> Reply {
    let filter = &aged.filter;
    let ages = filter.ages().map(Reply::number).collect();
    Reply::Map(vec![
        ("family", Reply::text("aging")),
        ("rate", Reply::Double(filter.rate(now))),
        ("capacity", Reply::number(filter.capacity())),
        ("keys", Reply::number(filter.keys(now))),
        ("seconds", Reply::number(filter.lifetime() / 1000)),
        ("steps", Reply::number(filter.steps().into())),
        ("ages", Reply::Array(ages)),
        ("hash", Reply::text(filter.hasher().id().name())),
        ("seed", Reply::text(filter.hasher().seed().to_string())),
        ("bytes", Reply::number(aged.memory())),
        ("universe", Reply::number(filter.universe())),
    ])
}

/// TAMIS.DUMP of such a filter.
pub(super) fn dump(aged: &Aged, packed: bool) -> Answer {
    memory::ask(2 * aged.work())?;
    let bytes = if packed { aged.filter.pack(Effort::Best) } else { aged.filter.encode() };
    Ok(Reply::Bulk(bytes.to_vec()))
}

/// TAMIS.DELTA of such a filter.
pub(super) fn delta(call: &Call<'_>, aged: &Aged, since: ContentId) -> Answer {
    // The base, what differs, and the server's reply.
    memory::ask(4 * aged.work())?;
    let (id, packed) = (aged.filter.content_id(), aged.filter.pack(Effort::Fast).to_vec());
    Ok(since_base(call, &aged.remembered, since, id, packed, |base| {
        let base = Aging::decode(base, Limits::NONE).ok()?;
        Some(base.delta_to(&aged.filter).ok()?.to_vec())
    }))
}

/// TAMIS.MERGE of such filters: an item that is in several is as young as in any of them.
pub(super) fn merge(call: &mut Call<'_>) -> Answer {
    let mut all = Vec::new();
    for at in 2..call.len() {
        all.push(call.aged(at)?.ok_or("ERR not found")?);
    }
    if let Some(old) = call.aged(1)? {
        all.insert(0, old);
    }
    let total = all.iter().map(|aged| aged.memory()).fold(0, u64::saturating_add);
    check_size(call, total)?;
    memory::ask(all.iter().map(|aged| aged.work()).fold(0, u64::saturating_add))?;
    call.room_below_maxmemory(total)?;
    // Beside the old one, so that it is unchanged if something does not fit.
    let mut merged = all[0].filter.clone();
    for other in &all[1..] {
        merged.merge(&other.filter).map_err(|error| Refusal::from(format!("ERR {error}")))?;
    }
    let rate = merged.rate(now());
    // Deltas can go on from what clients have.
    let remembered = call.aged(1)?.map(|old| old.remembered.clone()).unwrap_or_default();
    let mut merged = Aged::new(merged);
    merged.remembered = remembered;
    call.put(1, merged)?;
    call.replicate();
    call.notify(c"tamis.merge");
    Ok(Reply::Double(rate))
}
