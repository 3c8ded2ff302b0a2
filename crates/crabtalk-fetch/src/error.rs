//! Why there is no page.

use crate::address::Kind;
use std::io;
use std::net::IpAddr;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("cannot fetch `{url}`: {why}")]
    Url { url: String, why: String },
    #[error("cannot find `{host}`: {source}")]
    Resolve { host: String, source: io::Error },
    #[error(
        "`{host}` is at {address}, {}, which is not fetched from; the owner may allow it in \
         config/fetch.toml: allow = [\"{address}\"]", kind.name()
    )]
    Forbidden {
        /// The name, or the address itself.
        host: String,
        address: IpAddr,
        kind: Kind,
    },
    #[error("cannot connect to `{host}`: {source}")]
    Connect { host: String, source: io::Error },
    #[error("no secure connection to `{host}`: {why}")]
    Tls { host: String, why: String },
    #[error("`{host}` broke off: {source}")]
    Http { host: String, source: hyper::Error },
    #[error("{url} answered {status}: {text}")]
    Status {
        url: String,
        status: http::StatusCode,
        /// The beginning of what it said.
        text: String,
    },
    #[error("{url} redirects more than {most} times")]
    Redirects { url: String, most: u32 },
    #[error("{url} is `{content_type}`, which is no text")]
    NotText {
        url: String,
        /// Its type, or how it is packed.
        content_type: String,
    },
    #[error("{url} took longer than {secs} s")]
    Timeout { url: String, secs: u64 },
}
