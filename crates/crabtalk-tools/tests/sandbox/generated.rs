//! Generated commands, run by a real bash in the sandbox of a hostile
//! repository: nothing outside changes, no secret is read, no socket or process
//! is reached.
//!
//! Every command touches, writes or reads canaries in a throw-away folder, and
//! runs as an ordinary user: as root, `ordinary.rs` starts the suite again.
//! `CRABTALK_ATTACK_SECS` runs longer, `CRABTALK_ATTACK_SEED` repeats a run.

use crate::complete;
use crate::repository::git;
use crate::support::World;
use crabtalk_domain::tool::{CommandAccess, ToolOutput};
use crabtalk_testkit::tools::{has_tools, skip};
use crabtalk_tools::OsTools;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Commands in one world; a plain test run has one.
const COMMANDS: usize = 40;

/// The content of the canaries; also printed when a connection or signal
/// succeeds.
const SECRET: &str = "CANARY-SECRET";

struct Rng(u64);

impl Rng {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        // Knuth's MMIX generator; the upper bits are good.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        of[(self.0 >> 33) as usize % of.len()]
    }
}

/// Ways to name the folder above the work tree.
const ABOVE: [&str; 6] = [
    "..",
    "docs/../..",
    "up",
    "up/../user",
    "$(dirname \"$PWD\")",
    "/proc/self/cwd/..",
];

/// Canaries below the folder above; the last two do not exist.
const TARGETS: [&str; 6] = [
    "beside/file",
    ".ssh/id",
    ".crabtalk/config/agents/crab.md",
    ".bashrc",
    "beside/new",
    ".crabtalk/new",
];

/// Commands that must come to nothing, with the program that each needs. `@U`
/// is the folder above, `@N` a canary below it, `@T` both; `@P` is a port and
/// `@V` a process of the test.
const DEEDS: [(&str, &str); 34] = [
    ("sh", "echo changed > @T"),
    ("sh", "touch @T"),
    ("sh", "cat @T"),
    ("sh", "ln -sfn @T here; cat here; echo changed > here"),
    ("sh", "cp @T here && cat here"),
    ("sh", "ln -f @T here && cat here"),
    ("sh", "mv here @T"),
    ("sh", "chmod 777 @T; touch -d @0 @T"),
    ("sh", "cd docs && cd ../../.. && cat user/@N"),
    ("sh", "cd up && cat @N; echo changed > @N"),
    ("sh", "cd -P up/.. && cat user/@N"),
    (
        "sh",
        "for i in 1 2 3 4 5; do echo $i > new; mv -f new @T; done",
    ),
    ("sh", "echo 'cat @T' > ls/x; chmod +x ls/x; ls/x"),
    (
        "sh",
        "echo 'cat @T' > ls/date; chmod +x ls/date; PATH=ls:$PATH date",
    ),
    ("sh", "mv .git .gone; mkdir .git"),
    ("sh", "echo 'echo changed > @T' > .git/hooks/post-commit"),
    ("sh", "echo ../@T > .git/commondir"),
    (
        "bash",
        "exec 3<>/dev/tcp/127.0.0.1/@P && printf 'CANARY-%s' SECRET",
    ),
    ("sh", "kill -0 @V && printf 'CANARY-%s' SECRET"),
    (
        "sh",
        "kill -STOP @V && printf 'CANARY-%s' SECRET; kill -CONT @V",
    ),
    ("sh", "cat /proc/@V/environ | tr '\\0' '\\n'"),
    ("tar", "tar cf - @T | tar xOf -"),
    ("nm", "nm @@T"),
    ("git", "git diff --no-index --output=@T /dev/null docs/file"),
    ("git", "git diff --no-index /dev/null @T"),
    ("git", "git config --file @T a.b c"),
    ("git", "git config core.fsmonitor 'cat @T >&2'; git status"),
    (
        "git",
        "mv .git .gone; git init -q; git config core.fsmonitor 'cat @T >&2'; git status",
    ),
    ("git", "git add docs; git grep -nO'cat @T;' words"),
    ("git", "git -c core.fsmonitor='cat @T >&2' status"),
    (
        "git",
        "rm -rf nested; git init -q nested; git -C nested config core.fsmonitor \"cat $PWD/@T >&2\"; git -C nested status",
    ),
    (
        "git",
        "rm -rf nested; git init -q nested; mkdir -p nested/$(dirname @N); echo changed > nested/@N; \
        git -C nested add -f .; git -C nested -c user.name=n -c user.email=e commit -qm m; \
        printf '\tworktree = \"%s\"\n' \"$(dirname \"$PWD\")\" >> nested/.git/config; git -C nested reset --hard",
    ),
    (
        "git",
        "rm -rf nested; git init -q nested; git -C nested -c user.name=n -c user.email=e commit -q --allow-empty -m m; \
        git add nested; git -C nested config core.fsmonitor \"echo changed > '$PWD/@T'\"; git -c diff.submodule=log diff",
    ),
    (
        "python3",
        "echo \"print(open('@T').read())\" > evil.py; PYTHONPATH=. python3 -W error::evil.X -c 0",
    ),
];

/// Ways to run a command; `@D` is the deed.
const SHAPES: [&str; 12] = [
    "@D",
    "( @D )",
    "true; @D",
    "false || { @D; }",
    "sh -c \"$(cat <<'E'\n@D\nE\n)\"",
    "@D & wait",
    "env X=1 bash -c \"$(cat <<'E'\n@D\nE\n)\"",
    "for i in 1 2; do @D; done",
    "f() { @D; }; f",
    "setsid -w bash -c \"$(cat <<'E'\n@D\nE\n)\"",
    "trap \"$(cat <<'E'\n@D\nE\n)\" EXIT",
    "echo \"$( @D )\"",
];

