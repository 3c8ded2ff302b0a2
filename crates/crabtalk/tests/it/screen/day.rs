//! A day's work in one terminal, at several sizes.

use super::*;

const LAYERS: &str = "The tests come in **two layers**:\n\n\
    | layer | where | runs in |\n|---|---|---:|\n\
    | unit | beside the code, in `tests.rs` | 0.2 s |\n\
    | behaviour | `tests/it`, one binary | 6 s |\n\n\
    A behaviour test reads as data:\n\n\
    ```rust\n#[test]\nfn greets_by_name() {\n    assert_eq!(greet(\"Ada\"), \"hello, Ada\");\n}\n```\n";

const MAIN: &str = "//! Greets.\n\nfn main() {\n    println!(\"hello\");\n}\n";

/// Lines of the long paste.
const PASTED: usize = 5_000;

/// Number of resizes in a row.
const RESIZES: u64 = 40;

fn edit(old: &str, new: &str) -> (&'static str, serde_json::Value) {
    let arguments = json!({"path": "src/main.rs", "old_string": old, "new_string": new});
    ("edit", arguments)
}

/// The model's replies, in the order of the requests.
fn script() -> Script {
    let greet = edit("\"hello\"", "\"hello, {}\", name()");
    let name = edit(
        "fn main",
        "fn name() -> String {\n    std::env::args().nth(1).unwrap_or_default()\n}\n\nfn main",
    );
    let list = json!({"items": [
        {"text": "Add --name", "status": "done"},
        {"text": "Let the reviewer read it", "status": "in_progress"},
        {"text": "Describe it in the README", "status": "pending"},
    ]});
    let tasks = json!({"tasks": [{"agent": "reviewer", "task": "Review the change."}]});
    Script::openai([
        openai::pieces(&[LAYERS]),
        openai::tools("greet", &[greet]),
        openai::text("It greets by name now."),
        openai::tools("name", &[name]),
        openai::text("The name is an argument."),
        openai::pieces(&["One, two\n\n", "and so on"]).stall_after(2),
        openai::pieces(&["I am busy\n\n", "no longer."]).held_after(2),
        openai::text("The corrected message arrived."),
        openai::text("A different answer."),
        openai::text("A new history."),
        openai::text("The resumed history."),
        openai::pieces(&["Docs take long\n\n", "but end."]).held_after(2),
        openai::text("Meanwhile in main."),
        openai::tools("team", &[("todo", list), ("delegate", tasks)]),
        openai::tools("check", &[("bash", json!({"command": "cat gate"}))]),
        openai::text("The change is correct."),
        openai::text("Reviewed."),
        openai::text("That was long."),
    ])
}

struct Day {
    /// Dropped before `env`, whose files it reads.
    _daemon: Daemon,
    env: TestEnv,
    model: ModelServer,
    terminal: Tmux,
    /// Whether screens are written to the documents.
    is_shown: bool,
}

impl Day {
    /// Updates a picture of the documents.
    fn picture(&self, name: &str, title: &str) {
        if self.is_shown {
            self.terminal.picture(&self.env, name, title);
        }
    }

    async fn asks_and_edits(&self) {
        let chat = &self.terminal;
        chat.types("how are the tests laid out here?");
        chat.shows("hello, Ada", 1).await;
        chat.shows(OVER, 1).await;
        self.picture("chat", "The chat: Markdown with a table and code");
        chat.types("greet the reader by name");
        chat.shows(CHOICES, 1).await;
        self.picture("approval", "An approval question");
        chat.types("y");
        chat.shows("It greets by name now.", 1).await;
        chat.shows(OVER, 2).await;
        // Edits are allowed from here on.
        chat.key("BTab");
        chat.shows("\u{b7} auto", 1).await;
        chat.types("take the name from the command line");
        chat.shows("The name is an argument.", 1).await;
        chat.shows(OVER, 3).await;
        let file = std::fs::read_to_string(self.env.work.join("src/main.rs")).unwrap();
        assert!(
            file.contains("name())") && file.contains("args()"),
            "{file}"
        );
    }

    async fn interrupts_and_queues(&self) {
        let chat = &self.terminal;
        chat.types("count");
        chat.shows("One, two", 1).await;
        chat.key("Escape");
        chat.shows("\u{b7} cancelled", 1).await;
        chat.types("be busy");
        chat.shows("I am busy", 1).await;
        chat.types_half("wrong");
        chat.key("Tab");
        chat.shows("queued: wrong", 1).await;
        chat.key("Up");
        chat.shows("\u{203a} wrong", 1).await;
        chat.types_half(" no more");
        chat.key("Tab");
        chat.shows("queued: wrong no more", 1).await;
        self.picture("queue", "A queued message");
        self.model.release().await;
        chat.shows("The corrected message arrived.", 1).await;
        chat.shows(OVER, 5).await;
        let screen = chat.shows(IDLE, 1).await;
        assert_eq!(screen.matches("\u{203a} wrong").count(), 1, "{screen}");
    }

