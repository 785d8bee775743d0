//! Three nodes serve filters in all slots, and slots move with them.
#![allow(missing_docs)]

mod harness;

use harness::{Client, Kind, Server, wait_until};

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

#[test]
fn slots_move_with_their_filters() {
    let keys = keys();
    for kind in Kind::ALL {
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
