//! What commands cost on real servers: filters beside the server's own sets, in one run, and what
//! it costs to make a filter.
//!
//!     cargo run --release -p tamis-valkey --example load -- [commands in millions] [rounds]
//!
//! Every round sends the same keys as SADD and BF.ADD, SISMEMBER and BF.EXISTS, SREM and CF.DEL,
//! one kind of command after the other, 200 in a pipeline; the medians over the rounds are
//! compared. Each RESERVE is sent a hundred times, alone, and the median above that of PING is
//! printed. Times are processor time of the server's main thread.

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::io::{Read, Write};
use std::net::TcpStream;

use harness::{Client, Kind, Server};

const PIPELINE: usize = 200;
/// How often a filter is made for a median.
const TIMES: usize = 100;

/// Filters of every size that is laid out in another way.
const RESERVED: [&str; 14] = [
    "BF.RESERVE f 0.01 100",
    "BF.RESERVE f 0.01 513",
    "BF.RESERVE f 0.01 50000",
    "BF.RESERVE f 0.01 300000",
    "BF.RESERVE f 0.01 700000",
    "BF.RESERVE f 0.01 1000000",
    "BF.RESERVE f 0.01 3000000",
    "BF.RESERVE f 0.000000001 5000000",
    "BF.RESERVE f 0.01 100000000",
    "BF.RESERVE f 0.0009 200000000",
    "BF.RESERVE f 0.25 1073741824",
    "CF.RESERVE f 100",
    "CF.RESERVE f 1000000000",
    "TAMIS.RESERVE f 0.001 1000000 EX 3600",
];

/// Commands for keys, encoded in pipelines.
struct Load {
    name: &'static str,
    /// The server's own command that it is compared with.
    own: &'static str,
    pipelines: Vec<Vec<u8>>,
}

fn load([name, own]: [&'static str; 2], filter: &str, keys: std::ops::Range<u64>) -> Load {
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
    Load { name, own, pipelines }
}

/// Nanoseconds a command.
fn run(server: &Server, load: &Load) -> f64 {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_nodelay(true).unwrap();
    let start = server.processor_time();
    let mut buffer = vec![0; PIPELINE * 4];
    for pipeline in &load.pipelines {
        stream.write_all(pipeline).unwrap();
        // Every reply is a number of one digit.
        stream.read_exact(&mut buffer).unwrap();
    }
    let took = server.processor_time().saturating_sub(start);
    took.as_nanos() as f64 / (load.pipelines.len() * PIPELINE) as f64
}

/// The median of what a command takes, in microseconds; the key `f` is deleted before.
fn once(server: &Server, client: &mut Client, command: &str) -> f64 {
    let mut took = || {
        client.say("DEL f");
        let start = server.processor_time();
        assert!(!client.say(command).is_error(), "{command}");
        server.processor_time().saturating_sub(start).as_secs_f64() * 1e6
    };
    median((0..TIMES).map(|_| took()).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<f64>().unwrap());
    let keys = (arguments.next().unwrap_or(1.0) * 1e6) as u64 / PIPELINE as u64 * PIPELINE as u64;
    let rounds = arguments.next().unwrap_or(5.0) as usize;
    // Of those that are asked for, half are in.
    let asked = keys / 2..keys / 2 + keys;
    let loads = [
        load(["SADD", "SADD"], "plain", 0..keys),
        load(["BF.ADD", "SADD"], "set", 0..keys),
        load(["CF.ADD", "SADD"], "multiset", 0..keys),
        load(["SISMEMBER", "SISMEMBER"], "plain", asked.clone()),
        load(["BF.EXISTS", "SISMEMBER"], "set", asked.clone()),
        load(["CF.EXISTS", "SISMEMBER"], "multiset", asked),
        load(["SREM", "SREM"], "plain", 0..keys),
        load(["CF.DEL", "SREM"], "multiset", 0..keys),
    ];
    for kind in Kind::ALL {
        let limit = ["--bf.max-filter-bytes", "9000000000000000000"];
        let server = Server::start(kind, &limit);
        let mut client = server.client();
        let mut times = vec![Vec::new(); loads.len()];
        for _ in 0..rounds {
            client.say("FLUSHALL SYNC");
            client.say(&format!("BF.RESERVE set 0.01 {keys}"));
            client.say(&format!("CF.RESERVE multiset {keys}"));
            for (load, times) in loads.iter().zip(&mut times) {
                times.push(run(&server, load));
            }
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        let own = |load: &Load| loads.iter().position(|other| other.name == load.own).unwrap();
        for (load, median) in loads.iter().zip(&medians) {
            let ratio = median / medians[own(load)];
            println!("{kind:?} {:9} {median:5.0} ns, {ratio:.2} of {}", load.name, load.own);
        }
        for load in [&loads[0], &loads[2]] {
            run(&server, load); // What was removed comes back.
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
        let ping = once(&server, &mut client, "PING");
        for command in RESERVED {
            let above = once(&server, &mut client, command) - ping;
            println!("{kind:?} {command}: {above:.0} us above a PING");
        }
    }
}
