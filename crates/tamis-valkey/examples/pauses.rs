//! How long commands on large filters hold the server, and what they cost.
//!
//!     cargo run --release -p tamis-valkey --example pauses -- [megabytes] [folder] [which]
//!
//! A set and a multiset of about as many megabytes, with a rate of 1%. They are filled once, and
//! kept as RDB files in the folder. (A multiset of several hundred megabytes is made of one of
//! 100, chunk by chunk.) `which` may be one of them on one server, such as `Redis-CF`. Times are
//! processor time of the server's main thread, the least of three where a command is sent three
//! times. "pause" is the longest single command; beside those of bounded work another client sends
//! PING all the time.

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use harness::{Client, Kind, Resp, Server};
use tamis::Hasher;

/// Items of one command while a filter is filled, and commands in a pipeline.
const BATCH: u64 = 1000;
const PIPELINE: u64 = 20;
/// PINGs beside a command, and the time between two.
const PINGS: usize = 20_000;
const BETWEEN: Duration = Duration::from_micros(200);

fn item(number: u64) -> Vec<u8> {
    format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
}

/// Adds items `from` to `to`.
fn fill(client: &mut Client, words: &[&str], from: u64, to: u64) {
    for start in (from..to).step_by((BATCH * PIPELINE) as usize) {
        let command = |start: u64| -> Vec<Vec<u8>> {
            let words = words.iter().map(|word| word.as_bytes().to_vec());
            words.chain((start..(start + BATCH).min(to)).map(item)).collect()
        };
        let end = (start + BATCH * PIPELINE).min(to);
        let commands: Vec<_> = (start..end).step_by(BATCH as usize).map(command).collect();
        assert!(client.pipeline(&commands).iter().all(|reply| !reply.is_error()));
    }
}

/// All that SCANDUMP says of `f`: iterators, and the header and the chunks.
fn scan(client: &mut Client, command: &str) -> Vec<(u64, Vec<u8>)> {
    let mut chunks: Vec<(u64, Vec<u8>)> = Vec::new();
    loop {
        let iterator = chunks.last().map_or(0, |(iterator, _)| *iterator).to_string();
        let reply = client.send(&[command, "f", &iterator]);
        match reply.elements()[0].int() {
            0 => return chunks,
            next => chunks.push((next as u64, reply.elements()[1].bytes().to_vec())),
        }
    }
}

/// Makes a multiset of one table `times` times as large, in an as many times larger universe: each
/// part of it gets the same leaves.
fn multiply(client: &mut Client, times: u64) {
    /// Where the header has identities, keys, capacity and universe of the table (`dump.rs`).
    const NUMBERS: [usize; 4] = [62, 70, 78, 89];
    /// Where chunks end that are the last of the first table (`multiset/chunk.rs`).
    const END: u64 = (1 << 56) + 1;
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let put = |bytes: &mut [u8], at: usize, number: u64| {
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    };
    let mut chunks = scan(client, "CF.SCANDUMP");
    client.say("UNLINK f");
    let mut load = |iterator: u64, mut bytes: Vec<u8>| {
        let body = bytes.len() - 8;
        let checksum = Hasher::default().digest_bytes(&bytes[..body]).0;
        put(&mut bytes, body, checksum);
        let iterator = iterator.to_string();
        let reply = client.send(&[b"CF.LOADCHUNK", b"f".as_slice(), iterator.as_bytes(), &bytes]);
        assert_eq!(reply.to_string(), "OK");
    };
    let (_, mut header) = chunks.remove(0);
    let universe = number(&header, NUMBERS[3]);
    for at in NUMBERS {
        let many = number(&header, at) * times;
        put(&mut header, at, many);
    }
    load(1, header);
    let mut from = 1;
    for part in 0..times {
        for (to, bytes) in &chunks {
            let mut bytes = bytes.clone();
            put(&mut bytes, 0, from);
            let mut at = 8;
            while at + 8 < bytes.len() {
                let start = number(&bytes, at) + part * universe;
                put(&mut bytes, at, start);
                at += 8 + 8 * usize::from((number(&bytes, at + 8) >> 16) as u16);
            }
            from = match (*to, part + 1 == times) {
                (END, true) => END,
                (END, false) => (part + 1) * universe + 1,
                (to, _) => part * universe + to,
            };
            load(from, bytes);
        }
    }
}

/// A server with a filter under the key `f`, and how to speak of it.
struct Large {
    kind: Kind,
    server: Server,
    family: &'static str,
    name: String,
    megabytes: f64,
    keys: u64,
}

