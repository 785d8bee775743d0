//! The conversations in the documentation are held with real servers.
#![allow(missing_docs)]

mod harness;

use harness::{Kind, Server, run_transcript};

#[test]
fn what_the_documentation_shows_is_what_happens() {
    let text = include_str!("../../../docs/redis-valkey.md");
    let sessions: Vec<&str> =
        text.split("```redis\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(sessions.len(), 1);
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        run_transcript(sessions[0], &mut server.client(), false);
    }
}

/// Every command and every setting has its place there.
#[test]
fn nothing_is_undocumented() {
    let text = include_str!("../../../docs/redis-valkey.md");
    let server = Server::start(Kind::Redis, &[]);
    let mut client = server.client();
    for setting in client.send(&["CONFIG", "GET", "bf.*"]).elements().iter().step_by(2) {
        let name = String::from_utf8(setting.bytes().to_vec()).unwrap();
        assert!(text.contains(&format!("`{name}`")), "{name}");
    }
    for command in client.send(&["COMMAND", "LIST", "FILTERBY", "PATTERN", "tamis.*"]).elements() {
        let name = String::from_utf8(command.bytes().to_vec()).unwrap().to_uppercase();
        assert!(text.contains(&format!("`{name} ")), "{name}");
    }
}
