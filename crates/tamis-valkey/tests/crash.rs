//! kill -9 under load: what was acknowledged is there after the restart.
#![allow(missing_docs)]

mod harness;

use std::thread;
use std::time::Duration;

use harness::{Client, Kind, Numbers, Server, rounds};

/// Writes until the server is gone; the numbers that it acknowledged.
fn write(mut client: Client, mut number: u32) -> Vec<u32> {
    let mut acknowledged = Vec::new();
    loop {
        let item = number.to_string();
        // All or nothing, also where it makes layers on the way.
        let more: Vec<String> = (0..5).map(|part| format!("{item}-{part}")).collect();
        let mut insert = vec!["CF.INSERT", "multiset", "ITEMS"];
        insert.extend(more.iter().map(String::as_str));
        for command in [vec!["BF.ADD", "set", &item], insert] {
            let Some(reply) = client.try_send(&command) else { return acknowledged };
            assert!(!reply.to_string().contains('-'), "refused: {reply}");
        }
        acknowledged.push(number);
        number += 1;
    }
}

fn check(client: &mut Client, numbers: &[u32]) {
    for part in numbers.chunks(200) {
        let mut set = vec!["BF.MEXISTS".to_string(), "set".to_string()];
        set.extend(part.iter().map(ToString::to_string));
        let mut multiset = vec!["CF.MEXISTS".to_string(), "multiset".to_string()];
        multiset.extend(
            part.iter().flat_map(|number| (0..5).map(move |part| format!("{number}-{part}"))),
        );
        for command in [set, multiset] {
            let reply = client.send(&command);
            assert!(reply.elements().iter().all(|found| found.int() == 1), "{command:?} {reply}");
        }
    }
}

#[test]
fn nothing_acknowledged_is_missing() {
    let all = rounds("TAMIS_CRASHES", 25);
    thread::scope(|scope| {
        for kind in Kind::ALL {
            scope.spawn(move || {
                let options = ["--appendonly", "yes", "--appendfsync", "always"];
                let mut server = Server::start(kind, &options);
                server.client().say("CF.RESERVE multiset 1000 EXPANSION 2");
                let mut numbers = Numbers(kind as u64);
                let mut acknowledged: Vec<u32> = Vec::new();
                for round in 0..all {
                    // Several at once, since each waits for the disk.
                    let writers: Vec<_> = (0..8)
                        .map(|writer| {
                            let client = server.client();
                            let start = (round * 8 + writer) * 100_000;
                            thread::spawn(move || write(client, start))
                        })
                        .collect();
                    thread::sleep(Duration::from_micros(3000 + numbers.below(40_000) as u64));
                    server.kill_and_restart();
                    let mut news = Vec::new();
                    for writer in writers {
                        news.extend(writer.join().unwrap());
                    }
                    let mut client = server.client();
                    check(&mut client, &news);
                    acknowledged.extend(news);
                    if round % 100 == 99 {
                        check(&mut client, &acknowledged);
                    }
                }
                check(&mut server.client(), &acknowledged);
                let items = acknowledged.len();
                println!("{kind:?}: {all} crashes, {items} writes of each family acknowledged");
                assert!(items > all as usize, "too few writes to tell");
            });
        }
    });
}
