//! What leaves the server can be used without it: dumps, deltas, and the command line tool on
//! both.
#![allow(missing_docs)]

mod harness;

use std::fs;
use std::process::Command;

use harness::{Client, Directory, Kind, Server, fill, tool};
use tamis::{AnyFilter, Delta, Filter, Hasher, Limits};

fn decode(bytes: &[u8]) -> AnyFilter {
    AnyFilter::decode(bytes, Limits::default()).unwrap()
}

fn content_id(client: &mut Client, key: &str, layer: usize) -> String {
    let dump = client.send(&["TAMIS.DUMP", key, "LAYER", &layer.to_string()]);
    decode(dump.bytes()).content_id().to_string()
}

#[test]
fn dumps_answer_like_the_server() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let mut client = server.client();
        fill(&mut client);
        for (key, command) in [("set", "BF.EXISTS"), ("multiset", "CF.EXISTS")] {
            let layers = client.send(&["TAMIS.INFO", key]).field("layers").elements().len();
            let files: Vec<AnyFilter> = (0..layers)
                .map(|layer| {
                    let number = layer.to_string();
                    let plain = client.send(&["TAMIS.DUMP", key, "LAYER", &number]);
                    let packed = client.send(&["TAMIS.DUMP", key, "LAYER", &number, "PACKED"]);
                    let filter = decode(plain.bytes());
                    assert_eq!(filter.content_id(), decode(packed.bytes()).content_id());
                    assert_eq!(
                        filter.content_id().to_string(),
                        content_id(&mut client, key, layer)
                    );
                    filter
                })
                .collect();
            for number in 0..5000 {
                let item = number.to_string();
                let digest = Hasher::default().digest(item.as_str());
                let here = files.iter().any(|file| file.contains_digest(digest));
                assert_eq!(client.send(&[command, key, &item]).int() == 1, here, "{item}");
            }
        }
    }
}

#[test]
fn deltas_start_from_what_is_remembered() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let mut client = server.client();
        client.say("CF.RESERVE c 10000");
        client.say("BF.RESERVE b 0.01 10000");
        for (key, add) in [("c", "CF.ADD"), ("b", "BF.ADD")] {
            for number in 0..2000 {
                client.send(&[add, key, &number.to_string()]);
            }
            let reply = client.send(&["TAMIS.DELTA", key, "0"]);
            let [word, id, bytes] = reply.elements() else { panic!("{reply}") };
            assert_eq!(word.bytes(), b"snapshot");
            let mut held = decode(bytes.bytes());
            assert_eq!(held.content_id().to_string().as_bytes(), id.bytes());
            let snapshot = bytes.bytes().len();
            for round in 0..5 {
                for number in 0..20 {
                    client.send(&[add, key, &format!("{round} {number}")]);
                }
                if key == "c" {
                    client.send(&["CF.DEL", key, &round.to_string()]);
                }
                let since = held.content_id().to_string();
                let reply = client.send(&["TAMIS.DELTA", key, &since]);
                let [word, id, bytes] = reply.elements() else { panic!("{reply}") };
                assert_eq!(word.bytes(), b"delta");
                assert!(
                    bytes.bytes().len() * 5 < snapshot,
                    "{} of {snapshot}",
                    bytes.bytes().len()
                );
                let delta = Delta::decode(bytes.bytes(), Limits::default()).unwrap();
                delta.apply(&mut held).unwrap();
                assert_eq!(held.content_id().to_string().as_bytes(), id.bytes());
                assert_eq!(held.content_id().to_string(), content_id(&mut client, key, 0));
            }
            // Nothing is remembered any more: all of it comes again.
            client.say("CONFIG SET bf.max-remembered-bytes 0");
            client.send(&["TAMIS.DELTA", key, "0"]);
            let since = held.content_id().to_string();
            let reply = client.send(&["TAMIS.DELTA", key, &since]);
            assert_eq!(reply.elements()[0].bytes(), b"snapshot");
            client.say("CONFIG SET bf.max-remembered-bytes 67108864");
        }
    }
}

/// Runs the tool in a directory; its exit code and what it printed.
fn run(directory: &Directory, arguments: &[&str]) -> (Option<i32>, String) {
    let done = Command::new(tool()).args(arguments).current_dir(&directory.0).output().unwrap();
    let text =
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (done.status.code(), text)
}

#[test]
fn the_tool_reads_what_the_server_writes_and_the_server_what_the_tool_writes() {
    let server = Server::start(Kind::Valkey, &[]);
    let mut client = server.client();
    let directory = Directory::new();
    client.say("CF.RESERVE c 1000");
    client.say("CF.INSERT c ITEMS apple pear");
    let first = client.say("TAMIS.DELTA c 0");
    fs::write(directory.0.join("old.tamis"), first.elements()[2].bytes()).unwrap();
    client.say("CF.ADD c plum");
    client.say("CF.DEL c pear");
    let since = String::from_utf8(first.elements()[1].bytes().to_vec()).unwrap();
    let delta = client.send(&["TAMIS.DELTA", "c", &since]);
    assert_eq!(delta.elements()[0].bytes(), b"delta");
    fs::write(directory.0.join("c.delta"), delta.elements()[2].bytes()).unwrap();
    let (code, info) = run(&directory, &["info", "old.tamis"]);
    assert_eq!(code, Some(0), "{info}");
    assert!(info.contains("rank-counting"), "{info}");
    let (code, said) = run(&directory, &["patch", "old.tamis", "c.delta"]);
    assert_eq!(code, Some(0), "{said}");
    for (key, found) in [("apple", 0), ("plum", 0), ("pear", 1), ("quince", 1)] {
        fs::write(directory.0.join("key"), key).unwrap();
        let (code, said) = run(&directory, &["check", "old.tamis", "key"]);
        assert_eq!(code, Some(found), "{key}: {said}");
    }
    // And the other way: built outside, served inside.
    fs::write(directory.0.join("keys"), "one\ntwo\nthree\n").unwrap();
    for (kind, family, exists) in
        [("blocked", "BLOOM", "BF.EXISTS"), ("blocked-rank", "CUCKOO", "CF.EXISTS")]
    {
        let (code, said) = run(
            &directory,
            &["build", "--kind", kind, "--keys", "100", "-o", "built.tamis", "keys"],
        );
        assert_eq!(code, Some(0), "{said}");
        let bytes = fs::read(directory.0.join("built.tamis")).unwrap();
        let loaded =
            client.send(&[b"TAMIS.LOAD".as_slice(), kind.as_bytes(), family.as_bytes(), &bytes]);
        assert_eq!(loaded.to_string(), "OK");
        for (item, found) in [("one", 1), ("two", 1), ("three", 1), ("four", 0)] {
            assert_eq!(client.send(&[exists, kind, item]).int(), found, "{item}");
        }
        fs::remove_file(directory.0.join("built.tamis")).unwrap();
    }
    let bytes = first.elements()[2].bytes();
    let refused = client.send(&[b"TAMIS.LOAD".as_slice(), b"x", b"BLOOM", bytes]);
    assert_eq!(refused.to_string(), "OK", "a set may be held by what counts");
    let (_, said) =
        run(&directory, &["build", "--kind", "bloom", "--keys", "100", "-o", "b.tamis", "keys"]);
    let bytes = fs::read(directory.0.join("b.tamis")).expect(&said);
    let refused = client.send(&[b"TAMIS.LOAD".as_slice(), b"y", b"CUCKOO", &bytes]);
    assert_eq!(refused.to_string(), "-ERR cuckoo cannot be bloom");
}
