use super::*;
use crate::crowd::Crowd;
use crate::serve;
use crate::tests::*;
use crabtalk_proto::{Client, Ping};
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(LOOPBACK, Vec::new()).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[tokio::test]
async fn client_is_answered() {
    let (listener, address) = listener().await;
    let shutdown = CancellationToken::new();
    let mut serving = JoinSet::new();
    let session = |_| Ok(Scripted::new().1);
    serving.spawn(serve(listener, Crowd::new(64), session, shutdown.clone()));
    let mut client = connect_tcp(&address.to_string()).await.unwrap();
    client.ping(Ping {}).await.unwrap();
    drop(client);
    shutdown.cancel();
    serving.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn connections_have_nodelay_and_keepalive() {
    let (listener, address) = listener().await;
    let (client, accepted) = tokio::join!(open_std(address), listener.next());
    let (accepted, peer) = accepted.unwrap();
    assert_eq!(client.local_addr().unwrap(), peer);
    for stream in [&client, &accepted] {
        assert!(stream.nodelay().unwrap());
        assert!(SockRef::from(stream).keepalive().unwrap());
    }
}

async fn open_std(address: SocketAddr) -> TcpStream {
    open(&address.to_string()).await.unwrap()
}

#[tokio::test]
async fn taken_port_is_reported() {
    let (_listener, address) = listener().await;
    let error = TcpListener::bind(address, Vec::new()).await.unwrap_err();
    assert!(
        matches!(error, TcpError::Taken(taken) if taken == address),
        "{error}"
    );
}

#[tokio::test]
async fn connections_past_the_proxy_are_closed() {
    let proxy = vec!["127.0.0.2".parse().unwrap()];
    let listener = TcpListener::bind(LOOPBACK, proxy).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut stranger = TcpStream::connect(address).await.unwrap();
    let accepting = Arc::new(listener);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { accepting.next().await.map(|_| ()) });
    assert_eq!(next(&mut stranger).await, "closed");
}

#[test]
fn ipv6_network_is_one_source() {
    let source = |ip: &str| source_of(SocketAddr::new(ip.parse().unwrap(), 1));
    assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:2"));
    assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
    assert_eq!(source("::ffff:10.0.0.1"), source("10.0.0.1"));
    assert_ne!(source("10.0.0.1"), source("10.0.0.2"));
}
