//! Files that cannot be read: named, and no reason to lose anything else.
//!
//! Rights do not hold for root, so what stands in the way here holds for
//! everybody: a link that leads nowhere, a folder in a file's place, bytes that
//! are no text, a pipe that nobody writes into.

use super::{recall, say, told};
use crate::rig::{ModelServer, TestEnv, eventually};
use crabtalk_testkit::scripted::{Script, openai};
use rustix::fs::FileType;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Puts something where a file should be.
type Obstruct = fn(&Path);

/// What stands in a file's place, with a name for it.
const OBSTACLES: [(&str, Obstruct); 4] = [
    ("dangling", |path| symlink("nowhere", path).unwrap()),
    ("folder", |path| fs::create_dir(path).unwrap()),
    ("bytes", |path| fs::write(path, [b'a', 0xff, 0xfe]).unwrap()),
    ("pipe", make_pipe),
];

/// A plain open of it blocks forever.
fn make_pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0).unwrap();
}

async fn agreeing() -> ModelServer {
    ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await
}

/// Lines that name a file.
fn naming<'a>(text: &'a str, file: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(file)).collect()
}

const MEMORY: &str = ".crabtalk/config/memory";

#[tokio::test]
async fn memory_files() {
    let model = agreeing().await;
    let env = TestEnv::with_model(&model);
    let entries = env.user_home.join(MEMORY).join("entries");
    env.write(
        &format!("{MEMORY}/entries/gate.md"),
        "---\nname: garden gate\n---\nThe garden gate is green.\n",
    );
    for (name, obstruct) in OBSTACLES {
        obstruct(&entries.join(format!("{name}.md")));
    }
    OBSTACLES[3].1(&env.user_home.join(MEMORY).join("MEMORY.md"));
    OBSTACLES[2].1(&env.home.join("config/Crab.md"));
    let daemon = env.daemon().await;
    say(&env, "user", "Which colour has the garden gate?").await;
    let block = recall(model.requests().await.last().unwrap()).unwrap();
    assert!(block.contains("gate is green"), "{block}");

    let listed = env.run(&["memory"]).await;
    let said = daemon.stderr();
    for file in [
        "dangling.md",
        "folder.md",
        "bytes.md",
        "pipe.md",
        "MEMORY.md",
        "Crab.md",
    ] {
        assert_eq!(
            naming(&listed.stderr, file).len(),
            1,
            "{file}: {}",
            listed.stderr
        );
        assert!(!naming(&said, file).is_empty(), "{file}: {said}");
    }
    assert!(listed.ok().contains("garden gate"));
    // A name whose file is blocked gets another file.
    env.run(&["memory", "add", "bytes", "Eight bits each."])
        .await
        .ok();
    let shown = env.run(&["memory", "show", "bytes"]).await.ok();
    assert!(shown.contains("Eight bits each."), "{shown}");
    assert_eq!(
        fs::read(entries.join("bytes.md")).unwrap(),
        [b'a', 0xff, 0xfe]
    );
    assert!(entries.join("folder.md").is_dir());
    assert!(entries.join("dangling.md").is_symlink());
}

#[tokio::test]
async fn a_file_where_the_memory_folder_should_be() {
    for place in ["", "/entries"] {
        let model = agreeing().await;
        let env = TestEnv::with_model(&model);
        let place = format!("{MEMORY}{place}");
        env.write(&place, "precious");
        let daemon = env.daemon().await;
        say(&env, "user", "Which colour has the garden gate?").await;
        let listed = env.run(&["memory"]).await;
        assert!(listed.stderr.contains(&place), "{place}: {}", listed.stderr);
        listed.ok();
        let refused = env.run(&["memory", "add", "gate", "It is green."]).await;
        let refused = refused.fails(1);
        assert!(refused.contains(&place), "{place}: {refused}");
        let kept = fs::read_to_string(env.user_home.join(&place)).unwrap();
        assert_eq!(kept, "precious");
        assert!(!naming(&daemon.stderr(), &place).is_empty());
        // Out of the way, everything works.
        fs::remove_file(env.user_home.join(&place)).unwrap();
        env.run(&["memory", "add", "gate", "It is green."])
            .await
            .ok();
        let listed = env.run(&["memory"]).await;
        assert_eq!(listed.stderr, "");
        assert!(listed.ok().contains("gate"));
    }
}

