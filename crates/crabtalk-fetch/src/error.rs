//! Errors of fetching.

use std::io;
use std::net::IpAddr;

/// The reason why a page could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address, or one that it redirects to, is invalid; nothing was sent.
    #[error("cannot fetch `{url}`: {why}")]
    Url {
        /// The beginning of the address.
        url: String,
        /// The reason.
        why: String,
    },
    /// The name has no address, or no name server answers.
    #[error("cannot find `{host}`: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// The name resolves to an address that is not public.
    #[error(
        "`{host}` is at {address}, which is not a public address; the owner may allow it in \
         config/fetch.toml: allow = [\"{address}\"]"
    )]
    Forbidden {
        /// The name, or the address itself.
        host: String,
        /// The refused address.
        address: IpAddr,
    },
    /// No address accepted the connection; a later attempt may succeed.
    #[error("cannot connect to `{host}`: {source}")]
    Connect {
        /// The server.
        host: String,
        /// The system's error for the last address.
        source: io::Error,
    },
    /// The certificate is not trusted for the name, or the handshake failed.
    #[error("no secure connection to `{host}`: {why}")]
    Tls {
        /// The server.
        host: String,
        /// The library's error.
        why: String,
    },
    /// The connection ended, or was not HTTP, before the page was complete.
    #[error("`{host}` closed the connection: {source}")]
    Http {
        /// The server.
        host: String,
        /// The library's error.
        source: hyper::Error,
    },
    /// The server answered with an error status, or with a redirect without a target.
    #[error("{url} answered {status}: {text}")]
    Status {
        /// The page.
        url: String,
        /// The answer's code.
        status: http::StatusCode,
        /// The beginning of the body.
        text: String,
    },
    /// Too many redirects.
    #[error("{url} redirects more than {most} times")]
    Redirects {
        /// The target of the last redirect.
        url: String,
        /// The maximum number of redirects.
        most: u32,
    },
    /// The page is not text, or is compressed.
    #[error("{url} is `{content_type}`, which is not text")]
    NotText {
        /// The page.
        url: String,
        /// Its content type or encoding.
        content_type: String,
    },
    /// The request timed out, including redirects; a later attempt may succeed.
    #[error("{url} took longer than {secs} s")]
    Timeout {
        /// The requested page.
        url: String,
        /// The timeout in seconds.
        secs: u64,
    },
}
