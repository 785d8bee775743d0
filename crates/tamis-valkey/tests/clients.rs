//! A client's own tests: those of the Python package `redis` for Bloom and cuckoo filters, as they
//! come.
#![allow(missing_docs)]

mod harness;

use std::path::Path;
use std::process::Command;

use harness::{Kind, Server, servers};

/// Runs the client's tests, with a plugin or without one; what they printed.
fn run(server: &Server, protocol: &str, plugin: &[&str]) -> String {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client");
    let url = format!("redis://127.0.0.1:{}/0", server.port);
    let done = Command::new(servers().join("bin/python"))
        .args(["-m", "pytest", "-c", "/dev/null", "--rootdir=.", "-q", "--tb=short"])
        .args(["-p", "no:cacheprovider", "-p", "no:warnings"])
        .args(plugin)
        .args([format!("--redis-url={url}"), format!("--redis-mod-url={url}")])
        .arg(format!("--protocol={protocol}"))
        .args(["tests/test_bloom.py", "-k", "bf_ or cf_"])
        .env("PYTHONPATH", format!(".:{}", plugins.display()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(servers().join("client"))
        .output()
        .unwrap();
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

/// One of the eight tests ends by reserving a sketch and a list, which this module does not have.
/// Unchanged, that test must fail there and nowhere else. With `tests/client/others.py`, which
/// answers these three calls, all eight must pass.
#[test]
fn the_clients_own_tests_pass() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let unchanged = run(&server, "2", &[]);
        assert!(unchanged.contains("1 failed, 7 passed"), "{unchanged}");
        let failed: Vec<&str> =
            unchanged.lines().filter(|line| line.contains(": in test_")).collect();
        assert!(matches!(failed[..], [one] if one.ends_with("in test_bf_reserve")), "{unchanged}");
        assert!(unchanged.contains("    assert client.cms().initbydim("), "{unchanged}");
        assert!(unchanged.contains("unknown command 'CMS.INITBYDIM'"), "{unchanged}");
        for protocol in ["2", "3"] {
            let all = run(&server, protocol, &["-p", "others"]);
            assert!(all.contains("8 passed") && !all.contains("failed"), "{all}");
        }
    }
}
