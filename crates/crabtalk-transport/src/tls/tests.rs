use super::*;
use crate::crowd::Crowd;
use crate::serve;
use crate::tcp::TcpError;
use crate::tests::*;
use crabtalk_proto::{Client, Ping};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

fn certificate() -> Certificate {
    let own = make_certificate().unwrap();
    Certificate::from_pem(own.certificate.as_bytes(), own.key.as_bytes()).unwrap()
}

/// A daemon's listener and its tasks.
struct Fixture {
    address: String,
    fingerprint: Fingerprint,
    shutdown: CancellationToken,
    serving: JoinSet<()>,
}

impl Fixture {
    async fn new() -> Self {
        let certificate = certificate();
        let fingerprint = certificate.fingerprint();
        let tcp = TcpListener::bind("127.0.0.1:0".parse().unwrap(), Vec::new());
        let listener = TlsListener::new(tcp.await.unwrap(), certificate);
        let address = listener.local_addr().unwrap().to_string();
        let shutdown = CancellationToken::new();
        let mut serving = JoinSet::new();
        let session = |_| Ok(Scripted::new().1);
        serving.spawn(serve(listener, Crowd::new(64), session, shutdown.clone()));
        Self {
            address,
            fingerprint,
            shutdown,
            serving,
        }
    }

    async fn stopped(mut self) {
        self.shutdown.cancel();
        self.serving.join_next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn client_with_the_pinned_certificate_is_answered() {
    let fixture = Fixture::new().await;
    assert_eq!(
        fingerprint_of(&fixture.address).await.unwrap(),
        fixture.fingerprint
    );
    let mut client = connect_tls(&fixture.address, fixture.fingerprint)
        .await
        .unwrap();
    client.ping(Ping {}).await.unwrap();
    client.ping(Ping {}).await.unwrap();
    fixture.stopped().await;
}

#[tokio::test]
async fn other_certificate_is_refused() {
    let fixture = Fixture::new().await;
    let other = certificate().fingerprint();
    let error = connect_tls(&fixture.address, other).await.unwrap_err();
    let TcpError::Changed { expected, seen, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!((expected, seen), (other, fixture.fingerprint));
    fixture.stopped().await;
}

#[tokio::test]
async fn silent_and_plain_connections_delay_no_client() {
    let fixture = Fixture::new().await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(&fixture.address).await.unwrap());
    }
    let mut plain = TcpStream::connect(&fixture.address).await.unwrap();
    plain.write_all(&frames([Ping {}.into()])).await.unwrap();
    let mut client = connect_tls(&fixture.address, fixture.fingerprint)
        .await
        .unwrap();
    client.ping(Ping {}).await.unwrap();
    // The server sends a TLS alert at most.
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said).await;
    assert!(said.len() < 16, "{said:?}");
    fixture.stopped().await;
    for mut silent in silent {
        assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn silent_handshake_times_out() {
    let fixture = Fixture::new().await;
    let mut silent = TcpStream::connect(&fixture.address).await.unwrap();
    assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0);
    fixture.stopped().await;
}

#[test]
fn fingerprint_text_round_trips() {
    let fingerprint = certificate().fingerprint();
    let text = fingerprint.to_string();
    assert_eq!(Fingerprint::parse(&text), Some(fingerprint));
    let upper = text.to_uppercase();
    assert_eq!(Fingerprint::parse(&upper), Some(fingerprint));
    for wrong in [
        "",
        "SHA256:",
        "SHA256:zz",
        &text[..70],
        "é".repeat(40).as_str(),
    ] {
        assert_eq!(Fingerprint::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn key_of_another_certificate_is_refused() {
    let (one, other) = (make_certificate().unwrap(), make_certificate().unwrap());
    let mixed = Certificate::from_pem(one.certificate.as_bytes(), other.key.as_bytes());
    assert!(
        matches!(mixed, Err(CertificateError::Unusable(_))),
        "{mixed:?}"
    );
    let none = Certificate::from_pem(b"nothing", one.key.as_bytes());
    assert!(
        matches!(none, Err(CertificateError::NotPem { .. })),
        "{none:?}"
    );
}
