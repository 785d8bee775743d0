//! Cache digests with real Squids: what they say, and what siblings find with agents between them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tamis::Digest;
use tamis_exchange::squid::{CacheDigest, PageKey};

use crate::tool::{Folder, numbers};

/// Pages that each Squid has and no other.
const PAGES: usize = 200;
/// Pages that none has.
const ABSENT: usize = 400;

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wait_until(what: &str, is_done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_done() {
        assert!(begin.elapsed() < Duration::from_secs(90), "{what}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// A server of pages that may be kept for a day. (Squid leaves pages without dates out of its
/// digest.)
fn origin() -> u16 {
    let date = Command::new("date").args(["-u", "+%a, %d %b %Y %H:%M:%S GMT"]).output().unwrap();
    let date = String::from_utf8(date.stdout).unwrap().trim().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let date = date.clone();
            thread::spawn(move || {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let start = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).next();
                let body = start.unwrap_or_default();
                let kept = if body.contains("/never/") { "no-store" } else { "max-age=86400" };
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nCache-Control: {kept}\r\n\
                     Date: {date}\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
            });
        }
    });
    port
}

/// What a server answers, header and body.
fn get(port: u16, url: &str, header: &str) -> Option<(String, Vec<u8>)> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    write!(stream, "GET {url} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}Connection: close\r\n\r\n")
        .ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes[end + 4..].to_vec()))
}

/// How Squids learn what others have.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Icp,
    Agents,
}

/// Squid asks one sibling: where there are more, a false claim hides a true one.
fn bits_per_entry(squids: usize) -> u64 {
    number("TAMIS_SQUID_BITS", if squids > 2 { 12 } else { 5 })
}

/// Squids that are siblings of each other.
struct Siblings {
    by: By,
    ports: Vec<u16>,
    agents: Vec<u16>,
    running: Vec<Running>,
}

