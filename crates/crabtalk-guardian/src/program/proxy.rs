//! An HTTP proxy that connects a sandboxed command to granted hosts.
//!
//! It listens in the command's network namespace and connects from the
//! guardian's. Invariants: a name is resolved once, and only a checked address is
//! connected to; addresses that are not public are refused.

use std::io::{self, Read, Write};
use std::net::ToSocketAddrs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Maximum concurrent connections; further ones are closed.
const MAX_CONNECTIONS: usize = 64;

/// Longest request head.
const MAX_HEAD_BYTES: usize = 32 << 10;

/// Timeout for the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// Timeout for connecting to one address.
const CONNECT_WITHIN: Duration = Duration::from_secs(15);

/// Serves connections until this process ends.
pub(super) fn serve(listener: OwnedFd, hosts: Vec<String>) -> io::Result<()> {
    let listener = TcpListener::from(listener);
    let (hosts, open) = (Arc::new(hosts), Arc::new(AtomicUsize::new(0)));
    std::thread::Builder::new().spawn(move || {
        for client in listener.incoming().flatten() {
            if open.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (hosts, of_thread) = (Arc::clone(&hosts), Arc::clone(&open));
            let started = std::thread::Builder::new().spawn(move || {
                // A broken connection affects only its client.
                let _ = attend(client, &hosts);
                of_thread.fetch_sub(1, Ordering::Relaxed);
            });
            if started.is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })?;
    Ok(())
}

/// A refused request: the status, and an explanation.
#[derive(Debug)]
struct Refusal(&'static str, String);

fn attend(mut client: TcpStream, hosts: &[String]) -> io::Result<()> {
    client.set_read_timeout(Some(HEAD_WITHIN))?;
    let (head, rest) = read_head(&mut client)?;
    let connected = Request::parse(&head).and_then(|request| {
        let upstream = connect(&request, hosts)?;
        Ok((request, upstream))
    });
    let (request, mut upstream) = match connected {
        Ok(connected) => connected,
        Err(Refusal(status, text)) => {
            return write!(
                client,
                "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
        }
    };
    client.set_read_timeout(None)?;
    match &request.forwarded {
        Some(head) => upstream.write_all(head.as_bytes())?,
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
    }
    upstream.write_all(&rest)?;
    splice(client, upstream)
}

/// Reads the head of a request; returns it with the bytes that followed.
fn read_head(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            let head = String::from_utf8(bytes).map_err(io::Error::other)?;
            return Ok((head, rest));
        }
        let length = client.read(&mut buffer)?;
        if length == 0 || bytes.len() > MAX_HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.extend_from_slice(&buffer[..length]);
    }
}

#[derive(Debug)]
struct Request {
    host: String,
    port: u16,
    /// The head for the server; `None` for `CONNECT`.
    forwarded: Option<String>,
}

impl Request {
    fn parse(head: &str) -> Result<Self, Refusal> {
        let bad = |what: &str| Refusal("400 Bad Request", format!("{what}\n"));
        let (line, headers) = head.split_once("\r\n").ok_or_else(|| bad("no request"))?;
        let mut words = line.split(' ');
        let (Some(method), Some(target), Some(version)) =
            (words.next(), words.next(), words.next())
        else {
            return Err(bad("invalid request line"));
        };
        if method == "CONNECT" {
            let (host, port) = authority(target, 443).ok_or_else(|| bad("invalid host"))?;
            return Ok(Self {
                host,
                port,
                forwarded: None,
            });
        }
        let Some(rest) = target.strip_prefix("http://") else {
            return Err(bad(
                "this is a proxy: request http:// addresses, or use CONNECT",
            ));
        };
        let (named, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = authority(named, 80).ok_or_else(|| bad("invalid host"))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut forwarded =
            format!("{method} {slash}{path} {version}\r\nHost: {named}\r\nConnection: close\r\n");
        for header in headers.split("\r\n").filter(|h| !h.is_empty()) {
            let name = header.split(':').next().unwrap_or_default();
            let ours = [
                "host",
                "connection",
                "proxy-connection",
                "proxy-authorization",
            ];
            if !ours.iter().any(|our| name.trim().eq_ignore_ascii_case(our)) {
                forwarded.push_str(header);
                forwarded.push_str("\r\n");
            }
        }
        forwarded.push_str("\r\n");
        Ok(Self {
            host,
            port,
            forwarded: Some(forwarded),
        })
    }
}

/// Parses `host`, `host:port` or `[v6]:port`.
fn authority(text: &str, default: u16) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map_or(Ok(default), str::parse).ok()?;
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty()).then_some((host, port))
}

