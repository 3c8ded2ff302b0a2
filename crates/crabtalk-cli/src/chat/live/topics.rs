//! `/topic` and `/topics`: conversations of one folder, and notices of their runs.

use super::Live;
use super::calls::Pair;
use super::choice::Purpose;
use super::picker::Picker;
use crate::switch::topics;
use crate::text::summary;
use crate::topic::{self, MAIN};
use crabtalk_proto::{AgentEventKind, AgentEventMsg};

impl Live<'_> {
    /// The topic of the shown conversation.
    pub(super) fn topic(&self) -> &str {
        topic::split(&self.learned.sender).1
    }

    /// Handles `/topic`: shows the topic, or switches to another one.
    pub(super) fn topic_command(&mut self, name: &str) {
        if name.is_empty() {
            let said = match self.topic() {
                MAIN => "this is the folder's main conversation; /topic NAME opens a topic".into(),
                name => format!("this is the topic {name}; /topic {MAIN} leaves it"),
            };
            return self.transcript.note(&said);
        }
        if name == self.topic() {
            return self.transcript.note(&format!("this is the topic {name}"));
        }
        match topic::sender_of(&self.learned.sender, name) {
            Ok(sender) => {
                let agent = self.pair.agent.clone();
                self.turn_to(Pair { agent, sender }, &format!("topic {name}"));
            }
            Err(error) => self.transcript.problem(&error.to_string()),
        }
    }

    /// Handles `/topics`: opens the picker with the conversations of this folder.
    pub(super) fn topics_command(&mut self, search: &str) {
        self.picker = Some(Picker::new(Purpose::Switch, search));
        let (client, pair) = (self.client.clone(), self.learned_pair());
        let topics = async move { topics(&client, &pair.agent, &pair.sender).await };
        self.call(topics, |live, places| live.show_places(places));
    }

    /// The topic of a conversation of this folder and agent, unless it is shown.
    pub(super) fn other_topic<'a>(&self, agent: &str, sender: &'a str) -> Option<&'a str> {
        let (folder, topic) = topic::split(sender);
        let (own_folder, own) = topic::split(&self.learned.sender);
        let is_other = agent == self.learned.agent && folder == own_folder && topic != own;
        is_other.then_some(topic)
    }

    /// Shows a note that a run of another topic of this folder ended.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other kinds of events end no run"
    )]
    pub(super) fn tell_topic(&mut self, event: &AgentEventMsg) {
        let Some(topic) = self.other_topic(&event.agent, &event.sender) else {
            return;
        };
        let what = match event.kind() {
            AgentEventKind::Done => "the run ended".to_owned(),
            AgentEventKind::RunKilled => "the run was cancelled".to_owned(),
            AgentEventKind::RunError => format!("the run failed: {}", summary(&event.content)),
            _ => return,
        };
        let said = format!("topic {topic}: {what} (/topic {topic})");
        self.transcript.note(&said);
        self.ring(&said);
    }
}
