use super::*;
use crabtalk_testkit::ports::Closed;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A self-signed certificate, valid until 2126, and its key, which is not
/// secret.
type Identity = (&'static [u8], &'static [u8]);

/// The certificate of `localhost`.
const NEAR: Identity = (
    include_bytes!("tests/localhost.cert.der"),
    include_bytes!("tests/localhost.key.der"),
);
/// The certificate of `model.test`, which does not resolve.
const FAR: Identity = (
    include_bytes!("tests/far.cert.der"),
    include_bytes!("tests/far.key.der"),
);
/// Another certificate of `localhost`.
const STRANGER: &[u8] = include_bytes!("tests/stranger.cert.der");

/// Starts an https server that answers "hi"; returns its port.
async fn server(tasks: &mut JoinSet<()>, of: Identity) -> u16 {
    let certificate = CertificateDer::from(of.0);
    let key = PrivatePkcs8KeyDer::from(of.1);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
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

fn client(roots: &'static [u8], proxies: Proxies) -> Client {
    let tls = Tls::trusting(vec![CertificateDer::from(roots)]);
    Client::new(proxies, tls)
}

/// Proxies for these variables.
fn proxies(variables: &[(&str, &str)]) -> Proxies {
    Proxies::from_variables(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

async fn get(client: &Client, address: &str) -> Result<Vec<u8>, Failure> {
    let mut request = Request::new(RequestBody::default());
    *request.uri_mut() = address.parse().expect("an address");
    let response = client.call(Duration::from_secs(10), request).await?;
    let body = response.body.collect(100).await.expect("a whole body");
    Ok(body.expect("a short body"))
}

#[tokio::test]
async fn https_works_with_a_trusted_server_and_is_kept() {
    let mut tasks = JoinSet::new();
    let port = server(&mut tasks, NEAR).await;
    let client = client(NEAR.0, Proxies::default());
    // The server serves one connection at a time, so that a second
    // connection would hang.
    for _ in 0..3 {
        let address = format!("https://localhost:{port}/");
        assert_eq!(get(&client, &address).await.expect("an answer"), b"hi");
    }
}

#[tokio::test]
async fn https_refuses_untrusted_certificates_and_names() {
    let mut tasks = JoinSet::new();
    let port = server(&mut tasks, NEAR).await;
    for (host, root) in [("localhost", STRANGER), ("127.0.0.1", NEAR.0)] {
        let client = client(root, Proxies::default());
        let failure = get(&client, &format!("https://{host}:{port}/")).await;
        let failure = failure.expect_err(host);
        assert!(
            matches!(&failure, Failure::Tls(reason) if reason.contains("certificate")),
            "{failure:?}"
        );
    }
}

/// A listener that never answers; its task returns the bytes on the first
/// connection.
async fn mute() -> (u16, JoinSet<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let mut task = JoinSet::new();
    task.spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await.expect("until it ends");
        said
    });
    (port, task)
}

#[tokio::test(start_paused = true)]
async fn hanging_handshake_times_out() {
    let (port, mut task) = mute().await;
    let client = client(NEAR.0, Proxies::default());
    let failure = get(&client, &format!("https://localhost:{port}/")).await;
    assert!(matches!(failure, Err(Failure::Timeout(_))), "{failure:?}");
    // The connection was closed with the call.
    let said = task.join_next().await.expect("one").expect("no panic");
    assert_eq!(said.first(), Some(&22), "a TLS handshake");
}

#[tokio::test]
async fn dropped_call_closes_its_connection() {
    let (port, mut task) = mute().await;
    let client = client(NEAR.0, Proxies::default());
    let address = format!("http://127.0.0.1:{port}/");
    tokio::select! {
        biased;
        answered = get(&client, &address) => panic!("no answer expected: {answered:?}"),
        () = async { while client.tasks.executor().running() == 0 { tokio::task::yield_now().await } } => {}
    }
    let said = task.join_next().await.expect("one").expect("no panic");
    assert!(said.is_empty() || said.starts_with(b"GET / HTTP/1.1"));
    client.tasks.executor().ended().await;
}

#[tokio::test]
async fn tasks_end_with_the_client_that_keeps_a_connection() {
    let mut tasks = JoinSet::new();
    let port = server(&mut tasks, NEAR).await;
    let client = client(NEAR.0, Proxies::default());
    let address = format!("https://localhost:{port}/");
    get(&client, &address).await.expect("an answer");
    let executor = client.tasks.executor();
    assert!(executor.running() > 0, "a connection is kept");
    drop(client);
    executor.ended().await;
}

/// Starts a plain server that answers 200; returns its address and the number of
/// its connections.
async fn counted(tasks: &mut JoinSet<()>) -> (String, watch::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let (count, counted) = watch::channel(0);
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.spawn(async move {
                let mut request = vec![0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut request).await {
                    let body = match request[..read].starts_with(b"HEAD / ") {
                        true => "",
                        false => "hi",
                    };
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{body}");
                    let answered = stream.write_all(answer.as_bytes()).await;
                    answered.expect("the client waits");
                }
            });
            count.send_modify(|count| *count += 1);
        }
    });
    (format!("http://127.0.0.1:{port}/"), counted)
}

#[tokio::test]
async fn expected_call_uses_the_connection_made_before() {
    let mut tasks = JoinSet::new();
    let (address, mut count) = counted(&mut tasks).await;
    let client = client(NEAR.0, Proxies::default());
    for _ in 0..3 {
        client.expect(address.parse().expect("an address"));
    }
    count
        .wait_for(|count| *count == 1)
        .await
        .expect("a connection");
    assert_eq!(get(&client, &address).await.expect("an answer"), b"hi");
    assert_eq!(get(&client, &address).await.expect("an answer"), b"hi");
    assert!(*count.borrow() <= 2, "at most one beside the expected one");
}