impl Large {
    fn start(kind: Kind, family: &'static str, megabytes: u64, folder: &Path) -> Self {
        let file = format!("{family}-{megabytes}.rdb");
        let options = [
            "--dir",
            folder.to_str().unwrap(),
            "--dbfilename",
            &file,
            "--rdbcompression",
            "no",
            "--enable-protected-configs",
            "yes",
            "--proto-max-bulk-len",
            "8gb",
            "--client-query-buffer-limit",
            "8gb",
            "--bf.max-filter-bytes",
            "9000000000000000000",
        ];
        let server = Server::start(kind, &options);
        let mut client = server.client();
        // About ten and thirteen bits a key.
        let keys = megabytes * if family == "BF" { 700_000 } else { 600_000 };
        if client.say("EXISTS f").int() == 0 {
            let times = if family == "CF" { (megabytes / 100).max(1) } else { 1 };
            let (reserve, words) = match family {
                "BF" => (format!("BF.RESERVE f 0.01 {keys}"), vec!["BF.MADD", "f"]),
                _ => (format!("CF.RESERVE f {}", keys / times), vec!["CF.INSERT", "f", "ITEMS"]),
            };
            assert_eq!(client.say(&reserve).to_string(), "OK");
            fill(&mut client, &words, 0, (keys - keys / 100) / times);
            if times > 1 {
                multiply(&mut client, times);
            }
            assert_eq!(client.say("SAVE").to_string(), "OK");
        }
        // The file that is kept can be read by both servers.
        assert_eq!(client.say("CONFIG SET dbfilename written.rdb").to_string(), "OK");
        let bytes = client.say("TAMIS.INFO f").field("bytes").int() as f64;
        let name = format!("{kind:?} {family} of {:.0} MB", bytes / 1e6);
        Self { kind, server, family, name, megabytes: bytes / 1e6, keys }
    }

    fn say(&self, what: &str, milliseconds: f64, remark: &str) {
        let speed = self.megabytes / milliseconds * 1e3;
        println!("{}: {what}: {milliseconds:.2} ms, {speed:.0} MB/s {remark}", self.name);
    }

    /// Processor time of something that is done once, in milliseconds.
    fn cost<T>(&self, run: impl FnOnce() -> T) -> (f64, T) {
        let before = self.server.processor_time();
        let result = run();
        (self.server.processor_time().saturating_sub(before).as_secs_f64() * 1e3, result)
    }

    /// A command that moves all bytes.
    fn whole<A: AsRef<[u8]>>(&self, what: &str, command: &[A]) -> Resp {
        let mut client = self.server.client();
        let mut least = f64::INFINITY;
        let mut reply = Resp::Nil;
        for _ in 0..3 {
            client.say("UNLINK other");
            let cost;
            (cost, reply) = self.cost(|| client.send(command));
            assert!(!reply.is_error(), "{what}: {reply}");
            least = least.min(cost);
        }
        self.say(what, least, "");
        reply
    }

    /// Commands of bounded work, one after the other and again from the start, beside PINGs.
    fn bounded(&self, what: &str, mut command: impl FnMut(&mut Client)) {
        let mut client = self.server.client();
        // What a command costs, without anybody beside it.
        let mut costs = Vec::new();
        let begin = Instant::now();
        while costs.len() < 300 || begin.elapsed() < Duration::from_secs(1) && costs.len() < 10_000
        {
            costs.push(self.cost(|| command(&mut client)).0);
        }
        costs.sort_by(f64::total_cmp);
        let done = AtomicBool::new(false);
        let mut pings = thread::scope(|scope| {
            let pings = scope.spawn(|| {
                let pings = self.pings();
                done.store(true, Relaxed);
                pings
            });
            while !done.load(Relaxed) {
                command(&mut client);
            }
            pings.join().unwrap()
        });
        pings.sort_by(f64::total_cmp);
        let at = |list: &[f64], share: f64| list[((list.len() - 1) as f64 * share) as usize];
        println!(
            "{}: {what}: median {:.3} ms, pause {:.3} ms; PING median {:.2}, 99.99th percentile {:.2} ms",
            self.name,
            at(&costs, 0.5),
            at(&costs, 1.0),
            at(&pings, 0.5),
            at(&pings, 0.9999)
        );
    }

    fn pings(&self) -> Vec<f64> {
        let mut client = self.server.client();
        let ping = |_| {
            sleep(BETWEEN);
            let start = Instant::now();
            client.say("PING");
            start.elapsed().as_secs_f64() * 1e3
        };
        (0..PINGS).map(ping).collect()
    }

