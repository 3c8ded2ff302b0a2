use super::*;
use crate::config::Kind;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A certificate for `localhost` that nobody trusts by itself, valid until
/// 2126, and its key, which guards nothing.
const CERTIFICATE: &[u8] = include_bytes!("tests/localhost.cert.der");
const KEY: &[u8] = include_bytes!("tests/localhost.key.der");
/// Another one for the same name.
const STRANGER: &[u8] = include_bytes!("tests/stranger.cert.der");

/// The port of an https server that says "hi" to everything.
async fn server(tasks: &mut JoinSet<()>) -> u16 {
    let certificate = CertificateDer::from(CERTIFICATE);
    let key = PrivatePkcs8KeyDer::from(KEY);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("supported versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .expect("a key that fits");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut request = vec![0; 4096];
            while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
                stream.write_all(answer).await.expect("the client waits");
            }
        }
    });
    port
}

async fn get(host: &str, port: u16, tls: &Tls, pool: &Arc<Pool>) -> Result<Vec<u8>, Failure> {
    let url = format!("https://{host}:{port}");
    let endpoint = Endpoint::new(Kind::OpenAi, Some(&url)).expect("a good address");
    let mut request = Request::new(RequestBody::default());
    *request.uri_mut() = "/".parse().expect("a path");
    let response = call(pool, &endpoint, tls, Duration::from_secs(10), &request).await?;
    Ok(response
        .body
        .collect(100)
        .await
        .expect("a whole body")
        .expect("a short body"))
}

#[tokio::test]
async fn https_works_with_a_trusted_server_and_is_kept() {
    let mut tasks = JoinSet::new();
    let port = server(&mut tasks).await;
    let tls = Tls::trusting(vec![CertificateDer::from(CERTIFICATE)]);
    let pool = Arc::new(Pool::default());
    // The server serves one connection after the other, so that a second one
    // beside a kept one would hang.
    for _ in 0..3 {
        assert_eq!(
            get("localhost", port, &tls, &pool)
                .await
                .expect("an answer"),
            b"hi"
        );
    }
}

#[tokio::test]
async fn https_is_refused_for_strangers_and_other_names() {
    let mut tasks = JoinSet::new();
    let port = server(&mut tasks).await;
    for (host, root) in [("localhost", STRANGER), ("127.0.0.1", CERTIFICATE)] {
        let tls = Tls::trusting(vec![CertificateDer::from(root)]);
        let failure = get(host, port, &tls, &Arc::default())
            .await
            .expect_err(host);
        assert!(
            matches!(&failure, Failure::Tls(reason) if reason.contains("certificate")),
            "{failure:?}"
        );
    }
}