#[tokio::test]
async fn skills() {
    let model = agreeing().await;
    let env = TestEnv::with_model(&model);
    let folder = env.home.join("config/skills");
    env.write(
        ".crabtalk/config/skills/greet/SKILL.md",
        "---\nname: greet\ndescription: Greets.\n---\nGreet $ARGUMENTS warmly.\n",
    );
    for (name, obstruct) in OBSTACLES {
        fs::create_dir_all(folder.join(name)).unwrap();
        obstruct(&folder.join(name).join("SKILL.md"));
    }
    symlink("nowhere", folder.join("lost")).unwrap();
    fs::write(folder.join("stray"), "no folder").unwrap();
    let daemon = env.daemon().await;
    say(&env, "user", "/greet Bob").await;
    let request = told(model.requests().await.last().unwrap());
    assert!(request.contains("Greet Bob warmly."), "{request}");

    let listed = env.run(&["skills"]).await;
    let said = daemon.stderr();
    for name in ["dangling", "folder", "bytes", "pipe", "lost"] {
        let file = format!("skills/{name}");
        assert_eq!(
            naming(&listed.stderr, &file).len(),
            1,
            "{file}: {}",
            listed.stderr
        );
        assert!(!naming(&said, &file).is_empty(), "{file}: {said}");
    }
    assert!(listed.ok().contains("greet"));
    let check = env
        .run(&["skills", "check", folder.to_str().unwrap()])
        .await;
    for name in ["dangling", "folder", "bytes", "pipe"] {
        assert!(
            check.stdout.contains(&format!("skills/{name}")),
            "{}",
            check.stdout
        );
    }
    check.fails(1);
    // A file where all of them should be.
    fs::rename(&folder, env.home.join("config/away")).unwrap();
    fs::write(&folder, "precious").unwrap();
    say(&env, "user", "Hello").await;
    let listed = env.run(&["skills"]).await;
    assert!(listed.stderr.contains("config/skills"), "{}", listed.stderr);
    listed.ok();
    assert_eq!(fs::read_to_string(&folder).unwrap(), "precious");
}

#[tokio::test]
async fn project_instructions() {
    for (name, obstruct) in OBSTACLES {
        let model = agreeing().await;
        let env = TestEnv::with_model(&model);
        let work = env.work.to_str().unwrap();
        fs::write(env.work.join("Crab.md"), "Speak of the tide.").unwrap();
        let file = env.work.join("AGENTS.md");
        obstruct(&file);
        let daemon = env.daemon().await;
        env.run(&["trust", "add", work]).await.ok();
        say(&env, "user", "Hello").await;
        let request = told(model.requests().await.last().unwrap());
        assert!(request.contains("Speak of the tide."), "{name}: {request}");
        let said = daemon.stderr();
        assert!(!naming(&said, "AGENTS.md").is_empty(), "{name}: {said}");
        // Mended, it counts from the next turn on.
        if file.is_dir() {
            fs::remove_dir(&file).unwrap();
        } else {
            fs::remove_file(&file).unwrap();
        }
        fs::write(&file, "Speak of the moon.").unwrap();
        eventually("the instructions", async || {
            say(&env, "user", "Hello again").await;
            let request = told(model.requests().await.last().unwrap());
            request.contains("Speak of the moon.").then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn garbage_in_place_of_the_index_is_replaced() {
    let replies = [openai::text("Noted."), openai::text("Hello.")];
    let script = super::summarising(replies, "Small things were talked about.");
    let model = ModelServer::start(script).await;
    let env = TestEnv::with_model(&model);
    env.write(".crabtalk/state/index.db", &"garbage".repeat(2_000));
    let daemon = env.daemon().await;
    say(&env, "user", "My passport lies in the blue tin.").await;
    env.run(&["compact"]).await.ok();
    let found = env.run(&["search", "passport"]).await.ok();
    assert!(found.contains("blue tin"), "{found}");
    let named = async || naming(&daemon.stderr(), "index.db").first().map(|_| ());
    eventually("a warning", named).await;
}
