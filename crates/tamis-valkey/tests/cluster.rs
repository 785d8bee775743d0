//! Three nodes serve filters in all slots, and slots move with them.
#![allow(missing_docs)]

mod harness;

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use harness::{Client, Directory, Kind, Server, tool, wait_until};
use tamis::{AnyFilter, Filter, Limits};

/// The slot of a key without braces: CRC-16 (XMODEM) modulo 16384.
fn slot(key: &str) -> usize {
    let mut crc = 0_u16;
    for byte in key.bytes() {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
        }
    }
    usize::from(crc) % 16384
}

/// A key for every slot.
fn keys() -> Vec<String> {
    let mut keys = vec![None; 16384];
    let mut missing = keys.len();
    for number in 0_u32.. {
        let key = format!("f{number}");
        let place = &mut keys[slot(&key)];
        if place.is_none() {
            *place = Some(key);
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    keys.into_iter().map(Option::unwrap).collect()
}

const THIRDS: [(usize, usize); 3] = [(0, 5460), (5461, 10922), (10923, 16383)];

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// A name of what a key holds.
fn content(client: &mut Client, key: &str) -> String {
    let digest = client.send(&["DEBUG", "DIGEST-VALUE", key]);
    assert!(!digest.is_error(), "{key}: {digest}");
    digest.to_string()
}

/// Three nodes, each with a third of the slots.
fn cluster(kind: Kind) -> (Vec<Server>, Vec<Client>) {
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "60000"];
    let servers: Vec<Server> = (0..3).map(|_| Server::start(kind, &options)).collect();
    let mut nodes: Vec<Client> = servers.iter().map(Server::client).collect();
    for (node, (from, to)) in nodes.iter_mut().zip(THIRDS) {
        assert_eq!(node.say(&format!("CLUSTER ADDSLOTSRANGE {from} {to}")).to_string(), "OK");
    }
    for server in &servers[1..] {
        nodes[0].say(&format!("CLUSTER MEET 127.0.0.1 {}", server.port));
    }
    for node in &mut nodes {
        wait_until("the cluster is whole", || {
            let info = node.say("CLUSTER INFO");
            let info = String::from_utf8_lossy(info.bytes()).into_owned();
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        });
    }
    (servers, nodes)
}

#[test]
fn slots_move_with_their_filters() {
    let keys = keys();
    for kind in Kind::ALL {
        let (servers, mut nodes) = cluster(kind);
        // A filter in every slot: sets in even ones, multisets in odd ones.
        for (node, (from, to)) in nodes.iter_mut().zip(THIRDS) {
            let commands: Vec<_> = (from..=to)
                .map(|slot| {
                    let add = if slot % 2 == 0 { "BF.ADD" } else { "CF.ADD" };
                    words(&format!("{add} {} item{slot}", keys[slot]))
                })
                .collect();
            assert!(node.pipeline(&commands).iter().all(|reply| reply.int() == 1));
        }
        // A few with several layers, in slots that will move.
        for (slot, key) in keys[..20].iter().enumerate() {
            let (add, word) = if slot % 2 == 0 { ("BF.MADD", "") } else { ("CF.INSERT", "ITEMS ") };
            let items: Vec<String> = (0..3000).map(|item| item.to_string()).collect();
            let command = format!("{add} {key} {word}{}", items.join(" "));
            assert!(!nodes[0].send(&words(&command)).is_error());
        }
        let before: Vec<String> =
            (0..200).map(|slot| content(&mut nodes[0], &keys[slot])).collect();
        let ids: Vec<String> = nodes
            .iter_mut()
            .map(|node| String::from_utf8_lossy(node.say("CLUSTER MYID").bytes()).into_owned())
            .collect();
        for (slot, key) in keys[..100].iter().enumerate() {
            nodes[1].say(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[0]));
            nodes[0].say(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[1]));
            let port = servers[1].port;
            let moved = nodes[0].say(&format!("MIGRATE 127.0.0.1 {port} {key} 0 60000"));
            assert_eq!(moved.to_string(), "OK");
            for node in [1, 0, 2] {
                nodes[node].say(&format!("CLUSTER SETSLOT {slot} NODE {}", ids[1]));
            }
        }
        let mut moved = 100;
        if kind == Kind::Valkey {
            // All at once, as Valkey 9 does it: by the commands that rewrite the log.
            let said =
                nodes[0].say(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE 100 199 NODE {}", ids[1]));
            assert_eq!(said.to_string(), "OK");
            wait_until("the slots have moved", || {
                let said = nodes[0].say(&format!("EXISTS {}", keys[150])).to_string();
                said.starts_with("-MOVED")
            });
            moved = 200;
        }
        for slot in 0..200 {
            let node = usize::from(slot < moved);
            assert_eq!(content(&mut nodes[node], &keys[slot]), before[slot], "slot {slot}");
            if slot < moved {
                assert!(
                    nodes[0]
                        .say(&format!("TAMIS.INFO {}", keys[slot]))
                        .to_string()
                        .starts_with("-MOVED")
                );
            }
        }
        // All slots still answer, wherever they are, and take more.
        for slot in (0..16384).step_by(7) {
            let owner = if slot < moved {
                1
            } else {
                THIRDS.iter().position(|&(_, to)| slot <= to).unwrap()
            };
            let (exists, add) =
                if slot % 2 == 0 { ("BF.EXISTS", "BF.ADD") } else { ("CF.EXISTS", "CF.ADD") };
            assert_eq!(nodes[owner].say(&format!("{exists} {} item{slot}", keys[slot])).int(), 1);
            assert!(!nodes[owner].say(&format!("{add} {} more", keys[slot])).is_error());
        }
    }
}

