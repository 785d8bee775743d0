//! Replicas hold the same content, whatever their own settings.
#![allow(missing_docs)]

mod harness;

use harness::{Client, Kind, Server, describe, fill, wait_until};

/// A replica whose settings would give other results if it planned by itself.
const STUBBORN: [&str; 12] = [
    "--bf.bf-error-rate",
    "0.2",
    "--bf.bf-initial-size",
    "7",
    "--bf.bf-expansion-factor",
    "0",
    "--bf.cf-max-expansions",
    "1",
    "--bf.max-filter-bytes",
    "1024",
    "--bf.hash-seed",
    "99",
];

fn follow(replica: &mut Client, primary: &Server) {
    replica.send(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
    wait_until("the replica is in step", || {
        let role = replica.send(&["ROLE"]);
        role.elements()[3].bytes() == b"connected"
    });
}

fn in_step(primary: &mut Client) {
    assert_eq!(primary.send(&["WAIT", "1", "60000"]).int(), 1);
}

#[test]
fn replicas_are_identical() {
    for kind in Kind::ALL {
        let primary = Server::start(kind, &[]);
        let replica = Server::start(kind, &STUBBORN);
        let (mut one, mut two) = (primary.client(), replica.client());
        one.say("BF.ADD early x");
        follow(&mut two, &primary);
        fill(&mut one);
        // Auto-created, refused in the middle, merged, copied, loaded, counted, compacted.
        one.say("BF.ADD fresh x");
        one.say("CF.ADD fresh2 x");
        one.say("BF.RESERVE few 0.01 3 NONSCALING");
        assert!(one.say("BF.MADD few 1 2 3 4 5").to_string().contains("full"));
        one.say("CF.RESERVE little 4 EXPANSION 0");
        assert_eq!(
            one.say("CF.INSERT little ITEMS 1 2 3 4 5 1 6 7 2").to_string(),
            "[1, 1, 1, 1, -1, 1, -1, -1, 1]"
        );
        one.say("CONFIG SET bf.cf-max-expansions 2");
        one.say("CF.RESERVE three 4 EXPANSION 1");
        one.say("CF.INSERT three ITEMS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 1 9");
        one.say("CONFIG SET bf.cf-max-expansions 32");
        one.say("CF.DEL three 12");
        one.say("CF.COMPACT three");
        one.say("TAMIS.INCRBY three 1 50");
        one.say("BF.INSERT inserted CAPACITY 5 ERROR 0.001 EXPANSION 1 ITEMS 1 2 3 4 5 6 7 8 9 10 11 12 13");
        one.say("TAMIS.MERGE merged set inserted");
        one.say("COPY set copied");
        let dump = one.say("TAMIS.DUMP set LAYER 2 PACKED");
        one.send(&[b"TAMIS.LOAD".as_slice(), b"loaded", b"BLOOM", dump.bytes()]);
        for iterator in ["0", "1"] {
            let reply = one.send(&["CF.SCANDUMP", "multiset", iterator]);
            let next = reply.elements()[0].int().to_string();
            let data = reply.elements()[1].bytes();
            let sent = one.send(&[b"CF.LOADCHUNK".as_slice(), b"chunks", next.as_bytes(), data]);
            assert_eq!(sent.to_string(), "OK");
        }
        in_step(&mut one);
        assert_eq!(describe(&mut one), describe(&mut two));
        let keys = one.send(&["KEYS", "*"]);
        assert!(keys.elements().len() >= 13);
        for key in keys.elements() {
            let info = |client: &mut Client| {
                client.send(&[b"TAMIS.INFO".as_slice(), key.bytes()]).to_string()
            };
            assert_eq!(info(&mut one), info(&mut two), "{key}");
        }
        assert_eq!(one.say("DEBUG DIGEST"), two.say("DEBUG DIGEST"));
        assert_eq!(one.say("TAMIS.INFO multiset").field("removed").int(), 100);
    }
}

/// Writes go on until the primary dies; the replica that takes over has all that it had
/// acknowledged.
#[test]
fn a_promoted_replica_has_what_was_replicated() {
    for kind in Kind::ALL {
        let mut primary = Server::start(kind, &[]);
        let replica = Server::start(kind, &[]);
        let (mut one, mut two) = (primary.client(), replica.client());
        follow(&mut two, &primary);
        let mut replicated = 0;
        let mut number = 0;
        for round in 0..30 {
            for _ in 0..100 {
                let item = number.to_string();
                assert_eq!(one.send(&["CF.ADD", "multiset", &item]).int(), 1);
                one.send(&["BF.ADD", "set", &item]);
                number += 1;
            }
            if round % 3 == 0 {
                in_step(&mut one);
                replicated = number;
                assert_eq!(describe(&mut one), describe(&mut two));
            }
        }
        primary.kill();
        two.say("REPLICAOF NO ONE");
        for number in 0..replicated {
            let item = number.to_string();
            assert_eq!(two.send(&["BF.EXISTS", "set", &item]).int(), 1, "{number}");
            assert_eq!(two.send(&["CF.EXISTS", "multiset", &item]).int(), 1, "{number}");
        }
        assert_eq!(two.send(&["BF.ADD", "set", "new"]).int(), 1);
    }
}
