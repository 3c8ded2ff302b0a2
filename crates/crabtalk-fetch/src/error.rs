//! Why there is no page.

use crate::address::Kind;
use std::io;
use std::net::IpAddr;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is no address that is fetched.
    #[error("cannot fetch `{url}`: {why}")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The name has no address.
    #[error("cannot find `{host}`: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the system says.
        source: io::Error,
    },
    /// The address is in a network of somebody's own.
    #[error(
        "`{host}` is at {address}, {}, which is not fetched from; the owner may allow it in \
         config/fetch.toml: allow = [\"{address}\"]", kind.name()
    )]
    Forbidden {
        /// The name, or the address itself.
        host: String,
        /// Where it leads.
        address: IpAddr,
        /// What that is.
        kind: Kind,
    },
    /// Nobody answers there.
    #[error("cannot connect to `{host}`: {source}")]
    Connect {
        /// The name.
        host: String,
        /// What the system says.
        source: io::Error,
    },
    /// The connection is not secure.
    #[error("no secure connection to `{host}`: {why}")]
    Tls {
        /// The name.
        host: String,
        /// Why not.
        why: String,
    },
    /// The server does not speak as it should.
    #[error("`{host}` broke off: {source}")]
    Http {
        /// The name.
        host: String,
        /// What went wrong.
        source: hyper::Error,
    },
    /// The server answered, and not with the page.
    #[error("{url} answered {status}: {text}")]
    Status {
        /// The page.
        url: String,
        /// The code and its meaning.
        status: http::StatusCode,
        /// The beginning of what it said.
        text: String,
    },
    /// It was sent on and on.
    #[error("{url} redirects more than {most} times")]
    Redirects {
        /// The last page.
        url: String,
        /// The limit.
        most: u32,
    },
    /// It is nothing to read.
    #[error("{url} is `{content_type}`, which is no text")]
    NotText {
        /// The page.
        url: String,
        /// Its type, or how it is packed.
        content_type: String,
    },
    /// It took too long.
    #[error("{url} took longer than {secs} s")]
    Timeout {
        /// The page.
        url: String,
        /// The limit.
        secs: u64,
    },
}
