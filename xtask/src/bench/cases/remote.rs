//! What it costs to come from elsewhere, over loopback.

use super::crowds::{IDLE, together};
use super::{SHORT, millis};
use crate::bench::client::Client;
use crate::bench::daemon::{Daemon, Home};
use crate::bench::server::ModelServer;
use crate::bench::stats::Row;
use anyhow::{Context, anyhow};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Rounds in which each way is taken once.
const ROUNDS: usize = 400;

/// Clients at once.
const CROWD: usize = 1_000;

/// Of them so many connect at a time: handshakes that wait beyond some number are
/// closed, as a flood is.
const AT_A_TIME: usize = 16;

/// What the daemon's own certificate is made for.
const NAME: &str = "crabtalk";

/// A daemon that lets one token in.
struct Elsewhere {
    // Ends before its home does.
    daemon: Daemon,
    _home: Home,
    address: String,
    token: String,
    /// The certificate that is expected; `None` in clear.
    tls: Option<Arc<ClientConfig>>,
}

impl Elsewhere {
    fn start(server: &ModelServer, tls: bool) -> anyhow::Result<Self> {
        let home = Home::new(server, "never", &[("crab", SHORT)])?;
        home.configure(&format!("[tcp]\nlisten = \"127.0.0.1:0\"\ntls = {tls}\n"))?;
        let daemon = home.start()?;
        let made = daemon.client()?.new_token("bench")?;
        let address = made.listen.first().context("it does not listen")?;
        Ok(Self {
            address: address.clone(),
            token: made.token,
            tls: tls.then(|| trusting(&home)).transpose()?,
            daemon,
            _home: home,
        })
    }

    fn client(&self) -> anyhow::Result<Client> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        let mut client = match &self.tls {
            None => Client::over(stream),
            Some(config) => {
                let name = ServerName::try_from(NAME)?;
                let session = ClientConnection::new(Arc::clone(config), name)?;
                Client::over(StreamOwned::new(session, stream))
            }
        };
        client.hello(&self.token)?;
        Ok(client)
    }
}

/// Trusts the home's own certificate and no other.
fn trusting(home: &Home) -> anyhow::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(
        home.path().join("state/tls/cert.pem"),
    )?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// What TCP and TLS add to what the socket takes, round by round.
pub(super) fn added(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (tls, way) in [(false, "TCP"), (true, "TLS")] {
        let elsewhere = Elsewhere::start(server, tls)?;
        let mut near = elsewhere.daemon.client()?;
        let mut far = elsewhere.client()?;
        near.turn("crab", "warm")?;
        far.turn("crab", "warm")?;
        let (mut pings, mut firsts) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            // A conversation of its own now and then keeps histories short.
            let sender = format!("user-{}", round / 20);
            let mut ping = [0.0; 2];
            let mut first = [0.0; 2];
            for turn in 0..2 {
                // Each comes first as often as the other.
                let which = (round + turn) % 2;
                let client = [&mut near, &mut far].into_iter().nth(which);
                let client = client.context("two ways")?;
                let begun = Instant::now();
                client.ping()?;
                ping[which] = millis(begun.elapsed());
                first[which] = millis(client.turn("crab", &sender)?.first);
            }
            pings.push(ping[1] - ping[0]);
            firsts.push(first[1] - first[0]);
        }
        let row = |what: &str, samples| {
            Row::beside(
                format!("{what} over {way}, more than over the socket"),
                "ms",
                samples,
            )
        };
        rows.push(row("a ping", pings));
        rows.push(row("the first chunk", firsts));
        let connecting = (0..ROUNDS / 4).map(|_| {
            let begun = Instant::now();
            elsewhere.client().map(|_| millis(begun.elapsed()))
        });
        let connecting = connecting.collect::<anyhow::Result<Vec<_>>>()?;
        rows.push(Row::beside(
            format!("connecting over {way}, to Welcome"),
            "ms",
            connecting,
        ));
    }
    Ok(rows)
}

/// A thousand clients over TLS: to connect, to be there, to be answered all at
/// once, and to be gone.
pub(super) fn crowd(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let elsewhere = Arc::new(Elsewhere::start(server, true)?);
    elsewhere.client()?.turn("crab", "warm")?;
    let before = elsewhere.daemon.own_mib()?;
    let clients: Arc<Vec<Mutex<Option<Client>>>> =
        Arc::new((0..CROWD).map(|_| Mutex::default()).collect());
    let connected = {
        let (elsewhere, clients) = (Arc::clone(&elsewhere), Arc::clone(&clients));
        together(AT_A_TIME, move |first| {
            clients
                .iter()
                .skip(first)
                .step_by(AT_A_TIME)
                .try_for_each(|place| {
                    *place.lock().map_err(poisoned)? = Some(elsewhere.client()?);
                    Ok(())
                })
        })?
    };
    let held = elsewhere.daemon.own_mib()? - before;
    let answered = {
        let clients = Arc::clone(&clients);
        together(CROWD, move |user| {
            let mut client = clients[user].lock().map_err(poisoned)?;
            let client = client.as_mut().context("it is connected")?;
            let sender = format!("user-{user}");
            client.turn("crab", &sender).map(drop)
        })?
    };
    let peak = elsewhere.daemon.peak_mib()?;
    drop(clients);
    sleep(IDLE);
    let after = elsewhere.daemon.own_mib()? - before;
    let what = "1,000 clients over TLS";
    let millis = |time: Duration| [millis(time)];
    Ok(vec![
        Row::beside(format!("{what}: until all are in"), "ms", millis(connected)),
        Row::beside(format!("{what}: memory while they wait"), "MiB", [held]),
        Row::beside(
            format!("{what}, a turn of each at once"),
            "ms",
            millis(answered),
        ),
        Row::beside(format!("{what}: peak"), "MiB", [peak]),
        Row::beside(
            format!("{what}: memory 10 s after they are gone, more than before"),
            "MiB",
            [after],
        ),
    ])
}

fn poisoned<T>(_: T) -> anyhow::Error {
    anyhow!("a client panicked")
}
