//! Proxies that tell each other what is in their caches (the setting of paper 004), simulated:
//! what filters cost, and what they lose against asking everyone (ICP).
//!
//! Every proxy has a cache of the pages that were used last, and clients that ask for pages by
//! Zipf's law. It publishes a filter of its cache at the end of every period. A page that is not
//! here is looked up in the filters of all others, and those that may have it are asked, one after
//! the other. Two runs give the same numbers. [`choose`] plans kind, rate and interval for such
//! peers.

mod choice;

use std::collections::BTreeMap;

use tamis::{
    AnyFilter, AnyParams, Delta, Digest, Effort, Filter, Goal, Hasher, Kind, Label, PlanError,
};

pub use choice::{Choice, Need, choose, stale};

/// Page number r is asked for in proportion to 1 / r^0.8, as measured at real proxies.
const SKEW: f64 = 0.8;
/// Bytes of a question of ICP and its answer: two headers of 20 bytes, an address of 4, and twice
/// a URL of 60 with a zero behind it (RFC 2186).
const ICP_BYTES: u64 = 20 + 4 + 61 + 20 + 61;
/// Requests that a proxy serves before anything is counted, as a multiple of its cache.
const WARM_UP: usize = 4;

/// What filters are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sent {
    /// Plain Bloom filters, whole: what Squid does.
    Whole,
    /// Filters that are made to be small on the wire (paper 004), whole.
    Compressed,
    /// Deltas of filters that keys can be removed from, or a snapshot where that is smaller.
    Deltas,
}

/// What is simulated.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Setting {
    /// Proxies.
    pub proxies: usize,
    /// Pages in a cache.
    pub cache: usize,
    /// Pages that there are.
    pub pages: usize,
    /// Requests that each proxy serves in an hour.
    pub requests: u64,
    /// Seconds between two filters of a proxy.
    pub every: u64,
    /// Periods that are counted.
    pub periods: u64,
    /// The rate of the filters.
    pub rate: f64,
    /// What is sent.
    pub sent: Sent,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tally {
    /// Requests.
    pub requests: u64,
    /// Pages that were in the cache of the proxy.
    pub local_hits: u64,
    /// Pages that another proxy had when the proxy lacked them: ICP finds them all.
    pub there: u64,
    /// Those of them that were found by filters.
    pub remote_hits: u64,
    /// Those of them that the first had that was asked: Squid asks no other.
    pub first_hits: u64,
    /// Times that another was asked because its filter was wrong.
    pub false_hits: u64,
    /// Times that another was asked that has dropped the page since.
    pub stale_hits: u64,
    /// Questions to filters for pages that they were not built with.
    pub absent: u64,
    /// Bytes of filters in all periods, to all readers.
    pub bytes: u64,
    /// Bytes that ICP takes for the same requests.
    pub icp_bytes: u64,
    /// Filters that were sent, each to all readers.
    pub updates: u64,
    /// Pages in these filters that were not in the one before.
    pub replaced: u64,
}

impl Tally {
    /// The part of ICP's hits that filters find.
    pub fn found(&self) -> f64 {
        self.remote_hits as f64 / self.there.max(1) as f64
    }

    /// The part of ICP's hits that are lost where only one other is asked.
    pub fn lost(&self) -> f64 {
        1.0 - self.first_hits as f64 / self.there.max(1) as f64
    }

    /// The part of a cache that a period replaces, on average.
    pub fn churn(&self, setting: &Setting) -> f64 {
        self.replaced as f64 / (self.updates.max(1) * setting.cache as u64) as f64
    }

    /// Bytes of a filter, on average.
    pub fn update_bytes(&self, setting: &Setting) -> f64 {
        self.bytes as f64 / (self.updates.max(1) * (setting.proxies as u64 - 1).max(1)) as f64
    }

    /// Bytes of all proxies in an hour.
    pub fn bytes_an_hour(&self, setting: &Setting) -> f64 {
        self.bytes as f64 / setting.periods as f64 * 3600.0 / setting.every as f64
    }
}

/// The pages, and who asks for which.
struct Web {
    digests: Vec<Digest>,
    /// The weight of each page and all more popular ones.
    up_to: Vec<f64>,
}

impl Web {
    fn new(pages: usize) -> Self {
        let mut sum = 0.0;
        let up_to = (1..=pages).map(|rank| {
            sum += libm::pow(rank as f64, -SKEW);
            sum
        });
        let digests = (0..pages as u64).map(|page| Digest(Digest(page).word(1))).collect();
        Self { digests, up_to: up_to.collect() }
    }

