//! Agents in terminals next to the daemon: CrabTalk's chat, supervised like any
//! other program.

mod day;

use crate::rig::{CRABTALK, TestEnv, has_tools, within};
use crabtalk_nexus::backend::{
    Answered, Backend, Events, Launch, Reply, Submission, Submitted, Turn, What,
};
use crabtalk_nexus::terminal::{Kinds, Settings, Spec, Terminal, Terminals};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::time::Duration;

/// Timeout of hanging tests; much longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(240);

/// The tmux server of a test, which ends with the test.
pub(crate) struct Server(pub(crate) std::path::PathBuf);

impl Drop for Server {
    fn drop(&mut self) {
        let mut tmux = std::process::Command::new("tmux");
        let _ = tmux.arg("-S").arg(&self.0).arg("kill-server").output();
    }
}

/// The chat in a window.
struct Chat {
    port: Terminal,
    events: Events,
    count: usize,
}

impl Chat {
    fn new(terminals: &Terminals, env: &TestEnv, name: &str) -> Self {
        let speaker = "user/nexus-{name}";
        let changes = format!(
            "[crabtalk]\ncommand = ['{CRABTALK}', '--as', '{speaker}', 'chat', '--bell']\n"
        );
        let kinds = Kinds::new(&changes.parse().unwrap()).unwrap();
        let variables = [
            ("HOME", env.user_home.display().to_string()),
            ("CRABTALK_HOME", env.home.display().to_string()),
            ("CRABTALK_DETECT", "0".to_owned()),
        ];
        let own = |(name, value): (&str, String)| (name.to_owned(), value);
        let port = terminals.agent(Spec {
            name: name.into(),
            kind: kinds.get("crabtalk").unwrap().clone(),
            folder: env.work.clone(),
            env: variables.into_iter().map(own).collect::<BTreeMap<_, _>>(),
            sandbox: None,
            marker: None,
        });
        Self {
            events: port.events(),
            port,
            count: 0,
        }
    }

    async fn until<T>(&mut self, name: &str, find: impl Fn(&What) -> Option<T>) -> T {
        let wait = async {
            loop {
                let event = self.events.next().await.expect("it goes on telling");
                if let Some(found) = find(&event.what) {
                    return Some(found);
                }
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        let Ok(Some(found)) = waited else {
            panic!("no {name}:\n{}", self.port.look().await.unwrap().text);
        };
        found
    }

    async fn starts(&mut self) {
        self.port.launch(Launch::Fresh).await.unwrap();
        self.until("Ready", |what| {
            matches!(what, What::Ready { .. }).then_some(())
        })
        .await;
    }

    async fn say(&mut self, text: &str) {
        self.count += 1;
        let message = Submission {
            id: format!("m{}", self.count),
            text: text.into(),
            mark: self.port.mark().await.unwrap(),
            again: false,
        };
        let sent = within("a submission", self.port.submit(message))
            .await
            .unwrap();
        let screen = self.port.look().await.unwrap().text;
        assert!(matches!(sent, Submitted::Sent(_)), "{sent:?}\n{screen}");
    }

    async fn ended(&mut self) -> Turn {
        let turn = |what: &What| {
            let What::TurnEnded(turn) = what else {
                return None;
            };
            Some(turn.clone())
        };
        self.until("TurnEnded", turn).await
    }

    async fn answers(&mut self, allow: bool) -> String {
        let prompt = |what: &What| {
            let What::Prompt(prompt) = what else {
                return None;
            };
            Some(prompt.clone())
        };
        let prompt = self.until("Prompt", prompt).await;
        assert_eq!(prompt.tool, "bash");
        let answered = match allow {
            true => self.port.reply(&prompt, &Reply::Allow).await,
            false => {
                let reply = Reply::Deny("it is precious".into());
                self.port.reply(&prompt, &reply).await
            }
        };
        assert!(matches!(answered, Ok(Answered::Taken(_))), "{answered:?}");
        prompt.subject
    }
}

#[tokio::test]
async fn chat_is_supervised_like_other_agents() {
    if !has_tools("our_own_chat_is_supervised", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut settings = Settings::new(&env.user_home, env.root().join("terminals"));
    settings.socket = Some(env.root().join("tmux"));
    let _server = Server(env.root().join("tmux"));
    let terminals = Terminals::open(settings).await.unwrap();
    let mut chat = Chat::new(&terminals, &env, "CHAT");
    chat.starts().await;

    // Wider than the window, and with a second line.
    let long = format!(
        "good day {}\nand a second line",
        "to all of you ".repeat(14)
    );
    chat.say(&long).await;
    assert!(chat.ended().await.output.contains("good day to all of you"));

    chat.say("/tool bash {\"command\":\"echo sum-$((40 + 2))\"}")
        .await;
    assert_eq!(chat.answers(true).await, "echo sum-$((40 + 2))");
    assert_eq!(chat.ended().await.error, None);

    chat.say("/tool bash {\"command\":\"rm -r precious\"}")
        .await;
    assert_eq!(chat.answers(false).await, "rm -r precious");
    let told = chat.ended().await.output;
    let screen = chat.port.look().await.unwrap().text;
    assert!(told.contains("it is precious"), "{told}\n{screen}");
    chat.port.stop().await.unwrap();
}

#[tokio::test]
async fn two_chats_have_separate_conversations() {
    if !has_tools("two_chats_have_separate_conversations", &["tmux"]) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut settings = Settings::new(&env.user_home, env.root().join("terminals"));
    settings.socket = Some(env.root().join("tmux"));
    let _server = Server(env.root().join("tmux"));
    let terminals = Terminals::open(settings).await.unwrap();
    let mut one = Chat::new(&terminals, &env, "one");
    let mut two = Chat::new(&terminals, &env, "two_b");
    one.starts().await;
    two.starts().await;
    one.say("words for one").await;
    two.say("words for two").await;
    assert!(one.ended().await.output.contains("words for one"));
    assert!(two.ended().await.output.contains("words for two"));
    let mut logs: Vec<String> = env
        .logs()
        .iter()
        .map(|log| log.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    logs.sort();
    assert_eq!(
        logs,
        [
            "crab_user-nexus-one_1.jsonl",
            "crab_user-nexus-two-b_1.jsonl"
        ]
    );
}
