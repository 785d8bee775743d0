//! The laws for every kind in the list, by what it says it can do: a new kind is tested without a
//! line here.

use std::sync::Arc;

use tamis::{
    Absent, AnyFilter, AnyParams, Count, Delta, Digest, Effort, Entry, Filter, Goal, Hasher,
    Insert, Kind, Label, Limits, Operation, Sharded, SharedBytes,
};
use tamis_report::keys::KeyStream;
use tamis_report::memory;

const ABSENT: u64 = 2000;
/// Bytes that any operation may take beside what grows with the filter.
const SCRATCH: u64 = 32 << 10;

/// Planned layouts of a kind: for no key, for one, two, some and more, at rates from high to low.
fn layouts(kind: Kind) -> impl Iterator<Item = (AnyParams, u64)> {
    let sizes = [(0, 0.01), (1, 0.2), (2, 0.01), (300, 0.3), (1000, 0.01), (3000, 0.002)];
    sizes
        .into_iter()
        .map(move |(keys, rate)| (AnyParams::plan(kind, &Goal::rate(keys, rate)).unwrap(), keys))
}

struct Case {
    kind: Kind,
    params: AnyParams,
    label: Label,
    members: Vec<Digest>,
    absent: Vec<Digest>,
}

fn for_every_kind(check: impl Fn(&Case)) {
    for &kind in Kind::ALL {
        for (params, keys) in layouts(kind) {
            for hasher in [Hasher::default(), Hasher::sip13(1 << 100 | 5)] {
                let stream = KeyStream::new(keys + 1);
                check(&Case {
                    kind,
                    params,
                    label: Label::planned(hasher, keys),
                    members: stream.members(hasher, 0..keys).collect(),
                    absent: stream.absent_keys(hasher, 0..ABSENT).collect(),
                });
            }
        }
    }
}

impl Case {
    fn empty(&self) -> AnyFilter {
        self.params.build(self.label).unwrap()
    }

    fn filled(&self) -> AnyFilter {
        self.params.build_from(self.label, &self.members).unwrap()
    }

    /// Whether the same keys in any order make the same content. In balanced kinds the first keys
    /// take the first places.
    fn forgets_order(&self) -> bool {
        !self.kind.name().starts_with("balanced")
    }
}

#[test]
fn what_a_kind_says_it_can_do_it_can() {
    for_every_kind(|case| {
        let Case { kind, .. } = *case;
        let mut filter = case.filled();
        assert_eq!(filter.as_insert().is_some(), kind.can(Operation::Insert), "{kind:?}");
        assert_eq!(filter.as_remove().is_some(), kind.can(Operation::Remove), "{kind:?}");
        assert_eq!(filter.as_count().is_some(), kind.can(Operation::Count), "{kind:?}");
        let other = case.filled();
        assert_eq!(filter.merge(&other).is_ok(), kind.can(Operation::Merge), "{kind:?}");
        if !kind.can(Operation::Grow) {
            assert!(filter.grow().is_err() && filter.shrink().is_err(), "{kind:?}");
        }
        assert_eq!(Delta::between(&other, &other).is_ok(), kind.can(Operation::Insert), "{kind:?}");
        assert!(!kind.reason().is_empty());
    });
}

#[test]
fn no_key_is_ever_missed() {
    for_every_kind(|case| {
        let Case { kind, members, absent, .. } = case;
        let (empty, filled) = (case.empty(), case.filled());
        assert_eq!(filled.keys(), members.len() as u64);
        assert!(!absent.iter().any(|&digest| empty.contains_digest(digest)), "{kind:?}: empty");
        let found = members.iter().all(|&digest| filled.contains_digest(digest));
        assert!(found, "{kind:?} has a false negative");
        filled.validate().unwrap();
        for digests in [members, absent] {
            let mut answers = vec![true; digests.len()];
            filled.contains_many(digests, &mut answers);
            let alone = digests.iter().map(|&digest| filled.contains_digest(digest));
            assert!(alone.eq(answers), "{kind:?}: a batch is not its keys one by one");
        }
        if let Some(&member) = members.first() {
            assert!(filled.blocks_to_contain(member) > 0);
        }
        let mut cleared = filled.clone();
        cleared.clear();
        assert_eq!(cleared.content_id(), empty.content_id(), "{kind:?}: clear leaves something");
        assert!((0.0..=1.0).contains(&filled.rate()) && (0.0..=1.0).contains(&filled.fill()));
    });
}