impl Siblings {
    fn start(folder: &Folder, by: By, count: usize) -> Self {
        let ports: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let icp: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let agents: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let mut running = Vec::new();
        for me in 0..count {
            let name = format!("{}{me}", if by == By::Icp { "icp" } else { "agent" });
            let home = folder.join(&name);
            fs::create_dir_all(home.join("cache")).unwrap();
            // Squid gives up root's rights.
            for path in [folder.path(), &home, &home.join("cache")] {
                let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
                fs::set_permissions(path, all).unwrap();
            }
            let home = home.display();
            let mut text = format!(
                "http_port 127.0.0.1:{}\nicp_port {}\npid_filename {home}/pid\n\
                 cache_log {home}/cache.log\naccess_log stdio:{home}/access.log\n\
                 coredump_dir {home}\ncache_dir ufs {home}/cache 100 4 16\nnetdb_filename none\n\
                 visible_hostname {name}\nunique_hostname {name}\nhttp_access allow all\n\
                 icp_access allow all\nicp_query_timeout 30000\ndead_peer_timeout 5 minutes\n\
                 shutdown_lifetime 0 seconds\npinger_enable off\n\
                 digest_bits_per_entry {}\ndigest_rebuild_period 2 seconds\ndigest_rewrite_period 2 seconds\n\
                 minimum_direct_rtt 0\nminimum_direct_hops 0\nacl warm req_header X-Warm .\n",
                ports[me],
                if by == By::Icp { icp[me] } else { 0 },
                bits_per_entry(count),
            );
            let peers = (0..count).filter(|&other| other != me).map(|other| {
                let how = match by {
                    By::Icp => format!("{} no-digest", icp[other]),
                    By::Agents => {
                        format!("0 no-query digest-url=http://127.0.0.1:{}/s{other}", agents[me])
                    }
                };
                format!(
                    "cache_peer 127.0.0.1 sibling {} {how} proxy-only name=s{other}\n\
                     cache_peer_access s{other} deny warm\n",
                    ports[other]
                )
            });
            text.extend(peers);
            let conf = format!("{name}/squid.conf");
            folder.write(&conf, text);
            let squid = |more: &[&str]| {
                let mut command = Command::new("/usr/sbin/squid");
                command.args(["-N", "-n", &format!("{name}{}", ports[me]), "-f"]);
                command.arg(folder.join(&conf)).args(more).stdout(Stdio::null());
                command.stderr(Stdio::null()).spawn().expect("squid; scripts/install squid=squid")
            };
            assert!(squid(&["-z"]).wait().unwrap().success());
            running.push(Running(squid(&[])));
        }
        for &port in &ports {
            wait_until("a Squid starts", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        }
        Self { by, ports, agents, running }
    }

    /// Starts an agent beside each Squid.
    fn start_agents(&mut self, folder: &Folder) {
        let names: Vec<String> = (0..self.ports.len()).map(|me| format!("s{me}")).collect();
        for name in &names {
            folder.ok(&["keygen", "-o", &format!("{name}.key")]);
        }
        for (me, name) in names.iter().enumerate() {
            let (squid, listen) = (
                format!("http://127.0.0.1:{}", self.ports[me]),
                format!("127.0.0.1:{}", self.agents[me]),
            );
            let sign = format!("{name}.key");
            let mut args = vec!["digest", "agent", "--squid", &squid, "--store", "sets"];
            args.extend(["--name", name, "--sign", &sign, "--listen", &listen, "--every", "1s"]);
            let others = names.iter().filter(|other| *other != name);
            let peers: Vec<_> = others.map(|set| format!("sets/{set}={set}.key.pub")).collect();
            args.extend(peers.iter().flat_map(|peer| ["--peer", peer]));
            let mut command = folder.command(&args);
            self.running.push(Running(command.stderr(Stdio::null()).spawn().unwrap()));
        }
    }

    /// The digest of a peer that an agent serves.
    fn served(&self, me: usize, other: usize) -> Option<CacheDigest> {
        let (head, body) = get(self.agents[me], &format!("/s{other}"), "")?;
        head.starts_with("HTTP/1.1 200 ").then(|| CacheDigest::decode(&body).unwrap())
    }

    /// Whether a page came from a sibling.
    fn ask(&self, me: usize, url: &str) -> bool {
        let (head, _) = get(self.ports[me], url, "").expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let name = if self.by == By::Icp { "icp" } else { "agent" };
        let is_own = head.contains(&format!("X-Cache: HIT from {name}{me}\r\n"));
        !is_own && head.contains(&format!("X-Cache: HIT from {name}"))
    }

    /// Whether a Squid would ask `peers` others: those that answer and, with agents, whose digests
    /// it has. Squid looks when it has a page to find; this one is not kept, so that all stays as
    /// it is.
    fn knows(&self, me: usize, peers: usize, never: &str) -> bool {
        assert!(!self.ask(me, never));
        let says = |page: &str, line: &str| {
            let page = get(self.ports[me], &format!("/squid-internal-mgr/{page}"), "");
            let (_, page) = page.expect("an answer");
            String::from_utf8_lossy(&page).matches(line).count() >= peers
        };
        says("server_list", "Status     : Up")
            && (self.by == By::Icp || says("peer_select", "usable: yes"))
    }

    /// Puts a page into a cache; siblings are not asked.
    fn warm(&self, me: usize, url: &str) {
        get(self.ports[me], url, "X-Warm: yes\r\n").expect("an answer");
    }

    /// Requests of siblings that a Squid could not answer from its cache.
    fn refused(folder: &Folder, me: usize) -> usize {
        let log = String::from_utf8(folder.read(&format!("agent{me}/access.log"))).unwrap();
        log.lines().filter(|line| line.contains("/504 ")).count()
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn siblings_find_with_agents_what_they_find_with_icp() {
    let (count, minutes) = (number("TAMIS_SQUIDS", 2) as usize, number("TAMIS_SQUID_MINUTES", 0));
    let folder = Folder::new();
    let origin = origin();
    let url = |what: &str, page: usize| format!("http://127.0.0.1:{origin}/{what}/{page}");
    let mut groups = [By::Icp, By::Agents].map(|by| Siblings::start(&folder, by, count));
    for group in &groups {
        for me in 0..count {
            let requests = if minutes > 0 { 0..WARM } else { 0..0 };
            let popular: BTreeSet<_> = requests.map(|request| wanted(me, request)).collect();
            for page in popular {
                group.warm(me, &url("zipf", page));
            }
            (0..PAGES).for_each(|page| group.warm(me, &url(&format!("of{me}"), page)));
        }
    }
    groups[1].start_agents(&folder);
    let agents = &groups[1];
    let is_in = |digest: &CacheDigest, other: usize| {
        (0..PAGES).all(|page| digest.contains(PageKey::get(url(&format!("of{other}"), page))))
    };
    // In the order of squid.conf.
    let peers = |me: usize| (0..count).filter(move |&other| other != me);
    let served = || -> Vec<Vec<CacheDigest>> {
        let of = |me| peers(me).map(|other| agents.served(me, other).unwrap()).collect();
        (0..count).map(of).collect()
    };
    for (me, other) in (0..count).flat_map(|me| peers(me).map(move |other| (me, other))) {
        wait_until("agents serve what there is", || {
            agents.served(me, other).is_some_and(|digest| is_in(&digest, other))
        });
    }
    // A Squid asks for digests when it first needs them: one a minute.
    let (digests, begin) = (served(), Instant::now());
    let is_claimed = |page: &String| {
        let key = PageKey::get(page);
        digests.iter().flatten().any(|digest| digest.contains(key))
    };
    let never = (0..PAGES).map(|page| url("never", page)).find(|page| !is_claimed(page)).unwrap();
    for (known, me) in (1..count).flat_map(|known| (0..count).map(move |me| (known, me))) {
        for group in &groups {
            wait_until("Squids know their siblings", || group.knows(me, known, &never));
        }
    }
    for (before, now) in digests.iter().flatten().zip(served().iter().flatten()) {
        assert_eq!(before.mask(), now.mask(), "Squid may have fetched another digest");
    }

    // Squid asks the first sibling that claims a page, and no other. So its digests say for each
    // page what happens, and what they promise by their bits alone how often.
    let (mut found, mut predicted, mut claimed, mut chances) = ([0, 0], 0, 0, Vec::new());
    for (me, digests) in digests.iter().enumerate() {
        let other = (me + 1) % count;
        let order = peers(me).position(|peer| peer == other).unwrap();
        let chance = |digests: &[CacheDigest]| {
            1.0 - digests.iter().map(|digest| 1.0 - digest.rate()).product::<f64>()
        };
        for page in (0..PAGES).map(|page| url(&format!("of{other}"), page)) {
            for (group, found) in groups.iter().zip(&mut found) {
                *found += usize::from(group.ask(me, &page));
            }
            let key = PageKey::get(&page);
            let is_hidden = digests[..order].iter().any(|digest| digest.contains(key));
            predicted += usize::from(!is_hidden);
            claimed += usize::from(is_hidden);
            chances.push(chance(&digests[..order]));
        }
        for page in (0..ABSENT).map(|page| url(&format!("absent{me}"), page)) {
            assert!(!agents.ask(me, &page));
            let key = PageKey::get(&page);
            claimed += usize::from(digests.iter().any(|digest| digest.contains(key)));
            chances.push(chance(digests));
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(300), "Squid asks for digests again");
    let refused: usize = (0..count).map(|me| Siblings::refused(&folder, me)).sum();
    let ([with_icp, with_agents], there) = (found, count * PAGES);
    println!(
        "{count} Squids, {} bits a page: {with_agents} of {there} found, {with_icp} with ICP; \
         {refused} false hits in {}, by the model {:.1}",
        bits_per_entry(count),
        chances.len(),
        chances.iter().sum::<f64>(),
    );
    assert_eq!(with_icp, there);
    assert_eq!((with_agents, refused), (predicted, claimed));
    // So seldom that it will not happen by chance.
    let (below, above) = tails(&chances, refused);
    assert!(below.min(above) > 1e-6, "{below} {above}");
    if std::env::var("TAMIS_SQUID_BITS").is_err() {
        assert!(with_agents * 100 >= with_icp * 98, "{with_agents} of {with_icp}");
    }

    if minutes > 0 {
        traffic(&groups, minutes, &url);
    }
}

/// How probably at most `seen` of independent events with these chances happen, and at least.
fn tails(chances: &[f64], seen: usize) -> (f64, f64) {
    let mut exactly = vec![1.0];
    for chance in chances {
        exactly.push(0.0);
        for number in (0..exactly.len()).rev() {
            let one_less = if number > 0 { exactly[number - 1] } else { 0.0 };
            exactly[number] = exactly[number] * (1.0 - chance) + one_less * chance;
        }
    }
    (exactly[..=seen].iter().sum(), exactly[seen..].iter().sum())
}

/// Requests of each Squid before the traffic that is counted.
const WARM: u64 = 4_000;

/// The page that a request to a Squid is for: popular pages are asked for often.
fn wanted(me: usize, request: u64) -> usize {
    let uniform = (Digest(me as u64).word(request) >> 11) as f64 / (1_u64 << 53) as f64;
    (20_000.0 * uniform.powi(5)) as usize
}

/// Requests for some minutes. Squid asks for digests again after five, and until then new pages
/// are not found; there are about as many as a hundredth of all pages.
fn traffic(groups: &[Siblings; 2], minutes: u64, url: &dyn Fn(&str, usize) -> String) {
    let count = groups[0].ports.len();
    let begin = Instant::now();
    let (mut found, mut requests) = ([0, 0], 0);
    while begin.elapsed() < Duration::from_secs(60 * minutes) {
        for me in 0..count {
            let page = url("zipf", wanted(me, WARM + requests));
            for (group, found) in groups.iter().zip(&mut found) {
                *found += u64::from(group.ask(me, &page));
            }
        }
        requests += 1;
        thread::sleep(Duration::from_secs(3));
    }
    println!("{requests} requests each: {} with ICP, {} with agents", found[0], found[1]);
    assert!(found[1] * 100 >= found[0] * 98, "{found:?}");
}

#[test]
fn digests_are_read_and_written() {
    let folder = Folder::new();
    let urls = numbers(1000);
    let urls: Vec<_> = urls.lines().map(|n| format!("http://example.org/{n}\n")).collect();
    let urls = urls.concat();
    folder.write("urls", &urls);
    folder.ok(&["digest", "build", "-o", "d", "--bits-per-entry", "12", "urls"]);
    assert_eq!(folder.ok(&["digest", "check", "d", "urls"]), urls);
    let facts = folder.json(&["digest", "info", "--json", "d"]);
    assert_eq!((&facts["capacity"], &facts["bits_per_entry"]), (&1000.into(), &12.into()));
    assert_eq!(facts["bytes"], 128 + 1500);
    assert!((facts["rate"].as_f64().unwrap() - 0.0065).abs() < 0.002);
    let absent = urls.replace("example.org", "example.net");
    let wrong = folder.feed(&["digest", "check", "d"], &absent).text().lines().count();
    assert!(wrong < 25, "{wrong}");
    assert!(folder.feed(&["digest", "check", "-v", "d"], &absent).text().lines().count() > 975);

    // Its owner's side: keys can be removed.
    folder.ok(&["digest", "convert", "--rate", "0.1%", "-o", "cache.tamis", "urls"]);
    assert_eq!(folder.ok(&["digest", "check", "cache.tamis", "urls"]), urls);
    let listing = "KEY 18E0C2882481291201BF2268F237F075\n\tSTORE_OK\n\tGET http://x/\n";
    folder.write("listing", listing);
    folder.ok(&["digest", "convert", "--listing", "-o", "one.tamis", "listing"]);
    let page = "http://127.0.0.1:4900/page/94\n";
    assert_eq!(folder.feed(&["digest", "check", "one.tamis"], page).ok(), page);
    assert_eq!(folder.json(&["info", "--json", "one.tamis"])["keys"], 1);

    folder.write("cut", &folder.read("d")[..500]);
    folder.run(&["digest", "info", "cut"]).refused(&["cut: mask", "372 bytes of 1500"]);
    folder.run(&["digest", "info", "urls"]).refused(&["urls: version"]);
    folder.run(&["digest", "info", "none"]).refused(&["none: "]);
    folder.run(&["digest", "info", "http://127.0.0.1:1"]).refused(&["127.0.0.1:1"]);
    folder.write("bad", "KEY 12\n");
    let bad = ["digest", "convert", "--listing", "-o", "x.tamis", "bad"];
    folder.run(&bad).refused(&["32 hexadecimal digits"]);
    folder
        .run(&["digest", "build", "-o", "x", "--bits-per-entry", "0", "urls"])
        .refused(&["bits_per_entry"]);
    folder.run(&["digest", "agent"]).refused(&["--squid", "--peer"]);
    folder
        .run(&["digest", "agent", "--peer", "sets/a", "--listen", "127.0.0.1:0"])
        .refused(&["SET=KEY.pub"]);
    assert!(!folder.names().iter().any(|name| name.starts_with('x')));
}
