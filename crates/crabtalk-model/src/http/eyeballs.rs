//! Connects to whichever address of a name answers first (RFC 8305): a
//! network that drops one family's packets costs a fraction of a second.
//! Invariants: the first address is tried first, each next one a moment later
//! or as soon as one fails; when one is connected the others are let go.

use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::sleep;

/// Until the next address is tried beside those before; what RFC 8305
/// recommends.
const NEXT_AFTER: Duration = Duration::from_millis(250);

/// Addresses tried of a name; the largest providers have a dozen.
const MAX_ADDRESSES: usize = 16;

/// Resolves a name and connects.
pub(super) async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let found = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => lookup_host((host, port)).await?.collect(),
    };
    first(interleaved(found), TcpStream::connect).await
}

/// The addresses by turns of their families; the system's first one, which it
/// prefers, stays the first.
fn interleaved(found: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let prefers_v6 = found.first().is_some_and(SocketAddr::is_ipv6);
    let (mut these, mut those): (VecDeque<_>, VecDeque<_>) = found
        .into_iter()
        .partition(|address| address.is_ipv6() == prefers_v6);
    let mut all = VecDeque::new();
    while let Some(next) = these.pop_front().or_else(|| those.pop_front()) {
        all.push_back(next);
        all.extend(those.pop_front());
    }
    all.truncate(MAX_ADDRESSES);
    all
}

/// Connects to the first that answers.
async fn first<T, F>(
    mut addresses: VecDeque<SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut trying = FuturesUnordered::new();
    loop {
        match addresses.pop_front() {
            Some(next) => trying.push(connect(next)),
            None if trying.is_empty() => return Err(failed),
            None => {}
        }
        let wait = async {
            if addresses.is_empty() {
                std::future::pending::<()>().await;
            }
            sleep(NEXT_AFTER).await;
        };
        tokio::select! {
            biased;
            tried = trying.next() => match tried {
                Some(Ok(connected)) => return Ok(connected),
                Some(Err(error)) => failed = error,
                None => {}
            },
            () = wait => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tokio::time::Instant;

    const V6: &str = "[2001:db8::1]:443";
    const OTHER_V6: &str = "[2001:db8::2]:443";
    const V4: &str = "192.0.2.1:443";
    const OTHER_V4: &str = "192.0.2.2:443";

    fn addresses(all: &[&str]) -> Vec<SocketAddr> {
        all.iter()
            .map(|text| text.parse().expect("an address"))
            .collect()
    }

    #[test]
    fn families_take_turns_and_the_preferred_one_begins() {
        let sorted = interleaved(addresses(&[V6, OTHER_V6, V4, OTHER_V4]));
        assert_eq!(sorted, addresses(&[V6, V4, OTHER_V6, OTHER_V4]));
        let sorted = interleaved(addresses(&[V4, V6, OTHER_V6]));
        assert_eq!(sorted, addresses(&[V4, V6, OTHER_V6]));
        assert_eq!(
            interleaved(addresses(&[OTHER_V4, V4])),
            addresses(&[OTHER_V4, V4])
        );
    }

    /// A network that drops everything of IPv6, as a broken tunnel does.
    #[tokio::test(start_paused = true)]
    async fn a_family_whose_packets_vanish_costs_a_moment() {
        let begun = Instant::now();
        let connect = async |address: SocketAddr| {
            if address.is_ipv6() {
                std::future::pending::<()>().await;
            }
            Ok(address)
        };
        let all = interleaved(addresses(&[V6, OTHER_V6, V4]));
        let connected = first(all, connect).await.expect("IPv4 works");
        assert_eq!(connected, addresses(&[V4])[0]);
        assert_eq!(begun.elapsed(), NEXT_AFTER);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_not_waited_for_and_the_last_one_is_told() {
        let begun = Instant::now();
        let tried = Mutex::new(Vec::new());
        let connect = async |address: SocketAddr| -> io::Result<()> {
            tried.lock().expect("not poisoned").push(address);
            Err(io::Error::other(address.to_string()))
        };
        let all = interleaved(addresses(&[V6, V4]));
        let error = first(all.clone(), &connect).await.expect_err("all refuse");
        assert_eq!(error.to_string(), V4);
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(all, *tried.lock().expect("not poisoned"));
        assert!(first(VecDeque::new(), &connect).await.is_err());
    }
}
