//! Short of memory, a command is an error or is done all the same; it never ends the server.
#![allow(missing_docs)]

mod harness;

use harness::{Client, Kind, Resp, Server, rounds, wait_until};

/// Says something to a server that must not end.
fn say(client: &mut Client, server: &Server, line: &str) -> Resp {
    let words: Vec<&str> = line.split(' ').collect();
    client
        .try_send(&words)
        .unwrap_or_else(|| panic!("{}: {}", &line[..line.len().min(80)], server.log()))
}

/// Makes a set of 22 megabytes and a small multiset, or as many as there is room for.
fn prepare(server: &Server, limit: u64) -> Vec<&'static str> {
    let mut client = server.client();
    let mut say = |line: &str| say(&mut client, server, line);
    let mut keys = Vec::new();
    for (key, reserve, add) in [
        ("set", "BF.RESERVE set 0.01 15000000", "BF.MADD set"),
        ("multiset", "CF.RESERVE multiset 10000000", "CF.INSERT multiset ITEMS"),
    ] {
        let made = say(reserve).to_string();
        if made != "OK" {
            assert_eq!(made, "-ERR Insufficient memory to create filter");
            continue;
        }
        keys.push(key);
        let items: Vec<String> = (0..2000).map(|number| number.to_string()).collect();
        assert!(!say(&format!("{add} {}", items.join(" "))).is_error());
        if key == "set" {
            // An array is written in place, with almost no memory.
            let left = limit - server.address_space();
            let saved = say("SAVE").to_string();
            assert!(saved == "OK" || left < 4 << 20, "{saved} with {left} bytes left");
        }
    }
    keys
}

/// Everything that copies, collects or writes a filter. What is refused is refused in these words.
fn work(server: &mut Server, key: &str) -> (u32, u32) {
    let mut client = server.client();
    let family = if key == "set" { "BF" } else { "CF" };
    let (mut done, mut refused) = (0, 0);
    let mut dumped = Resp::Nil;
    for (line, reason) in [
        (format!("TAMIS.INFO {key}"), "-ERR Insufficient memory"),
        ("SAVE".to_string(), "-ERR"),
        (format!("DUMP {key}"), ""),
        (format!("{family}.SCANDUMP {key} 0"), "-ERR Insufficient memory"),
        (format!("{family}.SCANDUMP {key} 1"), "-ERR Insufficient memory"),
        (format!("TAMIS.DUMP {key}"), "-ERR Insufficient memory"),
        (format!("TAMIS.DUMP {key} PACKED"), "-ERR Insufficient memory"),
        (format!("TAMIS.DELTA {key} 0"), "-ERR Insufficient memory"),
        (format!("COPY {key} copy"), "-ERR"),
        ("DEL copy".to_string(), ""),
        (format!("TAMIS.MERGE merged {key}"), "-ERR Insufficient memory"),
        (format!("TAMIS.MERGE merged {key}"), "-ERR Insufficient memory"),
        ("DEL merged".to_string(), ""),
        ("BF.RESERVE more 0.01 15000000".to_string(), "-ERR Insufficient memory to create filter"),
        ("DEL more".to_string(), ""),
        ("CF.RESERVE more 10000000".to_string(), "-ERR Insufficient memory to create filter"),
        ("DEL more".to_string(), ""),
    ] {
        let reply = say(&mut client, server, &line);
        if reply.is_error() {
            let text = reply.to_string();
            assert!(!reason.is_empty() && text.starts_with(reason), "{line}: {text}");
            assert!(line != "SAVE" || server.log().contains("no memory to save a filter"));
            refused += 1;
        } else {
            done += 1;
        }
        if line.starts_with("DUMP") {
            dumped = reply;
        }
    }
    // What is long needs memory of the server's own to be sent, and that may end it.
    if dumped.bytes().len() < 1 << 20 {
        let restore = [b"RESTORE".as_slice(), b"restored", b"0", dumped.bytes()];
        let Some(reply) = client.try_send(&restore) else { panic!("RESTORE: {}", server.log()) };
        match reply.to_string().as_str() {
            "OK" => done += 1,
            "-ERR Bad data format" => refused += 1,
            other => panic!("RESTORE: {other}"),
        }
        client.say("DEL restored");
    }
    assert!(server.is_running(), "{}", server.log());
    (done, refused)
}

