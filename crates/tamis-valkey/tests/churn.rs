//! Multisets whose keys come and go, filters that are small, and limits that hold on every way in.
#![allow(missing_docs)]

mod harness;

use harness::{Client, Kind, Numbers, Server, content, rounds, wait_until};

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// Sends all, and expects this of each.
fn expect(client: &mut Client, commands: &[Vec<Vec<u8>>], reply: i64) {
    for (said, command) in client.pipeline(commands).iter().zip(commands) {
        let command =
            || command.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>();
        assert!(!said.is_error() && said.int() == reply, "{:?}: {said}", command());
    }
}

/// Window of 1,500 over a filter that was reserved for 1,000, and over one that was not reserved:
/// the oldest key leaves, or any. No error, every key is found, the rate holds, and the memory is
/// at most one and a half times that of a fresh filter with the same keys.
#[test]
fn keys_come_and_go_for_ever() {
    let pairs = rounds("TAMIS_CHURN", 40_000) as usize;
    for (kind, reserve, in_order) in [
        (Kind::Redis, Some("CF.RESERVE w 1000"), true),
        (Kind::Valkey, Some("CF.RESERVE w 1000"), false),
        (Kind::Valkey, None, true),
    ] {
        let server = Server::start(kind, &[]);
        let mut client = server.client();
        let mut numbers = Numbers(3);
        if let Some(reserve) = reserve {
            assert_eq!(client.say(reserve).to_string(), "OK");
        }
        let mut window: Vec<usize> = (0..1_500).collect();
        let add: Vec<_> =
            window.iter().map(|n| words(&["CF.ADD", "w", &format!("i{n}")])).collect();
        expect(&mut client, &add, 1);
        for start in (1_500..1_500 + pairs).step_by(1_000) {
            let mut commands = Vec::new();
            for next in start..start + 1_000 {
                let at = if in_order { next % 1_500 } else { numbers.below(1_500) };
                let old = std::mem::replace(&mut window[at], next);
                commands.push(words(&["CF.ADD", "w", &format!("i{next}")]));
                commands.push(words(&["CF.DEL", "w", &format!("i{old}")]));
            }
            expect(&mut client, &commands, 1);
        }
        let ask: Vec<_> =
            window.iter().map(|n| words(&["CF.EXISTS", "w", &format!("i{n}")])).collect();
        expect(&mut client, &ask, 1);
        let asked = 20_000;
        let ask: Vec<_> =
            (0..asked).map(|n| words(&["CF.EXISTS", "w", &format!("absent{n}")])).collect();
        let wrong: i64 = client.pipeline(&ask).iter().map(harness::Resp::int).sum();
        // 1% of 20,000, and five deviations.
        assert!(wrong <= 270, "{wrong} of {asked}");
        if let Some(reserve) = reserve {
            client.say(&reserve.replace(" w ", " fresh "));
        }
        let add: Vec<_> =
            window.iter().map(|n| words(&["CF.ADD", "fresh", &format!("i{n}")])).collect();
        expect(&mut client, &add, 1);
        let used = |client: &mut Client, key: &str| client.send(&["MEMORY", "USAGE", key]).int();
        let (now, fresh) = (used(&mut client, "w"), used(&mut client, "fresh"));
        println!(
            "{kind:?} {reserve:?}: {pairs} pairs, {now} bytes, {fresh} when fresh, {wrong} wrong"
        );
        assert!(now * 2 <= fresh * 3, "{now} bytes, {fresh} when fresh");
        assert_eq!(client.say("TAMIS.INFO w").field("layers").elements().len(), 1);
        assert_eq!(client.say("TAMIS.INFO w").field("keys").int(), 1_500);
    }
}

/// A replica follows keys that come and go, and is equal; so is a copy that was dumped meanwhile.
#[test]
fn replicas_of_churn_are_equal() {
    for kind in Kind::ALL {
        let primary = Server::start(kind, &[]);
        let replica = Server::start(kind, &[]);
        let mut client = primary.client();
        client.say("CF.RESERVE w 20");
        replica.client().send(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
        wait_until("the replica is there", || {
            let role = replica.client().send(&["ROLE"]).to_string();
            role.contains("connected")
        });
        for start in (0..20_000).step_by(1_000) {
            let commands: Vec<_> = (start..start + 1_000)
                .flat_map(|n| {
                    let (new, old) = (format!("i{n}"), format!("i{}", n - 700));
                    let copies = format!("{}", n % 7 + 1);
                    [
                        words(&["TAMIS.INCRBY", "w", &new, &copies]),
                        words(&["TAMIS.INCRBY", "w", &old, "-9"]),
                    ]
                })
                .collect();
            assert!(client.pipeline(&commands).iter().all(|reply| !reply.is_error()));
        }
        let here = content(&mut client, "w");
        wait_until("the replica has all", || {
            replica.client().send(&["DEBUG", "DIGEST-VALUE", "w"]).to_string() == here
        });
        let dump = client.send(&["DUMP", "w"]);
        client.send(&[b"RESTORE".as_slice(), b"copy", b"0", dump.bytes()]);
        assert_eq!(content(&mut client, "copy"), here);
    }
}

fn used_memory(client: &mut Client) -> i64 {
    let info = client.send(&["INFO", "memory"]);
    let info = String::from_utf8_lossy(info.bytes()).into_owned();
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    line.trim().parse().unwrap()
}

/// Filters of a few keys take some hundred bytes, by the server's own count too.
#[test]
fn small_filters_are_small() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let mut client = server.client();
        for (make, most) in
            [("BF.ADD KEY x", 400), ("CF.RESERVE KEY 100", 400), ("CF.ADD KEY x", 1_200)]
        {
            let before = used_memory(&mut client);
            let filters = 20_000;
            let commands: Vec<_> = (0..filters)
                .map(|n| {
                    make.split(' ')
                        .map(|word| word.replace("KEY", &format!("k{n}")).into_bytes())
                        .collect()
                })
                .collect();
            for part in commands.chunks(1_000) {
                assert!(client.pipeline(part).iter().all(|reply| !reply.is_error()));
            }
            let each = (used_memory(&mut client) - before) / filters;
            let usage = client.say("MEMORY USAGE k7").int();
            println!("{kind:?} {make}: {usage} bytes, {each} by used_memory");
            assert!(usage <= most && each <= most, "{make}: {usage} and {each} bytes");
            client.say("FLUSHALL SYNC");
        }
    }
}

