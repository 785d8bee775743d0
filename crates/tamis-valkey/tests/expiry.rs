//! Filters whose items expire, in real servers.
#![allow(missing_docs)]

mod harness;

use std::thread::sleep;
use std::time::{Duration, Instant};

use harness::{Client, Kind, Server, wait_until};
use tamis::{Aging, Limits};

/// Adds, touches or asks for the numbers in a range at a time, and says how many were answered 1.
fn at(client: &mut Client, now: u64, action: &str, from: u64, to: u64) -> usize {
    let words = ["TAMIS.AT".to_owned(), "seen".to_owned(), now.to_string(), action.to_owned()];
    let command: Vec<String> =
        words.into_iter().chain((from..to).map(|number| number.to_string())).collect();
    let reply = client.send(&command);
    reply.elements().iter().filter(|element| element.int() == 1).count()
}

/// A filter with items of three ages, at time 2,000,000 of a virtual clock.
fn fill(client: &mut Client) {
    assert_eq!(client.say("TAMIS.RESERVE seen 0.001 10000 EX 1000 STEPS 4").to_string(), "OK");
    assert!(at(client, 1_000_000, "ADD", 0, 1000) > 990);
    assert!(at(client, 1_300_000, "ADD", 1000, 2000) > 990);
    assert!(at(client, 2_000_000, "ADD", 2000, 3000) > 980);
    assert_eq!(at(client, 2_000_000, "TOUCH", 0, 500), 500);
    assert_eq!(at(client, 2_000_000, "DEL", 100, 200), 100);
}

/// What [`fill`] has left is there, and what has expired is not.
fn check(client: &mut Client) {
    let mut found = |now, from, to| at(client, now, "EXISTS", from, to);
    assert_eq!((found(2_000_000, 0, 100), found(2_000_000, 200, 3000)), (100, 2800));
    assert_eq!(found(2_300_000, 1000, 2000), 1000);
    assert_eq!((found(3_000_000, 200, 500), found(3_000_000, 2000, 3000)), (300, 1000));
    // At a rate of 0.1% a few are found that have gone.
    assert!(found(2_000_000, 100, 200) <= 5 && found(2_300_000, 500, 1000) <= 8);
    assert!(found(2_550_000, 1000, 2000) <= 12 && found(3_250_000, 0, 3000) == 0);
}

#[test]
fn items_expire_by_the_clock_of_the_server() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let mut client = server.client();
        client.say("TAMIS.RESERVE seen 0.001 10000 EX 2 STEPS 4");
        let start = Instant::now();
        client.say("TAMIS.ADD seen once often");
        let mut gone = None;
        while gone.is_none() {
            assert_eq!(client.say("TAMIS.TOUCH seen often").to_string(), "[1]");
            let before = start.elapsed();
            let found = client.say("TAMIS.EXISTS seen once").to_string() == "[1]";
            if !found {
                gone = Some(start.elapsed());
            }
            assert!(found || start.elapsed() >= Duration::from_secs(2), "{before:?}");
            assert!(before <= Duration::from_millis(2600), "{before:?}");
            sleep(Duration::from_millis(20));
        }
        assert_eq!(client.say("TAMIS.EXISTS seen often once").to_string(), "[1, 0]");
    }
}

#[test]
fn files_dumps_and_logs_hold_the_ages() {
    for kind in Kind::ALL {
        // By RDB, DUMP and COPY.
        let mut server = Server::start(kind, &["--dbfilename", "filters.rdb"]);
        let mut client = server.client();
        fill(&mut client);
        check(&mut client);
        let digest = client.say("DEBUG DIGEST-VALUE seen").to_string();
        let payload = client.say("DUMP seen");
        assert_eq!(client.say("COPY seen copied").int(), 1);
        client.send(&[b"RESTORE".as_slice(), b"restored", b"0", payload.bytes()]);
        for key in ["copied", "restored"] {
            assert_eq!(client.send(&["DEBUG", "DIGEST-VALUE", key]).to_string(), digest);
        }
        assert_eq!(client.say("SAVE").to_string(), "OK");
        server.kill_and_restart();
        let mut client = server.client();
        assert_eq!(client.say("DEBUG DIGEST-VALUE seen").to_string(), digest);
        check(&mut client);
        // Every damaged payload is refused.
        let bytes = payload.bytes();
        for at in (0..bytes.len()).step_by(97) {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 0x20;
            let reply = client.send(&[b"RESTORE".as_slice(), b"damaged", b"0", &damaged]);
            assert!(reply.to_string().contains("ERR"), "{at}: {reply}");
        }
        // By the log, as it was written and as it is rewritten.
        let mut server = Server::start(kind, &["--appendonly", "yes", "--appendfsync", "always"]);
        let mut client = server.client();
        fill(&mut client);
        for rewritten in [false, true] {
            if rewritten {
                client.say("CONFIG SET aof-use-rdb-preamble no");
                client.say("BGREWRITEAOF");
                wait_until("the log is rewritten", || {
                    let info = client.say("INFO persistence").to_string();
                    info.contains("aof_rewrite_in_progress:0")
                        && info.contains("aof_rewrite_scheduled:0")
                        && info.contains("aof_last_bgrewrite_status:ok")
                });
            }
            server.kill_and_restart();
            client = server.client();
            assert_eq!(client.say("DEBUG DIGEST-VALUE seen").to_string(), digest);
            check(&mut client);
        }
    }
}

