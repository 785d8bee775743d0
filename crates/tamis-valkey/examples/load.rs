//! Pipelined load on real servers: filters beside the server's own sets, in one run.
//!
//!     cargo run --release -p tamis-valkey --example load -- [commands in millions] [rounds]
//!
//! Every round sends the same keys as SADD and BF.ADD, SISMEMBER and BF.EXISTS, and so on, one
//! after the other, 200 in a pipeline; the medians over the rounds are compared. The servers run
//! on this machine, and share its processors with the client.

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use harness::{Kind, Server};

const PIPELINE: usize = 200;

/// Commands for keys, encoded in pipelines; and the bytes of a reply.
struct Load {
    name: &'static str,
    pipelines: Vec<Vec<u8>>,
}

fn load(name: &'static str, filter: &str, keys: std::ops::Range<u64>) -> Load {
    let keys: Vec<u64> = keys.collect();
    let encode = |key: &u64| {
        // Spread over all numbers, as hashed names would be.
        let item = format!("{:016x}", key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (a, b) = (name.len(), filter.len());
        format!("*3\r\n${a}\r\n{name}\r\n${b}\r\n{filter}\r\n${}\r\n{item}\r\n", item.len())
            .into_bytes()
    };
    let pipelines =
        keys.chunks(PIPELINE).map(|part| part.iter().flat_map(encode).collect()).collect();
    Load { name, pipelines }
}

/// Commands a second.
fn run(port: u16, load: &Load) -> f64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    let start = Instant::now();
    let mut buffer = vec![0; PIPELINE * 4];
    for pipeline in &load.pipelines {
        stream.write_all(pipeline).unwrap();
        // Every reply is a number of one digit.
        stream.read_exact(&mut buffer).unwrap();
    }
    (load.pipelines.len() * PIPELINE) as f64 / start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<f64>().unwrap());
    let keys = (arguments.next().unwrap_or(1.0) * 1e6) as u64 / PIPELINE as u64 * PIPELINE as u64;
    let rounds = arguments.next().unwrap_or(5.0) as usize;
    let loads = [
        load("SADD", "plain", 0..keys),
        load("BF.ADD", "set", 0..keys),
        load("CF.ADD", "multiset", 0..keys),
        // Half of them are in.
        load("SISMEMBER", "plain", keys / 2..keys / 2 + keys),
        load("BF.EXISTS", "set", keys / 2..keys / 2 + keys),
        load("CF.EXISTS", "multiset", keys / 2..keys / 2 + keys),
    ];
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let mut client = server.client();
        let mut times = vec![Vec::new(); loads.len()];
        for _ in 0..rounds {
            client.say("FLUSHALL SYNC");
            client.say(&format!("BF.RESERVE set 0.01 {keys}"));
            client.say(&format!("CF.RESERVE multiset {keys}"));
            for (load, times) in loads.iter().zip(&mut times) {
                times.push(run(server.port, load));
            }
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        for (at, (load, median)) in loads.iter().zip(&medians).enumerate() {
            let ratio = median / medians[at / 3 * 3];
            println!(
                "{kind:?} {:9} {:8.0} thousand a second, {ratio:.2} of the server's own",
                load.name,
                median / 1e3
            );
        }
        let memory =
            |key: &str| server.client().say(&format!("MEMORY USAGE {key} SAMPLES 0")).int();
        let planned = |family: &str| {
            server.client().say(&format!("TAMIS.PLAN {keys} 0.005 {family}")).field("bytes").int()
        };
        println!(
            "{kind:?} bytes: set of the server {}, BF {} (planned {}), CF {} (planned {})",
            memory("plain"),
            memory("set"),
            planned("BLOOM"),
            memory("multiset"),
            planned("CUCKOO")
        );
    }
}
