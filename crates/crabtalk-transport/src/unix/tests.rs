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

/// Every name in the folder.
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
async fn a_client_connects_asks_and_the_socket_goes_with_the_daemon() {
    let (home, path) = home();
    let listener = listen(&path).await.expect("listens");
    let shutdown = CancellationToken::new();
    let (peers, mut seen) = tokio::sync::mpsc::channel(1);
    let session = move |peer: Peer| {
        peers.try_send(peer).expect("one");
        Ok(Scripted::new().1)
    };
    let mut serving = JoinSet::new();
    serving.spawn(serve(listener, Crowd::default(), session, shutdown.clone()));

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
async fn whoever_left_without_a_word_is_not_judged() {
    let (_home, path) = home();
    let mut listener = listen(&path).await.expect("listens");
    drop(std::os::unix::net::UnixStream::connect(&path).expect("connects"));
    // One that asked and left is judged like any other.
    let mut asked = std::os::unix::net::UnixStream::connect(&path).expect("connects");
    std::io::Write::write_all(&mut asked, b"a").expect("a word");
    drop(asked);
    let stays = std::os::unix::net::UnixStream::connect(&path).expect("connects");
    for said in [1, 0] {
        let accepted = listener.accept().await.expect("accepts");
        let waiting = rustix::io::ioctl_fionread(accepted.read.as_ref()).expect("a count");
        assert_eq!(waiting, said);
    }
    drop(stays);
}

#[tokio::test]
async fn a_refused_peer_reads_the_reason() {
    let (_home, path) = home();
    let listener = listen(&path).await.expect("listens");
    let session = |_| Err::<Scripted, _>(Status::forbidden("not from in here"));
    let mut serving = JoinSet::new();
    serving.spawn(serve(
        listener,
        Crowd::default(),
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
async fn a_stale_socket_is_replaced() {
    let (_home, path) = home();
    drop(std::os::unix::net::UnixListener::bind(&path).expect("binds"));
    assert!(path.exists());
    let _listener = listen(&path).await.expect("replaces");
    connect(&path).await.expect("connects");
}

#[tokio::test]
async fn a_live_socket_is_left_alone() {
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
async fn what_is_no_socket_is_left_alone() {
    let (home, path) = home();
    fs::write(&path, "mine").expect("written");
    let error = listen(&path).await.expect_err("a file");
    assert!(matches!(error, Error::NotASocket(_)), "{error}");
    assert_eq!(fs::read(&path).expect("there"), b"mine");
    fs::remove_file(&path).expect("removed");
    symlink(home.path().join("elsewhere"), &path).expect("linked");
    assert!(matches!(listen(&path).await, Err(Error::NotASocket(_))));
}

/// One that was killed before its socket had its name.
#[tokio::test]
async fn what_a_killed_daemon_was_making_ready_is_removed_and_nothing_else() {
    let (home, path) = home();
    drop(std::os::unix::net::UnixListener::bind(home.path().join(".aB3x")).expect("binds"));
    fs::write(home.path().join(".file"), "theirs").expect("written");
    fs::create_dir(home.path().join(".dirs")).expect("made");
    drop(std::os::unix::net::UnixListener::bind(home.path().join(".longer")).expect("binds"));
    let _listener = listen(&path).await.expect("listens");
    let mut left = names(&home);
    left.sort();
    assert_eq!(left, [".dirs", ".file", ".longer", "daemon.sock"]);
}

#[tokio::test]
async fn a_later_daemons_socket_is_not_removed() {
    let (_home, path) = home();
    let first = listen(&path).await.expect("listens");
    fs::remove_file(&path).expect("somebody removes it");
    let _second = listen(&path).await.expect("listens");
    drop(first);
    connect(&path).await.expect("the second still answers");
}

/// Who comes when the queue is full waits for its turn.
#[tokio::test]
async fn a_full_queue_is_waited_for() {
    let (_home, path) = home();
    let mut listener = listen(&path).await.expect("listens");
    let mut queued = Vec::new();
    while let Ok(stream) = UnixStream::connect(&path).await {
        queued.push(stream);
    }
    assert!(queued.len() >= BACKLOG as usize);
    let (client, accepted) = tokio::join!(connect(&path), async {
        for _ in 0..=queued.len() {
            listener.accept().await.expect("accepts");
        }
    });
    client.expect("its turn came");
    let () = accepted;
}

/// A daemon that nobody can reach and that keeps others from starting is of no
/// use.
#[tokio::test]
async fn a_socket_that_somebody_removes_is_made_again() {
    let (home, path) = home();
    let listener = listen(&path).await.expect("listens");
    let shutdown = CancellationToken::new();
    let mut serving = JoinSet::new();
    let session = |_| Ok(Scripted::new().1);
    serving.spawn(serve(listener, Crowd::default(), session, shutdown.clone()));
    let mut before = connect(&path).await.expect("connects");
    before.ping(Ping {}).await.expect("pong");
    for removal in [
        (|path| fs::remove_file(path)) as fn(&Path) -> io::Result<()>,
        |path| fs::rename(path, path.with_extension("away")),
        |path| {
            // Something else in its place, which then goes.
            fs::write(path.with_extension("file"), "")?;
            fs::rename(path.with_extension("file"), path)?;
            fs::remove_file(path)
        },
    ] {
        removal(&path).expect("removed");
        let mut client = loop {
            match connect(&path).await {
                Ok(client) => break client,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        client.ping(Ping {}).await.expect("pong");
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    before.ping(Ping {}).await.expect("still served");
    shutdown.cancel();
    serving.join_next().await.expect("one").expect("no panic");
    assert_eq!(names(&home), ["daemon.away"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_peer_comes_with_a_descriptor_of_its_process() {
    let (_home, path) = home();
    let mut listener = listen(&path).await.expect("listens");
    let _client = connect(&path).await.expect("connects");
    let peer = listener.accept().await.expect("accepts").peer;
    // `None` on a kernel that gives none.
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
async fn a_path_too_long_says_so() {
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
async fn the_longest_path_that_the_system_takes_works() {
    let (home, _) = home();
    let fill = MAX_PATH - home.path().as_os_str().len() - "//daemon.sock".len();
    let folder = home.path().join("d".repeat(fill));
    fs::create_dir(&folder).expect("made");
    let path = folder.join("daemon.sock");
    assert_eq!(path.as_os_str().len(), MAX_PATH);
    let _listener = listen(&path).await.expect("listens");
    connect(&path).await.expect("connects");
}

#[tokio::test]
async fn nobody_listening_says_so() {
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
async fn a_missing_folder_names_the_path() {
    let (_home, path) = home();
    let path = path.join("daemon.sock");
    let error = listen(&path).await.expect_err("no folder");
    assert_eq!(
        error.to_string(),
        format!("cannot listen on {}", path.display())
    );
}