/// Runs `tamis server` with some lines as input: the exit code and what it printed.
fn tamis(words: &str, port: u16, lines: &str) -> (Option<i32>, String) {
    let mut process = Command::new(tool())
        .arg("server")
        .args(words.split(' '))
        .args(["--cluster", &format!("127.0.0.1:{port}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    let lines = lines.to_owned();
    // A verb that reads no lines closes its end.
    let writer = thread::spawn(move || drop(input.write_all(lines.as_bytes())));
    let output = process.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

fn numbers(from: u32, to: u32) -> String {
    let numbers: Vec<String> = (from..to).map(|number| number.to_string()).collect();
    numbers.join("\n")
}

/// One filter on three nodes: lines are added, asked for and merged whichever node is named, also
/// while a slot moves, and the dump is one filter that answers alike.
#[test]
fn one_filter_lives_on_many_nodes() {
    for kind in Kind::ALL {
        let (servers, mut nodes) = cluster(kind);
        let port = |node: usize| servers[node].port;
        for family in ["cuckoo", "bloom"] {
            let make = format!("--shards 12 --keys 20000 --rate 0.1% --family {family}");
            let (one, two) = (format!("{family}1"), format!("{family}2"));
            let done = tamis(&format!("add {one} {make}"), port(0), &numbers(0, 10_000));
            assert_eq!(done, (Some(0), String::new()));
            let done = tamis(&format!("add {two} {make}"), port(1), &numbers(10_000, 15_000));
            assert_eq!(done, (Some(0), String::new()));
            // Every node has some of the shards.
            for node in &mut nodes {
                let keys = node.say(&format!("KEYS {one}:{{*}}"));
                assert!((1..12).contains(&keys.elements().len()), "{keys}");
            }
            assert_eq!(tamis(&format!("merge {one} {two}"), port(2), ""), (Some(0), String::new()));
            let (code, found) = tamis(&format!("check {one}"), port(1), &numbers(0, 30_000));
            let found: Vec<u32> = found.lines().map(|line| line.parse().unwrap()).collect();
            assert_eq!(code, Some(0));
            assert!((0..15_000).all(|number| found.binary_search(&number).is_ok()));
            // At most 0.1% of 15,000, and five deviations.
            assert!(found.len() <= 15_000 + 35, "{}", found.len() - 15_000);
            let (code, new) = tamis(&format!("check -v {one}"), port(0), &numbers(0, 30_000));
            assert_eq!((code, new.lines().count()), (Some(0), 30_000 - found.len()));
            let directory = Directory::new();
            let file = directory.0.join("dump.tamis");
            let dump = format!("dump {one} -o {}", file.display());
            let done = tamis(&dump, port(0), "");
            if family == "bloom" {
                assert!(done.1.contains("cannot become one"), "{done:?}");
                continue;
            }
            assert_eq!(done, (Some(0), String::new()));
            let bytes = std::fs::read(file).unwrap();
            let filter = AnyFilter::decode(&bytes, Limits::default()).unwrap();
            assert_eq!(filter.keys(), 15_000);
            assert!((0..15_000).all(|number| filter.contains(&*number.to_string())));
            let wrong =
                (100_000..400_000).filter(|number: &u32| filter.contains(&*number.to_string()));
            // 0.1% of 300,000, and five deviations.
            assert!(wrong.count() <= 300 + 87);
        }
        // A slot on its way: the node that has it says where to ask.
        let slot = slot("3");
        let owner = THIRDS.iter().position(|&(_, to)| slot <= to).unwrap();
        let other = (owner + 1) % 3;
        let id = |client: &mut Client| {
            String::from_utf8_lossy(client.say("CLUSTER MYID").bytes()).into_owned()
        };
        let ids: Vec<String> = nodes.iter_mut().map(id).collect();
        nodes[other].say(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[owner]));
        nodes[owner].say(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[other]));
        for key in ["cuckoo1:{3}", "bloom1:{3}"] {
            let moved = nodes[owner]
                .say(&format!("MIGRATE 127.0.0.1 {} {key} 0 60000", servers[other].port));
            assert_eq!(moved.to_string(), "OK");
        }
        for name in ["cuckoo1", "bloom1"] {
            let (code, found) = tamis(&format!("check {name}"), port(0), &numbers(0, 15_000));
            assert_eq!((code, found.lines().count()), (Some(0), 15_000));
        }
        // What is wrong is said.
        for (words, reason) in [
            ("check none", "there is no filter none"),
            ("merge cuckoo1 none", "none has 0 shards"),
            ("add cuckoo1 --shards 5 --keys 10", "has 12 shards"),
            ("add cuckoo1 --integers", "as they are written"),
        ] {
            let (code, said) = tamis(words, port(0), "1\n");
            assert!(code == Some(2) && said.contains(reason), "{words}: {said}");
        }
    }
}