/// From too little for anything to enough for all.
#[test]
fn with_little_memory_the_server_goes_on() {
    let steps = rounds("TAMIS_LIMITS", 5);
    for kind in Kind::ALL {
        let base = Server::start(kind, &[]).address_space();
        let (mut done, mut refused) = (0, 0);
        for step in 0..steps {
            let limit = base + (20 << 20) + u64::from(step) * (300 << 20) / u64::from(steps);
            let compress = if step % 2 == 0 { "yes" } else { "no" };
            let kilobytes = (limit / 1024).to_string();
            let options = ["ulimit", &kilobytes, "--rdbcompression", compress];
            let mut server = Server::start(kind, &options);
            for key in prepare(&server, limit) {
                let (here, not) = work(&mut server, key);
                println!("{kind:?}, {limit} bytes: {key}: {here} done, {not} refused");
                done += here;
                refused += not;
            }
        }
        assert!(done > 0 && refused > 0, "the limits are wrong: {done} done, {refused} refused");
    }
}

/// Sends the dump of a filter to another server; the last reply.
fn transfer(from: &mut Client, to: &mut Client, family: &str, key: &str) -> String {
    let (mut iterator, mut said) = ("0".to_string(), String::new());
    loop {
        let reply = from.send(&[&format!("{family}.SCANDUMP"), key, &iterator]);
        iterator = reply.elements()[0].int().to_string();
        if iterator == "0" || said.starts_with('-') {
            return said;
        }
        let load = format!("{family}.LOADCHUNK");
        let data = reply.elements()[1].bytes();
        said = to.send(&[load.as_bytes(), key.as_bytes(), iterator.as_bytes(), data]).to_string();
    }
}

/// Chunks that find no memory: in the words that clients know.
#[test]
fn refusals_are_those_that_clients_know() {
    for kind in Kind::ALL {
        let rich = Server::start(kind, &[]);
        let limit = (rich.address_space() / 1024 + 120_000).to_string();
        let poor = Server::start(kind, &["ulimit", &limit]);
        let (mut rich, mut poor) = (rich.client(), poor.client());
        // 140 megabytes, which do not fit.
        assert_eq!(rich.say("BF.RESERVE wide 0.01 100000000").to_string(), "OK");
        let said = transfer(&mut rich, &mut poor, "BF", "wide");
        assert_eq!(said, "-ERR Insufficient memory to create filter");
    }
}

/// With two gigabytes of address space, what does not fit is an error, and not the end.
#[test]
fn memory_that_is_not_there_is_an_error() {
    for kind in Kind::ALL {
        let mut server = Server::start(kind, &["ulimit", "2000000"]);
        let mut client = server.client();
        client.say("CONFIG SET bf.max-filter-bytes 9000000000000000000");
        for reserve in [
            "BF.RESERVE f 0.000000001 1073741824 NONSCALING",
            "CF.RESERVE f 1073741824 ERROR 0.0001",
        ] {
            assert_eq!(
                client.say(reserve).to_string(),
                "-ERR Insufficient memory to create filter"
            );
        }
        client.say("BF.RESERVE f 0.01 10 EXPANSION 32768");
        let items: Vec<String> = (0..400_000).map(|number| number.to_string()).collect();
        let mut refused = Resp::Nil;
        for part in items.chunks(1000) {
            let mut command = vec!["BF.MADD", "f"];
            command.extend(part.iter().map(String::as_str));
            refused = client.send(&command).elements().last().unwrap().clone();
            if refused.is_error() {
                break;
            }
        }
        assert_eq!(refused.to_string(), "-ERR problem inserting into filter");
        // One of 1.3 GB can be made, but neither copied nor worked on.
        assert_eq!(client.say("BF.RESERVE g 0.01 900000000").to_string(), "OK");
        assert!(
            client.say("COPY g h").to_string().starts_with('-')
                || client.say("EXISTS h").int() == 0
        );
        assert_eq!(client.say("TAMIS.DUMP g").to_string(), "-ERR Insufficient memory");
        assert!(server.is_running());
    }
}

fn used_memory(client: &mut Client) -> u64 {
    let info = client.say("INFO memory");
    let info = String::from_utf8_lossy(info.bytes()).into_owned();
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    line.trim().parse().unwrap()
}

