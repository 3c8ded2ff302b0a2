//! Pages, names and servers that mean harm: a scripted server on the loopback, which
//! the settings allow here, and a resolver that says what the test wants.

use crabtalk_fetch::{Error, Fetcher, Page, Resolve, Resolved, Settings};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Names and, for each, what it is told from one question to the next; the last
/// answer stays.
#[derive(Clone, Default)]
struct Names {
    answers: Arc<Mutex<HashMap<String, Vec<Vec<IpAddr>>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    fn with(names: &[(&str, &[&[&str]])]) -> Self {
        let parse = |addresses: &&[&str]| {
            let parsed = addresses.iter().map(|one| one.parse().expect("an address"));
            parsed.collect()
        };
        let answers = names
            .iter()
            .map(|(name, answers)| ((*name).to_owned(), answers.iter().map(parse).collect()));
        Self {
            answers: Arc::new(Mutex::new(answers.collect())),
            asked: Arc::default(),
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("whole").clone()
    }
}

impl Resolve for Names {
    fn resolve(&self, name: &str) -> Resolved {
        self.asked.lock().expect("whole").push(name.to_owned());
        let mut answers = self.answers.lock().expect("whole");
        let answer = answers.get_mut(name).map(|list| match list.len() {
            1 => list[0].clone(),
            _ => list.remove(0),
        });
        Box::pin(async move { answer.ok_or_else(|| std::io::ErrorKind::NotFound.into()) })
    }
}

/// A server that answers each path with raw bytes and records the requests.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

/// The answer of a path: bytes, and whether the connection stays open after them.
type Script = HashMap<&'static str, (Vec<u8>, bool)>;

impl Server {
    async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let (noted, script) = (Arc::clone(&heads), Arc::new(script));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answer(
                    stream,
                    Arc::clone(&script),
                    Arc::clone(&noted),
                    port,
                ));
            }
        });
        Self {
            port,
            heads,
            _tasks: tasks,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("whole").clone()
    }
}

async fn answer(
    mut stream: TcpStream,
    script: Arc<Script>,
    noted: Arc<Mutex<Vec<String>>>,
    port: u16,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let head = String::from_utf8(head).expect("text");
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    noted.lock().expect("whole").push(head);
    let Some((bytes, stays)) = script.get(path.as_str()) else {
        return;
    };
    let bytes = match std::str::from_utf8(bytes) {
        Ok(text) => text.replace("PORT", &port.to_string()).into_bytes(),
        Err(_) => bytes.clone(),
    };
    // The client closes once it has enough.
    let _ = stream.write_all(&bytes).await;
    if *stays {
        std::future::pending::<()>().await;
    }
}

fn html(body: &str) -> (Vec<u8>, bool) {
    page("text/html", body.as_bytes())
}

fn page(content_type: &str, body: &[u8]) -> (Vec<u8>, bool) {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    ([head.as_bytes(), body].concat(), false)
}

fn redirect(to: &str) -> (Vec<u8>, bool) {
    let text = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    (text.into_bytes(), false)
}

/// Settings of a person who allows the loopback.
fn open() -> Settings {
    Settings {
        allow: vec![IpAddr::from(Ipv4Addr::LOCALHOST).into()],
        ..Settings::default()
    }
}

async fn fetch(settings: Settings, names: &Names, url: &str) -> Result<Page, Error> {
    Fetcher::with_resolver(settings, names.clone())
        .fetch(url, false)
        .await
}

#[track_caller]
fn assert_forbidden(result: Result<Page, Error>) {
    assert!(matches!(result, Err(Error::Forbidden { .. })), "{result:?}");
}