/// A replica with another seed and another clock has the same content.
#[test]
fn replicas_agree() {
    for kind in Kind::ALL {
        let primary = Server::start(kind, &[]);
        let replica =
            Server::start(kind, &["--bf.hash-seed", "99", "--bf.max-filter-bytes", "1024"]);
        let (mut one, mut two) = (primary.client(), replica.client());
        two.send(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
        wait_until("the replica is in step", || {
            two.say("ROLE").elements()[3].bytes() == b"connected"
        });
        fill(&mut one);
        one.say("TAMIS.RESERVE now 0.01 1000 EX 1 STEPS 3");
        let end = Instant::now() + Duration::from_millis(1500);
        for number in 0.. {
            let item = (number % 50).to_string();
            match number % 3 {
                0 => one.send(&["TAMIS.ADD", "now", &item]),
                1 => one.send(&["TAMIS.TOUCH", "now", &item, "other"]),
                _ => one.send(&["TAMIS.DEL", "now", &item]),
            };
            if Instant::now() > end {
                break;
            }
        }
        assert_eq!(one.say("WAIT 1 60000").int(), 1);
        for key in ["seen", "now"] {
            let digest = ["DEBUG", "DIGEST-VALUE", key];
            assert_eq!(one.send(&digest).to_string(), two.send(&digest).to_string(), "{key}");
        }
        assert_eq!(one.say("DEBUG DIGEST"), two.say("DEBUG DIGEST"));
        assert_eq!(two.say("TAMIS.INFO seen").field("seed").to_string(), "\"0\"");
    }
}

#[test]
fn memory_follows_what_is_alive() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &["--bf.max-filter-bytes", "60000"]);
        let mut client = server.client();
        client.say("TAMIS.RESERVE seen 0.001 100000 EX 1000 STEPS 4");
        let usage = |client: &mut Client| client.say("MEMORY USAGE seen").int();
        let empty = usage(&mut client);
        assert!(empty < 400, "{empty}");
        // The limit is told, and not passed; what it refuses is not there.
        let mut added = 0;
        let refusal = loop {
            let words = ["TAMIS.AT", "seen", "1000000", "ADD"].map(str::to_owned);
            let items = (added..added + 500).map(|number| number.to_string());
            let command: Vec<String> = words.into_iter().chain(items).collect();
            let reply = client.send(&command);
            if let Some(last) = reply.elements().last()
                && last.to_string().contains("exceeding size limit")
            {
                break last.to_string();
            }
            added += 500;
            assert!(added < 100_000);
        };
        assert!(refusal.contains("bf.max-filter-bytes is 60000"), "{refusal}");
        let full = usage(&mut client);
        assert!((30_000..=61_000).contains(&full) && added > 15_000, "{full} {added}");
        assert_eq!(at(&mut client, 1_000_000, "EXISTS", 0, added), added as usize);
        at(&mut client, 9_000_000, "ADD", 0, 1);
        let swept = usage(&mut client);
        assert!(swept < 2000, "{swept}");
    }
}

/// Merging takes the younger; dumps and deltas carry ages, to the library and to replicas.
#[test]
fn filters_with_ages_are_merged_and_sent() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let replica = Server::start(kind, &[]);
        let mut client = server.client();
        replica.client().send(&["REPLICAOF", "127.0.0.1", &server.port.to_string()]);
        wait_until("the replica is in step", || {
            replica.client().say("ROLE").elements()[3].bytes() == b"connected"
        });
        for key in ["a", "b"] {
            client.send(&["TAMIS.RESERVE", key, "0.001", "10000", "EX", "1000", "STEPS", "4"]);
        }
        let mut at = |key: &str, now: &str, action: &str, items: &[&str]| {
            let words = ["TAMIS.AT", key, now, action];
            client.send(&[&words[..], items].concat()).to_string()
        };
        at("a", "1000000", "ADD", &["old", "both"]);
        at("b", "1900000", "ADD", &["young", "both"]);
        let mut client = server.client();
        let first = client.say("TAMIS.DELTA a 0");
        assert_eq!(first.elements()[0].bytes(), b"snapshot");
        let mut kept = Aging::decode(first.elements()[2].bytes(), Limits::default()).unwrap();
        assert!(kept.contains("old", 1_000_000));
        assert!(!client.say("TAMIS.MERGE a b").is_error());
        let found = |client: &mut Client, now: &str| {
            client.send(&["TAMIS.AT", "a", now, "EXISTS", "old", "both", "young"]).to_string()
        };
        assert_eq!(found(&mut client, "1900000"), "[1, 1, 1]");
        assert_eq!(found(&mut client, "2300000"), "[0, 1, 1]");
        assert_eq!(found(&mut client, "3200000"), "[0, 0, 0]");
        let id = String::from_utf8(first.elements()[1].bytes().to_vec()).unwrap();
        let second = client.say(&format!("TAMIS.DELTA a {id}"));
        assert_eq!(second.elements()[0].bytes(), b"delta");
        kept.patch(second.elements()[2].bytes(), Limits::default()).unwrap();
        assert_eq!(kept.content_id().to_string().as_bytes(), second.elements()[1].bytes());
        for form in ["TAMIS.DUMP a", "TAMIS.DUMP a PACKED"] {
            let dump = client.say(form);
            let read = Aging::decode(dump.bytes(), Limits::default()).unwrap();
            assert_eq!(read.content_id(), kept.content_id());
        }
        assert_eq!(client.say("WAIT 1 60000").int(), 1);
        let digest = ["DEBUG", "DIGEST-VALUE", "a"];
        assert_eq!(client.send(&digest), replica.client().send(&digest));
        // What differs in its plan, or is another type, is refused.
        client.say("TAMIS.RESERVE c 0.001 10000 EX 500");
        client.say("BF.ADD set x");
        for line in ["TAMIS.MERGE a c", "TAMIS.MERGE a set", "TAMIS.MERGE set a", "TAMIS.MERGE a d"]
        {
            assert!(client.say(line).is_error(), "{line}");
        }
    }
}