    /// The page that request `number` of a proxy is for.
    fn page(&self, proxy: usize, number: u64) -> usize {
        let uniform = (Digest(proxy as u64).word(number) >> 11) as f64 / (1_u64 << 53) as f64;
        let weight = uniform * self.up_to[self.up_to.len() - 1];
        self.up_to.partition_point(|&up_to| up_to <= weight).min(self.digests.len() - 1)
    }
}

/// A proxy: the pages that were used last, and what it told others.
struct Proxy {
    clock: u32,
    /// When each page was used; 0 if it is not here.
    used: Vec<u32>,
    by_age: BTreeMap<u32, usize>,
    told: Option<AnyFilter>,
    /// A bit for each page that the filter was built with.
    truth: Vec<u64>,
}

impl Proxy {
    fn new(pages: usize) -> Self {
        let truth = vec![0; pages.div_ceil(64)];
        Self { clock: 0, used: vec![0; pages], by_age: BTreeMap::new(), told: None, truth }
    }

    fn holds(&self, page: usize) -> bool {
        self.used[page] > 0
    }

    /// Whether the page was here; it is now, and the page that was not used longest is not.
    fn serve(&mut self, page: usize, room: usize) -> bool {
        let is_here = self.holds(page);
        if is_here {
            self.by_age.remove(&self.used[page]);
        } else if self.by_age.len() == room
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.used[oldest] = 0;
        }
        self.clock += 1;
        self.used[page] = self.clock;
        self.by_age.insert(self.clock, page);
        is_here
    }

    /// Publishes the cache, and returns the bytes for one reader and how many pages are new.
    fn tell(&mut self, web: &Web, params: &AnyParams, sent: Sent) -> (u64, u64) {
        let digests: Vec<Digest> = self.by_age.values().map(|&page| web.digests[page]).collect();
        let label = Label::planned(Hasher::default(), digests.len() as u64);
        let filter = params.build_from(label, &digests).expect("memory for a filter");
        let bytes = match (sent, &self.told) {
            (Sent::Whole, _) => filter.encode().len(),
            (Sent::Compressed, _) | (Sent::Deltas, None) => filter.pack(Effort::Best).len(),
            (Sent::Deltas, Some(old)) => {
                let delta = Delta::between(old, &filter).expect("filters of one plan");
                (delta.encode().len()).min(filter.pack(Effort::Best).len())
            }
        };
        let new = self.by_age.values().filter(|&&page| !self.had(page)).count() as u64;
        self.truth.fill(0);
        for &page in self.by_age.values() {
            self.truth[page / 64] |= 1 << (page % 64);
        }
        self.told = Some(filter);
        (bytes, new)
    }

    fn had(&self, page: usize) -> bool {
        self.truth[page / 64] >> (page % 64) & 1 > 0
    }
}

/// The params of the filters of a setting.
pub fn params(setting: &Setting) -> Result<AnyParams, PlanError> {
    let kind = match setting.sent {
        Sent::Whole => Kind::Bloom,
        Sent::Compressed => Kind::Compressed,
        Sent::Deltas => Kind::BlockedRank,
    };
    AnyParams::plan(kind, &Goal::rate(setting.cache as u64, setting.rate))
}

/// Runs a setting.
pub fn simulate(setting: &Setting) -> Result<Tally, PlanError> {
    let params = params(setting)?;
    let web = Web::new(setting.pages);
    let mut proxies: Vec<_> = (0..setting.proxies).map(|_| Proxy::new(setting.pages)).collect();
    let mut number = (WARM_UP * setting.cache) as u64;
    for (name, proxy) in proxies.iter_mut().enumerate() {
        for request in 0..number {
            proxy.serve(web.page(name, request), setting.cache);
        }
        // What a newcomer must fetch is not counted.
        proxy.tell(&web, &params, setting.sent);
    }
    let mut tally = Tally::default();
    let readers = setting.proxies as u64 - 1;
    for _ in 0..setting.periods {
        for _ in 0..setting.requests * setting.every / 3600 {
            for reader in 0..setting.proxies {
                let page = web.page(reader, number);
                tally.requests += 1;
                if proxies[reader].serve(page, setting.cache) {
                    tally.local_hits += 1;
                } else {
                    tally.icp_bytes += readers * ICP_BYTES;
                    ask(&proxies, reader, page, web.digests[page], &mut tally);
                }
            }
            number += 1;
        }
        for proxy in &mut proxies {
            let (bytes, new) = proxy.tell(&web, &params, setting.sent);
            tally.bytes += readers * bytes;
            tally.replaced += new;
            tally.updates += 1;
        }
    }
    Ok(tally)
}