/// Under `maxmemory` no way in takes more than the server's own rules allow: it looks before each
/// command, so that one command of bounded work may pass the limit, by less than a megabyte here.
#[test]
fn maxmemory_holds_on_every_way_in() {
    for kind in Kind::ALL {
        let rich = Server::start(kind, &["--rdbcompression", "no"]);
        let mut from = rich.client();
        // Ten megabytes, five, and three.
        assert_eq!(from.say("BF.RESERVE set 0.01 7000000").to_string(), "OK");
        assert_eq!(from.say("CF.RESERVE multiset 3000000").to_string(), "OK");
        assert_eq!(from.say("TAMIS.RESERVE aging 0.001 8000000 EX 1000").to_string(), "OK");
        let items = |from: usize| (from..from + 5_000).map(|number| number.to_string());
        for start in (0..3_000_000).step_by(5_000) {
            let command = ["CF.INSERT", "multiset", "ITEMS"].map(str::to_owned);
            from.send(&command.into_iter().chain(items(start)).collect::<Vec<_>>());
        }
        for start in (0..1_500_000).step_by(5_000) {
            let command = ["TAMIS.ADD", "aging"].map(str::to_owned);
            from.send(&command.into_iter().chain(items(start)).collect::<Vec<_>>());
        }
        let poor = Server::start(kind, &["--maxmemory-policy", "noeviction"]);
        let mut to = poor.client();
        let limit = used_memory(&mut to) + (2 << 20);
        to.send(&["CONFIG", "SET", "maxmemory", &limit.to_string()]);
        let way = |what: &str, refused: bool| {
            assert!(refused, "{what} was not refused");
            // What came with the command is given back a little later.
            wait_until(what, || used_memory(&mut poor.client()) <= limit + (1 << 20));
        };
        let mut client = poor.client();
        let mut refuses = |words: &[&[u8]]| client.send(words).is_error();
        way("BF.RESERVE", refuses(&[b"BF.RESERVE", b"f", b"0.01", b"7000000"]));
        for (key, load) in [("set", "BLOOM"), ("multiset", "CUCKOO"), ("aging", "")] {
            let dump = from.send(&["DUMP", key]);
            let restore = [b"RESTORE".as_slice(), b"restored", b"0", dump.bytes()];
            way(&format!("RESTORE {key}"), refuses(&restore));
            let file = from.send(&["TAMIS.DUMP", key]);
            let load = match load {
                "" => vec![b"TAMIS.AGES".as_slice(), b"loaded", file.bytes()],
                load => vec![b"TAMIS.LOAD".as_slice(), b"loaded", load.as_bytes(), file.bytes()],
            };
            way(&format!("a file of {key}"), refuses(&load));
        }
        for (family, key) in [("BF", "set"), ("CF", "multiset")] {
            let said = transfer(&mut from, &mut to, family, key);
            way(&format!("{family}.LOADCHUNK: {said}"), said.starts_with('-'));
            to.say(&format!("DEL {key}"));
        }
        // Growth, until the server itself refuses.
        for (reserve, add) in [
            ("BF.RESERVE f 0.01 1000 EXPANSION 8", "BF.MADD f"),
            ("CF.RESERVE f 1000", "CF.INSERT f ITEMS"),
            ("TAMIS.RESERVE f 0.001 1000000 EX 1000", "TAMIS.ADD f"),
        ] {
            let mut watch = poor.client();
            wait_until("what came before is gone", || used_memory(&mut watch) + (1 << 20) < limit);
            assert_eq!(to.say(reserve).to_string(), "OK");
            let refused = (0..6_000_000).step_by(5_000).any(|start| {
                let command = add.split(' ').map(str::to_owned).chain(items(start));
                let reply = to.send(&command.collect::<Vec<_>>());
                let last = |elements: &[Resp]| elements.last().is_some_and(Resp::is_error);
                reply.is_error() || last(reply.elements())
            });
            way(add, refused);
            // What is in can be asked for and merged no more than that.
            to.say("TAMIS.DELTA f 0");
            let merged = to.say("TAMIS.MERGE other f f");
            way(&format!("TAMIS.MERGE: {merged}"), merged.is_error());
            to.say("DEL f");
        }
    }
}
