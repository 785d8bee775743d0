//! Sets in a bucket of a real S3 server (moto's, which scripts/servers fetches).
#![cfg(feature = "s3")]

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use tamis::{AnyFilter, RankIndexed};
use tamis_exchange::{Error, Follower, Publisher, SecretKey, source, store};

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where scripts/servers puts what it fetches.
fn moto() -> std::path::PathBuf {
    // .../target/PROFILE/deps/this-test
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().join("servers/bin/moto_server")
}

fn serve() -> (Server, String) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let child = Command::new(moto())
        .args(["-H", "127.0.0.1", "-p", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let server = Server(child.expect("moto_server; run scripts/servers"));
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(60), "moto does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    (server, format!("http://127.0.0.1:{port}"))
}

/// Runs this test again in a process of its own, whose environment has the address of a server
/// and credentials, as a user's has.
fn is_with_server(test: &str) -> bool {
    if std::env::var_os("AWS_ENDPOINT_URL").is_some() {
        return true;
    }
    let (_server, url) = serve();
    let bucket = format!("{url}/sets");
    assert!(Command::new("curl").args(["-sf", "-X", "PUT", &bucket]).status().unwrap().success());
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs([
            ("AWS_ENDPOINT_URL", url.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ])
        .status()
        .unwrap();
    assert!(status.success());
    false
}

fn publisher(key: &str) -> Publisher {
    let key = SecretKey::parse(key).unwrap();
    Publisher::new(store("s3://sets/some/folder", "words").unwrap(), "words", Some(key))
}

fn follower(key: &str, file: Option<&Path>) -> Follower {
    let (name, source) = source("s3://sets/some/folder/words").unwrap();
    let key = SecretKey::parse(key).unwrap().public();
    let follower = Follower::new(source, &name, Some(key));
    match file {
        Some(file) => follower.file(file).unwrap(),
        None => follower,
    }
}

#[test]
fn a_bucket_is_a_store() {
    if !is_with_server("a_bucket_is_a_store") {
        return;
    }
    let key = SecretKey::generate().unwrap().to_text();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine");
    let mut filter = RankIndexed::with_rate(10_000, 0.01).unwrap();
    let (mut near, mut kept) = (follower(&key, None), follower(&key, Some(&file)));
    assert!(matches!(near.step(SystemTime::now()), Err(Error::NoSet { .. })));
    for version in 1..=20 {
        for n in 0..50 {
            filter.insert(format!("{version} {n}").as_str()).unwrap();
        }
        let any = AnyFilter::from(filter.clone());
        let published = publisher(&key).publish(&any, SystemTime::now()).unwrap();
        assert_eq!((published.version, published.new_epoch), (version, None));
        let step = near.step(SystemTime::now()).unwrap();
        assert_eq!((step.version, step.snapshot), (version, version == 1));
        assert_eq!(near.live().load().unwrap().filter.content_id(), any.content_id());
        // Nothing new: the tag says so.
        let again = near.step(SystemTime::now()).unwrap();
        assert_eq!((again.is_new, again.bytes), (false, 0));
        if version % 7 == 1 {
            let step = kept.step(SystemTime::now()).unwrap();
            assert_eq!((step.version, step.snapshot), (version, version == 1));
        }
    }
}

#[test]
fn of_two_publishers_of_a_bucket_one_wins() {
    if !is_with_server("of_two_publishers_of_a_bucket_one_wins") {
        return;
    }
    let key = SecretKey::generate().unwrap().to_text();
    let mut conflicts = 0;
    for round in 1..=10_u64 {
        let ends: Vec<_> = std::thread::scope(|scope| {
            let publish = |number: u64| {
                let key = &key;
                scope.spawn(move || {
                    let mut filter = RankIndexed::with_rate(1000, 0.01).unwrap();
                    filter.insert(&round.to_le_bytes()).unwrap();
                    filter.insert(&number.to_le_bytes()).unwrap();
                    let filter = AnyFilter::from(filter);
                    let published = publisher(key).publish(&filter, SystemTime::now());
                    published.map(|published| (published.version, filter.content_id()))
                })
            };
            let publishers = [1, 2, 3].map(publish);
            publishers.map(|publisher| publisher.join().unwrap()).into()
        });
        let mut versions = Vec::new();
        for end in &ends {
            match end {
                Ok((version, _)) => versions.push(*version),
                Err(Error::Conflict(_)) => conflicts += 1,
                Err(error) => panic!("{error}"),
            }
        }
        versions.sort_unstable();
        let unique = versions.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(unique && !versions.is_empty(), "two published one version: {versions:?}");
        let mut follower = follower(&key, None);
        let step = follower.step(SystemTime::now()).unwrap();
        assert_eq!(Some(&step.version), versions.last());
        let newest = ends.iter().flatten().find(|end| end.0 == step.version).unwrap().1;
        assert_eq!(follower.live().load().unwrap().filter.content_id(), newest);
    }
    assert!(conflicts > 0, "they never met");
}