#[test]
fn insertions_answer_undo_and_count() {
    for_every_kind(|case| {
        let Case { kind, members, absent, .. } = case;
        if !kind.can_insert() {
            assert!(case.empty().insert_digest(absent[0]).is_err(), "{kind:?} takes a key");
            return;
        }
        let mut filter = case.empty();
        for &digest in members {
            let before = filter.contains_digest(digest);
            assert_eq!(filter.insert_digest(digest).unwrap(), !before, "{kind:?}");
            assert!(filter.contains_digest(digest), "{kind:?} lost a key at once");
        }
        assert_eq!(filter, case.filled(), "{kind:?}: a batch is not its keys one by one");
        for &digest in members.iter().take(20).filter(|_| kind.can_count()) {
            assert!(filter.count_digest(digest).unwrap() >= 1, "{kind:?}");
        }
        let before = filter.content_id();
        let Some(removing) = filter.as_remove() else { return };
        removing.insert_many(absent).unwrap();
        // A saturated counter stays as it is.
        if matches!(&filter, AnyFilter::Counting(filter) if filter.saturated() > 0) {
            return;
        }
        assert_eq!(filter.as_remove().unwrap().remove_many(absent), ABSENT, "{kind:?}");
        assert_eq!(filter.content_id(), before, "{kind:?}: inserting and removing leave a trace");
        for &digest in absent.iter().take(200) {
            if !filter.contains_digest(digest) {
                assert_eq!(filter.as_remove().unwrap().remove_digest(digest), Err(Absent));
            }
        }
        assert_eq!(filter.as_remove().unwrap().remove_many(members), members.len() as u64);
        assert_eq!(filter.content_id(), case.empty().content_id(), "{kind:?}: something is left");
    });
}

fn decode(bytes: &[u8]) -> AnyFilter {
    AnyFilter::decode(bytes, Limits::default()).unwrap()
}

#[test]
fn bytes_are_faithful_and_in_place() {
    for_every_kind(|case| {
        let Case { kind, members, absent, .. } = case;
        for filter in [case.empty(), case.filled()] {
            let bytes = filter.encode().to_vec();
            let packed = filter.pack(Effort::Best).to_vec();
            let (read, unpacked) = (decode(&bytes), decode(&packed));
            assert_eq!(read, filter, "{kind:?}");
            assert_eq!(read.encode().to_vec(), bytes, "{kind:?} is written otherwise");
            assert_eq!(unpacked, filter, "{kind:?}");
            // The packed form does not say where identities are in memory.
            assert_eq!(
                unpacked.pack(Effort::Best).to_vec(),
                packed,
                "{kind:?} is packed otherwise"
            );
            let shared: SharedBytes = Arc::new(bytes);
            let opened = AnyFilter::open(&shared).unwrap();
            let same =
                |&digest: &Digest| opened.contains_digest(digest) == filter.contains_digest(digest);
            assert!(members.iter().chain(absent).all(same), "{kind:?}: other answers in place");
            assert_eq!(opened.content_id(), filter.content_id());
        }
    });
}

#[test]
fn merges_and_deltas_give_what_insertions_give() {
    for_every_kind(|case| {
        let Case { kind, members, .. } = case;
        if !kind.can(Operation::Merge) {
            return;
        }
        let (first, rest) = members.split_at(members.len() / 3);
        let build = |digests: &[Digest]| case.params.build_from(case.label, digests).unwrap();
        let (mut merged, whole) = (build(first), case.filled());
        merged.merge(&build(rest)).unwrap();
        assert!(members.iter().all(|&digest| merged.contains_digest(digest)), "{kind:?}");
        assert_eq!(merged.keys(), members.len() as u64);
        if case.forgets_order() {
            assert_eq!(merged.content_id(), whole.content_id(), "{kind:?}");
        }
        let mut patched = build(first);
        let bytes = Delta::between(&patched, &whole).unwrap().encode().to_vec();
        Delta::decode(&bytes, Limits::default()).unwrap().apply(&mut patched).unwrap();
        assert_eq!(patched.content_id(), whole.content_id(), "{kind:?}");
        if kind.can(Operation::Grow) && patched.grow().is_ok() {
            assert_eq!(patched.content_id(), whole.content_id(), "{kind:?}: growing changes it");
        }
    });
}