#[tokio::test]
async fn a_page_is_fetched_as_text() {
    let server = Server::start(HashMap::from([
        ("/", html("<title>T</title><p>Hello <a href=/x>there</a>")),
        (
            "/json",
            page("application/json; charset=utf-8", b"{\"a\":1}"),
        ),
        ("/latin", page("text/plain; charset=latin1", b"caf\xe9\x07")),
        ("/to", redirect("/json?q=1")),
        ("/json?q=1", page("application/ld+json", b"[]")),
    ]))
    .await;
    let names = Names::default();
    let home = fetch(open(), &names, &server.url("/#part"))
        .await
        .expect("a page");
    assert_eq!(home.title.as_deref(), Some("T"));
    let link = format!("Hello [there]({})", server.url("/x"));
    assert_eq!(home.text, link);
    let text = async |path: &str| {
        let page = fetch(open(), &names, &server.url(path)).await;
        page.expect("a page").text
    };
    assert_eq!(text("/json").await, "{\"a\":1}");
    assert_eq!(text("/latin").await, "café", "what moves a cursor is gone");
    assert_eq!(text("/to").await, "[]");
    let head = &server.heads()[0];
    let (path, rest) = head.split_once(" HTTP/1.1").expect("a request");
    assert_eq!(path, "GET /");
    assert!(
        rest.contains(&format!("host: 127.0.0.1:{}\r\n", server.port)),
        "{head}"
    );
    assert!(!rest.to_lowercase().contains("cookie"), "{head}");
}

#[tokio::test]
async fn private_addresses_are_refused_in_any_notation() {
    let server = Server::start(HashMap::from([("/", html("secret"))])).await;
    let port = server.port;
    let none = Settings::default();
    let names = Names::with(&[
        ("localhost", &[&["127.0.0.1"]]),
        ("inner.example", &[&["10.0.0.7"]]),
        ("mixed.example", &[&["93.184.216.34", "192.168.0.1"]]),
        ("six.example", &[&["::ffff:127.0.0.1"]]),
    ]);
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "[::1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "0",
        "169.254.169.254",
        "[fe80::1]",
        "[fd00::1]",
        "inner.example",
        "mixed.example",
        "six.example",
        "ⓛocalhost",
        "127。0。0。1",
    ] {
        let url = format!("http://{host}:{port}/");
        assert_forbidden(fetch(none.clone(), &names, &url).await);
    }
    assert!(server.heads().is_empty(), "nobody was asked");
}

#[tokio::test]
async fn a_redirect_is_judged_as_an_address_is() {
    let server = Server::start(HashMap::from([
        (
            "/meta",
            redirect("http://169.254.169.254/latest/meta-data/"),
        ),
        ("/name", redirect("http://inner.example:PORT/")),
        ("/file", redirect("file:///etc/passwd")),
        ("/user", redirect("http://me:pw@127.0.0.1:PORT/")),
        ("/round", redirect("/round")),
        (
            "/nowhere",
            (
                b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
                false,
            ),
        ),
        ("/multi", redirect("//[::1]:PORT/")),
    ]))
    .await;
    let names = Names::with(&[("inner.example", &[&["10.0.0.7"]])]);
    let get =
        |path: &'static str| fetch(open(), &names, Box::leak(server.url(path).into_boxed_str()));
    assert_forbidden(get("/meta").await);
    assert_forbidden(get("/name").await);
    assert_forbidden(get("/multi").await);
    assert!(matches!(get("/file").await, Err(Error::Url { .. })));
    assert!(matches!(get("/user").await, Err(Error::Url { .. })));
    assert!(matches!(get("/nowhere").await, Err(Error::Status { .. })));
    let before = server.heads().len();
    assert!(matches!(
        get("/round").await,
        Err(Error::Redirects { most: 5, .. })
    ));
    assert_eq!(server.heads().len() - before, 6, "the first and five more");
}

