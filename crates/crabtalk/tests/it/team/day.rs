//! A short day of a team: one codex, one pi and one agent of the daemon, with one
//! allowed and one refused command each, one compression and one crash.

use super::{PATIENCE, Server as Tmux};
use crate::rig::{CRABTALK, TestEnv, eventually, has_tools, installed};
use crabtalk_guardian::GuardianCommand;
use crabtalk_nexus::agent::State;
use crabtalk_nexus::clock::Clock;
use crabtalk_nexus::control;
use crabtalk_nexus::files::Files;
use crabtalk_nexus::name::Name;
use crabtalk_nexus::start::{self, Places};
use crabtalk_nexus::world::{Answer, Command, TaskState};
use crabtalk_testkit::scripted::{Reply, Script, Server, openai, responses};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TEAM: [&str; 3] = ["CODEX", "PI", "CRAB"];

struct Day {
    env: TestEnv,
    model: Server,
    places: Places,
}

impl Day {
    async fn say(&self, command: Command) -> Answer {
        let answer = control::say(&self.places.state(), &command).await;
        answer.unwrap().expect("NEXUS runs")
    }

    async fn task(&self, text: String) {
        let answer = self.say(Command::AddTask { text }).await;
        assert!(matches!(answer, Answer::Done { .. }), "{answer:?}");
    }

    /// The number of requests whose last message contains this text.
    fn asked(&self, text: &str) -> usize {
        let last = |body: &serde_json::Value| {
            let messages = body["messages"].as_array().or(body["input"].as_array());
            messages.and_then(|all| all.last().map(ToString::to_string))
        };
        let requests = self.model.requests();
        let texts = requests.iter().filter_map(|request| last(&request.body));
        texts.filter(|last| last.contains(text)).count()
    }

    /// Waits for a state; shows all agents if it is not reached.
    async fn until(&self, name: &str, mut is: impl AsyncFnMut() -> bool) {
        let wait = async {
            while !is().await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            let status = self.say(Command::Status).await;
            let inbox = self.say(Command::Inbox { keep: true }).await;
            let mut screens = String::new();
            for agent in TEAM {
                let agent = Name::new(agent).unwrap();
                screens += &format!("{:?}\n", self.say(Command::Look { agent }).await);
            }
            let told = self.told();
            panic!("never: {name}\n{status:#?}\n{inbox:#?}\n{screens}\n{told}");
        }
    }

    /// The log of NEXUS, and the transcript of an agent that does not show its
    /// activity.
    fn told(&self) -> String {
        let mut told = String::new();
        let state = self.places.state();
        let all = |entry| {
            told += &format!("{entry:?}\n");
            true
        };
        crabtalk_nexus::journal::entries(&state, all).unwrap();
        let sessions = self.env.root().join("pi/.pi/agent/sessions");
        let folders = std::fs::read_dir(sessions).into_iter().flatten().flatten();
        for folder in folders {
            for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
                told += &std::fs::read_to_string(file.path()).unwrap_or_default();
            }
        }
        told
    }

    async fn all_idle(&self) -> bool {
        let Answer::Status { agents, .. } = self.say(Command::Status).await else {
            return false;
        };
        agents
            .iter()
            .all(|a| a.state == State::Idle && a.queue == 0)
    }

    async fn tasks_done(&self) -> bool {
        let Answer::Tasks { tasks } = self.say(Command::Tasks).await else {
            return false;
        };
        tasks
            .iter()
            .all(|(_, task)| matches!(task.state, TaskState::Done { .. }))
    }

    fn pid_of(&self, agent: &str) -> Option<i32> {
        let mut tmux = std::process::Command::new("tmux");
        let tmux = tmux.arg("-S").arg(self.env.root().join("tmux"));
        let list = [
            "list-panes",
            "-a",
            "-F",
            "#{@nexus_agent} #{pane_dead} #{pane_pid}",
        ];
        let output = tmux.args(list).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let begin = format!("{agent} 0 ");
        text.lines()
            .find_map(|line| line.strip_prefix(&begin)?.parse().ok())
    }
}

