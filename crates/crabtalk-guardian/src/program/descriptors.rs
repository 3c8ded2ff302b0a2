//! Passes descriptors over a socket: the proxy's listener, and a process's streams, which
//! no process in between may keep open.

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Sends up to three descriptors with one byte, which fits into any socket buffer.
pub(super) fn send(to: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    if !attached.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other(
            "the message is too small for the descriptors",
        ));
    }
    sendmsg(
        &to,
        &[IoSlice::new(&[0])],
        &mut attached,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// Receives one descriptor.
pub(super) fn receive(from: impl AsFd) -> io::Result<OwnedFd> {
    let one = received(from)?.pop();
    one.ok_or_else(|| io::Error::other("received no descriptor"))
}

fn received(from: impl AsFd) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut into = [IoSliceMut::new(&mut byte)];
    while let Err(error) = recvmsg(&from, &mut into, &mut attached, RecvFlags::CMSG_CLOEXEC) {
        if error != Errno::INTR {
            return Err(error.into());
        }
    }
    let mut all = Vec::new();
    for message in attached.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            all.extend(sent);
        }
    }
    Ok(all)
}

/// Standard input, output and error of a process.
pub(crate) struct Stdio {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl Stdio {
    /// Sends the streams.
    pub(crate) fn send(&self, to: impl AsFd) -> io::Result<()> {
        send(
            to,
            &[&self.stdin, &self.stdout, &self.stderr].map(AsFd::as_fd),
        )
    }

    /// Receives the streams.
    pub(crate) fn receive(from: impl AsFd) -> io::Result<Self> {
        let mut streams = received(from)?.into_iter();
        match (streams.next(), streams.next(), streams.next()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok(Self {
                stdin,
                stdout,
                stderr,
            }),
            _ => Err(io::Error::other("received no streams for the process")),
        }
    }

    /// Duplicates this process's streams.
    pub(super) fn own() -> io::Result<Self> {
        use rustix::stdio;
        Ok(Self {
            stdin: stdio::stdin().try_clone_to_owned()?,
            stdout: stdio::stdout().try_clone_to_owned()?,
            stderr: stdio::stderr().try_clone_to_owned()?,
        })
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            stdin: self.stdin.try_clone()?,
            stdout: self.stdout.try_clone()?,
            stderr: self.stderr.try_clone()?,
        })
    }

    /// Sets the streams of a command to be started.
    pub(crate) fn give(self, command: &mut std::process::Command) -> &mut std::process::Command {
        command
            .stdin(self.stdin)
            .stdout(self.stdout)
            .stderr(self.stderr)
    }
}
