//! How long commands that read all of a filter hold the server.
//!
//!     cargo run --release -p tamis-valkey --example pauses -- [items in millions]
//!
//! A full set and a full multiset; every command is sent five times, the fastest counts, and the
//! time of the reply is part of it.

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::time::Instant;

use harness::{Client, Kind, Server};

const BATCH: u64 = 1000;

fn fill(client: &mut Client, command: &str, from: u64, items: u64) {
    for start in (from..from + items).step_by(BATCH as usize) {
        let items: Vec<String> = (start..start + BATCH).map(|item| item.to_string()).collect();
        assert!(!client.say(&format!("{command} {}", items.join(" "))).is_error());
    }
}

/// The fastest of five, in milliseconds, and the bytes of the reply.
fn time(client: &mut Client, line: &str) -> f64 {
    let once = |_| {
        let start = Instant::now();
        let reply = client.say(line);
        let time = start.elapsed().as_secs_f64() * 1e3;
        assert!(!reply.is_error(), "{line}: {reply}");
        time
    };
    (0..5).map(once).fold(f64::INFINITY, f64::min)
}

fn main() {
    let items = std::env::args().nth(1).map_or(5.0, |text| text.parse::<f64>().unwrap());
    let items = (items * 1e6) as u64 / BATCH * BATCH;
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let mut client = server.client();
        for (key, family, reserve, add) in [
            ("set", "BF", format!("BF.RESERVE set 0.01 {items}"), "BF.MADD set"),
            ("multiset", "CF", format!("CF.RESERVE multiset {items}"), "CF.INSERT multiset ITEMS"),
        ] {
            client.say(&reserve);
            fill(&mut client, add, 0, items - items / 100);
            let bytes = client.say(&format!("TAMIS.INFO {key}")).field("bytes").int();
            let megabytes = bytes as f64 / 1e6;
            let first = client.say(&format!("TAMIS.DELTA {key} 0"));
            let id = String::from_utf8(first.elements()[1].bytes().to_vec()).unwrap();
            // One in a thousand is new.
            fill(&mut client, add, items, items / 1000);
            for (name, line) in [
                ("TAMIS.INFO", format!("TAMIS.INFO {key}")),
                ("TAMIS.DUMP", format!("TAMIS.DUMP {key}")),
                ("TAMIS.DUMP PACKED", format!("TAMIS.DUMP {key} PACKED")),
                ("TAMIS.DELTA, a snapshot", format!("TAMIS.DELTA {key} 0")),
                ("TAMIS.DELTA, a thousandth", format!("TAMIS.DELTA {key} {id}")),
                ("TAMIS.MERGE with itself", format!("TAMIS.MERGE merged {key} {key}")),
                ("SCANDUMP, the header", format!("{family}.SCANDUMP {key} 0")),
                ("SCANDUMP, a chunk", format!("{family}.SCANDUMP {key} 1")),
                ("COPY", format!("COPY {key} copied REPLACE")),
                ("DUMP", format!("DUMP {key}")),
            ] {
                client.say("DEL merged");
                let time = time(&mut client, &line);
                println!(
                    "{kind:?} {key} of {megabytes:.1} MB: {name}: {time:.1} ms, {:.2} a megabyte",
                    time / megabytes
                );
            }
        }
    }
}