    fn run(&mut self) {
        let family = self.family;
        let (scan_dump, load) = (format!("{family}.SCANDUMP"), format!("{family}.LOADCHUNK"));
        self.bounded("nothing but PING", |_| sleep(Duration::from_millis(1)));
        self.bounded("INFO", |client| {
            assert!(!client.say("TAMIS.INFO f").is_error());
            assert!(!client.say(&format!("{family}.INFO f")).is_error());
            assert!(client.say("MEMORY USAGE f").int() > 0);
        });
        let (exists, add) = match family {
            "BF" => ("BF.EXISTS", "BF.ADD"),
            _ => ("CF.EXISTS", "CF.ADD"),
        };
        let mut next = self.keys;
        self.bounded("an item asked for and added", |client| {
            next += 1;
            client.send(&[exists.as_bytes(), b"f", &item(next)]);
            client.send(&[add.as_bytes(), b"f", &item(next)]);
        });
        let mut iterator = "0".to_owned();
        self.bounded("SCANDUMP", |client| {
            let reply = client.send(&[scan_dump.as_str(), "f", &iterator]);
            iterator = reply.elements()[0].int().to_string();
        });
        let mut client = self.server.client();
        let chunks = scan(&mut client, &scan_dump);
        let (mut at, mut key) = (0, 0);
        self.bounded("LOADCHUNK", |client| {
            let (iterator, data) = &chunks[at];
            let (name, iterator) = (format!("other{key}"), iterator.to_string());
            let command = [load.as_bytes(), name.as_bytes(), iterator.as_bytes(), data.as_slice()];
            assert_eq!(client.send(&command).to_string(), "OK");
            at += 1;
            if at == chunks.len() {
                (at, key) = (0, key + 1);
                client.say(&format!("UNLINK {name}"));
            }
        });
        for key in 0..=key {
            client.say(&format!("UNLINK other{key}"));
        }
        let all = |client: &mut Client| {
            for (iterator, data) in &chunks {
                let iterator = iterator.to_string();
                client.send(&[load.as_bytes(), b"other", iterator.as_bytes(), data.as_slice()]);
            }
        };
        let (cost, ()) = self.cost(|| all(&mut client));
        self.say("LOADCHUNK of all chunks", cost, "");
        drop(chunks);
        let (cost, _) = self.cost(|| client.say("UNLINK other"));
        self.say("UNLINK", cost, "");
        for compress in ["no", "yes"] {
            client.say(&format!("CONFIG SET rdbcompression {compress}"));
            self.whole(&format!("SAVE, rdbcompression {compress}"), &["SAVE"]);
            let payload = self.whole(&format!("DUMP, rdbcompression {compress}"), &["DUMP", "f"]);
            let restore = [b"RESTORE".as_slice(), b"other", b"0", payload.bytes()];
            self.whole(&format!("RESTORE, rdbcompression {compress}"), &restore);
        }
        client.say("UNLINK other");
        self.whole("COPY", &["COPY", "f", "other"]);
        let (cost, _) = self.cost(|| client.say("DEL other"));
        self.say("DEL", cost, "");
        let (empty, kind) = (Server::start(self.kind, &[]).processor_time(), self.kind);
        self.server.kill_and_restart();
        let loaded = self.server.processor_time().saturating_sub(empty);
        self.say("RDB load", loaded.as_secs_f64() * 1e3, &format!("({kind:?} started)"));
        for command in ["TAMIS.DUMP f", "TAMIS.MERGE other f"] {
            self.whole(command, &command.split(' ').collect::<Vec<_>>());
        }
    }
}

/// A layer of many megabytes that an item asks for, and a generation that grows.
fn growth(kind: Kind, megabytes: u64) {
    let server = Server::start(kind, &["--bf.max-filter-bytes", "9000000000000000000"]);
    let mut client = server.client();
    let first = megabytes * 700_000 / 32_768;
    client.say(&format!("BF.RESERVE f 0.01 {first} EXPANSION 32768"));
    client.say(&format!("TAMIS.RESERVE aging 0.01 {} EX 1000000", megabytes * 700_000));
    let mut worst = [0.0_f64; 2];
    for number in 0..(first + 10).max(1 << 20) {
        for (at, add) in [b"BF.ADD".as_slice(), b"TAMIS.ADD"].into_iter().enumerate() {
            let before = server.processor_time();
            client.send(&[add, [b"f".as_slice(), b"aging"][at], &item(number)]);
            worst[at] =
                worst[at].max(server.processor_time().saturating_sub(before).as_secs_f64() * 1e3);
        }
        if number.is_power_of_two() && number >= 1 << 16 {
            println!(
                "{kind:?}: {number} items: BF.ADD {:.2} ms at most, TAMIS.ADD {:.2} ms",
                worst[0], worst[1]
            );
        }
    }
    let bytes = client.say("TAMIS.INFO f").field("bytes").int();
    println!("{kind:?}: growth to {} MB: BF.ADD {:.2} ms at most", bytes / 1_000_000, worst[0]);
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let megabytes = arguments.next().map_or(100, |text| text.parse().unwrap());
    let folder =
        arguments.next().map_or_else(|| std::env::temp_dir().join("tamis-pauses"), PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    let which = arguments.next();
    for kind in Kind::ALL {
        for family in ["BF", "CF"] {
            if which.as_ref().is_none_or(|which| *which == format!("{kind:?}-{family}")) {
                Large::start(kind, family, megabytes, &folder).run();
            }
        }
        if which.is_none() {
            growth(kind, megabytes);
        }
    }
}
