//! Links that are swapped in after a folder was judged: the sandbox stays
//! where it was built, or is not built at all.

use crate::bait::behind;
use crate::boxed;
use crate::support::World;
use crabtalk_guardian::SandboxConfig;
use crabtalk_tools::OsTools;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Tries of a race. Today's kernels let a swap win within a dozen where the
/// folder is opened by name.
const TRIES: usize = 60;

/// A world whose working folder lies below another one that somebody else
/// may change, and a folder of keys outside of both.
fn world() -> (World, PathBuf) {
    let mut world = World::new();
    world.cwd = world.cwd.join("member");
    let keys = world.user_home.join("keys");
    for folder in [&world.cwd, &keys] {
        std::fs::create_dir_all(folder).unwrap();
    }
    (world, keys)
}

fn swap(folder: &Path, to: &Path) {
    std::fs::rename(folder, folder.with_extension("old")).unwrap();
    symlink(to, folder).unwrap();
}

/// A guardian before which something happens: when it starts at first, which is
/// to find out which walls there are, or after that.
fn before(world: &World, script: &str) -> OsTools {
    let mut config = world.config();
    config.guardian = behind(script, &config.guardian);
    OsTools::new(config)
}

/// One before which it happens once the folders are judged.
async fn after(world: &World, sandbox: SandboxConfig, script: &str) -> OsTools {
    let judged = world.root.join("judged");
    let script = format!("if [ -e {} ]; then {script}; fi", judged.display());
    let tools = before(world, &script);
    tools.set_sandbox(sandbox);
    tools.walls().await;
    std::fs::write(judged, "").unwrap();
    tools
}

#[tokio::test]
async fn a_working_folder_that_became_a_link_is_refused() {
    let (world, keys) = world();
    let tools = world.tools();
    swap(&world.cwd, &keys);
    let Some(output) = boxed(&world, &tools, "echo mine > authorized_keys").await else {
        return;
    };
    assert!(
        output.is_error && output.content.contains("a link"),
        "{output:?}"
    );
    assert!(!keys.join("authorized_keys").exists());
}

#[tokio::test]
async fn a_working_folder_on_whose_way_a_link_appeared_is_refused() {
    let (mut world, keys) = world();
    std::fs::create_dir(world.cwd.join("below")).unwrap();
    std::fs::create_dir(keys.join("below")).unwrap();
    let tools = world.tools();
    swap(&world.cwd, &keys);
    world.cwd = world.cwd.join("below");
    let Some(output) = boxed(&world, &tools, "echo mine > authorized_keys").await else {
        return;
    };
    assert!(output.is_error, "{output:?}");
    assert!(!keys.join("below/authorized_keys").exists());
}

/// Whichever moment somebody chooses.
#[tokio::test]
async fn a_link_that_is_swapped_in_after_the_judgement_does_not_move_the_working_folder() {
    for early in [true, false] {
        let (world, keys) = world();
        let script = format!(
            "mv {0} {0}.old && ln -s {1} {0}",
            world.cwd.display(),
            keys.display()
        );
        let tools = if early {
            before(&world, &script)
        } else {
            after(&world, SandboxConfig::default(), &script).await
        };
        let command = format!(
            "echo mine > authorized_keys; echo mine > {}/authorized_keys; echo tried",
            keys.display()
        );
        let Some(output) = boxed(&world, &tools, &command).await else {
            return;
        };
        assert!(world.cwd.is_symlink(), "{output:?}");
        assert!(!keys.join("authorized_keys").exists(), "{output:?}");
    }
}

#[tokio::test]
async fn a_folder_that_is_taken_apart_is_not_moved_either() {
    let (mut world, keys) = world();
    world.home = world.cwd.join(".crabtalk");
    std::fs::create_dir_all(world.home.join("state")).unwrap();
    std::fs::create_dir(keys.join("below")).unwrap();
    world.cwd = world.home.parent().unwrap().to_owned();
    let script = format!(
        "mv {0} {0}.old && ln -s {1} {0}",
        world.cwd.display(),
        keys.display()
    );
    let tools = before(&world, &script);
    let command = format!(
        "echo mine > below/key; echo mine > {}/below/key; echo tried",
        keys.display()
    );
    if boxed(&world, &tools, &command).await.is_some() {
        assert!(!keys.join("below/key").exists());
    }
}

#[tokio::test]
async fn a_folder_of_the_configuration_is_not_moved_either() {
    let (world, keys) = world();
    let shared = world.root.join("shared");
    std::fs::create_dir(&shared).unwrap();
    let script = format!(
        "mv {0} {0}.old && ln -s {1} {0}",
        shared.display(),
        keys.display()
    );
    let sandbox = SandboxConfig {
        write: vec![shared],
        ..SandboxConfig::default()
    };
    let tools = after(&world, sandbox, &script).await;
    let command = format!(
        "echo mine > {0}/authorized_keys; echo mine > {1}/shared/authorized_keys; echo tried",
        keys.display(),
        world.root.display()
    );
    let Some(output) = boxed(&world, &tools, &command).await else {
        return;
    };
    assert!(output.content.ends_with("tried\n"), "{output:?}");
    assert!(!keys.join("authorized_keys").exists(), "{output:?}");
}

/// Somebody watches the folder of temporary folders and puts a link in the
/// place of each that appears.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_in_place_of_the_temporary_folder_does_not_move_the_sandbox() {
    let (world, keys) = world();
    let shared = world.root.join("tmp");
    std::fs::create_dir(&shared).unwrap();
    let mut config = world.config();
    config
        .environment
        .push(("TMPDIR".into(), shared.clone().into()));
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
                    boxed(&world, &tools, &command).await;
                    if keys.join("authorized_keys").exists() {
                        break;
                    }
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
            // Gone again already, or somebody else's: the next one will do.
            let _ = symlink(keys, &path);
        }
    }
}
