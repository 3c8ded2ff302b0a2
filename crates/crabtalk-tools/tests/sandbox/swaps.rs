//! Links that are swapped in after a folder was judged: the sandbox stays
//! where it was built, or is not built at all.

use crate::bait::behind;
use crate::granted;
use crate::support::World;
use crabtalk_domain::tool::CommandAccess;
use crabtalk_guardian::SandboxConfig;
use crabtalk_tools::OsTools;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Tries of a race. Kernels let a swap win within a dozen where the folder is
/// opened by name.
const TRIES: usize = 40;

/// A world whose working folder is below another one that an attacker may
/// change, and a folder of keys outside of both.
fn world() -> (World, PathBuf) {
    let mut world = World::new();
    world.cwd = world.cwd.join("member");
    let keys = world.user_home.join("keys");
    for folder in [&world.cwd, &keys] {
        std::fs::create_dir_all(folder).unwrap();
    }
    (world, keys)
}

/// Puts a link in the place of a folder, in a shell's words.
fn swap(folder: &Path, to: &Path) -> String {
    format!(
        "mv {0} {0}.old && ln -s {1} {0}",
        folder.display(),
        to.display()
    )
}

/// Tools whose guardian runs a script before it starts, once walls are known
/// and folders judged.
async fn swapping(world: &World, sandbox: SandboxConfig, script: &str) -> OsTools {
    let judged = world.root.join("judged");
    let script = format!("if [ -e {} ]; then {script}; fi", judged.display());
    let mut config = world.config();
    config.guardian = behind(&script, &config.guardian);
    config.sandbox = sandbox;
    let tools = OsTools::new(config);
    tools.walls().await;
    std::fs::write(judged, "").unwrap();
    tools
}

#[tokio::test]
async fn working_folder_that_became_a_link_is_refused() {
    for below in [false, true] {
        let (mut world, keys) = world();
        let swapped = world.cwd.clone();
        if below {
            world.cwd = world.cwd.join("below");
            std::fs::create_dir(&world.cwd).unwrap();
            std::fs::create_dir(keys.join("below")).unwrap();
        }
        let tools = world.tools();
        std::fs::rename(&swapped, swapped.with_extension("old")).unwrap();
        symlink(&keys, &swapped).unwrap();
        let output = world.bash(&tools, "echo mine > authorized_keys").await;
        assert!(output.is_error, "{output:?}");
        assert!(!keys.join("authorized_keys").exists());
        assert!(!keys.join("below/authorized_keys").exists());
    }
}

#[tokio::test]
async fn link_after_the_judgement_moves_no_opened_folder() {
    for configured in [false, true] {
        let (world, keys) = world();
        let shared = world.root.join("shared");
        std::fs::create_dir(&shared).unwrap();
        let swapped = if configured { &shared } else { &world.cwd };
        let sandbox = SandboxConfig {
            write: vec![shared.clone()],
            ..SandboxConfig::default()
        };
        let tools = swapping(&world, sandbox, &swap(swapped, &keys)).await;
        let command = format!(
            "for f in . {} {}; do echo mine > $f/authorized_keys; done; echo tried",
            keys.display(),
            shared.display()
        );
        let output = world.bash(&tools, &command).await;
        assert!(swapped.is_symlink(), "{output:?}");
        assert!(!keys.join("authorized_keys").exists(), "{output:?}");
    }
}

#[tokio::test]
async fn granted_path_that_became_a_link_is_refused() {
    let (world, keys) = world();
    let shared = world.root.join("shared");
    symlink(&keys, &shared).unwrap();
    let command = format!("echo mine > {}/authorized_keys", shared.display());
    let access = CommandAccess {
        write: vec![shared],
        ..CommandAccess::default()
    };
    let output = granted(&world, &world.tools(), &command, access).await;
    assert!(output.is_error, "{output:?}");
    assert!(!keys.join("authorized_keys").exists());
}

/// An attacker watches the folder of temporary folders and replaces each new one
/// by a link.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn link_in_place_of_the_temporary_folder_moves_nothing() {
    let (world, keys) = world();
    let shared = world.root.join("tmp");
    std::fs::create_dir(&shared).unwrap();
    let mut config = world.config();
    let temporary = ("TMPDIR".into(), shared.clone().into());
    config.environment.push(temporary);
    let tools = OsTools::new(config);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                swap_what_appears(&shared, &keys);
            }
        });
        // A panic must end the watcher too.
        let ends = SetOnDrop(&stop);
        let runtime = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| {
            runtime.block_on(async {
                for _ in 0..TRIES {
                    let command = format!(
                        "echo mine > \"$TMPDIR/authorized_keys\"; echo mine > {}/authorized_keys",
                        keys.display()
                    );
                    world.bash(&tools, &command).await;
                }
            });
        });
        drop(ends);
    });
    assert!(!keys.join("authorized_keys").exists());
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn swap_what_appears(shared: &Path, keys: &Path) {
    for entry in std::fs::read_dir(shared).unwrap().flatten() {
        let path = entry.path();
        let fresh = !path.is_symlink() && path.extension().is_none();
        if fresh && std::fs::rename(&path, path.with_extension("old")).is_ok() {
            // It may be gone already: the next one will do.
            let _ = symlink(keys, &path);
        }
    }
}
