//! Web proxies that tell each other what is in their caches.
//!
//! Four proxies serve one stream of requests. Before a proxy fetches a page from far away it would
//! rather take it from a neighbour, but it cannot ask all of them about every page. So each
//! *owner* keeps a filter of its cache, from which evicted pages can be removed, and sends it to
//! its *readers*, who look there first:
//!
//! ```text
//! cache -> owner's filter -> projection -> snapshot once, then deltas
//!       -> reader's copy -> "ask that proxy?"
//! ```
//!
//! Two owners' filters are compared. A counting Bloom filter keeps its counters at home and sends
//! the plain Bloom filter that answers alike; a rank-indexed filter is sent as it is. An update
//! goes out whenever a fraction c of the cache has changed: rare updates save bytes and cost stale
//! answers. One delta is lost on its way: the next one does not fit the reader's copy, which then
//! asks for a snapshot.
//!
//! ```text
//! cargo run --release -p tamis --example proxies
//! ```
//!
//! After L. Fan, P. Cao, J. Almeida, A. Broder, "Summary cache", 2000, and M. Mitzenmacher,
//! "Compressed Bloom filters", 2002.

use std::collections::BTreeMap;

use tamis::{
    AnyFilter, AnyParams, Delta, DeltaError, Digest, Effort, Filter, Goal, Hasher, Kind, Label,
    Limits,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const PROXIES: usize = 4;
const PAGES: usize = 100_000;
const CACHE: usize = 8_000;
/// Page number r is asked for in proportion to 1 / r^0.8, as measured at real proxies.
const SKEW: f64 = 0.8;
const RATE: f64 = 0.01;
/// Requests that fill the caches before anything is sent or counted.
const WARM_UP: u64 = 100_000;
const REQUESTS: u64 = 40_000;
const SEED: u64 = 4;
/// The number, over all owners, of the update that one of its readers never gets.
const LOST: u64 = 20;
/// A neighbour's bytes may be hostile: no message may make a reader allocate more.
const LIMITS: Limits = Limits::memory(1 << 20);

fn main() -> Outcome<()> {
    let web = Web::new();
    let mut runs = Vec::new();
    for kind in [Kind::Counting, Kind::RankIndexed] {
        for percent in [1, 5] {
            let name = format!("{} {percent}%", kind.name());
            runs.push((name, simulate(&web, kind, CACHE * percent / 100)?));
        }
    }
    check(&runs);
    report(&runs);
    Ok(())
}

/// The pages, and who asks for which.
struct Web {
    digests: Vec<Digest>,
    /// The weight of each page and all more popular ones.
    up_to: Vec<f64>,
}

impl Web {
    fn new() -> Self {
        let url = |page| format!("https://example.org/page/{page}");
        let digests = (0..PAGES).map(|page| Hasher::default().digest(&url(page))).collect();
        let mut sum = 0.0;
        // `libm`, because the platform's own `powf` need not give the same stream everywhere.
        let up_to = (1..=PAGES).map(|rank| {
            sum += libm::pow(rank as f64, -SKEW);
            sum
        });
        Self { digests, up_to: up_to.collect() }
    }

    /// The proxy that gets request `number`, and the page that is wanted.
    fn request(&self, number: u64) -> (usize, usize) {
        let uniform = (Digest(SEED).word(number) >> 11) as f64 / (1_u64 << 53) as f64;
        let weight = uniform * self.up_to[PAGES - 1];
        let page = self.up_to.partition_point(|&up_to| up_to <= weight);
        (number as usize % PROXIES, page)
    }
}

/// The pages that were used last.
struct Cache {
    clock: u64,
    /// When each page was used; 0 if it is not here.
    used: Vec<u64>,
    by_age: BTreeMap<u64, usize>,
}

impl Cache {
    fn new() -> Self {
        Self { clock: 0, used: vec![0; PAGES], by_age: BTreeMap::new() }
    }

    fn holds(&self, page: usize) -> bool {
        self.used[page] > 0
    }

    /// Puts a page in front, wherever it was.
    fn touch(&mut self, page: usize) {
        self.by_age.remove(&self.used[page]);
        self.clock += 1;
        self.used[page] = self.clock;
        self.by_age.insert(self.clock, page);
    }

    /// Makes room for one more page, and says which had to go.
    fn evict(&mut self) -> Option<usize> {
        let full = self.by_age.len() == CACHE;
        let (_, page) = full.then(|| self.by_age.pop_first()).flatten()?;
        self.used[page] = 0;
        Some(page)
    }
}

/// A proxy as the owner of a cache.
struct Owner {
    cache: Cache,
    filter: AnyFilter,
    /// What readers were last sent.
    published: AnyFilter,
    changes: usize,
}

impl Owner {
    fn new(kind: Kind) -> Outcome<Self> {
        let params = AnyParams::plan(kind, &Goal::rate(CACHE as u64, RATE))?;
        let filter = params.build(Label::planned(Hasher::default(), CACHE as u64))?;
        let published = filter.projection()?;
        Ok(Self { cache: Cache::new(), filter, published, changes: 0 })
    }

    /// Answers from the cache, or takes the page into it and says no.
    fn serve(&mut self, web: &Web, page: usize) -> Outcome<bool> {
        let hit = self.cache.holds(page);
        if !hit {
            let filter = self.filter.as_remove().ok_or("owners must be able to remove")?;
            if let Some(evicted) = self.cache.evict() {
                filter.remove_digest(web.digests[evicted])?;
            }
            filter.insert_digest(web.digests[page])?;
            self.changes += 1;
        }
        self.cache.touch(page);
        Ok(hit)
    }

    /// Makes up a new summary to publish, and gives back the old one.
    fn renew(&mut self) -> Outcome<AnyFilter> {
        self.changes = 0;
        Ok(std::mem::replace(&mut self.published, self.filter.projection()?))
    }
}

/// What a reader has of one owner.
struct Copy {
    summary: AnyFilter,
    /// The owner's true cache at that time, by which the simulation tells a false answer from a
    /// stale one.
    truth: Vec<bool>,
}

#[derive(Default)]
struct Tally {
    local_hits: u64,
    remote_hits: u64,
    false_hits: u64,
    stale_hits: u64,
    stale_misses: u64,
    updates: u64,
    delta_bytes: u64,
    snapshot_bytes: u64,
    all_encoded_bytes: u64,
    all_packed_bytes: u64,
    owner_bytes: u64,
    reader_bytes: u64,
    refusals: Vec<String>,
}

struct Network<'a> {
    web: &'a Web,
    owners: Vec<Owner>,
    /// By reader and owner.
    copies: BTreeMap<(usize, usize), Copy>,
    tally: Tally,
}

