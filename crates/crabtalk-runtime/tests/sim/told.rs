//! What clients, hooks and the ledger were told, held against what the logs
//! say.

use crabtalk_domain::storage::{Record, RunPhase, Steering};
use crabtalk_domain::{AgentEvent, ConversationKey, End, Role, RunEnded};
use crabtalk_runtime::Sequenced;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one reader heard of one run.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// The submitted message, if this reader submitted it.
    pub(crate) content: Option<String>,
    /// The id that it was submitted under.
    pub(crate) id: Option<String>,
    pub(crate) run: u64,
    pub(crate) said: Option<String>,
    pub(crate) results: Vec<(String, String)>,
    pub(crate) steered: Vec<String>,
    /// The text of the last step.
    pub(crate) text: String,
    pub(crate) speaking: bool,
    pub(crate) last: u64,
    pub(crate) end: Option<End>,
    pub(crate) refused: Option<u32>,
}

impl Heard {
    /// Takes an event; an error says what is wrong with the stream.
    pub(crate) fn take(&mut self, next: Sequenced) -> Result<(), String> {
        if next.seq <= self.last {
            return Err(format!("{} follows {}", next.seq, self.last));
        }
        if self.end.is_some() {
            return Err(format!("{:?} follows an End", next.event));
        }
        self.last = next.seq;
        if let AgentEvent::Start { run, .. } = &next.event {
            if self.run != 0 {
                return Err("a second Start".into());
            }
            self.run = *run;
        } else if self.run == 0 && !matches!(next.event, AgentEvent::End(_)) {
            return Err(format!("{:?} before Start", next.event));
        }
        if let AgentEvent::UserMessage { content, .. } = next.event {
            self.said = Some(content);
        } else if let AgentEvent::TextStart | AgentEvent::ToolStart(_) = next.event {
            self.text.clear();
            self.speaking = matches!(next.event, AgentEvent::TextStart);
        } else if let AgentEvent::TextEnd = next.event {
            self.speaking = false;
        } else if let AgentEvent::Text(text) = next.event {
            // Messages of the daemon are separate events.
            if !self.speaking {
                return Err(format!("{text:?} stands outside of what the agent says"));
            }
            self.text.push_str(&text);
        } else if let AgentEvent::ToolResult {
            call_id, output, ..
        } = next.event
        {
            self.results.push((call_id, output));
        } else if let AgentEvent::Steered(content) = next.event {
            self.steered.push(content);
        } else if let AgentEvent::End(end) = next.event {
            self.end = Some(end);
        }
        Ok(())
    }

    /// Whether the end that it heard is in the log: one that says that the log
    /// failed is not.
    fn is_over(&self) -> Option<&End> {
        self.end
            .as_ref()
            .filter(|end| !matches!(end.code, 404 | 500))
    }
}

#[derive(Default)]
struct State {
    executed: HashSet<String>,
    /// The run that the hook saw begin, and not end.
    open: HashMap<ConversationKey, u64>,
    begun: HashSet<(ConversationKey, u64)>,
    closed: HashSet<(ConversationKey, u64)>,
    /// Runs that were told as cut off.
    cut_off: HashSet<(ConversationKey, u64)>,
    heard: BTreeMap<ConversationKey, Vec<Arc<Mutex<Heard>>>>,
    accepted: Vec<(ConversationKey, String)>,
    problems: Vec<String>,
}

/// Everything that was told.
#[derive(Default)]
pub(crate) struct Told(Mutex<State>);

/// The data lost in a crash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Nothing that was written.
    Nothing,
    /// Unsynced data.
    Unsynced,
}

impl Told {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Conversations with readers.
    pub(crate) fn keys(&self) -> Vec<ConversationKey> {
        self.state().heard.keys().cloned().collect()
    }

    pub(crate) fn problem(&self, problem: String) {
        self.state().problems.push(problem);
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.state().problems.clone()
    }

    pub(crate) fn executed(&self, call_id: &str) {
        if !self.state().executed.insert(call_id.to_owned()) {
            self.problem(format!("{call_id} was executed twice"));
        }
    }

    pub(crate) fn hook_saw(&self, key: &ConversationKey, event: &AgentEvent) {
        let mut state = self.state();
        if let AgentEvent::Start { run, .. } = event {
            state.begun.insert((key.clone(), *run));
            if let Some(open) = state.open.insert(key.clone(), *run) {
                let problem = format!("{key}: run {run} began while {open} went on");
                state.problems.push(problem);
            }
        } else if let AgentEvent::End(_) = event
            && state.open.remove(key).is_none()
        {
            state.problems.push(format!("{key}: an End of nothing"));
        }
    }