    async fn rewinds_and_resumes(&self) {
        let chat = &self.terminal;
        chat.key("Escape");
        chat.shows("Esc again", 1).await;
        chat.key("Escape");
        chat.shows("rewind to:", 1).await;
        chat.shows("wrong no more", 2).await;
        self.picture("rewind", "The earlier messages of a conversation");
        chat.key("Enter");
        chat.shows("Rewound to: wrong no more", 1).await;
        chat.types(", please");
        chat.shows("A different answer.", 1).await;
        chat.shows(OVER, 6).await;
        chat.types("/new");
        chat.shows("rchived", 1).await;
        chat.types("begin again");
        chat.shows("A new history.", 1).await;
        chat.shows(OVER, 7).await;
        chat.types("/resume tests");
        chat.shows("resume: tests", 1).await;
        chat.shows(", archive 1", 1).await;
        chat.key("Enter");
        chat.shows("Resumed: ", 1).await;
        chat.types("and now");
        chat.shows("The resumed history.", 1).await;
        let requests = self.model.requests().await;
        let asked = requests.last().unwrap().to_string();
        assert!(asked.contains("no more, please"), "{asked}");
        assert!(!asked.contains("begin again"), "{asked}");
        assert!(!asked.contains("corrected message"), "{asked}");
        chat.shows("\u{203a} and now", 1).await;
        chat.shows(IDLE, 1).await;
    }

    async fn works_on_two_topics(&self) {
        let chat = &self.terminal;
        chat.types("/topic docs");
        chat.shows("\u{b7} topic docs \u{b7}", 1).await;
        chat.types("write the docs");
        chat.shows("Docs take long", 1).await;
        chat.types("/topic main");
        chat.shows("The resumed history.", 2).await;
        chat.shows(IDLE, 1).await;
        chat.types("answer meanwhile");
        chat.shows("Meanwhile in main.", 1).await;
        chat.shows(IDLE, 1).await;
        self.model.release().await;
        chat.shows("topic docs: the run ended", 1).await;
        chat.types("/topics");
        chat.shows("idle", 2).await;
        self.picture("topics", "The topics of a folder");
        chat.key("Escape");
        chat.shows(IDLE, 1).await;
    }

    async fn delegates(&self) {
        let chat = &self.terminal;
        chat.types("add a --name option; let the reviewer check it");
        chat.shows("reviewer \u{b7} bash cat gate", 1).await;
        let screen = chat.shows("\u{25b8} Let the reviewer", 1).await;
        assert!(screen.contains("Describe it in the README"), "{screen}");
        self.picture("todo", "A todo list and a member at work");
        chat.key("C-s");
        chat.shows("Ctrl-S closes", 1).await;
        self.picture("member", "The output of a member");
        chat.key("C-s");
        self.env.shell("echo fine > gate").await;
        chat.shows("Reviewed.", 1).await;
        chat.shows("1 of 3 done", 1).await;
        chat.shows(IDLE, 1).await;
        self.picture("finished", "The end of a run with a todo list");
    }
}

impl Day {
    /// Resizes quickly many times: every line remains, and each input row is shown once.
    async fn is_resized(&self, (columns, rows): (usize, usize)) {
        let chat = &self.terminal;
        let words = |screen: &str| screen.split_whitespace().collect::<String>();
        let before = words(&chat.screen());
        let mut number: u64 = 7;
        let mut below = |most: u64| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from((number >> 33) % most).unwrap()
        };
        for _ in 0..RESIZES {
            chat.resize(10 + below(191), 4 + below(47));
        }
        chat.resize(columns, rows);
        chat.types_half("calm");
        chat.shows("\u{203a} calm", 1).await;
        for _ in 0..4 {
            chat.key("BSpace");
        }
        chat.shows(IDLE, 1).await;
        let after = chat.screen();
        assert_eq!(after.matches(IDLE).count(), 1, "{after}");
        let after = words(&after);
        for said in ["Thetestscomeintwolayers", "Itgreetsbyname", "Reviewed."] {
            let count = before.matches(said).count();
            assert_eq!(after.matches(said).count(), count, "{said}: {after}");
        }
    }

    async fn pastes(&self) {
        let chat = &self.terminal;
        let lines: Vec<String> = (1..=PASTED).map(|n| format!("line {n} of a log")).collect();
        chat.pastes(&lines.join("\n"));
        chat.shows(&format!("{PASTED} lines"), 1).await;
        chat.key("Enter");
        chat.shows("That was long.", 1).await;
        let requests = self.model.requests().await;
        let asked = requests.last().unwrap().to_string();
        assert!(asked.contains(&lines.join("\\n")), "the paste is whole");
    }
}

async fn day(name: &str, columns: usize, rows: usize) {
    if !has_tools(name, &["tmux", "git", "mkfifo"]) {
        return;
    }
    let model = ModelServer::start(script()).await;
    let env = TestEnv::new();
    env.config(&format!(
        "model = \"sonnet\"\n\n[provider.test]\nkind = \"openai\"\nbase_url = \"{}\"\n\
         api_key = \"sk-test\"\nmodels = [\"sonnet\"]\n",
        model.url()
    ));
    env.agent("crab", "members: [reviewer]");
    env.agent("reviewer", "description: reads changes");
    env.write("work/src/main.rs", MAIN);
    env.shell("git init -q -b main && mkfifo gate").await;
    let daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, &format!("{CHAT} --mode ask"), columns, rows);
    terminal.shows(IDLE, 1).await;
    let day = Day {
        _daemon: daemon,
        env,
        model,
        terminal,
        is_shown: columns == 80,
    };
    day.asks_and_edits().await;
    day.interrupts_and_queues().await;
    day.rewinds_and_resumes().await;
    day.works_on_two_topics().await;
    day.delegates().await;
    day.is_resized((columns, rows)).await;
    day.pastes().await;
    day.terminal.key("C-d");
    day.terminal.shows("ended with 0", 1).await;
}

#[tokio::test]
async fn day_at_80_by_24() {
    day("day_at_80_by_24", 80, 24).await;
}

#[tokio::test]
async fn day_at_120_by_40() {
    day("day_at_120_by_40", 120, 40).await;
}

#[tokio::test]
async fn day_at_200_by_50() {
    day("day_at_200_by_50", 200, 50).await;
}