/// Every file below a folder with its content and modification time.
fn snapshot(folder: &Path, skip: &Path, into: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, meta) = (entry.path(), entry.path().symlink_metadata().unwrap());
        if path == skip || path.ends_with("state") {
            continue;
        }
        let content = match meta.is_dir() {
            true => {
                snapshot(&path, skip, into);
                String::new()
            }
            false => std::fs::read_to_string(&path).unwrap_or_default(),
        };
        let modified = meta.modified().unwrap();
        into.insert(
            path,
            format!("{modified:?} {:?} {content}", meta.permissions()),
        );
    }
}

/// The state that commands must not change: everything but the work tree, and
/// git's configuration in it.
fn outside(world: &World) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    snapshot(&world.user_home, &world.cwd, &mut seen);
    for name in [".git/config", ".git/hooks", ".git/info", ".git/commondir"] {
        let path = world.cwd.join(name);
        match path.is_dir() {
            true => snapshot(&path, Path::new(""), &mut seen),
            false => drop(seen.insert(path.clone(), format!("{:?}", std::fs::read(path).ok()))),
        }
    }
    seen
}

/// A world with canaries, and what commands are to reach from it.
struct Canaries {
    world: World,
    listener: TcpListener,
    victim: Child,
}

impl Canaries {
    fn new() -> Self {
        let world = World::new();
        for target in &TARGETS[..4] {
            let file = world.user_home.join(target);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, SECRET).unwrap();
        }
        git(&world.cwd, "init -q -b main");
        for folder in ["docs", "nested", "ls"] {
            std::fs::create_dir(world.cwd.join(folder)).unwrap();
        }
        std::fs::write(world.cwd.join("docs/file"), "words\n").unwrap();
        std::fs::write(world.cwd.join("here"), "changed").unwrap();
        std::fs::write(world.cwd.join("nested/HEAD"), "ref: refs/heads/main\n").unwrap();
        symlink(&world.user_home, world.cwd.join("up")).unwrap();
        let mut victim = Command::new("sleep");
        Self {
            world,
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            victim: victim.arg("1000").env("NAME", SECRET).spawn().unwrap(),
        }
    }

    fn command(&self, shape: &str, deed: &str, above: &str, target: &str) -> String {
        let port = self.listener.local_addr().unwrap().port();
        let deed = deed
            .replace("@T", &format!("{above}/{target}"))
            .replace("@N", target)
            .replace("@U", above)
            .replace("@P", &port.to_string())
            .replace("@V", &self.victim.id().to_string());
        shape.replace("@D", &deed)
    }

    /// The output of a command if it read, changed or reached a canary.
    async fn reached(
        &self,
        tools: &OsTools,
        command: &str,
        access: CommandAccess,
    ) -> Option<ToolOutput> {
        let before = outside(&self.world);
        let output = crate::granted(&self.world, tools, command, access).await;
        let reached = output.content.contains(SECRET) || outside(&self.world) != before;
        reached.then_some(output)
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        // A victim that is gone already is what a failed test left.
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Whether to skip: as root, nothing generated runs.
fn skipped(test: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        skip(test, "generated commands run as an ordinary user only");
        return true;
    }
    !has_tools(test, &["git", "setsid"])
}

#[tokio::test]
async fn generated_commands_stay_inside() {
    let test = "generated_commands_stay_inside";
    if skipped(test) {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("CRABTALK_ATTACK_SEED").unwrap_or(20_710);
    let limit = Duration::from_secs(number("CRABTALK_ATTACK_SECS").unwrap_or(0));
    println!("seed {seed}");
    let (mut rng, began, mut tried) = (Rng(seed), Instant::now(), 0);
    while tried == 0 || began.elapsed() < limit {
        let canaries = Canaries::new();
        let Some(tools) = complete(test, &canaries.world).await else {
            return;
        };
        for _ in 0..COMMANDS {
            let (shape, (_, deed)) = (rng.pick(&SHAPES), rng.pick(&DEEDS));
            let command = canaries.command(shape, deed, rng.pick(&ABOVE), rng.pick(&TARGETS));
            let access = CommandAccess {
                read_only: rng.pick(&[false, false, true]),
                ..CommandAccess::default()
            };
            let reached = canaries.reached(&tools, &command, access).await;
            assert!(reached.is_none(), "{command}\n{reached:?}");
        }
        tried += COMMANDS;
    }
    println!("{tried} commands");
}

/// Without this control a deed that never works anywhere would count as held.
#[tokio::test]
async fn deeds_reach_canaries_outside_the_sandbox() {
    let test = "deeds_reach_canaries_outside_the_sandbox";
    if skipped(test) {
        return;
    }
    let access = CommandAccess {
        outside: true,
        ..CommandAccess::default()
    };
    let canaries = Canaries::new();
    let tools = canaries.world.tools();
    crate::granted(&canaries.world, &tools, "true", access.clone()).await;
    let reached = canaries.reached(&tools, "ls", access.clone()).await;
    assert!(reached.is_none(), "{reached:?}");
    let deeds = DEEDS.iter().map(|(program, deed)| (*program, "@D", *deed));
    let shapes = SHAPES.iter().map(|shape| ("sh", *shape, "cat @T"));
    for (program, shape, deed) in deeds.chain(shapes) {
        if !has_tools(test, &[program]) {
            continue;
        }
        let canaries = Canaries::new();
        let command = canaries.command(shape, deed, "..", TARGETS[0]);
        let tools = canaries.world.tools();
        // The first command makes folders in the home of the tools.
        crate::granted(&canaries.world, &tools, "true", access.clone()).await;
        let reached = canaries.reached(&tools, &command, access.clone()).await;
        assert!(reached.is_some(), "{command} did nothing");
    }
}
