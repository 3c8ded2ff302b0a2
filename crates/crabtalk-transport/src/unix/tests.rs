use super::*;
use crate::tests::Scripted;
use crate::{Crowd, serve};
use crabtalk_proto::{Client, ClientError, Ping, Status};
use std::os::unix::fs::symlink;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

fn home() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("daemon.sock");
    (home, path)
}

/// Lists the names in the folder.
fn names(home: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(home.path()).expect("readable");
    entries
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect()
}

#[tokio::test]
async fn socket_is_removed_with_its_listener() {
    let (home, path) = home();
    let listener = listen(&path).await.expect("listens");
    let shutdown = CancellationToken::new();
    let (peers, mut seen) = tokio::sync::mpsc::channel(1);
    let session = move |peer: Peer| {
        peers.try_send(peer).expect("one");
        Ok(Scripted::new().1)
    };
    let mut serving = JoinSet::new();
    serving.spawn(serve(listener, Crowd::new(64), session, shutdown.clone()));

    let mut client = connect(&path).await.expect("connects");
    client.ping(Ping {}).await.expect("pong");
    let peer = seen.recv().await.expect("a peer");
    assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
    assert_eq!(peer.pid, Some(std::process::id().cast_signed()));

    shutdown.cancel();
    serving
        .join_next()
        .await
        .expect("one task")
        .expect("no panic");
    assert!(client.ping(Ping {}).await.is_err());
    assert_eq!(names(&home), Vec::<String>::new());
}

#[tokio::test]
async fn silently_closed_connections_are_skipped() {
    let (_home, path) = home();
    let mut listener = listen(&path).await.expect("listens");
    drop(std::os::unix::net::UnixStream::connect(&path).expect("connects"));
    // A peer that sent a byte and closed is checked like any other.
    let mut asked = std::os::unix::net::UnixStream::connect(&path).expect("connects");
    std::io::Write::write_all(&mut asked, b"a").expect("a word");
    drop(asked);
    let stays = std::os::unix::net::UnixStream::connect(&path).expect("connects");
    for said in [1, 0] {
        let (opening, _) = listener.accept().await.expect("accepts");
        let (read, _write) = opening.await.expect("opens");
        let waiting = rustix::io::ioctl_fionread(read.as_ref()).expect("a count");
        assert_eq!(waiting, said);
    }
    drop(stays);
}

#[tokio::test]
async fn refused_peer_reads_the_reason() {
    let (_home, path) = home();
    let listener = listen(&path).await.expect("listens");
    let session = |_| Err::<Scripted, _>(Status::forbidden("not from in here"));
    let mut serving = JoinSet::new();
    serving.spawn(serve(
        listener,
        Crowd::new(64),
        session,
        CancellationToken::new(),
    ));
    let mut client = connect(&path).await.expect("connects");
    let error: ClientError = client.ping(Ping {}).await.expect_err("refused");
    assert_eq!(error.to_string(), "not from in here (403)");
}

#[tokio::test]
async fn only_the_owner_may_open_the_socket() {
    let (home, path) = home();
    let _listener = listen(&path).await.expect("listens");
    let mode = fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(names(&home), ["daemon.sock"]);
}

#[test]
fn only_the_same_user_and_root_may_connect() {
    assert!(may_connect(1000, 1000));
    assert!(may_connect(0, 1000));
    assert!(!may_connect(1001, 1000));
    assert!(!may_connect(1000, 0));
}

#[tokio::test]
async fn stale_socket_is_replaced() {
    let (_home, path) = home();
    drop(std::os::unix::net::UnixListener::bind(&path).expect("binds"));
    assert!(path.exists());
    let _listener = listen(&path).await.expect("replaces");
    connect(&path).await.expect("connects");
}

#[tokio::test]
async fn live_socket_is_kept() {
    let (_home, path) = home();
    let first = listen(&path).await.expect("listens");
    let error = listen(&path).await.expect_err("in use");
    assert_eq!(
        error.to_string(),
        format!(
            "another daemon listens on {}; stop it first",
            path.display()
        )
    );
    drop(first);
    listen(&path).await.expect("free again");
}

#[tokio::test]
async fn other_files_are_kept() {
    let (home, path) = home();
    fs::write(&path, "mine").expect("written");
    let error = listen(&path).await.expect_err("a file");
    assert!(matches!(error, Error::NotASocket(_)), "{error}");
    assert_eq!(fs::read(&path).expect("there"), b"mine");
    fs::remove_file(&path).expect("removed");
    symlink(home.path().join("elsewhere"), &path).expect("linked");
    assert!(matches!(listen(&path).await, Err(Error::NotASocket(_))));
}

#[tokio::test]
async fn later_socket_is_not_removed() {
    let (_home, path) = home();
    let first = listen(&path).await.expect("listens");
    fs::remove_file(&path).expect("removed");
    let _second = listen(&path).await.expect("listens");
    drop(first);
    connect(&path).await.expect("the second still answers");
}

#[tokio::test]
async fn peer_has_a_pidfd() {
    let (_home, path) = home();
    let mut listener = listen(&path).await.expect("listens");
    let _client = connect(&path).await.expect("connects");
    let (_, peer) = listener.accept().await.expect("accepts");
    // `None` on a kernel without peer pidfds.
    if let Some(handle) = peer.handle.expect("no lack of descriptors") {
        use std::os::fd::AsRawFd;
        let info = format!("/proc/self/fdinfo/{}", handle.as_raw_fd());
        let info = fs::read_to_string(info).expect("readable");
        let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"));
        let pid: u32 = pid.expect("a pidfd").trim().parse().expect("a number");
        assert_eq!(pid, std::process::id());
    }
}

#[tokio::test]
async fn too_long_path_is_refused() {
    let (home, _) = home();
    let path = home.path().join("x".repeat(120));
    for error in [
        listen(&path).await.expect_err("too long"),
        connect(&path).await.expect_err("too long"),
    ] {
        let text = error.to_string();
        assert!(
            text.contains("is too long: ") && text.contains("the limit is 1"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn missing_listener_is_reported() {
    let (_home, path) = home();
    let expected = format!(
        "no daemon listens on {}; start one with `crabtalk daemon run`",
        path.display()
    );
    assert_eq!(
        connect(&path).await.expect_err("absent").to_string(),
        expected
    );
    drop(std::os::unix::net::UnixListener::bind(&path).expect("binds"));
    assert_eq!(
        connect(&path).await.expect_err("stale").to_string(),
        expected
    );
}

#[tokio::test]
async fn missing_folder_is_reported() {
    let (_home, path) = home();
    let path = path.join("daemon.sock");
    let error = listen(&path).await.expect_err("no folder");
    assert_eq!(
        error.to_string(),
        format!("cannot listen on {}", path.display())
    );
}
