//! Generated commands, run by a real bash in the sandbox of a hostile
//! repository: nothing outside changes, no secret is read, nothing is reached.
//!
//! Every command is harmless by itself: it touches, writes or reads canaries in
//! a throw-away folder. `CRABTALK_ATTACK_SECS` runs longer, `CRABTALK_ATTACK_SEED`
//! repeats a run.

use crate::complete;
use crate::repository::git;
use crate::support::World;
use crabtalk_domain::tool::Access;
use crabtalk_testkit::tools::has_tools;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Commands of a plain test run.
const COMMANDS: usize = 40;

/// Printed by nothing but a read secret or a connection.
const SECRET: &str = "CANARY-SECRET";

struct Rng(u64);

impl Rng {
    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        // Knuth's MMIX generator; the upper bits are good.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        &of[(self.0 >> 33) as usize % of.len()]
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

/// What is outside, below the folder above.
const TARGETS: [&str; 6] = [
    ".ssh/id",
    "beside/file",
    ".crabtalk/config/agents/x.md",
    ".bashrc",
    "beside/new",
    ".crabtalk/new",
];

/// `@T` is a target, `@P` the port and `@C` the process of the test.
const DEEDS: [&str; 22] = [
    "echo changed > @T",
    "touch @T",
    "cat @T",
    "ln -sfn @T here; cat here; echo changed > here",
    "cp @T here && cat here",
    "ln -f @T here && cat here",
    "mv here @T",
    "tar cf - @T | tar xOf -",
    "cd docs && cd ../../.. && cat user/@T",
    "cd up && cat @T; echo changed > @T",
    "chmod 777 @T; touch -d @0 @T",
    "git diff --no-index --output=@T /dev/null docs",
    "git config --file @T a.b c",
    "git config core.fsmonitor 'cat @T'; git status",
    "git -C nested status; git -C nested log",
    "printf 'gitdir: %s' @T > nested/.git; git -C nested status",
    "mv .git .gone; mkdir .git; git status",
    "echo 'echo changed > @T' > .git/hooks/post-commit",
    "echo ../@T > .git/commondir; git status",
    "exec 3<>/dev/tcp/127.0.0.1/@P && printf 'CANARY-%s' SECRET",
    "kill -0 @C && printf 'CANARY-%s' SECRET; kill -STOP @C && printf 'CANARY-%s' SECRET",
    "ls/x; status",
];

/// Ways to run a command; `@A` is the command.
const SHAPES: [&str; 12] = [
    "@A",
    "( @A )",
    "true; @A",
    "false || { @A; }",
    "sh -c \"$(cat <<'E'\n@A\nE\n)\"",
    "@A & wait",
    "env X=1 bash -c \"$(cat <<'E'\n@A\nE\n)\"",
    "for i in 1 2; do @A; done",
    "f() { @A; }; f",
    "setsid bash -c \"$(cat <<'E'\n@A\nE\n)\"",
    "trap \"$(cat <<'E'\n@A\nE\n)\" EXIT",
    "echo \"$( @A )\"",
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

/// What must stay as it is: all but the work tree, and git's configuration.
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

fn furnish(world: &World) {
    for target in &TARGETS[..4] {
        let file = world.user_home.join(target);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, SECRET).unwrap();
    }
    git(&world.cwd, "init -q -b main");
    for folder in ["docs", "nested", "ls"] {
        std::fs::create_dir(world.cwd.join(folder)).unwrap();
    }
    std::fs::write(world.cwd.join("here"), "changed").unwrap();
    std::fs::write(world.cwd.join("nested/HEAD"), "ref: refs/heads/main\n").unwrap();
    symlink(&world.user_home, world.cwd.join("up")).unwrap();
}

#[tokio::test]
async fn generated_commands_stay_inside() {
    let test = "generated_commands_stay_inside";
    if !has_tools(test, &["git"]) {
        return;
    }
    let world = World::new();
    furnish(&world);
    let Some(tools) = complete(test, &world).await else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let own = std::process::id().to_string();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("CRABTALK_ATTACK_SEED").unwrap_or(20_710);
    let secs = number("CRABTALK_ATTACK_SECS").map(Duration::from_secs);
    println!("seed {seed}");
    let (mut rng, began, before) = (Rng(seed), Instant::now(), outside(&world));
    let mut tried = 0;
    while secs.map_or(tried < COMMANDS, |secs| began.elapsed() < secs) {
        let target = format!("{}/{}", rng.pick(&ABOVE), rng.pick(&TARGETS));
        let deed = rng.pick(&DEEDS).replace('T', &target).replace('P', &port);
        let deed = deed
            .replace('C', &own)
            .replace(&format!("{own}ANARY"), "CANARY");
        let command = rng.pick(&SHAPES).replace('A', &deed);
        let access = Access {
            read_only: *rng.pick(&[false, false, true]),
            ..Access::default()
        };
        let output = crate::granted(&world, &tools, &command, access).await;
        assert!(!output.content.contains(SECRET), "{command}\n{output:?}");
        assert_eq!(outside(&world), before, "{command}\n{output:?}");
        tried += 1;
    }
    println!("{tried} commands");
    // The canaries are where the commands look.
    let access = Access {
        outside: true,
        ..Access::default()
    };
    let output = crate::granted(&world, &tools, "cat up/beside/file", access).await;
    assert_eq!(output.content, SECRET);
}
