//! The proxy of each server, from the values of environment variables.
//! Invariants: servers on this machine are called directly; an invalid proxy
//! stops calls instead of bypassing the proxy; credentials are
//! not printed.

use super::Failure;
use http::header::PROXY_AUTHORIZATION;
use http::uri::Scheme;
use http::{Request, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::fmt;
use std::net::IpAddr;

/// Replaces an invalid value, so that the exceptions still apply.
const NOBODY: &str = "http://proxy.invalid:1";

/// The proxies of calls.
pub struct Proxies {
    matcher: Matcher,
    /// The variable with the invalid value.
    broken: Option<&'static str>,
    /// Passwords of proxies, which errors must not show.
    secrets: Vec<String>,
}

impl Default for Proxies {
    fn default() -> Self {
        Self::from_variables(|_| None)
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxies")
            .field("matcher", &self.matcher)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl Proxies {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, or their
    /// lower-case names, by `variable`.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| {
            let names = [name.to_owned(), name.to_ascii_lowercase()];
            let mut values = names.iter().filter_map(|name| variable(name));
            let value = values.find(|value| !value.trim().is_empty());
            value.unwrap_or_default().trim().to_owned()
        };
        let (mut broken, mut secrets) = (None, Vec::new());
        let mut proxy = |name: &'static str| {
            let value = value(name);
            secrets.extend(password(&value));
            if value.is_empty() || is_proxy(&value) {
                return value;
            }
            broken = Some(name);
            NOBODY.to_owned()
        };
        let matcher = Matcher::builder()
            .all(proxy("ALL_PROXY"))
            .http(proxy("HTTP_PROXY"))
            .https(proxy("HTTPS_PROXY"));
        // Values often have a star before the dot, or spaces.
        let except = value("NO_PROXY").replace("*.", ".");
        let except: Vec<&str> = except.split_ascii_whitespace().collect();
        Self {
            matcher: matcher.no(except.join(",")).build(),
            broken,
            secrets,
        }
    }

    /// Texts that must not be shown.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &String> {
        self.secrets.iter()
    }

    /// The proxy of a server.
    pub(super) fn of(&self, server: &Uri) -> Result<Option<Intercept>, Failure> {
        if is_loopback(server) {
            return Ok(None);
        }
        let found = self.matcher.intercept(server);
        match (&found, self.broken) {
            (Some(proxy), Some(variable)) if proxy.uri() == NOBODY => Err(Failure::Proxy {
                proxy: variable.to_owned(),
                reason: "its value is not the address of a proxy; use an address such as \
                         http://host:3128, or one with https, socks4, socks4a, socks5 or socks5h"
                    .to_owned(),
            }),
            _ => Ok(found),
        }
    }

    /// Adds the credentials to a request that a proxy reads itself.
    pub(super) fn introduce<B>(&self, request: &mut Request<B>) {
        if request.uri().scheme() == Some(&Scheme::HTTP)
            && let Ok(Some(proxy)) = self.of(request.uri())
            && let Some(credentials) = proxy.basic_auth()
        {
            let headers = request.headers_mut();
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
    }
}

fn is_proxy(value: &str) -> bool {
    let anywhere = Uri::from_static("http://server.invalid/");
    let matcher = Matcher::builder().all(value).build();
    matcher.intercept(&anywhere).is_some()
}

/// The password in an address, not decoded.
fn password(value: &str) -> Option<String> {
    let (user, _) = value.rsplit_once('@')?;
    let (_, password) = user.rsplit_once(':')?;
    (!password.is_empty()).then(|| password.to_owned())
}

fn is_loopback(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn of(proxies: &Proxies, server: &'static str) -> Option<String> {
        let found = proxies.of(&Uri::from_static(server)).expect("understood");
        found.map(|proxy| proxy.uri().to_string())
    }

    #[test]
    fn scheme_variable_precedes_all_proxy() {
        let set = proxies(&[
            ("ALL_PROXY", "socks5h://all:1080"),
            ("https_proxy", "secure:3128"),
        ]);
        assert_eq!(
            of(&set, "https://model.test/").as_deref(),
            Some("http://secure:3128/")
        );
        assert_eq!(
            of(&set, "http://model.test/").as_deref(),
            Some("socks5h://all:1080/")
        );
        assert_eq!(of(&Proxies::default(), "https://model.test/"), None);
    }

    #[test]
    fn exceptions_are_domains_addresses_and_networks() {
        let no_proxy = "model.test *.example.com, .corp , 10.0.0.0/8,192.0.2.7";
        let set = proxies(&[("HTTP_PROXY", "http://proxy:1"), ("no_proxy", no_proxy)]);
        for (server, through) in [
            ("http://model.test/", false),
            ("http://eu.model.test/", false),
            ("http://remodel.test/", true),
            ("http://api.example.com/", false),
            ("http://a.corp/", false),
            ("http://10.1.2.3/", false),
            ("http://192.0.2.7:8080/", false),
            ("http://192.0.2.8/", true),
            ("http://127.0.0.1:11434/", false),
            ("http://[::1]/", false),
            ("http://localhost:8080/", false),
        ] {
            assert_eq!(of(&set, server).is_some(), through, "{server}");
        }
        let set = proxies(&[("HTTP_PROXY", "http://proxy:1"), ("NO_PROXY", "*")]);
        assert_eq!(of(&set, "http://model.test/"), None);
    }

    #[test]
    fn invalid_proxy_stops_calls_except_no_proxy() {
        for value in ["ftp://proxy:1", "http://", "http://user:planted-secret@a b"] {
            let set = proxies(&[("HTTPS_PROXY", value), ("NO_PROXY", "near.test")]);
            let error = set.of(&Uri::from_static("https://model.test/"));
            let error = error.expect_err(value);
            assert!(
                matches!(&error, Failure::Proxy { proxy, .. } if proxy == "HTTPS_PROXY"),
                "{error:?}"
            );
            assert_eq!(of(&set, "https://near.test/"), None);
            assert_eq!(of(&set, "http://model.test/"), None);
            assert!(!format!("{set:?} {error:?}").contains("planted"));
        }
    }

    #[test]
    fn credentials_go_to_the_proxy_and_are_not_printed() {
        let set = proxies(&[("ALL_PROXY", "http://crab:planted%21word@proxy:1")]);
        let mut request = Request::new(());
        *request.uri_mut() = Uri::from_static("http://model.test/v1");
        set.introduce(&mut request);
        let shown = &request.headers()[PROXY_AUTHORIZATION];
        assert_eq!(shown, "Basic Y3JhYjpwbGFudGVkIXdvcmQ=");
        assert!(!format!("{set:?} {request:?}").contains("planted"));
        assert_eq!(set.secrets().collect::<Vec<_>>(), ["planted%21word"]);
        // In a tunnel, the server would read the credentials.
        let mut request = Request::new(());
        *request.uri_mut() = Uri::from_static("https://model.test/v1");
        set.introduce(&mut request);
        assert!(request.headers().is_empty());
    }
}