/// One run: owners of this kind, an update after `threshold` changes.
fn simulate(web: &Web, kind: Kind, threshold: usize) -> Outcome<Tally> {
    let owners = (0..PROXIES).map(|_| Owner::new(kind)).collect::<Outcome<_>>()?;
    let mut network = Network { web, owners, copies: BTreeMap::new(), tally: Tally::default() };
    for number in 0..WARM_UP {
        let (proxy, page) = web.request(number);
        network.owners[proxy].serve(web, page)?;
    }
    for owner in 0..PROXIES {
        network.owners[owner].renew()?;
        neighbours(owner).try_for_each(|reader| network.send_snapshot(owner, reader))?;
    }
    for number in WARM_UP..WARM_UP + REQUESTS {
        let (proxy, page) = web.request(number);
        if network.owners[proxy].serve(web, page)? {
            network.tally.local_hits += 1;
        } else {
            network.ask_neighbours(proxy, page);
        }
        if network.owners[proxy].changes == threshold {
            network.publish(proxy)?;
        }
    }
    network.tally.owner_bytes = network.owners[0].filter.footprint() / 8;
    network.tally.reader_bytes = network.copies[&(1, 0)].summary.footprint() / 8;
    Ok(network.tally)
}

fn neighbours(proxy: usize) -> impl Iterator<Item = usize> {
    (1..PROXIES).map(move |step| (proxy + step) % PROXIES)
}

