//! The gate: a reverse proxy that answers for absent keys, and passes everything else on.
//!
//! ```text
//! request -> GET or HEAD, a path with a key, a filter that is young enough, key not in it?
//!            yes: 404, which caches may keep as long as the filter stays young enough
//!            no:  the origin's answer, byte for byte
//! ```
//!
//! A filter never denies a key that was in the set when the manifest was signed. A key that came
//! later is denied until a newer version arrives, and at most until the manifest is `max_age`
//! old: then the gate passes everything on, and by then no cache keeps a denial either.

mod headers;
mod pattern;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::TcpListener as StdTcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub use pattern::Pattern;

use crate::error::Error;
use crate::live::Live;

/// Connections at a time; others wait until one ends.
const MOST_CONNECTIONS: usize = 4096;
/// Bytes and number of the headers of a request. Many more bytes, or any more headers, are refused
/// with 431.
const MOST_HEADER_BYTES: usize = 64 << 10;
const MOST_HEADERS: usize = 100;
/// How long the headers of the next request may take, an idle connection included.
const HEADER_TIME: Duration = Duration::from_secs(60);
/// How long the origin may take to accept a connection, and to begin its answer.
const CONNECT_TIME: Duration = Duration::from_secs(10);
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Idle connections to the origin are closed before it closes them.
const IDLE_TIME: Duration = Duration::from_secs(15);
/// Requests may take as long to end after the gate was told to stop.
const DRAIN_TIME: Duration = Duration::from_secs(30);
/// After a failure to accept a connection: there are too many files open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

type Body = Either<Full<Bytes>, Incoming>;

/// A reverse proxy that answers 404 for absent keys.
///
/// ```no_run
/// use std::{net::TcpListener, sync::Arc, time::Duration};
/// use tamis_exchange::{Follower, gate::Gate, source};
/// let (name, source) = source("https://example.org/sets/cache")?;
/// let follower = Follower::new(source, &name, None); // Let a thread call its `step`.
/// let gate = Gate::new("https://cache.example.org", "/{}.narinfo".parse()?, follower.live())?
///     .max_age(Duration::from_secs(600));
/// Arc::new(gate).run(TcpListener::bind("127.0.0.1:8080")?, None)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Gate {
    origin: Origin,
    pattern: Pattern,
    live: Live,
    max_age: Duration,
    negative_max_age: Duration,
    counts: Counts,
}

/// Where requests are passed on to.
struct Origin {
    scheme: Scheme,
    authority: Authority,
    host: HeaderValue,
    /// Comes before every path.
    prefix: String,
    client: Client<HttpsConnector<HttpConnector>, Incoming>,
}

/// What the gate has done.
#[derive(Default)]
struct Counts {
    denied: AtomicU64,
    passed: AtomicU64,
    unfiltered: AtomicU64,
    failed: AtomicU64,
}

/// The text that a server of metrics adds to the gate's own.
pub type Metrics = (StdTcpListener, Box<dyn Fn() -> String + Send + Sync>);

impl Gate {
    /// A gate in front of the server at the URL `origin`. It denies requests that match `pattern`
    /// with a key that is not in `live`.
    pub fn new(origin: &str, pattern: Pattern, live: Live) -> Result<Self, Error> {
        let hour = Duration::from_secs(3600);
        let minute = Duration::from_secs(60);
        let origin = Origin::new(origin)?;
        let counts = Counts::default();
        Ok(Self { origin, pattern, live, max_age: hour, negative_max_age: minute, counts })
    }

    /// Passes everything on while the newest manifest was signed longer ago; an hour unless said
    /// otherwise. No key is denied longer than this after it came into the set.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    /// Lets caches keep a denial as long at most; a minute unless said otherwise.
    #[must_use]
    pub fn negative_max_age(mut self, age: Duration) -> Self {
        self.negative_max_age = age;
        self
    }

    /// How long caches may keep the answer that this request is for an absent key; `None` if it
    /// is to be passed on.
    pub fn denies(&self, method: &Method, uri: &Uri, now: SystemTime) -> Option<Duration> {
        if !matches!(*method, Method::GET | Method::HEAD) || uri.query().is_some() {
            return None;
        }
        let key = self.pattern.key(uri.path())?;
        let current = self.live.load();
        let left = current.as_ref().and_then(|held| self.max_age.checked_sub(held.age(now)));
        let (Some(current), Some(left)) = (current, left) else {
            self.counts.unfiltered.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        (!current.contains(&*key)).then(|| left.min(self.negative_max_age))
    }

    /// What was done so far, in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let Counts { denied, passed, unfiltered, failed } = &self.counts;
        let lines = [
            ("denied", "Requests answered with 404 from the filter.", denied),
            ("passed", "Requests passed on to the origin.", passed),
            (
                "unfiltered",
                "Requests with a key, passed on for want of a young filter.",
                unfiltered,
            ),
            ("failed", "Requests that the origin did not answer.", failed),
        ];
        let lines = lines.map(|(name, help, count)| {
            let (name, count) = (format!("tamis_gate_{name}_total"), count.load(Ordering::Relaxed));
            format!("# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}\n")
        });
        lines.concat()
    }

