//! `[tcp]` and `[token.NAME]`: who may come in from elsewhere (REMOTE-1).
//!
//! Invariants: nothing listens that the file does not name; beyond loopback there
//! is TLS, or a proxy that is named; what is misspelt here is an error, since it
//! would open more than was meant.

use super::parse::absolute;
use super::provider::Named;
use crate::Error;
use crate::reader::Section;
use crate::tree::Value;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The port of an address that names none.
pub const TCP_PORT: u16 = 6688;

/// Listeners of one daemon: an address for each network that it is in.
const MAX_LISTENERS: usize = 16;

/// Tokens of one daemon. Each is compared at every login.
const MAX_TOKENS: usize = 1_000;

/// Patterns of one token, of a kind.
const MAX_PATTERNS: usize = 100;

/// What stands before a token's hash, so that another kind may come one day.
const HASH_KIND: &str = "sha256:";

/// `[tcp]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tcp {
    /// Where it listens, in the file's order, each once.
    pub listen: Vec<SocketAddr>,
    /// Whether connections are encrypted.
    pub tls: TcpTls,
    /// Proxies in front, which alone may connect then, without TLS.
    pub proxy: Vec<IpAddr>,
}

/// Whether connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TcpTls {
    /// They are not.
    Off,
    /// By a certificate of the daemon's own making.
    Own,
    /// By this certificate.
    Files {
        /// Its chain, PEM.
        cert: PathBuf,
        /// Its key, PEM.
        key: PathBuf,
    },
}

/// What the holder of a token may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenRole {
    /// Talk with agents.
    Talk,
    /// Look after the daemon too.
    Operate,
    /// Change what is configured too.
    Admin,
}

impl TokenRole {
    /// Every role with its name in the file.
    pub const ALL: [(&'static str, Self); 3] = [
        ("talk", Self::Talk),
        ("operate", Self::Operate),
        ("admin", Self::Admin),
    ];

    /// Its name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Talk => "talk",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

/// The SHA-256 of a token. The token itself is nowhere: it has 256 random bits, so
/// that nothing slower is needed to keep it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    /// Reads `sha256:` and 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(HASH_KIND)?;
        let mut hash = [0; 32];
        if digits.len() != 2 * hash.len() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        for (i, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HASH_KIND)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

impl Serialize for TokenHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// `[token.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Token {
    /// Its name, and its sender where it names none (CONV-8).
    #[serde(skip)]
    pub name: String,
    /// What it is recognised by.
    pub hash: TokenHash,
    /// What it may ask for.
    pub role: TokenRole,
    /// Patterns of agents that it reaches; `None` is all.
    pub agents: Option<Vec<String>>,
    /// Patterns of senders that it reaches and may speak as; `None` is its own name
    /// for `talk`, else all. Owners are reached by the role `admin` alone.
    pub senders: Option<Vec<String>>,
    /// Folders below which it may name where a run works; `None` is none, and for
    /// `admin` all.
    pub cwd: Option<Vec<PathBuf>>,
    /// From when on it counts no more.
    pub until: Option<Timestamp>,
}

impl Named for Token {
    fn name(&self) -> &str {
        &self.name
    }
}

/// Reads `[tcp]`.
pub(super) fn tcp(root: &mut Section<'_>, user_home: Option<&Path>) -> Result<Option<Tcp>, Error> {
    let Some(mut section) = root.section("tcp")? else {
        return Ok(None);
    };
    let at = section.at;
    let listen = listeners(&mut section)?;
    let tls = tls(&mut section, user_home)?;
    let proxy = proxies(&mut section)?;
    if proxy.is_empty() && tls == TcpTls::Off {
        if let Some(open) = listen.iter().find(|address| !address.ip().is_loopback()) {
            let message = format!(
                "{open} is reached from elsewhere, where nothing may go unencrypted: set tls = true, \
                 or cert and key, or name the proxy in front that encrypts (proxy = \"ADDRESS\")"
            );
            return section.fail(at, "listen", &message);
        }
    } else if !proxy.is_empty() && tls != TcpTls::Off {
        let message = "a proxy in front does the encryption: keep proxy, or keep tls";
        return section.fail(at, "proxy", message);
    }
    section.finish_strictly()?;
    Ok(Some(Tcp { listen, tls, proxy }))
}

fn listeners(section: &mut Section<'_>) -> Result<Vec<SocketAddr>, Error> {
    let at = section.at;
    let mut listen = Vec::new();
    for text in section.strings("listen")?.unwrap_or_default() {
        let Some(address) = address(&text) else {
            let message = format!(
                "{text:?} is no address to listen on: expected ADDRESS:PORT, as in 127.0.0.1:{TCP_PORT} \
                 or [::]:{TCP_PORT}"
            );
            return section.fail(at, "listen", &message);
        };
        if !listen.contains(&address) || address.port() == 0 {
            listen.push(address);
        }
    }
    if listen.is_empty() {
        let message = format!("missing, expected where to listen, as in \"127.0.0.1:{TCP_PORT}\"");
        return section.fail(at, "listen", &message);
    }
    if listen.len() > MAX_LISTENERS {
        let message = format!("more than {MAX_LISTENERS} addresses");
        return section.fail(at, "listen", &message);
    }
    Ok(listen)
}

/// `ADDRESS:PORT`, or an address alone; names are not looked up, but for one.
fn address(text: &str) -> Option<SocketAddr> {
    let text = text.trim();
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address);
    }
    let bare = text
        .strip_prefix('[')
        .and_then(|t| t.strip_suffix(']'))
        .unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Some(SocketAddr::new(ip, TCP_PORT));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, TCP_PORT),
    };
    (host == "localhost").then(|| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
}

