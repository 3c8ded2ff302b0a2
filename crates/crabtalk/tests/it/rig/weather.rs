//! A network between a client and the daemon: slow, with losses, and cut off now
//! and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Bytes that go together: what they carry is lost or late as one.
const PACKET: usize = 256;

/// How often the time of the way is waited for, until what was lost is sent again.
const LOSS: u32 = 3;

/// Of so many packets one is lost, which one by chance.
const ONE_LOST_OF: u64 = 100;

/// How the network is.
#[derive(Debug, Clone)]
pub(crate) struct Weather {
    /// The time of the way, in each direction.
    pub(crate) latency: Duration,
    /// What all that happens by chance follows from.
    pub(crate) seed: u64,
    /// Of each of the first connections: the bytes to the daemon and from it, after
    /// which it is cut.
    pub(crate) cuts: Vec<(u64, u64)>,
}

/// Hands bytes on, as the weather lets it.
pub(crate) struct Network {
    address: String,
    cut: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
    cutting: Arc<Notify>,
    _accepting: JoinSet<()>,
}

/// Numbers that look like chance, the same for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// One of so many.
    pub(crate) fn below(&mut self, many: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % many
    }
}

impl Network {
    /// In front of a daemon's address.
    pub(crate) async fn start(daemon: String, weather: Weather) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (cut, lost) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let cutting = Arc::new(Notify::new());
        let counted = (Arc::clone(&cut), Arc::clone(&lost), Arc::clone(&cutting));
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            let mut number = 0;
            while let Ok((client, _)) = listener.accept().await {
                let (daemon, weather) = (daemon.clone(), weather.clone());
                let (cut, lost) = (Arc::clone(&counted.0), Arc::clone(&counted.1));
                let cutting = Arc::clone(&counted.2);
                connections.spawn(async move {
                    let Ok(daemon) = TcpStream::connect(daemon).await else {
                        return;
                    };
                    let was_cut = tokio::select! {
                        was_cut = carry(client, daemon, &weather, number, &lost) => was_cut,
                        () = cutting.notified() => true,
                    };
                    if was_cut {
                        cut.fetch_add(1, Ordering::Relaxed);
                    }
                });
                number += 1;
            }
        });
        Self {
            address,
            cut,
            lost,
            cutting,
            _accepting: accepting,
        }
    }

    /// The address that clients are to be given.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Cuts every connection; new ones are taken.
    pub(crate) fn cut_all(&self) {
        self.cutting.notify_waiters();
    }

    /// Connections that were cut.
    pub(crate) fn cut(&self) -> usize {
        self.cut.load(Ordering::Relaxed)
    }

    /// Packets that were lost, and sent again.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Carries one connection to its end; whether it was cut.
async fn carry(
    mut client: TcpStream,
    mut daemon: TcpStream,
    weather: &Weather,
    number: usize,
    lost: &AtomicUsize,
) -> bool {
    for stream in [&client, &daemon] {
        stream.set_nodelay(true).unwrap();
    }
    let (up, down) = weather
        .cuts
        .get(number)
        .copied()
        .unwrap_or((u64::MAX, u64::MAX));
    let seed = weather.seed + 2 * number as u64;
    let (client_read, client_write) = client.split();
    let (daemon_read, daemon_write) = daemon.split();
    let there = way(
        client_read,
        daemon_write,
        weather.latency,
        Chance::new(seed),
        up,
        lost,
    );
    let back = way(
        daemon_read,
        client_write,
        weather.latency,
        Chance::new(seed + 1),
        down,
        lost,
    );
    // Whichever side goes first takes the other with it.
    tokio::select! {
        was_cut = there => was_cut,
        was_cut = back => was_cut,
    }
}

/// Carries one direction to its end, or so many bytes of it; whether it was that.
async fn way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    latency: Duration,
    mut chance: Chance,
    mut left: u64,
    lost: &AtomicUsize,
) -> bool {
    let (send, mut receive) = mpsc::channel::<(Instant, Vec<u8>)>(PACKET);
    let taking = async move {
        let (mut number, mut unlucky) = (0, 0);
        loop {
            let mut packet = vec![0; PACKET];
            let Ok(count @ 1..) = from.read(&mut packet).await else {
                return false;
            };
            let passes = usize::try_from(left).unwrap_or(usize::MAX).min(count);
            left -= passes as u64;
            packet.truncate(passes);
            if number % ONE_LOST_OF == 0 {
                unlucky = number + chance.below(ONE_LOST_OF);
            }
            let late = if number == unlucky {
                lost.fetch_add(1, Ordering::Relaxed);
                latency * (1 + LOSS)
            } else {
                latency
            };
            number += 1;
            if send.send((Instant::now() + late, packet)).await.is_err() {
                return false;
            }
            if left == 0 {
                return true;
            }
        }
    };
    let giving = async move {
        // What comes behind a packet that is late waits for it.
        while let Some((due, packet)) = receive.recv().await {
            sleep_until(due).await;
            if to.write_all(&packet).await.is_err() {
                return;
            }
        }
    };
    let mut giving = std::pin::pin!(giving);
    let mut taking = std::pin::pin!(taking);
    tokio::select! {
        was_cut = &mut taking => {
            // What was sent before arrives.
            giving.await;
            was_cut
        }
        () = &mut giving => false,
    }
}