impl Network<'_> {
    /// Asks those whose summary has the page, until one really has it. Being asked does not count
    /// as use of a page, so that the caches are the same in all runs.
    fn ask_neighbours(&mut self, reader: usize, page: usize) {
        let mut available = false;
        for owner in neighbours(reader) {
            let has_it = self.owners[owner].cache.holds(page);
            available |= has_it;
            let copy = &self.copies[&(reader, owner)];
            if copy.summary.contains_digest(self.web.digests[page]) {
                match (has_it, copy.truth[page]) {
                    (true, _) => {
                        self.tally.remote_hits += 1;
                        return;
                    }
                    (false, true) => self.tally.stale_hits += 1,
                    (false, false) => self.tally.false_hits += 1,
                }
            }
        }
        self.tally.stale_misses += u64::from(available);
    }

    /// Sends everyone what has changed since the last update.
    fn publish(&mut self, owner: usize) -> Outcome<()> {
        let this = &mut self.owners[owner];
        let old = this.renew()?;
        let delta = Delta::between(&old, &this.published)?.encode().to_vec();
        let readers = PROXIES as u64 - 1;
        self.tally.updates += 1;
        self.tally.delta_bytes += delta.len() as u64 * readers;
        self.tally.all_encoded_bytes += this.published.encode().len() * readers;
        self.tally.all_packed_bytes += this.published.pack(Effort::Best).len() * readers;
        let lost = usize::from(self.tally.updates == LOST);
        neighbours(owner).skip(lost).try_for_each(|reader| self.send_delta(owner, reader, &delta))
    }

    fn send_delta(&mut self, owner: usize, reader: usize, bytes: &[u8]) -> Outcome<()> {
        let copy = self.copies.get_mut(&(reader, owner)).ok_or("nothing to patch")?;
        match Delta::decode(bytes, LIMITS)?.apply(&mut copy.summary) {
            Ok(()) => self.arrived(owner, reader),
            // The copy is as it was, and good for answers until the snapshot comes.
            Err(refusal @ DeltaError::Base { .. }) => {
                self.tally.refusals.push(refusal.to_string());
                self.send_snapshot(owner, reader)
            }
            Err(other) => Err(other.into()),
        }
    }

    fn send_snapshot(&mut self, owner: usize, reader: usize) -> Outcome<()> {
        let bytes = self.owners[owner].published.pack(Effort::Best).to_vec();
        self.tally.snapshot_bytes += bytes.len() as u64;
        let summary = AnyFilter::decode(&bytes, LIMITS)?;
        self.copies.insert((reader, owner), Copy { summary, truth: Vec::new() });
        self.arrived(owner, reader)
    }

    /// What must hold of a copy that is up to date: it is the owner's summary, and denies no page
    /// of the cache.
    fn arrived(&mut self, owner: usize, reader: usize) -> Outcome<()> {
        let Owner { cache, published, .. } = &self.owners[owner];
        let copy = self.copies.get_mut(&(reader, owner)).ok_or("nothing has arrived")?;
        assert_eq!(copy.summary.content_id(), published.content_id());
        let denied = |&&page: &&usize| !copy.summary.contains_digest(self.web.digests[page]);
        assert_eq!(cache.by_age.values().find(denied), None);
        copy.truth = (0..PAGES).map(|page| cache.holds(page)).collect();
        Ok(())
    }
}

/// What neither filter nor updates have a part in must be the same in all runs.
fn check(runs: &[(String, Tally)]) {
    for (name, tally) in runs {
        let first = &runs[0].1;
        assert_eq!(tally.local_hits, first.local_hits, "{name}: the caches are the same");
        let to_find = |tally: &Tally| tally.remote_hits + tally.stale_misses;
        assert_eq!(to_find(tally), to_find(first), "{name}: a neighbour has the same pages");
        assert_eq!(tally.refusals.len(), 1, "{name}: one delta is lost, and costs one snapshot");
        assert!(tally.delta_bytes + tally.snapshot_bytes < tally.all_packed_bytes, "{name}");
    }
}

fn report(runs: &[(String, Tally)]) {
    type Fact = (&'static str, fn(&Tally) -> u64);
    let facts: [Fact; 14] = [
        ("requests", |_| REQUESTS),
        ("local hits", |tally| tally.local_hits),
        ("remote hits", |tally| tally.remote_hits),
        ("false hits: asked, summary was wrong", |tally| tally.false_hits),
        ("stale hits: asked, evicted since", |tally| tally.stale_hits),
        ("stale misses: there, not yet told", |tally| tally.stale_misses),
        ("updates, each to 3 readers", |tally| tally.updates),
        ("bytes of deltas", |tally| tally.delta_bytes),
        ("bytes of packed snapshots", |tally| tally.snapshot_bytes),
        ("bytes in all", |tally| tally.delta_bytes + tally.snapshot_bytes),
        ("  if updates were packed snapshots", |tally| tally.all_packed_bytes),
        ("  if they were not even packed", |tally| tally.all_encoded_bytes),
        ("owner's filter, bytes held", |tally| tally.owner_bytes),
        ("reader's copy, bytes held", |tally| tally.reader_bytes),
    ];
    println!("{PROXIES} proxies, {CACHE} of {PAGES} pages each, summaries at a rate of {RATE}\n");
    let row = |title: &str, cell: &dyn Fn(&(String, Tally)) -> String| {
        let cells: Vec<_> = runs.iter().map(|run| format!("{:>17}", cell(run))).collect();
        println!("{title:37}{}", cells.concat());
    };
    row("", &|(name, _)| name.clone());
    for (fact, value) in facts {
        row(fact, &|(_, tally)| value(tally).to_string());
    }
    println!("\nOne reader never got update {LOST}. Of the next delta from there, it said:");
    for (name, tally) in runs {
        println!("{name:>16}: {}", tally.refusals[0]);
    }
}
