use super::*;
use crate::crowd::{Crowd, Limits};
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
async fn a_client_is_answered_and_nothing_is_held_back() {
    let (listener, address) = listener().await;
    let shutdown = CancellationToken::new();
    let mut serving = JoinSet::new();
    let session = |_| Ok(Scripted::new().1);
    serving.spawn(serve(listener, Crowd::default(), session, shutdown.clone()));
    let mut client = connect_tcp(&address.to_string()).await.unwrap();
    client.ping(Ping {}).await.unwrap();
    drop(client);
    shutdown.cancel();
    serving.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn connections_wait_for_no_company_and_ask_after_their_peer() {
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
async fn a_taken_port_says_so_and_by_whom() {
    let (_listener, address) = listener().await;
    let error = TcpListener::bind(address, Vec::new()).await.unwrap_err();
    let said = error.to_string();
    let port = address.port();
    assert!(
        said.starts_with(&format!("port {port} of 127.0.0.1 is taken")),
        "{said}"
    );
    if cfg!(target_os = "linux") {
        let process = format!("(process {})", std::process::id());
        assert!(said.contains(&process), "{said}");
    }
}

#[tokio::test]
async fn past_a_proxy_nobody_comes_in() {
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
fn a_network_of_the_sixth_version_is_one_source() {
    let source = |ip: &str| source_of(SocketAddr::new(ip.parse().unwrap(), 1));
    assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:2"));
    assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
    assert_eq!(source("::ffff:10.0.0.1"), source("10.0.0.1"));
    assert_ne!(source("10.0.0.1"), source("10.0.0.2"));
}

#[tokio::test]
async fn strangers_that_say_nothing_cost_places_of_their_own() {
    let (listener, address) = listener().await;
    let crowd = Crowd::new(Limits {
        connections: 64,
        ..Limits::default()
    });
    let shutdown = CancellationToken::new();
    let mut serving = JoinSet::new();
    let session = |_| Ok(Stranger);
    serving.spawn(serve(listener, crowd.clone(), session, shutdown.clone()));
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    // Of 64 places 48 are theirs; who comes after hears that, and is closed.
    for late in &mut silent[48..] {
        let told = next(late).await;
        assert!(
            told.starts_with("429: too many connections are open"),
            "{told}"
        );
        assert_eq!(next(late).await, "closed");
    }
    assert_eq!(crowd.open(), 48);
    shutdown.cancel();
    serving.join_next().await.unwrap().unwrap();
}