#[tokio::test]
async fn failed_expectation_leaves_the_error_to_the_call() {
    let gone = Closed::new();
    let client = client(NEAR.0, Proxies::default());
    let address = format!("http://{}/", gone.address());
    client.expect(address.parse().expect("an address"));
    let failure = get(&client, &address).await;
    assert!(matches!(failure, Err(Failure::Connect(_))), "{failure:?}");
}

/// A proxy that records the heads of its connections, answers `reply`, and then
/// forwards the connection to `port` on loopback.
async fn proxy(tasks: &mut JoinSet<()>, reply: &'static str, port: u16) -> (u16, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let own = listener.local_addr().expect("bound").port();
    let heads = Heads::default();
    let told = Arc::clone(&heads);
    tasks.spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(near.read_u8().await.expect("the head of a request"));
            }
            let head = String::from_utf8(head).expect("text");
            told.lock().expect("not poisoned").push(head);
            near.write_all(reply.as_bytes()).await.expect("is read");
            if reply == TUNNEL {
                let mut far = TcpStream::connect(("127.0.0.1", port))
                    .await
                    .expect("listens");
                // Either end may close first.
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            }
        }
    });
    (own, heads)
}

type Heads = Arc<Mutex<Vec<String>>>;

const TUNNEL: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

#[tokio::test]
async fn https_uses_and_keeps_a_proxy_tunnel() {
    let mut tasks = JoinSet::new();
    let port = server(&mut tasks, FAR).await;
    let (gate, heads) = proxy(&mut tasks, TUNNEL, port).await;
    let variable = format!("http://crab:planted-word@127.0.0.1:{gate}");
    let client = client(FAR.0, proxies(&[("HTTPS_PROXY", &variable)]));
    for _ in 0..2 {
        let answer = get(&client, "https://model.test:8443/").await;
        assert_eq!(answer.expect("an answer"), b"hi");
    }
    let heads = heads.lock().expect("not poisoned").clone();
    assert_eq!(heads.len(), 1, "{heads:?}");
    assert!(heads[0].starts_with("CONNECT model.test:8443 HTTP/1.1\r\n"));
    assert!(heads[0].contains("Proxy-Authorization: Basic Y3JhYjpwbGFudGVkLXdvcmQ=\r\n"));
}

#[tokio::test]
async fn plain_http_uses_the_proxy_with_absolute_urls() {
    let mut tasks = JoinSet::new();
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
    let (gate, heads) = proxy(&mut tasks, answer, 0).await;
    let variable = format!("crab:planted@127.0.0.1:{gate}");
    let client = client(NEAR.0, proxies(&[("all_proxy", &variable)]));
    let answer = get(&client, "http://model.test/v1?x=1").await;
    assert_eq!(answer.expect("an answer"), b"hi");
    let heads = heads.lock().expect("not poisoned").clone();
    assert!(heads[0].starts_with("GET http://model.test/v1?x=1 HTTP/1.1\r\n"));
    assert!(heads[0].contains("proxy-authorization: Basic Y3JhYjpwbGFudGVk\r\n"));
}

#[tokio::test]
async fn socks_leaves_the_name_to_the_proxy() {
    let mut tasks = JoinSet::new();
    let port = server(&mut tasks, FAR).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let gate = listener.local_addr().expect("bound").port();
    tasks.spawn(async move {
        let (mut near, _) = listener.accept().await.expect("a connection");
        let mut greeting = [0; 2];
        near.read_exact(&mut greeting).await.expect("a greeting");
        let mut methods = vec![0; greeting[1].into()];
        near.read_exact(&mut methods).await.expect("its methods");
        near.write_all(&[5, 0]).await.expect("is read");
        let mut wanted = [0; 5 + "model.test".len() + 2];
        near.read_exact(&mut wanted).await.expect("a server");
        assert_eq!(wanted[..5], [5, 1, 0, 3, 10]);
        assert_eq!(wanted[5..15], *b"model.test");
        let done = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        near.write_all(&done).await.expect("is read");
        let far = TcpStream::connect(("127.0.0.1", port)).await;
        let mut far = far.expect("listens");
        // Either end may close first.
        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
    });
    let variable = format!("socks5h://127.0.0.1:{gate}");
    let client = client(FAR.0, proxies(&[("ALL_PROXY", &variable)]));
    let answer = get(&client, "https://model.test/").await;
    assert_eq!(answer.expect("an answer"), b"hi");
}

#[tokio::test]
async fn this_machine_is_asked_directly() {
    let mut tasks = JoinSet::new();
    let port = server(&mut tasks, NEAR).await;
    let set = [("HTTPS_PROXY", "http://127.0.0.1:1")];
    let client = client(NEAR.0, proxies(&set));
    let answer = get(&client, &format!("https://LOCALHOST:{port}/")).await;
    assert_eq!(answer.expect("an answer"), b"hi");
}

#[tokio::test]
async fn refusing_proxy_is_named_without_password() {
    let mut tasks = JoinSet::new();
    for reply in [
        "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\n\r\n",
        "nonsense\r\n\r\n",
        "",
    ] {
        let (gate, _) = proxy(&mut tasks, reply, 0).await;
        let variable = format!("http://crab:planted-word@127.0.0.1:{gate}");
        let client = client(NEAR.0, proxies(&[("HTTPS_PROXY", &variable)]));
        let failure = get(&client, "https://model.test/").await;
        let failure = failure.expect_err(reply);
        let Failure::Proxy { proxy, .. } = &failure else {
            panic!("{reply}: {failure:?}");
        };
        assert_eq!(*proxy, format!("http://127.0.0.1:{gate}"));
        assert!(!format!("{failure:?}").contains("planted"), "{failure:?}");
    }
}