#[tokio::test]
async fn a_name_is_resolved_once_and_what_was_judged_is_connected_to() {
    let server = Server::start(HashMap::from([("/", html("x"))])).await;
    // The first answer is fine, every later one would be the machine itself: who
    // resolves again to connect is led there.
    let names = Names::with(&[("turns.example", &[&["192.0.2.1"], &["127.0.0.1"]])]);
    let mut settings = Settings {
        allow: vec!["192.0.2.1/32".parse().expect("one")],
        timeout_secs: 1,
        ..Settings::default()
    };
    let url = format!("http://turns.example:{}/", server.port);
    let led = fetch(settings.clone(), &names, &url).await;
    assert!(
        matches!(led, Err(Error::Timeout { .. } | Error::Connect { .. })),
        "{led:?}"
    );
    assert_eq!(names.asked(), ["turns.example"]);
    assert!(server.heads().is_empty());
    // Asked again for the next page, it is judged again.
    settings.allow.clear();
    assert_forbidden(fetch(settings, &names, &url).await);

    // And a name that is allowed is reached at what it was judged as.
    let names = Names::with(&[("fine.example", &[&["127.0.0.1"]])]);
    let url = format!("http://fine.example:{}/", server.port);
    let page = fetch(open(), &names, &url).await.expect("a page");
    assert_eq!((page.text.as_str(), names.asked().len()), ("x", 1));
    assert!(server.heads()[0].contains("host: fine.example:"));
}

#[tokio::test]
async fn a_server_that_never_ends_costs_what_the_limits_say() {
    let chunk = |length: usize| {
        let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec();
        bytes.resize(bytes.len() + length, b'x');
        bytes
    };
    let huge_head = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(1 << 20)).into_bytes();
    let server = Server::start(HashMap::from([
        ("/long", (chunk(100_000), true)),
        ("/hangs", (chunk(10), true)),
        ("/silent", (Vec::new(), true)),
        ("/head", (huge_head, true)),
        ("/closes", (Vec::new(), false)),
        (
            "/short",
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf".to_vec(),
                false,
            ),
        ),
        (
            "/nonsense",
            (b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec(), false),
        ),
    ]))
    .await;
    let names = Names::default();
    let settings = Settings {
        max_bytes: 50_000,
        timeout_secs: 1,
        ..open()
    };
    let get = |path: &str| {
        let (settings, names, url) = (settings.clone(), names.clone(), server.url(path));
        async move { fetch(settings, &names, &url).await }
    };
    let page = get("/long").await.expect("its beginning");
    assert_eq!((page.text.len(), page.cut), (50_000, true));
    for path in ["/hangs", "/silent"] {
        let failed = get(path).await;
        assert!(
            matches!(failed, Err(Error::Timeout { secs: 1, .. })),
            "{path}: {failed:?}"
        );
    }
    for path in ["/head", "/closes", "/short", "/nonsense"] {
        let failed = get(path).await;
        assert!(
            matches!(failed, Err(Error::Http { .. })),
            "{path}: {failed:?}"
        );
    }
}

#[tokio::test]
async fn unreadable_content_types_are_reported() {
    let gone = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 27\r\n\r\n<h1>Not\n here</h1><p>sorry\x1b";
    let packed = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx";
    let server = Server::start(HashMap::from([
        ("/gone", (gone.to_vec(), false)),
        ("/packed", (packed.to_vec(), false)),
        ("/image", page("image/png", b"\x89PNG")),
        ("/pdf", page("application/pdf", b"%PDF")),
    ]))
    .await;
    let names = Names::default();
    let said = async |path: &str| {
        let failed = fetch(open(), &names, &server.url(path)).await;
        failed.expect_err("no page").to_string()
    };
    assert!(
        said("/gone")
            .await
            .ends_with("answered 404 Not Found: # Not here sorry")
    );
    assert!(
        said("/packed")
            .await
            .ends_with("is `gzip`, which is not text")
    );
    assert!(
        said("/image")
            .await
            .ends_with("is `image/png`, which is not text")
    );
    assert!(
        said("/pdf")
            .await
            .ends_with("is `application/pdf`, which is not text")
    );
    for (url, why) in [
        ("ftp://example.org/", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("gopher://x/", "only http and https"),
        ("http://me@example.org/", "password"),
        ("http://", "empty host"),
        ("example.org", "relative URL"),
        ("http://nobody.example/", "cannot find `nobody.example`"),
    ] {
        let failed = fetch(open(), &names, url).await.expect_err(url).to_string();
        assert!(failed.contains(why), "{url}: {failed}");
    }
}
