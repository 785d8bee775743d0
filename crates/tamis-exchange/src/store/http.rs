//! A set behind a web server or a CDN.

use std::io::{self, Read};
use std::time::Duration;

use ureq::http::{Response, header};
use ureq::{Agent, Body};

use super::{Source, Tagged};
use crate::error::Error;

/// A set behind a web server.
#[derive(Debug)]
pub struct Http {
    agent: Agent,
    url: String,
    patience: Duration,
}

impl Http {
    /// The set at `url`, which ends with its name.
    pub fn new(url: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            .user_agent(concat!("tamis/", env!("CARGO_PKG_VERSION")));
        let patience = Duration::from_secs(30);
        Self { agent: config.build().into(), url: url.to_owned(), patience }
    }

    /// Lets a request take this long, and a millisecond more for each byte that it should bring;
    /// 30 s unless said otherwise.
    #[must_use]
    pub fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    fn get(
        &self,
        url: &str,
        bytes: u64,
        name: header::HeaderName,
        value: Option<&str>,
    ) -> Result<Response<Body>, Error> {
        let time = self.patience.saturating_add(Duration::from_millis(bytes));
        let mut request = self.agent.get(url).config().timeout_global(Some(time)).build();
        if let Some(value) = value {
            request = request.header(name, value);
        }
        request.call().map_err(|error| {
            let advice = "is the address right, and the server running?";
            Error::io(&url)(io::Error::other(format!("{error}; {advice}")))
        })
    }
}

impl Source for Http {
    fn place(&self) -> String {
        self.url.clone()
    }

    fn manifest(&self, known: Option<&str>, most: u64) -> Result<Option<Tagged>, Error> {
        let url = format!("{}/manifest", self.url);
        // Most manifests have two hundred bytes: no more time for those that have more.
        let response = self.get(&url, 0, header::IF_NONE_MATCH, known)?;
        match response.status().as_u16() {
            200 => {}
            304 if known.is_some() => return Ok(None),
            404 | 410 => return Err(Error::NoSet { place: url }),
            status => return Err(Error::Status { place: url, status }),
        }
        let tag = response.headers().get(header::ETAG);
        let tag = tag.and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let mut bytes = Vec::new();
        let read = response.into_body().into_reader().take(most + 1).read_to_end(&mut bytes);
        read.map_err(Error::io(&url))?;
        Ok(Some(Tagged { bytes, tag }))
    }

    fn object(&self, name: &str, from: u64, bytes: u64) -> Result<(u64, Box<dyn Read>), Error> {
        let url = format!("{}/objects/{name}", self.url);
        let range = (from > 0).then(|| format!("bytes={from}-"));
        let response = self.get(&url, bytes, header::RANGE, range.as_deref())?;
        let start = match response.status().as_u16() {
            200 => 0,
            206 if starts_at(&response, from) => from,
            416 if from > 0 => return self.object(name, 0, bytes),
            status => return Err(Error::Status { place: url, status }),
        };
        Ok((start, Box::new(response.into_body().into_reader())))
    }
}

/// Whether a part of an object starts at byte `from`.
fn starts_at(response: &Response<Body>, from: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE);
    let range = range.and_then(|range| range.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {from}-")))
}
