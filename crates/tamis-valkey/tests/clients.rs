//! A client's own tests: those of the Python package `redis` for Bloom and cuckoo filters, as they come.
#![allow(missing_docs)]

mod harness;

use std::path::Path;
use std::process::Command;

use harness::{Kind, Server, servers};

#[test]
fn the_clients_own_tests_pass() {
    let (client, plugins) =
        (servers().join("client"), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client"));
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        for protocol in ["2", "3"] {
            let url = format!("redis://127.0.0.1:{}/0", server.port);
            let done = Command::new(servers().join("bin/python"))
                .args([
                    "-m",
                    "pytest",
                    "-c",
                    "/dev/null",
                    "--rootdir=.",
                    "-p",
                    "others",
                    "-p",
                    "no:cacheprovider",
                    "-q",
                ])
                .args([format!("--redis-url={url}"), format!("--redis-mod-url={url}")])
                .arg(format!("--protocol={protocol}"))
                .args(["tests/test_bloom.py", "-k", "bf_ or cf_"])
                .env("PYTHONPATH", format!(".:{}", plugins.display()))
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .current_dir(&client)
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&done.stdout);
            println!("{kind:?}, RESP{protocol}: {}", text.lines().last().unwrap_or_default());
            assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
            assert!(text.contains("8 passed"), "{text}");
        }
    }
}
