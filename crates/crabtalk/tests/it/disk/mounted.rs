//! A full disk: the daemon starts and serves reads (STORE-5).

use crate::rig::{TestEnv, has_tools, skip};

/// Shell steps in a separate mount namespace.
const STEPS: &str = r#"
set -u
home=$CRABTALK_HOME
long=$(printf '%09000d' 0)
start() {
    : > "$HOME/err"
    "$CRABTALK" daemon run 2>> "$HOME/err" &
    daemon=$!
    until grep -q ' ready ' "$HOME/err"; do kill -0 $daemon || exit 9; sleep 0.02; done
}
end() { kill $daemon; wait $daemon; }
step() { echo "== $1"; shift; "$CRABTALK" "$@" 2>&1; echo "exit $?"; }
start; step before ask 'the first words'; end
"#;

const FULL: &str = r#"
mv "$home" "$home.saved"; mkdir "$home"
mount -t tmpfs -o size=400k,mode=700 none "$home" || exit 8
cp -a "$home.saved/." "$home"
dd if=/dev/zero of="$home/filler" bs=1k 2> /dev/null
start; step reads history; step lists subscriptions; step writes ask "$long"
rm "$home/filler"; step again ask 'the last words'; end
"#;

/// The output of each step, its name first; `None` if mounts are not allowed.
async fn on_a_disk(test: &str, steps: &str) -> Option<Vec<String>> {
    if !has_tools(test, &["unshare", "mount", "dd"]) {
        return None;
    }
    let env = TestEnv::new();
    let may_mount = env.shell("unshare -rm mount -t tmpfs none \"$HOME\"").await;
    if may_mount.code != Some(0) {
        skip(
            test,
            &format!("no mounts may be made: {}", may_mount.stderr),
        );
        return None;
    }
    env.script("steps", &format!("{STEPS}{steps}"));
    let told = env.shell("unshare -rm sh ./steps").await.ok();
    Some(told.split("== ").skip(1).map(str::to_owned).collect())
}

fn check_steps(told: &[String], file: &str) {
    let [before, reads, lists, writes, again] = told else {
        panic!("{told:#?}");
    };
    assert!(before.ends_with("exit 0\n"), "{before}");
    assert!(
        reads.contains("the first words") && reads.ends_with("exit 0\n"),
        "{reads}"
    );
    assert!(
        lists.contains("no subscriptions") && lists.ends_with("exit 0\n"),
        "{lists}"
    );
    assert!(
        writes.contains(file) && writes.contains("make room or make it writable"),
        "{writes}"
    );
    assert!(writes.ends_with("exit 1\n"), "{writes}");
    assert!(
        again.contains("You told me: the last words") && again.ends_with("exit 0\n"),
        "{again}"
    );
}

#[tokio::test]
async fn daemon_starts_on_a_full_disk() {
    let test = "daemon_starts_on_a_full_disk";
    if let Some(told) = on_a_disk(test, FULL).await {
        check_steps(&told, "crab_user_1.jsonl");
    }
}
