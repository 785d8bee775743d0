//! Sets that are published and followed, with the command line on both sides and real web servers
//! between them.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use tamis::{AnyFilter, BlockedRank};
use tamis_exchange::{Publisher, SecretKey};

use crate::tool::{Folder, TAMIS, numbers};

/// A folder with keys to sign and the first version of a set of a thousand keys.
pub(crate) fn published() -> Folder {
    let folder = Folder::new();
    folder.write("keys", numbers(1000));
    folder.ok(&["build", "--kind", "blocked-rank", "--keys", "5000", "-o", "f", "keys"]);
    folder.ok(&["keygen", "-o", "k"]);
    publish(&folder);
    folder
}

fn publish(folder: &Folder) -> String {
    folder.ok(&["publish", "sets", "f", "--name", "words", "--sign", "k"])
}

/// The arguments that follow the set at an address once.
fn follow<'a>(address: &'a str, file: &'a str) -> [&'a str; 7] {
    ["follow", address, "-o", file, "--key", "k.pub", "--once"]
}

fn add(folder: &Folder, keys: &str) {
    folder.write("more", keys);
    folder.ok(&["add", "f", "more"]);
}

/// A server that is stopped with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server on a free port, waits until it answers, and returns the port.
fn serve(start: impl Fn(u16) -> Command) -> (Server, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = start(port);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let server = Server(child.expect("the server is installed"));
    let begin = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(20), "the server does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    (server, port)
}

fn python(folder: &Folder, port: u16) -> Command {
    let mut command = Command::new("python3");
    command.args(["-m", "http.server", "--bind", "127.0.0.1"]).arg(port.to_string());
    command.current_dir(folder.join("sets"));
    command
}

fn nginx(folder: &Folder, port: u16) -> Command {
    let root = folder.path().display();
    let config = format!(
        "daemon off; error_log {root}/error; pid {root}/pid; events {{}}\n\
         http {{ access_log off; client_body_temp_path {root}; proxy_temp_path {root};\n\
         fastcgi_temp_path {root}; uwsgi_temp_path {root}; scgi_temp_path {root};\n\
         server {{ listen 127.0.0.1:{port}; root {root}/sets; }} }}\n"
    );
    folder.write("nginx.conf", config);
    // As root it would serve as another user, who may not read the folder.
    let mut command = Command::new("nginx");
    command.args(["-g", "user root;", "-c"]).arg(folder.join("nginx.conf"));
    command
}

#[test]
fn real_web_servers_serve_sets() {
    for start in [python, nginx] {
        let folder = published();
        let (_server, port) = serve(|port| start(&folder, port));
        let address = format!("http://127.0.0.1:{port}/words");
        let first = folder.ok(&follow(&address, "mine"));
        assert!(first.starts_with("version 1: 1000 keys, a snapshot, "), "{first}");
        // Two versions within a second: the tags of web servers count in seconds.
        for version in 2..5 {
            add(&folder, &format!("new {version}\n"));
            publish(&folder);
            let step = folder.ok(&follow(&address, "mine"));
            assert!(step.starts_with(&format!("version {version}: ")), "{step}");
            assert!(step.contains(", 1 delta, "), "{step}");
            assert_eq!(folder.content_id("mine"), folder.content_id("f"));
        }
        assert_eq!(folder.ok(&follow(&address, "mine")), "version 4 is the newest\n");
    }
}

#[test]
fn a_service_follows_versions_that_come_within_a_second() {
    let folder = published();
    let (_server, port) = serve(|port| nginx(&folder, port));
    let address = format!("http://127.0.0.1:{port}/words");
    let args =
        ["follow", &address, "-o", "mine", "--key", "k.pub", "--every", "1s", "--metrics", "m"];
    let mut service = Server(folder.command(&args).stdout(Stdio::null()).spawn().unwrap());
    for version in 0..4 {
        add(&folder, &format!("more {version}\n"));
        publish(&folder);
    }
    let newest = folder.content_id("f");
    let begin = Instant::now();
    while !folder.join("mine").exists() || folder.content_id("mine") != newest {
        assert!(begin.elapsed() < Duration::from_secs(20), "it stopped before the newest version");
        std::thread::sleep(Duration::from_millis(100));
    }
    let metrics = String::from_utf8(folder.read("m")).unwrap();
    assert!(metrics.contains("\ntamis_follow_version "), "{metrics}");
    assert!(metrics.contains("tamis_follow_up 1\n"), "{metrics}");
    assert!(service.0.try_wait().unwrap().is_none());
}

