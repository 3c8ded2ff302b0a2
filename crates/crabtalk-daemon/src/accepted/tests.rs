use super::window::{MAX_HELD, ROOTS};
use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

const AGENT: &str = "config/agents/crab.md";

struct Home {
    dir: tempfile::TempDir,
    accepted: Accepted,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("config/agents")).unwrap();
        fs::create_dir_all(dir.path().join("config/skills/s")).unwrap();
        fs::create_dir_all(dir.path().join("state")).unwrap();
        fs::write(dir.path().join(AGENT), "careful").unwrap();
        fs::write(dir.path().join("config/skills/s/SKILL.md"), "s").unwrap();
        let accepted = Accepted::open(dir.path());
        Self { dir, accepted }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Everything below the folder of the configuration, as text.
    fn all(&self) -> String {
        let tree = tree::scan(self.dir.path(), &ROOTS, &Tree::default(), &|_, _| Ok(()));
        let items = tree.unwrap().0.into_iter();
        items
            .map(|(path, item)| format!("{} {:?} {:o}\n", path.display(), item.kind, item.mode))
            .collect()
    }

    /// What a command does, and what waits then.
    async fn command(&self, change: impl FnOnce()) -> Option<Question> {
        let key = ConversationKey::new("crab", "user").unwrap();
        self.accepted.begin(&key).await.unwrap();
        change();
        self.accepted.end().await;
        if self.accepted.0.state.lock().await.unasked.is_empty() {
            return None;
        }
        Some(self.accepted.next().await)
    }
}

/// What a command may do to a home.
type Deed = fn(&Home);

#[tokio::test]
async fn whatever_is_done_is_undone_and_done_again_by_a_word() {
    let deeds: [(&str, Deed); 9] = [
        ("a text", |home| fs::write(home.at(AGENT), "bold").unwrap()),
        ("a text of the same size", |home| {
            fs::write(home.at(AGENT), "CAREFUL").unwrap();
        }),
        ("a mode", |home| {
            fs::set_permissions(home.at(AGENT), fs::Permissions::from_mode(0o400)).unwrap();
        }),
        ("a removal", |home| fs::remove_file(home.at(AGENT)).unwrap()),
        ("a folder's removal", |home| {
            fs::remove_dir_all(home.at("config/skills")).unwrap();
        }),
        ("a new folder", |home| {
            fs::create_dir_all(home.at("config/skills/t/scripts")).unwrap();
            fs::write(home.at("config/skills/t/scripts/x"), "x").unwrap();
        }),
        ("a link in a file's place", |home| {
            fs::remove_file(home.at(AGENT)).unwrap();
            symlink("/etc/passwd", home.at(AGENT)).unwrap();
        }),
        ("a file in a folder's place", |home| {
            fs::remove_dir_all(home.at("config/agents")).unwrap();
            fs::write(home.at("config/agents"), "x").unwrap();
        }),
        ("trust", |home| {
            fs::write(home.at("state/trust.toml"), "[[skill]]").unwrap();
        }),
    ];
    for (what, deed) in deeds {
        let home = Home::new();
        let before = home.all();
        let question = home.command(|| deed(&home)).await.expect(what);
        assert_eq!(home.all(), before, "{what}");
        assert_eq!(question.agent, "crab");
        assert!(question.detail.lines().count() >= 1, "{what}");
        home.accepted.accept(&question.id).await.unwrap();
        let wanted = Home::new();
        deed(&wanted);
        assert_eq!(home.all(), wanted.all(), "{what}");
        assert!(home.command(|| ()).await.is_none(), "{what}: it counts");
        // And the other answer.
        let home = Home::new();
        let question = home.command(|| deed(&home)).await.expect(what);
        home.accepted.refuse(&question.id).await.unwrap();
        assert_eq!(home.all(), before, "{what}");
        assert!(home.at("state/refused").join(&question.id).is_dir());
    }
}

#[tokio::test]
async fn a_folder_of_configuration_may_be_a_link() {
    let home = Home::new();
    fs::rename(home.at("config"), home.at("dotfiles")).unwrap();
    symlink("dotfiles", home.at("config")).unwrap();
    let question = home.command(|| fs::write(home.at(AGENT), "bold").unwrap());
    let question = question.await.unwrap();
    assert_eq!(fs::read_to_string(home.at(AGENT)).unwrap(), "careful");
    home.accepted.accept(&question.id).await.unwrap();
    assert_eq!(
        fs::read_to_string(home.at("dotfiles/agents/crab.md")).unwrap(),
        "bold"
    );
}

#[tokio::test]
async fn nothing_is_put_over_what_was_changed_since() {
    let home = Home::new();
    let question = home.command(|| fs::write(home.at(AGENT), "bold").unwrap());
    let question = question.await.unwrap();
    fs::write(home.at(AGENT), "by hand").unwrap();
    let error = home.accepted.accept(&question.id).await.unwrap_err();
    assert!(error.contains("was changed since"), "{error}");
    assert_eq!(fs::read_to_string(home.at(AGENT)).unwrap(), "by hand");
}

#[tokio::test]
async fn keys_are_not_shown() {
    let home = Home::new();
    let config = home.at("config/config.toml");
    let change = || {
        fs::write(
            &config,
            "[provider.x]\napi_key = \"sk-hush\"\nkind = \"openai\"\n",
        )
    };
    let question = home.command(|| change().unwrap()).await.unwrap();
    assert!(!question.detail.contains("sk-hush"), "{}", question.detail);
    assert!(
        question.detail.contains("+kind = \"openai\""),
        "{}",
        question.detail
    );
}

#[tokio::test]
async fn many_changes_wait_and_more_are_refused() {
    let home = Home::new();
    for n in 0..MAX_HELD + 2 {
        let file = home.at(&format!("config/agents/a{n}.md"));
        let _ = home.command(|| fs::write(file, "x").unwrap()).await;
    }
    let waiting = fs::read_dir(home.at("state/held")).unwrap().count();
    assert_eq!(waiting, MAX_HELD);
    assert_eq!(fs::read_dir(home.at("config/agents")).unwrap().count(), 1);
}
