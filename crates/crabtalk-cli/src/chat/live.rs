//! The chat at a terminal: one screen, on which what is said scrolls up and
//! stays, with the composer always at hand below it.
//!
//! ```text
//! transcript  a run's events as lines
//! ask         questions and approvals
//! steers      words to a run that goes on
//! slash       commands and completion
//! picker      conversations to switch to
//! image       images that are shown to the agent
//! runs        the runs that are followed
//! join        what was said before what runs, and while nobody listened
//! gone        a daemon that is gone, and what is said meanwhile
//! changes     what runs changed among files
//! calls       what is asked of the daemon meanwhile
//! coming      a message that is typed, announced
//! marks       histories that are put away
//! turn        to another conversation
//! keys, say   what keys and messages do
//! draw        where all of it stands
//! ```
//!
//! Invariants: typing never mixes with output; nothing waits for a call; what
//! was typed before a question appeared never answers it; other clients' turns
//! are shown as the person's own; a connection that is lost is taken up.

mod ask;
mod calls;
mod changes;
mod coming;
mod draw;
mod gone;
mod hear;
mod image;
mod join;
mod keys;
mod marks;
mod outage;
mod picker;
mod runs;
mod say;
mod slash;
mod steers;
mod transcript;
mod turn;

use crate::chat::mode::RunMode;
use crate::context::Context;
use crate::error::Error;
use crate::system::{Continued, Ending};
use crate::text::summary;
use ask::Asking;
use calls::{Call, Done, Learned, Pair};
use coming::Coming;
use crabtalk_client::{Client, Watch};
use crabtalk_proto::{AttachMsg, PendingAsk, SubscribeEvents};
use crabtalk_render::screen::{Canvas, Composer, Drawing, Heard, Raw, size};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use gone::Gone;
use join::Joining;
use marks::Marks;
use outage::Outage;
use picker::Picker;
use reedline::{FileBackedHistory, History, HistoryItem, SearchDirection, SearchQuery};
use runs::Runs;
use slash::Candidate;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use steers::Steers;
use transcript::Transcript;

/// Lines that the editor remembers.
const REMEMBERED_LINES: usize = 1_000;

/// The shortest time between two drawings: smooth to the eye, and a fraction of
/// a core however fast an answer comes.
const FRAME: Duration = Duration::from_millis(40);

/// How long a run that began may be one's own, whose Start is on its way.
const OWN_START: Duration = Duration::from_millis(200);

/// What completes the word at the cursor.
struct Popup {
    from: usize,
    candidates: Vec<Candidate>,
    chosen: usize,
}

/// Whether the chat goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    On,
    Leave,
}

/// A chat at a terminal.
struct Live<'a> {
    context: &'a mut Context,
    client: Client,
    pair: Pair,
    raw: Raw,
    canvas: Canvas,
    size: (usize, usize),
    composer: Composer,
    history: Option<FileBackedHistory>,
    popup: Option<Popup>,
    picker: Option<Picker>,
    transcript: Transcript,
    runs: Runs,
    steers: Steers,
    asks: VecDeque<Asking>,
    /// Asks that were answered here: their end is no news.
    answered: HashSet<String>,
    /// Asks of other conversations.
    others: Vec<PendingAsk>,
    calls: FuturesUnordered<Call>,
    /// The person's own command that runs.
    shell: Option<(String, futures_util::future::AbortHandle)>,
    /// What such commands said, for the next message.
    shown: Vec<String>,
    learned: Learned,
    /// A run of somebody that began, and since when.
    begun_elsewhere: Option<(u64, Instant)>,
    model: String,
    mode: RunMode,
    tokens: u64,
    context_tokens: u64,
    context_window: Option<u64>,
    money: f64,
    outage: Outage,
    gone: Gone,
    coming: Coming,
    marks: Marks,
    joining: Joining,
    killing: bool,
    /// Whether Ctrl-Z stopped it, which is put right by itself.
    suspended: bool,
    /// Until when another Ctrl-C leaves.
    leaving: Option<Instant>,
    cwd: PathBuf,
    user_home: PathBuf,
    branch: Option<String>,
    bell: bool,
    begun: Instant,
    since: Instant,
    drawn: Instant,
    dirty: bool,
}

/// Talks at a terminal until the person leaves.
pub(super) async fn live(context: &mut Context, bell: bool) -> Result<(), Error> {
    let client = patient(context.client().await?);
    let mut live = Live::open(context, client, bell)?;
    let outcome = live.run().await;
    // What was said stays; what was drawn goes.
    let cleared = live.finish();
    outcome?;
    cleared.map_err(|e| Error::io("write to the terminal", &e))
}