/// The model's answers to each agent.
fn script(root: &Path) -> Script {
    let run = |what: &str, name: &str, topic: &str| {
        format!("sh {}/{what} {name} {topic}", root.display())
    };
    let of_codex = |id: &str, command: String| {
        let arguments = json!({
            "cmd": command, "sandbox_permissions": "require_escalated", "justification": "why not",
        });
        responses::tool(id, "exec_command", &arguments)
    };
    let of_others =
        |id: &str, command: String| openai::tools(id, &[("bash", json!({ "command": command }))]);
    let says = |name: &str, text: &str| -> Reply {
        let text = format!("@{name} → {text}");
        match name {
            "CODEX" => responses::text(&text, 1000),
            _ => openai::text(&text),
        }
    };
    let mut script = Script::openai([]).when("task title", responses::text("A title", 10));
    for name in TEAM {
        let identity = "@NEXUS [BOOTSTRAP]: Identity confirmed. Context loaded. Ready.";
        script = script.when(&format!("@{name} [BOOTSTRAP]"), says(name, identity));
        if name == "CODEX" {
            script = always(script, root);
        }
        for topic in ["ONE", "THREE"] {
            let done = format!("@NEXUS [{topic}]: done.");
            script = script.when(&format!("did-{name}-{topic}"), says(name, &done));
        }
        for (topic, what) in [("ONE", "allowed"), ("TWO", "refused"), ("THREE", "allowed")] {
            let id = format!("{name}_{topic}");
            let command = run(what, name, topic);
            let call = match name {
                "CODEX" => of_codex(&id, command),
                _ => of_others(&id, command),
            };
            script = script.when(&format!("@{name} [{topic}]"), call);
        }
    }
    let ready = "@NEXUS [COMPRESSION]: Context consolidated. Changes committed. Ready for \
        compression.";
    script
        .when("consolidated-pi", says("PI", ready))
        .when(
            "@PI [COMPRESSION]",
            of_others("c", run("consolidate", "pi", "now")),
        )
        .when(
            "Blocked by user",
            says("PI", "@ADMIN [TWO]: it was refused."),
        )
        .when(
            "\"role\":\"tool\"",
            says("CRAB", "@ADMIN [TWO]: it was refused."),
        )
        .when(
            "function_call_output",
            says("CODEX", "@ADMIN [TWO]: it was refused."),
        )
}

/// A command without a rule, and one with the same beginning.
fn always(mut script: Script, root: &Path) -> Script {
    let root = root.display();
    for (topic, more, did) in [
        ("FIVE", " more", "did-AGAIN-more"),
        ("FOUR", "", "did-AGAIN-"),
    ] {
        let arguments = json!({
            "cmd": format!("sh {root}/always AGAIN{more}"),
            "sandbox_permissions": "require_escalated", "justification": "why not",
        });
        let call = responses::tool(&format!("again_{topic}"), "exec_command", &arguments);
        let done = format!("@CODEX → @NEXUS [{topic}]: done.");
        script = script
            .when(did, responses::text(&done, 1000))
            .when(&format!("@CODEX [{topic}]"), call);
    }
    script
}

/// The rules with the exact commands of the scripted terminal agents.
fn rules(root: &Path) -> String {
    let run = |rest: &str| format!("bash(sh {}/{rest})", root.display());
    let allowed = ["CODEX ONE", "CODEX THREE", "PI ONE", "PI THREE"];
    let mut allow: Vec<String> = allowed.map(|of| run(&format!("allowed {of}"))).into();
    allow.push(run("consolidate pi now"));
    let deny = ["CODEX", "PI"].map(|name| run(&format!("refused {name} TWO")));
    format!("[rules]\nallow = {allow:?}\ndeny = {deny:?}\n")
}