fn tls(section: &mut Section<'_>, user_home: Option<&Path>) -> Result<TcpTls, Error> {
    let at = section.at;
    let wanted = section.boolean("tls")?;
    let cert = section.string("cert")?;
    let key = section.string("key")?;
    match (cert, key) {
        (Some(_), Some(_)) if wanted == Some(false) => section.fail(
            at,
            "tls",
            "there is a certificate: remove it, or tls = false",
        ),
        (Some(cert), Some(key)) => Ok(TcpTls::Files {
            cert: absolute(section, "cert", &cert, user_home)?,
            key: absolute(section, "key", &key, user_home)?,
        }),
        (Some(_), None) => section.fail(at, "key", "missing: the certificate's key, PEM"),
        (None, Some(_)) => section.fail(at, "cert", "missing: the key's certificate, PEM"),
        (None, None) if wanted == Some(true) => Ok(TcpTls::Own),
        (None, None) => Ok(TcpTls::Off),
    }
}

fn proxies(section: &mut Section<'_>) -> Result<Vec<IpAddr>, Error> {
    let at = section.at;
    let texts = section.strings("proxy")?.unwrap_or_default();
    let addresses = texts.iter().map(|text| {
        text.parse().or_else(|_| {
            let message = format!("{text:?} is not the address of a proxy, as in 10.0.0.2");
            section.fail(at, "proxy", &message)
        })
    });
    addresses.collect()
}

/// Whether the daemon's own senders begin with this name (CONV-10): a token speaks
/// under its name.
fn is_reserved(name: &str) -> bool {
    ["cron", "event", "delegate"].contains(&name.to_ascii_lowercase().as_str())
}

/// Reads `[token.NAME]`.
pub(super) fn tokens(
    root: &mut Section<'_>,
    owners: &[String],
    user_home: Option<&Path>,
) -> Result<Vec<Token>, Error> {
    let Some(section) = root.section("token")? else {
        return Ok(Vec::new());
    };
    super::parse::check_names(&section)?;
    if section.entries().len() > MAX_TOKENS {
        let message = format!("more than {MAX_TOKENS} tokens");
        return section.fail(section.at, "", &message);
    }
    let mut hashes = BTreeSet::new();
    let mut tokens = Vec::new();
    for entry in section.entries() {
        // Its name is its sender: it would be an owner without saying so.
        if owners.contains(&entry.key) {
            let message = "an owner has that name: a token speaks under its own";
            return section.fail(entry.at, &entry.key, message);
        }
        if is_reserved(&entry.key) {
            let message = "the daemon's own senders begin so: choose another name";
            return section.fail(entry.at, &entry.key, message);
        }
        let token = token(&entry.key, section.below(entry)?, user_home)?;
        if !hashes.insert(token.hash.0) {
            let message = "another token has the same hash: make each with `crabtalk tokens add`";
            return section.fail(entry.at, &entry.key, message);
        }
        tokens.push(token);
    }
    Ok(tokens)
}

fn token(name: &str, mut section: Section<'_>, user_home: Option<&Path>) -> Result<Token, Error> {
    let at = section.at;
    let hash = section.string("hash")?.unwrap_or_default();
    let Some(hash) = TokenHash::parse(&hash) else {
        let message =
            "expected sha256: and 64 hexadecimal digits, as `crabtalk tokens add` writes it";
        return section.fail(at, "hash", message);
    };
    let Some(role) = section.choice("role", &TokenRole::ALL)? else {
        return section.fail(at, "role", "missing, expected one of talk, operate, admin");
    };
    let agents = patterns(&mut section, "agents")?;
    let senders = patterns(&mut section, "senders")?;
    let folders = patterns(&mut section, "cwd")?;
    let cwd = folders.map(|folders| {
        let folders = folders.iter();
        folders
            .map(|text| absolute(&section, "cwd", text, user_home))
            .collect::<Result<_, _>>()
    });
    let cwd = cwd.transpose()?;
    let until = until(&mut section)?;
    section.finish_strictly()?;
    Ok(Token {
        name: name.to_owned(),
        hash,
        role,
        agents,
        senders,
        cwd,
        until,
    })
}

/// A list that says something: an empty one would be read as all by one reader and
/// as none by the next.
fn patterns(section: &mut Section<'_>, key: &'static str) -> Result<Option<Vec<String>>, Error> {
    let at = section.at;
    match section.strings(key)? {
        Some(list) if list.is_empty() || list.iter().any(|text| text.trim().is_empty()) => {
            section.fail(at, key, "is empty: name something, or leave it out")
        }
        Some(list) if list.len() > MAX_PATTERNS => {
            section.fail(at, key, &format!("has more than {MAX_PATTERNS} entries"))
        }
        list => Ok(list),
    }
}

/// An end: a date, to its end in UTC, or an instant.
fn until(section: &mut Section<'_>) -> Result<Option<Timestamp>, Error> {
    let Some(entry) = section.take("until") else {
        return Ok(None);
    };
    let text = if let Value::Date(text) = &entry.node.value {
        text.clone()
    } else {
        section.text("until", &entry.node)?
    };
    match end_of(&text) {
        Some(end) => Ok(Some(end)),
        None => section.fail(
            entry.node.at,
            "until",
            "expected a date, as in 2027-01-31, or an instant, as in 2027-01-31T12:00:00Z",
        ),
    }
}

/// Reads an end: a date lasts to its end in UTC.
pub fn end_of(text: &str) -> Option<Timestamp> {
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(instant);
    }
    // `parse` would take the date of any longer text too.
    let date = (text.len() == 10).then(|| text.parse::<Date>().ok())??;
    let next = date.tomorrow().ok()?;
    let end = next.to_zoned(TimeZone::UTC).ok()?;
    Some(end.timestamp())
}