impl<'a> Live<'a> {
    fn open(context: &'a mut Context, client: Client, bell: bool) -> Result<Self, Error> {
        let cwd = match context.cwd()? {
            Some(cwd) => PathBuf::from(cwd),
            None => {
                std::env::current_dir().map_err(|e| Error::io("find the current folder", &e))?
            }
        };
        let file = context.home.state_dir().join("chat_history");
        // What a person wrote is theirs alone; whoever opens it next keeps its mode.
        drop(crabtalk_files::open_to_append(&file));
        let history = FileBackedHistory::with_file(REMEMBERED_LINES, file).ok();
        let size = size();
        let now = Instant::now();
        let styles = crabtalk_render::screen::styles();
        let pair = Pair {
            agent: context.agent(),
            sender: context.sender(),
        };
        let wishes = crate::project::wishes(&context.home);
        let vi = chosen("CRABTALK_KEYS", wishes.keys) == "vi";
        let (ground, ask) =
            crabtalk_render::screen::ground(&chosen("CRABTALK_THEME", wishes.theme));
        let mut canvas = Canvas::new(Box::new(io::stdout()), styles, size.0);
        canvas.set_ground(ground);
        let raw = Raw::begin().map_err(|e| Error::io("use the terminal", &e))?;
        if styles && ask {
            raw.ask_ground()
                .map_err(|e| Error::io("write to the terminal", &e))?;
        }
        let mut transcript = Transcript::new(size.0);
        transcript.tools.cwd.clone_from(&cwd);
        Ok(Self {
            client,
            raw,
            canvas,
            size,
            composer: Composer::with_history(remembered(history.as_ref())).with_vi(vi),
            history,
            popup: None,
            picker: None,
            transcript,
            runs: Runs::default(),
            steers: Steers::default(),
            asks: VecDeque::new(),
            answered: HashSet::new(),
            others: Vec::new(),
            calls: FuturesUnordered::new(),
            shell: None,
            shown: Vec::new(),
            learned: Learned {
                agent: pair.agent.clone(),
                sender: pair.sender.clone(),
                ..Learned::default()
            },
            begun_elsewhere: None,
            model: String::new(),
            mode: RunMode::new(context.global.mode),
            tokens: 0,
            context_tokens: 0,
            context_window: None,
            money: 0.0,
            outage: Outage::default(),
            gone: Gone::default(),
            coming: Coming::default(),
            marks: Marks::default(),
            joining: Joining::default(),
            killing: false,
            suspended: false,
            leaving: None,
            branch: branch(&cwd),
            user_home: std::env::var_os("HOME")
                .map(PathBuf::from)
                .unwrap_or_default(),
            cwd,
            pair,
            context,
            bell,
            begun: now,
            since: now,
            drawn: now,
            dirty: true,
        })
    }

    fn finish(&mut self) -> io::Result<()> {
        self.transcript.cut_off(Instant::now());
        for said in self.unsent() {
            let said = format!("not sent: {}", summary(&said));
            self.transcript.problem(&said);
        }
        if self.runs.is_running() && !self.killing && self.outage.why().is_none() {
            self.transcript
                .note("the run goes on: `crabtalk` shows it again, `crabtalk kill` ends it");
        }
        self.fit();
        let above = self.transcript.take();
        self.canvas.draw(&above, &Drawing::default())?;
        self.canvas.clear()
    }

    async fn run(&mut self) -> Result<(), Error> {
        let told = |e: io::Error| Error::io("hear signals", &e);
        let mut ended = Ending::listen().map_err(told)?;
        let mut continued = Continued::listen().map_err(told)?;
        let mut watch = self.watch();
        self.learn();
        self.begin();
        self.call(calls::asks(self.client.clone()));
        loop {
            self.turn_by_time();
            let wake = self.wakes_at();
            let mut typed = false;
            let go = tokio::select! {
                biased;
                () = ended.next() => Go::Leave,
                Some(()) = continued.next() => {
                    self.resume()?;
                    Go::On
                }
                event = self.raw.hear() => {
                    typed = true;
                    self.typed(event)?
                }
                Some(done) = self.calls.next(), if !self.calls.is_empty() => {
                    self.done(done);
                    Go::On
                }
                news = self.runs.next(), if !self.runs.is_empty() && !self.joining.waits() => {
                    self.news(news);
                    Go::On
                }
                news = next(&mut watch) => {
                    match news {
                        Some(Ok(news)) => self.happened(news),
                        // Runs and calls say by themselves what fails.
                        Some(Err(_)) | None => watch = None,
                    }
                    Go::On
                }
                () = tokio::time::sleep_until(wake.into()) => {
                    self.dirty = true;
                    Go::On
                }
            };
            if go == Go::Leave {
                return Ok(());
            }
            let now = Instant::now();
            // What was typed meanwhile is read first, however late that is.
            if !typed {
                self.settle_asks(now);
            }
            if self.dirty && now >= self.drawn + FRAME || now >= wake {
                self.draw()
                    .map_err(|e| Error::io("write to the terminal", &e))?;
            }
        }
    }