    /// Serves until the process is told to stop (SIGINT or SIGTERM), and lets requests end that
    /// have begun. `metrics` are served at `/metrics` of an address of their own.
    pub fn run(
        self: Arc<Self>,
        listener: StdTcpListener,
        metrics: Option<Metrics>,
    ) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let result = runtime.block_on(async {
            if let Some((listener, text)) = metrics {
                let (gate, text) = (self.clone(), Arc::new(text));
                let answer = move |request: Request<Incoming>| {
                    let (gate, text) = (gate.clone(), text.clone());
                    async move { gate.scraped(request.uri().path(), &*text) }
                };
                tokio::spawn(serve(asynchronous(listener)?, std::future::pending(), answer));
            }
            self.serve(asynchronous(listener)?, stopped()?).await;
            Ok(())
        });
        // What still waits, for example for the origin, has had its time.
        runtime.shutdown_background();
        result
    }

    /// Serves until `stop` is ready, and then until all requests have ended that have begun, for
    /// half a minute at most.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let answer = move |request| {
            let gate = self.clone();
            async move { gate.answer(request).await }
        };
        serve(listener, stop, answer).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if let Some(age) = self.denies(request.method(), request.uri(), SystemTime::now()) {
            self.counts.denied.fetch_add(1, Ordering::Relaxed);
            let mut response =
                said(StatusCode::NOT_FOUND, "not found: the filter has no such key\n");
            let age = HeaderValue::try_from(format!("max-age={}", age.as_secs()));
            response.headers_mut().extend(age.ok().map(|age| (CACHE_CONTROL, age)));
            return response;
        }
        self.counts.passed.fetch_add(1, Ordering::Relaxed);
        self.origin.pass(request).await.unwrap_or_else(|(status, fault)| {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            said(status, format!("{}: {fault}\n", self.origin.authority))
        })
    }

    fn scraped(&self, path: &str, others: &dyn Fn() -> String) -> Response<Body> {
        match path {
            "/metrics" => said(StatusCode::OK, self.metrics() + &others()),
            _ => said(StatusCode::NOT_FOUND, "see /metrics\n"),
        }
    }
}

impl Origin {
    fn new(url: &str) -> Result<Self, Error> {
        let wrong = || {
            let fault = format!("{url:?}: write a URL such as https://cache.example.org");
            Error::format("origin", fault)
        };
        let parts = url.parse::<Uri>().map_err(|_| wrong())?.into_parts();
        let scheme = parts.scheme.filter(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme));
        let (scheme, authority) = scheme.zip(parts.authority).ok_or_else(wrong)?;
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| wrong())?;
        let path = parts.path_and_query.as_ref().map_or("/", PathAndQuery::as_str);
        if path.contains('?') || authority.as_str().contains('@') {
            return Err(wrong());
        }
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIME));
        let connector = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIME)
            .http1_max_headers(MOST_HEADERS)
            .build(connector);
        let prefix = path.trim_end_matches('/').to_owned();
        Ok(Self { scheme, authority, host, prefix, client })
    }

    /// The origin's answer to a request.
    async fn pass(
        &self,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, (StatusCode, String)> {
        let wrong = |fault: &str| (StatusCode::BAD_REQUEST, fault.to_owned());
        let path = request.uri().path_and_query().filter(|path| path.as_str().starts_with('/'));
        let path = path.ok_or_else(|| wrong("the request has no path"))?;
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{path}", self.prefix))
            .build();
        *request.uri_mut() = uri.map_err(|_| wrong("the path is too long"))?;
        *request.version_mut() = Version::HTTP_11;
        headers::pass_on(request.headers_mut());
        // A length that was said twice is said once from here on. (hyper refuses two that differ.)
        if let Some(length) = request.headers_mut().remove(CONTENT_LENGTH) {
            request.headers_mut().insert(CONTENT_LENGTH, length);
        }
        request.headers_mut().insert(HOST, self.host.clone());
        let is_short = request.body().is_end_stream();
        let answer = self.client.request(request);
        // A body may take as long as it takes.
        let patience = if is_short { ANSWER_TIME } else { Duration::MAX };
        let late = "the origin took too long to begin its answer";
        let answer = tokio::time::timeout(patience, answer).await;
        let answer = answer.map_err(|_| (StatusCode::GATEWAY_TIMEOUT, late.to_owned()))?;
        let mut response = answer.map_err(|error| {
            (StatusCode::BAD_GATEWAY, format!("the origin does not answer: {}", causes(&error)))
        })?;
        headers::pass_on(response.headers_mut());
        *response.version_mut() = Version::HTTP_11;
        Ok(response.map(Either::Right))
    }
}

/// An error with all that led to it.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn said(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(text.into())));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn asynchronous(listener: StdTcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Ready when the process is told to stop.
fn stopped() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Answers all requests of all connections, until `stop` is ready and what has begun has ended.
async fn serve<A, F>(listener: TcpListener, stop: impl Future<Output = ()>, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let mut server = hyper::server::conn::http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_headers(MOST_HEADERS)
        .max_buf_size(MOST_HEADER_BYTES);
    let open = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut stop = pin!(stop);
    loop {
        let next = async {
            let place = room.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, stream) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        let Ok((stream, _)) = stream else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let answer = answer.clone();
        let service = service_fn(move |request| {
            let answer = answer(request);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let connection = open.watch(server.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // What goes wrong on a connection ends it, and is the client's to notice.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(DRAIN_TIME, open.shutdown()).await;
}