    /// The end of a run was reported.
    pub(crate) fn closed(&self, ended: &RunEnded) {
        let (key, run) = ((*ended.key).clone(), ended.outcome.run);
        let mut state = self.state();
        let state = &mut *state;
        let own = (key.clone(), run);
        let first = if ended.outcome.interrupted {
            // Of an earlier life, or an end of this one that was not written.
            state.closed.contains(&own) || !state.begun.contains(&own) && state.cut_off.insert(own)
        } else {
            state.closed.insert(own)
        };
        if !first {
            let problem = format!("{key}: the end of run {run} was told twice");
            state.problems.push(problem);
        }
    }

    /// A new reader.
    pub(crate) fn hears(&self, key: &ConversationKey, heard: Heard) -> Arc<Mutex<Heard>> {
        let heard = Arc::new(Mutex::new(heard));
        let mut state = self.state();
        let readers = state.heard.entry(key.clone()).or_default();
        readers.push(Arc::clone(&heard));
        heard
    }

    pub(crate) fn accepted(&self, key: &ConversationKey, content: String) {
        self.state().accepted.push((key.clone(), content));
    }

    /// A conversation was removed, and what was told of it with it.
    pub(crate) fn forget(&self, key: &ConversationKey) {
        let mut state = self.state();
        state.heard.remove(key);
        state.accepted.retain(|(of, _)| of != key);
        state.begun.retain(|(of, _)| of != key);
        state.closed.retain(|(of, _)| of != key);
        state.cut_off.retain(|(of, _)| of != key);
    }

    /// A crash: runs that began without an end are dropped.
    pub(crate) fn crash(&self, lost: Lost) {
        let mut state = self.state();
        state.open.clear();
        state.begun.clear();
        state.closed.clear();
        if lost == Lost::Unsynced {
            // What says so may be lost with it.
            state.cut_off.clear();
        }
        for heard in state.heard.values().flatten() {
            let mut heard = heard.lock().expect("not poisoned");
            if lost == Lost::Unsynced && heard.is_over().is_none() {
                // It was told before the sync, as text is.
                heard.said = None;
            }
        }
    }

    /// Checks that every run ended for hook and ledger.
    pub(crate) fn check_rest(&self) {
        let mut state = self.state();
        let open: Vec<String> = state
            .open
            .iter()
            .map(|(key, run)| format!("{key} {run}"))
            .collect();
        if !open.is_empty() {
            state
                .problems
                .push(format!("the hook waits for the end of {open:?}"));
        }
        if state.begun != state.closed {
            let differ: Vec<_> = state.begun.symmetric_difference(&state.closed).collect();
            let problem = format!("begun and booked differ: {differ:?}");
            state.problems.push(problem);
        }
    }

    /// Holds what was told of a conversation against its log. A steer that was
    /// accepted is there once, or waits to be.
    pub(crate) fn check(&self, key: &ConversationKey, records: &[Record], at_rest: bool) {
        let mut problems = Vec::new();
        let log = Log::read(records, at_rest, &mut problems);
        let mut state = self.state();
        let readers = state.heard.get(key).cloned().unwrap_or_default();
        let mut answers: HashMap<String, String> = HashMap::new();
        for reader in &readers {
            let heard = reader.lock().expect("not poisoned");
            log.check(&heard, &mut problems);
            // A request has the same answer at any time.
            if let (Some(id), Some(End { code: 0, .. })) = (&heard.id, &heard.end) {
                let first = answers
                    .entry(id.clone())
                    .or_insert_with(|| heard.text.clone());
                if *first != heard.text {
                    problems.push(format!("{id}: {first:?}, then {:?}", heard.text));
                }
            }
        }
        let waiting = waiting(records);
        for (_, steer) in state.accepted.iter().filter(|(of, _)| of == key) {
            let taken = log.users.get(steer).copied().unwrap_or(0);
            let waits = waiting.iter().filter(|it| *it == steer).count();
            if taken + waits != 1 {
                problems.push(format!(
                    "{steer:?} was accepted, taken {taken} times and waits {waits} times"
                ));
            }
        }
        let problems = problems
            .into_iter()
            .map(|problem| format!("{key}: {problem}"));
        state.problems.extend(problems);
    }
}