/// What one filter may take is not passed by on any way in.
#[test]
fn the_cap_holds_on_every_way_in() {
    for kind in Kind::ALL {
        let rich = Server::start(kind, &[]);
        let poor = Server::start(kind, &["--bf.max-filter-bytes", "200000"]);
        let (mut from, mut to) = (rich.client(), poor.client());
        let limit = "exceeding size limit";
        for reserve in ["BF.RESERVE x 0.01 1000000", "CF.RESERVE x 1000000"] {
            assert!(to.say(reserve).to_string().contains(limit));
        }
        // Growth: of a set by layers, of a multiset by leaves.
        to.say("BF.RESERVE set 0.01 1000");
        to.say("CF.RESERVE multiset 1000");
        for (key, add) in [("set", "BF.ADD"), ("multiset", "CF.ADD")] {
            let mut refused = false;
            for start in (0..400_000).step_by(1_000) {
                let commands: Vec<_> =
                    (start..start + 1_000).map(|n| words(&[add, key, &n.to_string()])).collect();
                let replies = to.pipeline(&commands);
                refused = replies.iter().any(|reply| reply.to_string().contains(limit));
                if refused {
                    break;
                }
            }
            assert!(refused, "{key} grew for ever");
            assert!(to.send(&["MEMORY", "USAGE", key]).int() <= 210_000);
        }
        // Dumps of larger filters, whole and in chunks.
        from.say("BF.RESERVE b 0.01 300000");
        from.say("CF.RESERVE c 100000");
        for start in (0..200_000).step_by(1_000) {
            let commands: Vec<_> = (start..start + 1_000)
                .flat_map(|n| {
                    [("BF.ADD", "b"), ("CF.ADD", "c")]
                        .map(|(add, key)| words(&[add, key, &n.to_string()]))
                })
                .collect();
            from.pipeline(&commands);
        }
        for (key, family) in [("b", "BF"), ("c", "CF")] {
            let dump = from.send(&["DUMP", key]);
            let said = to.send(&[b"RESTORE".as_slice(), key.as_bytes(), b"0", dump.bytes()]);
            assert!(said.is_error(), "RESTORE {key}: {said}");
            let (mut iterator, mut said) = ("0".to_string(), String::new());
            while !said.starts_with('-') {
                let reply = from.send(&[&format!("{family}.SCANDUMP"), key, &iterator]);
                iterator = reply.elements()[0].int().to_string();
                assert!(iterator != "0", "{key} came in whole");
                let load = format!("{family}.LOADCHUNK");
                let data = reply.elements()[1].bytes();
                said = to
                    .send(&[load.as_bytes(), key.as_bytes(), iterator.as_bytes(), data])
                    .to_string();
            }
            assert!(said.contains(limit), "{key}: {said}");
            let file = from.send(&["TAMIS.DUMP", key]);
            if !file.is_error() {
                let family = if family == "BF" { "BLOOM" } else { "CUCKOO" };
                let load = [b"TAMIS.LOAD".as_slice(), b"file", family.as_bytes(), file.bytes()];
                assert!(to.send(&load).is_error(), "TAMIS.LOAD {key}");
            }
        }
        // The sum counts: merging with itself would double the set.
        for at in 0..3 {
            to.say(&format!("BF.RESERVE part{at} 0.01 60000 NONSCALING"));
        }
        let said = to.say("TAMIS.MERGE part0 part1 part2").to_string();
        assert!(said.contains(limit), "{said}");
    }
}

/// Names are lower case, as those of all commands; who may use one family may not use the other;
/// sources of a merge are only read; arguments of the module are taken or refused.
#[test]
fn the_server_knows_the_commands_as_clients_expect() {
    let server = Server::start(Kind::Valkey, &[]);
    let mut client = server.client();
    let list = client.say("COMMAND LIST FILTERBY MODULE bf").to_string();
    assert!(list.contains("\"bf.add\"") && list.contains("\"cf.add\""), "{list}");
    assert!(!list.contains("BF."), "{list}");
    client.say("CF.ADD c x");
    client.say("BF.ADD b x");
    client.say("ACL SETUSER some on >p ~* +@bloom");
    client.say("ACL SETUSER merger on >p ~mine %R~b +@all");
    for (user, line, allowed) in [
        ("some", "BF.ADD b y", true),
        ("some", "CF.ADD c y", false),
        ("some", "TAMIS.INCRBY c x 1", false),
        ("some", "TAMIS.MERGE c c", false),
        ("merger", "TAMIS.MERGE mine b", true),
        ("merger", "TAMIS.MERGE b b", false),
    ] {
        let mut client = server.client();
        client.send(&["AUTH", user, "p"]);
        let said = client.say(line).to_string();
        assert_eq!(!said.starts_with("-NOPERM"), allowed, "{user}: {line}: {said}");
    }
    let version = client.say("MODULE LIST").to_string();
    assert!(version.contains("80000"), "{version}");
}
