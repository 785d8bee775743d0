//! Headers that are for one connection only.

use hyper::HeaderMap;
use hyper::header::{
    CONNECTION, EXPECT, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};

/// Headers that end here (RFC 9110, 7.6.1), beside those that `Connection` names. `Expect` is
/// among them because the gate has answered it when it reads the body.
const OF_A_CONNECTION: [HeaderName; 10] = [
    CONNECTION,
    EXPECT,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Takes out what is not for the next machine, and says who passed the message on.
pub(super) fn pass_on(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_A_CONNECTION) {
        headers.remove(name);
    }
    headers.append(VIA, HeaderValue::from_static("1.1 tamis-gate"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_for_the_next_machine_is_passed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-mine"),
            ("connection", "X-Other"),
            ("keep-alive", "timeout=5"),
            ("x-mine", "1"),
            ("x-other", "2"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("range", "bytes=0-3"),
        ] {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        pass_on(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["range", "via"]);
    }
}