/// The steering messages that the log has waiting.
fn waiting(records: &[Record]) -> Vec<String> {
    let mut steering = Steering::default();
    for record in records.iter().rev() {
        match record {
            Record::Message(message) if message.role == Role::User => steering.said(),
            Record::Meta(meta) => steering.state(0, meta),
            Record::Run(run) => steering.run(run),
            Record::Compact { .. } | Record::Rewind { .. } | Record::Reopen { .. } => {
                steering.compacted();
            }
            Record::Message(_) => {}
        }
    }
    steering.waiting().into_iter().map(|(_, it)| it).collect()
}

/// A log, by what is looked for in it.
#[derive(Default)]
struct Log {
    users: HashMap<String, usize>,
    results: HashMap<String, String>,
    /// The last text of each run.
    answers: HashMap<u64, String>,
    ends: HashMap<u64, u32>,
}

impl Log {
    /// Reads it, and notes what no log may hold.
    fn read(records: &[Record], at_rest: bool, problems: &mut Vec<String>) -> Self {
        let mut log = Self::default();
        let (mut open_run, mut last_run) = (None, 0);
        let mut open_calls: HashSet<&str> = HashSet::new();
        for record in records {
            match record {
                Record::Run(run) if run.phase == RunPhase::Start => {
                    if let Some(open) = open_run.replace(run.id) {
                        problems.push(format!("run {} within run {open}", run.id));
                    }
                    if run.id <= last_run {
                        problems.push(format!("run {} behind run {last_run}", run.id));
                    }
                    // The resumed run may have answered
                    // already.
                    let said = log.answers.get(&last_run).filter(|_| run.tries > 0);
                    if let Some(said) = said.cloned() {
                        log.answers.insert(run.id, said);
                    }
                    last_run = run.id;
                }
                Record::Run(run) => {
                    if open_run.take() != Some(run.id) {
                        problems.push(format!("an end of run {}, which is not open", run.id));
                    }
                    log.ends.insert(run.id, run.code);
                }
                Record::Message(message) => {
                    if message.role != Role::Tool && !open_calls.is_empty() {
                        problems.push(format!("{open_calls:?} have no result"));
                        open_calls.clear();
                    }
                    match message.role {
                        Role::User => *log.users.entry(message.content.clone()).or_default() += 1,
                        Role::Assistant => {
                            open_calls = message.tool_calls.iter().map(|c| &*c.id).collect();
                            let answer = if open_calls.is_empty() {
                                message.content.clone()
                            } else {
                                String::new()
                            };
                            log.answers.insert(last_run, answer);
                        }
                        Role::Tool => {
                            let id = message.tool_call_id.as_str();
                            if !open_calls.remove(id) {
                                problems.push(format!("a result of {id}, which is not open"));
                            }
                            log.results.insert(id.to_owned(), message.content.clone());
                        }
                    }
                }
                Record::Compact { .. } | Record::Rewind { .. } | Record::Reopen { .. } => {}
                Record::Meta(_) => {}
            }
        }
        if at_rest && (open_run.is_some() || !open_calls.is_empty()) {
            problems.push(format!("at rest, {open_run:?} and {open_calls:?} are open"));
        }
        let twice = log.users.iter().filter(|(_, times)| **times > 1);
        let twice: Vec<&String> = twice.map(|(said, _)| said).collect();
        if !twice.is_empty() {
            problems.push(format!("{twice:?} stand there more than once"));
        }
        log
    }

    fn check(&self, heard: &Heard, problems: &mut Vec<String>) {
        let run = heard.run;
        for said in heard.said.iter().chain(&heard.steered) {
            if !self.users.contains_key(said) {
                problems.push(format!("run {run}: {said:?} was told and is not there"));
            }
        }
        for (call, output) in &heard.results {
            if self.results.get(call) != Some(output) {
                let there = self.results.get(call);
                problems.push(format!(
                    "run {run}: {call} gave {output:?}, and the log has {there:?}"
                ));
            }
        }
        if let Some(end) = heard.is_over() {
            if self.ends.get(&run) != Some(&end.code) {
                let there = self.ends.get(&run);
                problems.push(format!(
                    "run {run}: its end was told as {}, and the log has {there:?}",
                    end.code
                ));
            }
            let answer = self.answers.get(&run).map_or("", String::as_str);
            if end.code == 0 && heard.last > 2 && !heard.text.is_empty() && heard.text != answer {
                problems.push(format!(
                    "run {run}: its answer was {:?}, and the log has {answer:?}",
                    heard.text
                ));
            }
        }
        // A panic may come between the log and the Start.
        if let (Some(code), Some(content)) = (heard.refused, &heard.content)
            && code != 500
            && heard.id.is_none()
            && self.users.contains_key(content)
        {
            problems.push(format!("{content:?} was refused with {code} and is there"));
        }
    }
}