/// All memory is allocated on this thread, and freed.
#[test]
fn footprint_is_memory() {
    for_every_kind(|case| {
        let before = memory::held();
        let filter = case.filled();
        let held = memory::held() - before;
        // Partitioned filters are built by several threads, and memory is counted for each thread.
        if case.kind != Kind::Partitioned {
            assert_eq!(filter.footprint() as i64, 8 * held, "{:?}", case.kind);
        }
    });
}

/// Filters so large that what grows with them is far above the scratch memory.
#[test]
fn reading_and_writing_take_little_more_than_the_filter() {
    for &kind in Kind::ALL {
        let keys = if kind == Kind::Partitioned { 20_000 } else { 200_000 };
        let hasher = Hasher::default();
        let digests: Vec<Digest> = KeyStream::new(1).members(hasher, 0..keys).collect();
        let params = AnyParams::plan(kind, &Goal::rate(keys, 0.01)).unwrap();
        let filter = params.build_from(Label::planned(hasher, keys), &digests).unwrap();
        let footprint = filter.footprint() / 8;
        let (bytes, wrote) = memory::peak_of(|| filter.encode().to_vec());
        let (_, read) = memory::peak_of(|| decode(&bytes));
        let len = bytes.len() as u64;
        println!("{kind:?}: {footprint} held, {len} bytes, {wrote} to write, {read} to read");
        // Arrays are copied once. Identities are written bit by bit into a vector that doubles,
        // and are read from bytes that are all in memory.
        let keeps_identities = kind.can(Operation::Grow);
        let most = if keeps_identities { 3 * len } else { len };
        assert!(wrote <= most + SCRATCH, "{kind:?}: {wrote} to write {len}");
        let most = if keeps_identities { footprint + len } else { footprint };
        assert!(read <= most + SCRATCH, "{kind:?}: {read} to read {len}");
    }
}

#[test]
fn shards_keep_the_laws_of_what_they_hold() {
    for_every_kind(|case| {
        let Case { kind, members, absent, .. } = case;
        if !kind.can_insert() {
            return;
        }
        let goal = Goal::rate(members.len() as u64, 0.01);
        let all = Sharded::plan_kind(*kind, &goal, case.label.hasher, 4).unwrap();
        all.insert_many(members).unwrap();
        assert!(members.iter().all(|&digest| all.contains_digest(digest)), "{kind:?}");
        let mut answers = vec![true; absent.len()];
        all.contains_many(absent, &mut answers);
        assert!(absent.iter().map(|&digest| all.contains_digest(digest)).eq(answers), "{kind:?}");
        assert_eq!(all.keys(), members.len() as u64);
        let mut held = 0;
        all.for_each_shard(|shard| held += shard.footprint());
        assert!(all.footprint() >= held);
    });
}

/// What is no list of entries of the layout is refused, not taken for something else.
#[test]
fn entries_that_a_layout_cannot_have_are_refused() {
    for_every_kind(|case| {
        let filter = case.filled();
        let entries = filter.entries();
        let (Some(universe), Some(&last)) = (filter.universe(), entries.last()) else { return };
        let copy = AnyFilter::of_entries(case.params, case.label.hasher, entries.clone());
        assert_eq!(copy.map(|copy| copy.content_id()), Some(filter.content_id()));
        for more in [
            Entry { identity: universe, ..last },
            Entry { identity: u64::MAX, ..last },
            Entry { value: filter.max_value() + 1, ..last },
            Entry { value: u64::MAX, ..last },
            last,
            entries[0],
        ] {
            let entries = entries.iter().copied().chain([more]);
            let made = AnyFilter::of_entries(case.params, case.label.hasher, entries);
            assert!(made.is_none(), "{:?}: {more:?} of {universe}", case.kind);
        }
        let none = entries.iter().map(|&entry| Entry { count: 0, ..entry });
        assert!(AnyFilter::of_entries(case.params, case.label.hasher, none).is_none());
        // A set has nothing twice. What is made can always be read again.
        let twice = entries.iter().map(|&entry| Entry { count: 2, ..entry });
        let twice = AnyFilter::of_entries(case.params, filter.label(), twice);
        assert_eq!(twice.is_none(), case.kind == Kind::RankSet);
        if let Some(twice) = twice {
            assert_eq!(twice.keys(), 2 * entries.len() as u64);
            for bytes in [twice.encode().to_vec(), twice.pack(Effort::Fast).to_vec()] {
                let read = AnyFilter::decode(&bytes, Limits::NONE).unwrap();
                assert_eq!(read.content_id(), twice.content_id());
            }
        }
    });
}
