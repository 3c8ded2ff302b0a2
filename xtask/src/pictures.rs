//! `cargo xtask pictures`: the chat as it looks, typed into in a terminal of its
//! own, as SVG files for the README.
//!
//! Invariants: what is shown is what the program prints; the answers are written
//! here, so that nothing is asked of any provider.

mod answers;
mod svg;

use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a text may take to appear.
const APPEARS_WITHIN: Duration = Duration::from_secs(60);

/// Between two looks at the screen.
const LOOK: Duration = Duration::from_millis(100);

/// Columns and rows of the pictures.
const SIZE: (usize, usize) = (84, 30);

/// What is typed, what has to appear then, and the picture of it.
struct Step {
    keys: &'static [&'static str],
    appears: &'static str,
    picture: Option<&'static str>,
}

const STEPS: &[Step] = &[
    Step {
        keys: &[],
        appears: "say something",
        picture: None,
    },
    Step {
        keys: &["-l", "how are the tests laid out here?"],
        appears: "laid out here?",
        picture: None,
    },
    Step {
        keys: &["Enter"],
        appears: "sonnet \u{b7} ",
        picture: Some("chat"),
    },
    Step {
        keys: &["-l", "greet the reader by name"],
        appears: "reader by name",
        picture: None,
    },
    Step {
        keys: &["Enter"],
        appears: "y allow once",
        picture: None,
    },
    Step {
        keys: &["y"],
        appears: "Enter confirms",
        picture: Some("approval"),
    },
];

/// Takes the pictures.
pub(crate) fn take() -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--package", "crabtalk"])
        .status()?;
    ensure!(built.success(), "cargo build failed");
    let program = std::env::current_exe()?.with_file_name("crabtalk");
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = root.join("docs/pictures");
    std::fs::create_dir_all(&folder)?;
    let room = tempfile::Builder::new().prefix("ct").tempdir()?;
    let server = answers::serve()?;
    let terminal = Terminal::open(room.path(), &program, &server)?;
    for step in STEPS {
        if !step.keys.is_empty() {
            terminal.tmux(&[&["send-keys"], step.keys].concat())?;
        }
        terminal.wait_for(step.appears)?;
        if let Some(name) = step.picture {
            // Everybody's home is elsewhere.
            let me = room.path().join("me").display().to_string();
            let screen = terminal.tmux(&["capture-pane", "-e", "-p"])?;
            let screen = screen.replace(&me, "/home/me");
            let file = folder.join(format!("{name}.svg"));
            std::fs::write(&file, svg::picture(&screen, SIZE.0))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    Ok(())
}

/// A terminal in which the chat runs, and its daemon.
struct Terminal {
    socket: PathBuf,
    program: PathBuf,
    home: PathBuf,
}

impl Terminal {
    fn open(room: &Path, program: &Path, server: &str) -> anyhow::Result<Self> {
        let (me, home) = (room.join("me"), room.join("me/.crabtalk"));
        let work = me.join("greeter");
        std::fs::create_dir_all(home.join("config"))?;
        std::fs::create_dir_all(work.join("src"))?;
        std::fs::create_dir_all(work.join(".git"))?;
        std::fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        std::fs::write(work.join("src/main.rs"), answers::SOURCE)?;
        std::fs::write(home.join("config/config.toml"), answers::config(server))?;
        let terminal = Self {
            socket: room.join("tmux"),
            program: program.to_owned(),
            home: home.clone(),
        };
        let line = format!(
            "cd '{}' && HOME='{}' CRABTALK_HOME='{}' CRABTALK_DETECT=0 LANG=C.UTF-8 exec '{}'",
            work.display(),
            me.display(),
            home.display(),
            program.display()
        );
        let (columns, rows) = (SIZE.0.to_string(), SIZE.1.to_string());
        let window = [
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            &line,
        ];
        terminal.tmux(&window)?;
        Ok(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(arguments)
            .env_remove("TMUX")
            .output()
            .context("cannot run tmux")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tmux {arguments:?}: {said}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn wait_for(&self, text: &str) -> anyhow::Result<()> {
        let begin = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"])?;
            if screen.contains(text) {
                return Ok(());
            }
            if begin.elapsed() > APPEARS_WITHIN {
                bail!("no {text:?} on the screen:\n{screen}");
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // What was started ends, however this went.
        let _ = self.tmux(&["kill-server"]);
        let _ = Command::new(&self.program)
            .args(["daemon", "stop"])
            .env("CRABTALK_HOME", &self.home)
            .stderr(Stdio::null())
            .status();
    }
}
