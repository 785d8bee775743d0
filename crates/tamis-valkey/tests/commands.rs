//! Every row of the command tables, against real servers, in RESP2 and RESP3.
#![allow(missing_docs)]

mod harness;

use harness::{Kind, Server, run_transcript};

fn everywhere(text: &str) {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        for resp3 in [false, true] {
            let mut client = server.client();
            client.send(&["FLUSHALL"]);
            run_transcript(text, &mut client, resp3);
        }
    }
}

#[test]
fn bloom() {
    everywhere(include_str!("transcripts/bloom.txt"));
}

#[test]
fn cuckoo() {
    everywhere(include_str!("transcripts/cuckoo.txt"));
}

#[test]
fn own() {
    everywhere(include_str!("transcripts/own.txt"));
}

#[test]
fn aging() {
    everywhere(include_str!("transcripts/aging.txt"));
}