/// Asks those whose filter has the page, until one really has it. Being asked does not count as
/// use of a page, so that the caches are the same in all runs.
fn ask(proxies: &[Proxy], reader: usize, page: usize, digest: Digest, tally: &mut Tally) {
    let others = || (1..proxies.len()).map(|step| &proxies[(reader + step) % proxies.len()]);
    tally.there += u64::from(others().any(|other| other.holds(page)));
    let mut is_first = true;
    for other in others() {
        let had = other.had(page);
        tally.absent += u64::from(!had);
        if !other.told.as_ref().is_some_and(|told| told.contains_digest(digest)) {
            continue;
        }
        if other.holds(page) {
            tally.remote_hits += 1;
            tally.first_hits += u64::from(is_first);
            return;
        }
        is_first = false;
        tally.stale_hits += u64::from(had);
        tally.false_hits += u64::from(!had);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(sent: Sent) -> Setting {
        Setting {
            proxies: 16,
            cache: 1000,
            pages: 20_000,
            requests: 3600,
            every: 60,
            periods: 10,
            rate: 0.01,
            sent,
        }
    }

    #[test]
    fn filters_find_what_there_is_for_a_fraction_of_the_bytes() {
        let [whole, compressed, deltas] = [Sent::Whole, Sent::Compressed, Sent::Deltas]
            .map(|sent| (setting(sent), simulate(&setting(sent)).unwrap()));
        for (setting, tally) in [&whole, &compressed, &deltas] {
            // Nothing but the filters differs.
            let same = |tally: &Tally| (tally.requests, tally.local_hits, tally.there);
            assert_eq!(same(tally), same(&whole.1));
            assert_eq!(simulate(setting).unwrap(), *tally, "two runs differ");
            assert!(tally.found() > 0.9 && tally.found() <= 1.0, "{}", tally.found());
            // No filter is wrong more often than it says.
            let wrong = tally.false_hits as f64;
            let expected = setting.rate * tally.absent as f64;
            assert!((wrong - expected).abs() < 5.0 * expected.sqrt() + 0.1 * expected, "{tally:?}");
            assert!(tally.bytes < tally.icp_bytes, "{tally:?}");
        }
        assert!(compressed.1.bytes < whole.1.bytes);
        // A period replaces 4% of a cache of a thousand pages, and every delta has a header.
        assert!(deltas.1.bytes * 3 < whole.1.bytes, "{} {}", deltas.1.bytes, whole.1.bytes);
    }

    /// What is planned for these proxies is what comes of it.
    #[test]
    fn plans_for_peers_hold() {
        let first = setting(Sent::Deltas);
        let churn = simulate(&first).unwrap().churn(&first);
        let (peers, keys, every) = (first.proxies as u64, first.cache as u64, first.every);
        for max_lost in [0.02, 0.1] {
            let need = Need { peers, keys, churn, every, max_lost };
            let choices = choose(&need);
            let best = &choices[0];
            assert!(choices.iter().all(|choice| choice.lost <= max_lost * 1.0001));
            assert!(choices.is_sorted_by(|one, next| one.bytes_an_hour <= next.bytes_an_hour));
            assert_eq!(best.kind, Kind::BlockedRank.name(), "{best:?}");
            let planned = Setting {
                rate: best.rate,
                every: best.every,
                periods: 600_u64.div_ceil(best.every),
                ..first
            };
            let tally = simulate(&planned).unwrap();
            assert!(tally.lost() <= max_lost, "{} {best:?}", tally.lost());
            let (bytes, hour) = (tally.update_bytes(&planned), tally.bytes_an_hour(&planned));
            assert!((bytes / best.update_bytes - 1.0).abs() < 0.1, "{bytes} {best:?}");
            assert!((hour / best.bytes_an_hour - 1.0).abs() < 0.1, "{hour} {best:?}");
        }
        // Nobody keeps up with that.
        assert!(choose(&Need { peers, keys, churn: 1.0, every: 1, max_lost: 1e-9 }).is_empty());
        assert!(
            choose(&Need { peers: 2, keys: 1, churn: 0.5, every: 60, max_lost: 0.5 }).len() > 1
        );
    }

    #[test]
    fn the_saving_of_paper_004_is_what_the_model_says() {
        for rate in [0.01, 0.001] {
            let bytes = |sent| {
                let setting = Setting {
                    rate,
                    cache: 10_000,
                    pages: 40_000,
                    proxies: 2,
                    periods: 1,
                    ..setting(sent)
                };
                let measured = simulate(&setting).unwrap().update_bytes(&setting);
                let traffic = params(&setting).unwrap().traffic(setting.cache as u64, None);
                (measured, traffic.snapshot.mean)
            };
            let (whole, _) = bytes(Sent::Whole);
            let (compressed, modelled) = bytes(Sent::Compressed);
            let (measured, model) = (1.0 - compressed / whole, 1.0 - modelled / whole);
            assert!((measured - model).abs() < 0.02 * model, "{rate}: {measured} and {model}");
            assert!(measured > 0.05, "{rate}: {measured}");
        }
    }
}