    /// The latest time at which something has to be drawn.
    fn wakes_at(&self) -> Instant {
        let now = Instant::now();
        if self.dirty {
            return self.drawn + FRAME;
        }
        let spinning = !self.runs.is_empty() || self.shell.is_some();
        let spin = Duration::from_millis(draw::SPIN_MS as u64);
        let settles = self.asks.front().and_then(Asking::settles_at);
        let own = self.begun_elsewhere.map(|(_, since)| since + OWN_START);
        let spins = spinning.then(|| self.drawn + spin);
        let all = [settles, own, spins, self.leaving].into_iter().flatten();
        // A clock that nobody waits for ticks once a minute.
        all.min().unwrap_or(now + Duration::from_secs(60))
    }

    /// A question that has stood long enough takes keys. Called only when none wait
    /// to be read: they were typed before this.
    fn settle_asks(&mut self, now: Instant) {
        if let Some(asking) = self.asks.front_mut()
            && asking.settles_at().is_some_and(|at| at <= now)
        {
            asking.settle(now);
            self.dirty = true;
        }
    }

    /// What happens by itself as time goes by.
    fn turn_by_time(&mut self) {
        let now = Instant::now();
        if self.leaving.is_some_and(|until| until <= now) {
            self.leaving = None;
            self.dirty = true;
        }
        if let Some((run, since)) = self.begun_elsewhere
            && since + OWN_START <= now
        {
            self.begun_elsewhere = None;
            if !self.runs.knows(run) {
                self.attach(Some(run));
            }
        }
    }

    /// Takes what the keyboard says.
    fn typed(&mut self, heard: Option<Heard>) -> Result<Go, Error> {
        // Nobody sits there any more.
        let Some(Heard { events, ground }) = heard else {
            return Ok(Go::Leave);
        };
        if let Some(ground) = ground {
            self.canvas.set_ground(ground);
        }
        for event in events {
            if self.event(event)? == Go::Leave {
                return Ok(Go::Leave);
            }
        }
        // A person sees at once what was typed.
        self.draw()
            .map_err(|e| Error::io("write to the terminal", &e))?;
        Ok(Go::On)
    }

    fn watch(&self) -> Option<Watch> {
        let request = SubscribeEvents {
            without_deltas: true,
            ..SubscribeEvents::default()
        };
        Some(self.client.watch(request))
    }

    fn learn(&mut self) {
        let cwd = self.cwd.to_str().map(str::to_owned);
        self.call(calls::learn(self.client.clone(), self.pair.clone(), cwd));
    }

    /// Shows the conversation, and what runs in it.
    fn begin(&mut self) {
        self.joining.begin();
        self.attach(None);
    }

    /// Follows somebody else's run, or whatever runs now.
    fn attach(&mut self, run: Option<u64>) {
        let request = AttachMsg {
            agent: self.pair.agent.clone(),
            sender: self.pair.sender.clone(),
            run,
            only_run: run.is_some(),
            after: None,
        };
        self.runs.push_front(self.client.attach(request));
    }

    fn call(&mut self, call: impl Future<Output = Done> + Send + 'static) {
        self.calls.push(Box::pin(call));
    }

    /// Keeps a line for the next chats.
    fn remember(&mut self, line: &str) {
        if let Some(history) = &mut self.history {
            // A history that cannot be written is shorter.
            let _ = history.save(HistoryItem::from_command_line(line));
            let _ = history.sync();
        }
    }
}

/// A client for as long as a person stays: a daemon that is gone may come back after
/// a night, and nobody should have to type for that to be seen.
fn patient(client: Client) -> Client {
    client.with_patience(Duration::MAX)
}

async fn next(
    watch: &mut Option<Watch>,
) -> Option<Result<crabtalk_client::WatchNews, crabtalk_client::Error>> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

fn remembered(history: Option<&FileBackedHistory>) -> Vec<String> {
    let all = SearchQuery::everything(SearchDirection::Forward, None);
    let items = history.and_then(|history| history.search(all).ok());
    let items = items.unwrap_or_default().into_iter();
    items.map(|item| item.command_line).collect()
}

/// What the person chose: a variable beats the configuration.
fn chosen(variable: &str, configured: Option<String>) -> String {
    let said = std::env::var(variable).ok().filter(|said| !said.is_empty());
    said.or(configured).unwrap_or_default()
}

/// The branch of the repository in which a folder is, as its file says.
fn branch(folder: &Path) -> Option<String> {
    const MAX_HEAD: u64 = 4096;
    let git = folder
        .ancestors()
        .map(|folder| folder.join(".git"))
        .find(|git| git.exists())?;
    let git = match git.is_dir() {
        true => git,
        // A worktree's folder is elsewhere.
        false => {
            let text = crabtalk_files::read_text(&git, MAX_HEAD).ok()?;
            let path = text.strip_prefix("gitdir:")?.trim();
            git.parent()?.join(path)
        }
    };
    let head = crabtalk_files::read_text(&git.join("HEAD"), MAX_HEAD).ok()?;
    let head = head.trim();
    Some(match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => branch.to_owned(),
        None => head.chars().take(8).collect(),
    })
}

#[cfg(test)]
mod tests;
