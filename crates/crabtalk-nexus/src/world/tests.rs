//! The whole team, with obedient agents.

use super::*;
use crate::backend::{Mark, Source, Turn, What};
use crate::mail::Fate;

mod bootstrap;
mod kept;
mod mail;
mod prompts;
mod work;

/// A team, its transcripts, and the keys that were sent.
struct Bench {
    world: World,
    now: Ms,
    transcripts: BTreeMap<Name, Vec<String>>,
    keys: Vec<String>,
    log: Vec<Entry>,
    /// The stored state, and the number of writes.
    rows: BTreeMap<String, String>,
    writes: usize,
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn proof() -> Evidence {
    Evidence::new(Source::Transcript, "test")
}

impl Bench {
    fn new(config: &str) -> Self {
        let text = format!("root = \"/team\"\n{config}");
        let team: Team = toml::from_str(&text).unwrap();
        let mut bench = Self {
            world: World::new(team),
            now: 1_000_000,
            transcripts: BTreeMap::new(),
            keys: Vec::new(),
            log: Vec::new(),
            rows: BTreeMap::new(),
            writes: 0,
        };
        bench.put(Input::Began);
        bench
    }

    /// The world as restored by the next NEXUS.
    fn restored(&self, team: Team) -> World {
        let mut world = World::new(team);
        world.go_on_behind(self.world.last_entry);
        for (key, row) in &self.rows {
            world.restore(key, row).unwrap();
        }
        world
    }

    /// A team whose agents have confirmed their identity.
    fn ready(config: &str) -> Self {
        let mut bench = Self::new(config);
        let names: Vec<Name> = bench.world.agents.keys().cloned().collect();
        for name in names {
            bench.confirms(name.as_str());
            bench.is(name.as_str(), State::Idle);
        }
        bench
    }

    fn put(&mut self, input: Input) -> Option<Answer> {
        let mut inputs = vec![input];
        let mut answer = None;
        while let Some(input) = (!inputs.is_empty()).then(|| inputs.remove(0)) {
            let out = self.world.handle(self.now, input);
            answer = answer.or(out.answer);
            self.writes += usize::from(!out.patch.is_empty());
            for (key, row) in out.patch {
                match row {
                    Some(row) => self.rows.insert(key, row),
                    None => self.rows.remove(&key),
                };
            }
            self.log.extend(out.entries);
            for order in out.orders {
                inputs.extend(self.obey(order));
            }
        }
        answer
    }

    fn obey(&mut self, order: Order) -> Vec<Input> {
        let Order { agent, cause, deed } = order;
        let done = |done| Input::Done(agent.clone(), cause, done);
        let event = |what| {
            let evidence = proof();
            Input::Event(agent.clone(), Event { what, evidence })
        };
        match deed {
            Deed::Launch(_) => {
                let session = format!("s-{agent}");
                let ready = What::Ready {
                    session,
                    busy: false,
                };
                vec![done(Done::Launched(Ok(()))), event(ready)]
            }
            Deed::Mark(letter) => vec![done(Done::Marked(letter, Ok(Mark("0".into()))))],
            Deed::Submit(letter, message) => {
                let transcript = self.transcripts.entry(agent.clone()).or_default();
                transcript.push(message.text);
                let sent = Done::Submitted(letter, Ok(Submitted::Sent(proof())));
                vec![done(sent), event(What::Seen { id: message.id })]
            }
            Deed::Reply(prompt, reply) => {
                let key = match reply {
                    Reply::Allow => "1".to_owned(),
                    Reply::Always => "2".to_owned(),
                    Reply::Deny(_) => "Esc".to_owned(),
                    Reply::Text(text) => format!("{text:?}"),
                };
                self.keys.push(format!("{agent} {key} {}", prompt.id));
                vec![done(Done::Pressed(prompt.id, Ok(Answered::Taken(proof()))))]
            }
            Deed::Stop => vec![done(Done::Stopped(Ok(())))],
            Deed::Checkpoint(why) => {
                self.keys.push(format!("commit {why}"));
                vec![]
            }
            other @ (Deed::Probe | Deed::Verify(_) | Deed::Compress | Deed::Cancel) => {
                self.keys.push(format!("{agent} {other:?}"));
                vec![]
            }
        }
    }

    fn tells(&mut self, agent: &str, what: What) {
        let evidence = proof();
        self.put(Input::Event(name(agent), Event { what, evidence }));
    }

    /// Ends the agent's turn with this output.
    fn says(&mut self, agent: &str, output: &str) {
        let output = output.to_owned();
        self.tells(
            agent,
            What::TurnEnded(Turn {
                output,
                ..Turn::default()
            }),
        );
    }

    fn confirms(&mut self, agent: &str) {
        let text = format!("@{agent} → @NEXUS [BOOTSTRAP]: Identity confirmed. Context loaded. Ok");
        self.says(agent, &text);
    }

    fn admin(&mut self, command: Command) -> Answer {
        self.put(Input::Said(command)).unwrap()
    }

    fn send(&mut self, text: &str) -> Answer {
        let text = text.to_owned();
        self.admin(Command::Send { text })
    }

    fn task(&mut self, text: &str) {
        let text = text.to_owned();
        let answer = self.admin(Command::AddTask { text });
        assert!(matches!(answer, Answer::Done { .. }), "{answer:?}");
    }

    fn inbox(&mut self) -> Vec<String> {
        let Answer::Inbox { letters } = self.admin(Command::Inbox { keep: false }) else {
            panic!("an inbox");
        };
        letters.into_iter().map(|(_, mail)| mail.text()).collect()
    }

    fn after(&mut self, secs: u64) {
        self.now += secs * 1000;
        self.put(Input::Tick);
    }

    fn got(&self, agent: &str) -> &[String] {
        self.transcripts
            .get(&name(agent))
            .map_or(&[], Vec::as_slice)
    }

    fn last(&self, agent: &str) -> &str {
        self.got(agent).last().map_or("", String::as_str)
    }

    #[track_caller]
    fn is(&self, agent: &str, state: State) {
        assert_eq!(self.world.agents[&name(agent)].state, state);
    }

    fn prompts(&mut self, agent: &str, id: &str, subject: &str) {
        let prompt = Prompt {
            id: id.into(),
            tool: "bash".into(),
            subject: subject.into(),
            exact: true,
            text: format!("Run {subject}?"),
            ..Prompt::default()
        };
        self.tells(agent, What::Prompt(prompt));
    }
}

const TWO: &str = "[agent.A]\n[agent.B]\n";
