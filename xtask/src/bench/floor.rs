//! A relay that only copies bytes: the least cost of a program between client
//! and server on this machine.

use super::server::ModelServer;
use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take to listen.
const START_DEADLINE: Duration = Duration::from_secs(10);

/// Bytes that are copied at a time, as the clients read.
const CHUNK_BYTES: usize = 64 * 1024;

/// The relay, in a process that ends with this value.
pub(crate) struct Floor {
    dir: TempDir,
    child: Child,
}

impl Floor {
    pub(crate) fn start(server: &ModelServer) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("ctb").tempdir()?;
        let child = Command::new(std::env::current_exe()?)
            .arg("relay")
            .arg(dir.path().join("socket"))
            .arg(&server.address)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start the relay")?;
        Ok(Self { dir, child })
    }

    pub(crate) fn connect(&self) -> anyhow::Result<UnixStream> {
        let begun = Instant::now();
        loop {
            match UnixStream::connect(self.dir.path().join("socket")) {
                Ok(stream) => return Ok(stream),
                Err(error) if begun.elapsed() > START_DEADLINE => {
                    bail!("the relay does not listen: {error}")
                }
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves one connection after the other until it is killed: a single thread
/// that waits for both sides, as a daemon does.
pub(crate) fn serve(socket: &Path, server: &str) -> anyhow::Result<()> {
    for client in UnixListener::bind(socket)?.incoming() {
        let mut server = TcpStream::connect(server)?;
        server.set_nodelay(true)?;
        copy(&mut client?, &mut server)?;
    }
    Ok(())
}

fn copy(client: &mut UnixStream, server: &mut TcpStream) -> anyhow::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let (from_client, from_server) = {
            let mut both = [
                PollFd::new(&*client, PollFlags::IN),
                PollFd::new(&*server, PollFlags::IN),
            ];
            poll(&mut both, None)?;
            (!both[0].revents().is_empty(), !both[1].revents().is_empty())
        };
        if from_client {
            let count = client.read(&mut chunk)?;
            if count == 0 {
                return Ok(());
            }
            server.write_all(&chunk[..count])?;
        }
        if from_server {
            let count = server.read(&mut chunk)?;
            if count == 0 {
                return Ok(());
            }
            client.write_all(&chunk[..count])?;
        }
    }
}