fn connect(request: &Request, hosts: &[String]) -> Result<TcpStream, Refusal> {
    let host = &request.host;
    if !is_granted(host, hosts) {
        return Err(Refusal(
            "403 Forbidden",
            format!(
                "the sandbox does not let this command reach {host}: request it with `hosts`: [\"{host}\"] and a reason\n"
            ),
        ));
    }
    let gateway = |e: &dyn std::fmt::Display| {
        Refusal("502 Bad Gateway", format!("cannot reach {host}: {e}\n"))
    };
    let found = (host.as_str(), request.port).to_socket_addrs();
    let found: Vec<SocketAddr> = found.map_err(|e| gateway(&e))?.collect();
    let mut failed = Refusal(
        "403 Forbidden",
        format!(
            "the sandbox does not let commands reach {host}, because its address is not public: to ask for a run outside the sandbox, use `escalate` with a reason\n"
        ),
    );
    for address in found.iter().filter(|address| is_public(address.ip())) {
        match TcpStream::connect_timeout(address, CONNECT_WITHIN) {
            Ok(stream) => return Ok(stream),
            Err(e) => failed = gateway(&e),
        }
    }
    Err(failed)
}

/// Whether a host is granted by its name, by `*.domain`, or by `*`.
fn is_granted(host: &str, hosts: &[String]) -> bool {
    hosts.iter().any(|granted| match granted.strip_prefix('*') {
        Some("") => true,
        Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        None => host == granted,
    })
}

/// Whether an address is on the public internet, not on this machine,
/// its network or its cloud provider.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        // This network, carrier-grade NAT, protocol assignments, 6to4 relays,
        // and benchmarking.
        [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => true,
        [100, second, ..] => (64..128).contains(&second),
        // A cloud provider's internal service.
        [168, 63, 129, 16] => true,
        [first, ..] => first >= 240,
    };
    !(special
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(address) = address.to_ipv4_mapped() {
        return is_public_v4(address);
    }
    match address.segments() {
        // Special-purpose addresses, including tunnels
        // and embedded IPv4 addresses.
        [0x2001, second, ..] => second > 0x01ff,
        [0x2002, ..] => false,
        // Global unicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Copies bytes in both directions until both ends are closed.
fn splice(client: TcpStream, upstream: TcpStream) -> io::Result<()> {
    let (mut from, mut to) = (client.try_clone()?, upstream.try_clone()?);
    let up = std::thread::Builder::new().spawn(move || pass(&mut from, &mut to))?;
    let (mut from, mut to) = (upstream, client);
    pass(&mut from, &mut to);
    let _ = up.join();
    Ok(())
}

fn pass(from: &mut TcpStream, to: &mut TcpStream) {
    let ended = io::copy(from, to);
    let _ = to.shutdown(Shutdown::Write);
    if ended.is_err() {
        // Otherwise the other direction would wait forever.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_reached() {
        for (address, public) in [
            ("1.1.1.1", true),
            ("100.63.0.1", true),
            ("2606:4700::1111", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.1.2.3", false),
            ("100.64.0.1", false),
            ("100.100.100.200", false),
            ("127.0.0.1", false),
            ("127.8.8.8", false),
            ("169.254.169.254", false),
            ("172.31.0.1", false),
            ("192.168.1.1", false),
            ("192.0.0.192", false),
            ("168.63.129.16", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:1.1.1.1", true),
            ("::127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("2002:7f00:1::", false),
            ("2001::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("ff02::1", false),
        ] {
            let parsed = address.parse().expect("an address");
            assert_eq!(is_public(parsed), public, "{address}");
        }
    }

    #[test]
    fn hosts_match_exactly_or_by_suffix() {
        for (host, granted, is) in [
            ("example.com", "example.com", true),
            ("www.example.com", "example.com", false),
            ("www.example.com", "*.example.com", true),
            ("example.com", "*.example.com", false),
            ("badexample.com", "*.example.com", false),
            ("anything", "*", true),
        ] {
            assert_eq!(is_granted(host, &[granted.to_owned()]), is, "{host}");
        }
    }

    #[test]
    fn requests_are_parsed() {
        let connect = Request::parse("CONNECT Example.com:8443 HTTP/1.1\r\n\r\n").expect("fine");
        assert_eq!((connect.host.as_str(), connect.port), ("example.com", 8443));
        let head = "GET http://example.com?q HTTP/1.1\r\nHost: other\r\nProxy-Connection: x\r\nAccept: a\r\n\r\n";
        let get = Request::parse(head).expect("fine");
        assert_eq!((get.host.as_str(), get.port), ("example.com", 80));
        let sent =
            "GET /?q HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nAccept: a\r\n\r\n";
        assert_eq!(get.forwarded.as_deref(), Some(sent));
        for bad in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT :443 HTTP/1.1\r\n\r\n",
            "GET\r\n\r\n",
        ] {
            assert!(Request::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn granted_name_of_private_address_is_refused() {
        let request = Request {
            host: "localhost".into(),
            port: 80,
            forwarded: None,
        };
        let Err(Refusal(status, _)) = connect(&request, &["*".into()]) else {
            panic!("it connected");
        };
        assert_eq!(status, "403 Forbidden");
    }
}