async fn prepared(test: &str) -> Option<Day> {
    let (codex, pi, node) = (
        installed(test, "CRABTALK_CODEX")?,
        installed(test, "CRABTALK_PI")?,
        installed(test, "CRABTALK_NODE")?,
    );
    let env = TestEnv::new();
    let root = env.root().join("team");
    let model = Server::start(script(&root)).await;
    env.config(&format!(
        "model = \"scripted\"\n\n[provider.test]\nkind = \"openai\"\nbase_url = \"{}\"\n\
         api_key = \"sk-test\"\nmodels = [\"scripted\"]\n",
        model.url()
    ));
    let (allowed, refused) = (root.join("allowed"), root.join("refused"));
    env.agent(
        "crab",
        &format!(
            "permissions:\n  \"bash(sh {} *)\": allow\n  \"bash(sh {} *)\": deny",
            allowed.display(),
            refused.display()
        ),
    );
    let folders =
        [&codex, &pi, &node].map(|program| program.parent().unwrap().display().to_string());
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folders.join(":"));
    let at = |name: &str| env.root().join(name);
    let named = root.display().to_string();
    let config = format!(
        "root = {root:?}\ncompress = \"auto\"\n\
         {rules}\
         [tmux]\nsocket = {tmux:?}\n\
         [agent.CRAB]\nagent = \"crab\"\n\
         [agent.CODEX]\nkind = \"codex\"\nenv = {{ PATH = {path:?}, HOME = {codex:?} }}\n\
         [agent.PI]\nkind = \"pi\"\nenv = {{ PATH = {path:?}, HOME = {pi:?}, PI_OFFLINE = \"1\" }}\n",
        root = named,
        rules = rules(&root),
        tmux = at("tmux"),
        codex = at("codex"),
        pi = at("pi"),
    );
    std::fs::create_dir_all(env.home.join("config")).unwrap();
    std::fs::write(env.home.join("config/nexus.toml"), &config).unwrap();
    homes(&env, &root, &model.url());
    let places = Places {
        home: env.home.clone(),
        user_home: env.user_home.clone(),
        guardian: GuardianCommand::new(CRABTALK),
    };
    Some(Day { env, model, places })
}

/// Creates the homes of both programs, and the team's repository.
fn homes(env: &TestEnv, root: &Path, url: &str) {
    let write = |path: PathBuf, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let codex = format!(
        "model = \"scripted\"\nmodel_provider = \"local\"\napproval_policy = \"on-request\"\n\
         sandbox_mode = \"read-only\"\n[model_providers.local]\nname = \"local\"\n\
         base_url = \"{url}\"\nwire_api = \"responses\"\n[analytics]\nenabled = false\n\
         [projects.{root:?}]\ntrust_level = \"trusted\"\n"
    );
    write(env.root().join("codex/.codex/config.toml"), &codex);
    let models = json!({"providers": {"local": {
        "baseUrl": url, "api": "openai-completions", "apiKey": "dummy",
        "models": [{"id": "scripted", "name": "scripted", "reasoning": false, "input": ["text"],
            "contextWindow": 100_000, "maxTokens": 8000,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}],
    }}});
    write(
        env.root().join("pi/.pi/agent/models.json"),
        &models.to_string(),
    );
    let settings = json!({"defaultProvider": "local", "defaultModel": "scripted",
        "enableInstallTelemetry": false, "lastChangelogVersion": "0.73.1"});
    write(
        env.root().join("pi/.pi/agent/settings.json"),
        &settings.to_string(),
    );
    let work = root.display();
    write(
        root.join("allowed"),
        &format!("touch {work}/$1-$2; echo did-$1-$2\n"),
    );
    write(
        root.join("refused"),
        &format!("touch {work}/$1-$2; echo refused-$1\n"),
    );
    write(
        root.join("always"),
        &format!("touch {work}/$1$2; echo did-$1-$2\n"),
    );
    let consolidate = "cd $(dirname $0) && echo more >> $1/context.md && git add $1 && \
        git -c user.name=t -c user.email=t@t commit -qm consolidated && echo consolidated-$1\n";
    write(root.join("consolidate"), consolidate);
}

