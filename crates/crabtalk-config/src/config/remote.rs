//! `[tcp]` and `[token.NAME]`: access from other machines (REMOTE-1).
//!
//! Invariants: the daemon listens only on the addresses in the file; beyond loopback it
//! requires TLS or a named proxy; an unknown key is an error.

use super::Named;
use crate::values::list;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The default port of an address.
pub const TCP_PORT: u16 = 6688;

/// Maximum listeners of one daemon, which needs one for each of its networks.
const MAX_LISTENERS: usize = 16;

/// Maximum patterns of each kind in one token.
const MAX_PATTERNS: usize = 100;

/// The prefix of a token's hash, which allows for other kinds.
const HASH_KIND: &str = "sha256:";

/// `[tcp]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TcpTable")]
pub struct Tcp {
    /// The addresses to listen on, in the file's order, each once.
    pub listen: Vec<SocketAddr>,
    /// Whether connections are encrypted.
    pub tls: TcpTls,
    /// Addresses of proxies. If there are any, only they may connect, without TLS.
    pub proxy: Vec<IpAddr>,
}

/// Whether connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TcpTls {
    /// Connections are not encrypted.
    Off,
    /// Connections use a certificate that the daemon creates.
    Own,
    /// Connections use this certificate.
    Files {
        /// The certificate chain, PEM.
        cert: PathBuf,
        /// The private key, PEM.
        key: PathBuf,
    },
}

/// The operations that the holder of a token may request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenRole {
    /// Talk to agents.
    Talk,
    /// Also operate the daemon.
    Operate,
    /// Also change the configuration.
    Admin,
}

impl TokenRole {
    /// The role's name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Talk => "talk",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

/// The SHA-256 of a token; a fast hash suffices for 256 random bits.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    /// Parses `sha256:` and 64 hexadecimal digits.
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

impl TryFrom<String> for TokenHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        Self::parse(&text)
            .ok_or("expected sha256: and 64 hexadecimal digits, as `crabtalk tokens add` writes it")
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The token's name, which is its default sender (CONV-8).
    #[serde(skip)]
    pub name: String,
    /// The hash of the token.
    pub hash: TokenHash,
    /// The operations that it may request.
    pub role: TokenRole,
    /// Patterns of agents that it reaches; `None` means all.
    #[serde(default, deserialize_with = "patterns")]
    pub agents: Option<Vec<String>>,
    /// Patterns of senders that it reaches and may use; `None` means its own name for `talk`,
    /// else all. Only the role `admin` reaches owners.
    #[serde(default, deserialize_with = "patterns")]
    pub senders: Option<Vec<String>>,
    /// Folders that may contain a run's working folder; `None` means none, or all for `admin`.
    #[serde(default, deserialize_with = "patterns")]
    pub cwd: Option<Vec<PathBuf>>,
    /// The end of its validity.
    #[serde(default, deserialize_with = "until")]
    pub until: Option<Timestamp>,
}

impl Named for Token {
    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        self.name = name;
    }
}

/// The keys of `[tcp]`. An unknown key is an error, since ignoring it could allow too much.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TcpTable {
    #[serde(deserialize_with = "list")]
    listen: Vec<String>,
    tls: Option<bool>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    #[serde(deserialize_with = "list")]
    proxy: Vec<String>,
}

impl TryFrom<TcpTable> for Tcp {
    type Error = String;

    fn try_from(table: TcpTable) -> Result<Self, String> {
        let mut listen = Vec::new();
        for text in &table.listen {
            let address = address(text).ok_or_else(|| {
                format!(
                    "listen: {text:?} is not an address: use ADDRESS:PORT, as in 127.0.0.1:{TCP_PORT} or \
                     [::]:{TCP_PORT}"
                )
            })?;
            if !listen.contains(&address) || address.port() == 0 {
                listen.push(address);
            }
        }
        if listen.is_empty() || listen.len() > MAX_LISTENERS {
            return Err(format!(
                "listen: expected 1 to {MAX_LISTENERS} addresses, as in \"127.0.0.1:{TCP_PORT}\""
            ));
        }
        let tls = match (table.cert, table.key) {
            (Some(_), Some(_)) if table.tls == Some(false) => {
                return Err("tls: remove `tls = false`, or cert and key".to_owned());
            }
            (Some(cert), Some(key)) => TcpTls::Files { cert, key },
            (None, None) if table.tls == Some(true) => TcpTls::Own,
            (None, None) => TcpTls::Off,
            _ => return Err("cert and key: set both (PEM) or none".to_owned()),
        };
        let proxies = table.proxy.iter().map(|text| {
            text.parse()
                .map_err(|_| format!("proxy: {text:?} is not an IP address, as in 10.0.0.2"))
        });
        let proxy: Vec<IpAddr> = proxies.collect::<Result<_, _>>()?;
        let open = listen.iter().find(|address| !address.ip().is_loopback());
        match (tls == TcpTls::Off, proxy.is_empty(), open) {
            (true, true, Some(open)) => Err(format!(
                "listen: {open} is reached from other machines and needs encryption: set tls = true, or cert \
                 and key, or name the encrypting proxy in front (proxy = \"ADDRESS\")"
            )),
            (false, false, _) => {
                Err("the proxy in front does the encryption: remove proxy, or tls".to_owned())
            }
            _ => Ok(Self { listen, tls, proxy }),
        }
    }
}

/// Parses `ADDRESS:PORT`, or an address alone. The only name is `localhost`.
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

/// Refuses an empty list, which could mean all or none.
fn patterns<'de, T, D>(reader: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: From<String>,
    D: Deserializer<'de>,
{
    let list = list(reader)?;
    if list.is_empty() || list.len() > MAX_PATTERNS || list.iter().any(|t| t.trim().is_empty()) {
        return Err(de::Error::custom(format_args!(
            "expected 1 to {MAX_PATTERNS} texts, or no such key"
        )));
    }
    Ok(Some(list.into_iter().map(T::from).collect()))
}

/// Parses an end: a date, which includes that day in UTC, or an instant.
fn until<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Timestamp>, D::Error> {
    struct End;

    impl Visitor<'_> for End {
        type Value = Option<Timestamp>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a date, as in 2027-01-31, or an instant, as in 2027-01-31T12:00:00Z")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            let end = end_of(text).ok_or_else(|| E::invalid_type(Unexpected::Str(text), &self))?;
            Ok(Some(end))
        }
    }

    reader.deserialize_any(End)
}

/// Parses an end; a date includes that day in UTC.
pub fn end_of(text: &str) -> Option<Timestamp> {
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(instant);
    }
    // The parser would also accept the date in a longer text.
    let date = (text.len() == 10).then(|| text.parse::<Date>().ok())??;
    let next = date.tomorrow().ok()?;
    let end = next.to_zoned(TimeZone::UTC).ok()?;
    Some(end.timestamp())
}
