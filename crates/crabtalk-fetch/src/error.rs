//! Why there is no page.

use crate::address::Kind;
use std::io;
use std::net::IpAddr;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address, or one that it redirects to, is not one of a page; nobody was asked.
    #[error("cannot fetch `{url}`: {why}")]
    Url {
        /// Its beginning.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The name has no address, or no name server answers.
    #[error("cannot find `{host}`: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// The name leads into a private network, where a page of the web has nothing to do.
    #[error(
        "`{host}` is at {address}, {}, which is not fetched from; the owner may allow it in \
         config/fetch.toml: allow = [\"{address}\"]", kind.name()
    )]
    Forbidden {
        /// The name, or the address itself.
        host: String,
        /// Where it is.
        address: IpAddr,
        /// What kind of address that is.
        kind: Kind,
    },
    /// None of its addresses took the connection; a later try may succeed.
    #[error("cannot connect to `{host}`: {source}")]
    Connect {
        /// The server.
        host: String,
        /// What the system said of the last one.
        source: io::Error,
    },
    /// Its certificate is not one that this machine trusts for the name, or the handshake failed.
    #[error("no secure connection to `{host}`: {why}")]
    Tls {
        /// The server.
        host: String,
        /// What the library said.
        why: String,
    },
    /// The connection ended or spoke no HTTP before the page was whole; nothing of it is kept.
    #[error("`{host}` broke off: {source}")]
    Http {
        /// The server.
        host: String,
        /// What the library said.
        source: hyper::Error,
    },
    /// It answered with an error, such as 404, or with a redirect to nowhere.
    #[error("{url} answered {status}: {text}")]
    Status {
        /// The page.
        url: String,
        /// The answer's code.
        status: http::StatusCode,
        /// The beginning of what it said.
        text: String,
    },
    /// Pages point at each other; none of them was read.
    #[error("{url} redirects more than {most} times")]
    Redirects {
        /// Where the last of them leads.
        url: String,
        /// How many redirects are followed.
        most: u32,
    },
    /// It is a picture, a film or packed; only what can be read as text is fetched.
    #[error("{url} is `{content_type}`, which is no text")]
    NotText {
        /// The page.
        url: String,
        /// Its type, or how it is packed.
        content_type: String,
    },
    /// It was given up with all of its redirects; a later try may succeed.
    #[error("{url} took longer than {secs} s")]
    Timeout {
        /// The page that was asked for.
        url: String,
        /// How long it may take in all.
        secs: u64,
    },
}