#[test]
fn wrong_calls_say_what_to_do_and_write_nothing() {
    let folder = published();
    folder.ok(&["keygen", "-o", "other"]);
    folder.write("sets/words/notes", "a set has other files, too\n");
    let before = folder.names();
    let run = |args: &[&str], words: &[&str]| folder.run(args).refused(words);
    run(&follow("sets/none", "new"), &["no set is published here", "tamis publish"]);
    run(&follow("localhost:8000/none", "new"), &["no set is published here", "http://"]);
    run(&follow("http://127.0.0.1:1/none", "new"), &["refused", "is the address right"]);
    run(&follow("http://127.0.0.1:9/words", "new"), &["127.0.0.1:9/words"]);
    run(&follow("ftp://127.0.0.1/words", "new"), &["ftp is not supported"]);
    run(&follow("http://127.0.0.1", "new"), &["the name of a set"]);
    run(&follow("sets/..", "new"), &["name \"..\""]);
    let with = |key| ["follow", "sets/words", "-o", "new", "--key", key, "--once"];
    run(&with("other.pub"), &["signed with another key"]);
    run(&with("k"), &["a secret key", ".pub"]);
    run(&with("keys"), &["not a public key", "keygen"]);
    run(&with("nowhere"), &["cannot read the key nowhere", "tamis keygen"]);
    run(&["follow", "sets/words", "-o", "new", "--unsigned", "--once"], &["give the publisher"]);
    run(&["follow", "sets/words", "-o", "new", "--once"], &["--key"]);
    run(&["publish", "sets", "f", "--name", "words", "--sign", "other"], &["another key"]);
    run(&["publish", "sets", "f", "--name", "words", "--unsigned"], &["signed"]);
    run(&["publish", "sets", "f", "--name", "a/b", "--sign", "k"], &["name \"a/b\""]);
    run(&["publish", "sets", "f", "--name", "words", "--sign", "k.pub"], &["secret key"]);
    run(&["publish", "sets", "keys", "--name", "words", "--sign", "k"], &["not a tamis file"]);
    run(&["keygen", "-o", "k"], &["cannot write k", "never over a file"]);
    assert_eq!(folder.names(), before);
    let mut manifest = folder.read("sets/words/manifest");
    manifest[8] = 2;
    folder.write("sets/words/manifest", manifest);
    run(&follow("sets/words", "new"), &["format 2", "get a newer tamis"]);
    folder.write("sets/words/manifest", "<html>Welcome</html>");
    run(&follow("sets/words", "new"), &["not a manifest", "address of a store"]);
    // A publisher whose clock is an hour ahead.
    let key = SecretKey::parse(&String::from_utf8(folder.read("k")).unwrap()).unwrap();
    let store = tamis_exchange::Folder::new(&folder.join("sets"), "early").unwrap();
    let filter = AnyFilter::from(BlockedRank::with_rate(100, 0.01).unwrap());
    let later = SystemTime::now() + Duration::from_secs(3600);
    Publisher::new(Box::new(store), "early", Some(key)).publish(&filter, later).unwrap();
    run(&follow("sets/early", "new"), &["in the future", "set the clock"]);
    assert_eq!(folder.names(), before);
}

#[test]
fn an_older_set_and_another_set_are_not_taken_for_the_file() {
    let folder = published();
    let old = folder.read("sets/words/manifest");
    add(&folder, "one more\n");
    publish(&folder);
    folder.ok(&follow("sets/words", "mine"));
    let content = folder.content_id("mine");
    folder.write("sets/words/manifest", old);
    folder.run(&follow("sets/words", "mine")).refused(&["offers 1", "2 was published before"]);
    assert_eq!(folder.content_id("mine"), content);
    folder.ok(&["publish", "sets", "f", "--name", "others", "--sign", "k"]);
    folder.run(&follow("sets/others", "mine")).refused(&["another key or name", "mine.follow"]);
    assert_eq!(folder.content_id("mine"), content);
}

/// Runs the tool with files limited to `blocks` kilobytes, as on a disk that is full. A write
/// beyond it fails, or ends the process.
fn with_little_disk(folder: &Folder, args: &[&str], blocks: u32, is_killed: bool) -> bool {
    let trap = if is_killed { "" } else { "trap '' XFSZ;" };
    let script = format!("ulimit -c 0; {trap} ulimit -f {blocks}; exec \"$@\"");
    let status = Command::new("bash")
        .args(["-c", &script, "bash", TAMIS])
        .args(args)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.unwrap().success()
}

#[test]
fn a_full_disk_leaves_what_was_there_and_both_sides_recover() {
    let folder = Folder::new();
    folder.write("keys", numbers(20_000));
    folder.ok(&["build", "--kind", "blocked-rank", "--keys", "25k", "-o", "f", "keys"]);
    folder.ok(&["keygen", "-o", "k"]);
    publish(&folder);
    folder.ok(&follow("sets/words", "mine"));
    let publishing = ["publish", "sets", "f", "--name", "words", "--sign", "k"];
    let mut ends = [0; 4];
    for round in 0..12 {
        // The state fits, then the table, the delta, and at last the snapshot and the filter.
        let (blocks, is_killed) = ([0, 1, 8, 18, 22, 40][round / 2], round % 2 == 1);
        let old = folder.content_id("f");
        let lines: Vec<_> = (0..300).map(|n| format!("{round} {n}\n")).collect();
        add(&folder, &lines.concat());
        let new = folder.content_id("f");
        let is_published = with_little_disk(&folder, &publishing, blocks, is_killed);
        folder.ok(&follow("sets/words", "other"));
        assert_eq!(folder.content_id("other"), if is_published { &*new } else { &*old }, "{round}");
        publish(&folder);
        let is_followed =
            with_little_disk(&folder, &follow("sets/words", "mine"), blocks, is_killed);
        assert_eq!(folder.content_id("mine"), if is_followed { &*new } else { &*old }, "{round}");
        folder.ok(&follow("sets/words", "mine"));
        assert_eq!(folder.content_id("mine"), new, "{round}");
        ends[usize::from(is_published)] += 1;
        ends[2 + usize::from(is_followed)] += 1;
    }
    assert!(ends.iter().all(|&count| count > 0), "it always ended in one way: {ends:?}");
    let left = folder.names().into_iter().filter(|name| name.contains("part")).count();
    assert_eq!(left, 0);
}