async fn story(day: &Day) {
    let work = day.env.root().join("team");
    day.until("identities", async || {
        day.all_idle().await && day.asked("[BOOTSTRAP]") >= 3
    })
    .await;

    for name in TEAM {
        day.task(format!("@{name} [ONE]: please do what is allowed"))
            .await;
    }
    day.until("the first tasks", async || {
        day.tasks_done().await && day.all_idle().await
    })
    .await;
    for name in TEAM {
        let text = format!("@{name} [TWO]: please do what is refused");
        day.say(Command::Send { text }).await;
    }
    let all_asked = || {
        TEAM.iter()
            .all(|name| day.asked(&format!("@{name} [TWO]")) > 0)
    };
    day.until("refusals", async || all_asked() && day.all_idle().await)
        .await;
    for name in TEAM {
        assert!(work.join(format!("{name}-ONE")).exists(), "{name}");
        assert!(!work.join(format!("{name}-TWO")).exists(), "{name}");
    }

    for_good(day).await;

    // One agent crashes, restarts, proves its identity, and continues.
    let pid = day.pid_of("codex").expect("codex runs");
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let again = || day.asked("@CODEX [BOOTSTRAP]") == 2;
    day.until("another life of codex", async || {
        again() && day.all_idle().await
    })
    .await;
    day.task("@CODEX [THREE]: once more, please".to_owned())
        .await;
    day.until("the task after it", async || {
        day.tasks_done().await && day.all_idle().await
    })
    .await;

    // One agent consolidates, is compressed, and proves its identity.
    let agent = Name::new("PI").unwrap();
    let answer = day.say(Command::Compress { agent }).await;
    assert!(matches!(answer, Answer::Done { .. }), "{answer:?}");
    let again = || day.asked("@PI [BOOTSTRAP]") == 2;
    day.until("a compression of pi", async || {
        again() && day.all_idle().await
    })
    .await;
    day.task("@PI [THREE]: once more, please".to_owned()).await;
    day.until("the task after that", async || {
        day.tasks_done().await && day.all_idle().await
    })
    .await;
    assert_eq!(day.asked("@CRAB [BOOTSTRAP]"), 1);

    for name in TEAM {
        let agent = Name::new(name).unwrap();
        day.say(Command::Stop { agent }).await;
    }
    eventually("no window", async || {
        (day.pid_of("codex").is_none() && day.pid_of("pi").is_none()).then_some(())
    })
    .await;
}

/// ADMIN allows a command of codex always, and is not asked about the next one.
async fn for_good(day: &Day) {
    let codex = || Name::new("CODEX").unwrap();
    day.task("@CODEX [FOUR]: what no rule speaks of".to_owned())
        .await;
    let asked = async || {
        let Answer::Status { agents, .. } = day.say(Command::Status).await else {
            return None;
        };
        let of_codex = agents.into_iter().find(|agent| agent.name == codex());
        of_codex.and_then(|agent| agent.waits)
    };
    day.until("a prompt that ADMIN is asked about", async || {
        asked().await.is_some()
    })
    .await;
    let prompt = asked().await.expect("it waits");
    assert!(prompt.always.contains("ask again"), "{prompt:?}");
    let always = Command::Reply {
        agent: codex(),
        prompt: Some(prompt.id),
        reply: crabtalk_nexus::backend::Reply::Always,
    };
    let answer = day.say(always).await;
    assert!(matches!(answer, Answer::Done { .. }), "{answer:?}");
    day.until("the task that was allowed", async || {
        day.tasks_done().await && day.all_idle().await
    })
    .await;
    day.task("@CODEX [FIVE]: what begins like it".to_owned())
        .await;
    day.until("the task that was not asked about", async || {
        day.tasks_done().await && day.all_idle().await
    })
    .await;
    for file in ["AGAIN", "AGAINmore"] {
        assert!(day.env.root().join("team").join(file).exists(), "{file}");
    }
    let told = day.told();
    assert_eq!(told.matches("allow always").count(), 1, "{told}");
    let of_more = |line: &&str| line.contains("why: \"it asks") && line.contains("AGAIN more");
    assert_eq!(told.lines().find(of_more), None, "it was asked about");
}

#[tokio::test]
async fn a_short_day_of_a_codex_a_pi_and_an_agent_of_the_daemon() {
    let test = "a_short_day_of_a_codex_a_pi";
    if !has_tools(test, &["tmux", "git"]) {
        return;
    }
    let Some(day) = prepared(test).await else {
        return;
    };
    let _tmux = Tmux(day.env.root().join("tmux"));
    let _daemon = day.env.daemon().await;
    let files = Files::new(&day.places.team().unwrap());
    let mut made = files.init().unwrap();
    made.extend(["allowed", "always", "refused", "consolidate"].map(PathBuf::from));
    files.commit(&made, "Begin").unwrap();
    let never = std::future::pending();
    let nexus = start::run(&day.places, Clock::system(), || {}, never);
    let listens = async {
        let socket = day.places.state().join("nexus.sock");
        eventually("NEXUS listens", async || socket.exists().then_some(())).await;
        story(&day).await;
    };
    tokio::select! {
        result = nexus => panic!("NEXUS ended: {result:?}"),
        () = listens => {}
    }
    assert_eq!(day.model.problems(), Vec::<String>::new());
}
