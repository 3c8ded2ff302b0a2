//! Connects to a server, directly or through a proxy, with TLS if needed.

use super::socket::Socket;
use super::{Failure, Proxies, Tls, chain};
use futures_core::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper::rt::{Read, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

/// Head start of the system's preferred address family, as RFC 8305
/// recommends.
const OTHER_FAMILY_AFTER: Duration = Duration::from_millis(250);

/// Timeout for all addresses of a family together, so that an unresponsive one does
/// not use up the time of the others.
const FAMILY_TIME: Duration = Duration::from_secs(20);

type Cause = Box<dyn Error + Send + Sync>;

#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    tls: Arc<Tls>,
    proxies: Arc<Proxies>,
}

impl Connector {
    pub(super) fn new(proxies: Arc<Proxies>, tls: Tls) -> Self {
        Self {
            tcp: sockets(GaiResolver::new()),
            tls: Arc::new(tls),
            proxies,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = Socket;
    type Error = Failure;
    type Future = BoxFuture<'static, Result<Socket, Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        Box::pin(self.clone().connect(server))
    }
}

impl Connector {
    async fn connect(self, server: Uri) -> Result<Socket, Failure> {
        let Some(proxy) = self.proxies.of(&server)? else {
            return self.secured(self.tcp.clone(), server, false).await;
        };
        let connected = self.through(&proxy, server).await;
        connected.map_err(|failure| match failure {
            Failure::Connect(reason) => Failure::Proxy {
                proxy: proxy.uri().to_string().trim_end_matches('/').to_owned(),
                reason,
            },
            // The proxy cannot see the server's certificate.
            Failure::Proxy { .. } | Failure::Tls(_) | Failure::Timeout(_) | Failure::Broken(_) => {
                failure
            }
        })
    }

    async fn through(&self, proxy: &Intercept, server: Uri) -> Result<Socket, Failure> {
        let (tcp, address) = (self.tcp.clone(), proxy.uri().clone());
        match address.scheme_str().unwrap_or_default() {
            scheme @ ("socks5" | "socks5h") => {
                let mut socks = SocksV5::new(address.clone(), tcp).local_dns(scheme == "socks5");
                if let Some((user, password)) = proxy.raw_auth() {
                    socks = socks.with_auth(user.to_owned(), password.to_owned());
                }
                self.secured(socks, server, false).await
            }
            scheme @ ("socks4" | "socks4a") => {
                let socks = SocksV4::new(address.clone(), tcp).local_dns(scheme == "socks4");
                self.secured(socks, server, false).await
            }
            // The proxy reads plain requests itself.
            _ if server.scheme() != Some(&Scheme::HTTPS) => self.secured(tcp, address, true).await,
            "https" => {
                let tcp = HttpsConnector::from((tcp, self.tls.config().await?));
                self.secured(tunnel(proxy, tcp), server, false).await
            }
            _ => self.secured(tunnel(proxy, tcp), server, false).await,
        }
    }

    /// Connects, with TLS if the address requires it.
    async fn secured<C>(&self, mut inner: C, to: Uri, proxied: bool) -> Result<Socket, Failure>
    where
        C: Service<Uri> + Send,
        C::Response: Read + Write + Connection + Unpin + Send + 'static,
        C::Future: Send + 'static,
        C::Error: Into<Cause>,
    {
        if to.scheme() != Some(&Scheme::HTTPS) {
            let stream = inner.call(to).await.map_err(|e| unconnected(e.into()))?;
            return Ok(Socket::new(stream, proxied));
        }
        let mut https = HttpsConnector::from((inner, self.tls.config().await?));
        let stream = https.call(to).await.map_err(unconnected)?;
        Ok(Socket::new(stream, proxied))
    }
}

/// A connector that tries both address families and uses the first to answer.
fn sockets<R>(resolver: R) -> HttpConnector<R> {
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    tcp.enforce_http(false);
    // A request is written at once; Nagle's algorithm would only delay it.
    tcp.set_nodelay(true);
    tcp.set_happy_eyeballs_timeout(Some(OTHER_FAMILY_AFTER));
    tcp.set_connect_timeout(Some(FAMILY_TIME));
    tcp
}

fn tunnel<C>(proxy: &Intercept, tcp: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), tcp);
    match proxy.basic_auth() {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    }
}

/// Connectors of sockets and proxies wrap their errors; an unwrapped error
/// comes from TLS.
fn unconnected(error: Cause) -> Failure {
    let reason = chain(&*error);
    if error.is::<io::Error>() {
        Failure::Tls(reason)
    } else {
        Failure::Connect(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper_util::client::legacy::connect::dns::Name;
    use std::net::{Ipv6Addr, SocketAddr};
    use tokio::net::{TcpListener, TcpSocket};

    /// Resolves every name to these addresses.
    #[derive(Clone)]
    struct Names(Vec<SocketAddr>);

    impl Service<Name> for Names {
        type Response = std::vec::IntoIter<SocketAddr>;
        type Error = io::Error;
        type Future = std::future::Ready<io::Result<Self::Response>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Name) -> Self::Future {
            std::future::ready(Ok(self.0.clone().into_iter()))
        }
    }

    async fn reached(addresses: Vec<SocketAddr>) -> Result<SocketAddr, Cause> {
        let mut tcp = sockets(Names(addresses));
        let stream = tcp.call(Uri::from_static("http://model.test/")).await?;
        Ok(stream.inner().peer_addr()?)
    }

    /// Two unreachable IPv6 addresses: most machines refuse the first at once;
    /// some drop its packets.
    #[tokio::test]
    async fn broken_ipv6_leaves_ipv4() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let works = listener.local_addr().expect("bound");
        let nowhere =
            |last| SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last), 9));
        let addresses = vec![nowhere(1), nowhere(2), works];
        assert_eq!(reached(addresses).await.expect("IPv4 works"), works);
    }

    /// A listener with a full queue drops packets, like a
    /// broken tunnel.
    #[tokio::test(start_paused = true)]
    async fn dead_ipv6_falls_back_to_ipv4() {
        let socket = TcpSocket::new_v6().expect("a socket");
        if socket.bind((Ipv6Addr::LOCALHOST, 0).into()).is_err() {
            return; // This machine has no IPv6.
        }
        let full = socket.listen(0).expect("listens");
        let vanishes = full.local_addr().expect("bound");
        // One connection fills the queue.
        let _first = tokio::net::TcpStream::connect(vanishes)
            .await
            .expect("the only one");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let works = listener.local_addr().expect("bound");
        let begun = tokio::time::Instant::now();
        assert_eq!(
            reached(vec![vanishes, works]).await.expect("IPv4 works"),
            works
        );
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}");
    }

    #[tokio::test]
    async fn refusal_is_reported() {
        let gone = crabtalk_testkit::ports::Closed::new();
        let error = reached(vec![gone.address()])
            .await
            .expect_err("no listener");
        assert!(chain(&*error).contains("refused"), "{error}");
    }
}
