//! The chat at a terminal: output scrolls above a composer that stays at the bottom.
//!
//! ```text
//! transcript  events of a run as lines
//! ask         questions and approvals
//! steers      messages to an active run; queue: taking queued ones back
//! slash       the table of commands; commands: their handlers
//! complete    completions of the word at the cursor; tree: the files; popup: the list
//! unknown     references that cannot be resolved
//! picker      list of conversations or messages to choose from
//! choice      entries of the picker
//! rewind      returns to earlier messages and archives
//! members     members at work for a run, and a view of one
//! image       images of the clipboard
//! runs        the followed runs
//! join        history from before the chat and from lost connections
//! outage      lost connections
//! gone        messages written while no daemon runs
//! changes     file changes of runs
//! calls       concurrent requests to the daemon
//! coming      announces a message while it is typed
//! turn        switches conversations; topics: those of one folder
//! keys, say   handling of keys and messages
//! hear        handling of events and answers
//! attention   the terminal's title and notifications
//! draw        layout of the screen
//! statusline  the status line and its figures
//! ```
//!
//! Invariants: typing never mixes with output; the loop never waits for a call; keys
//! typed before a question appeared never answer it; turns of other clients are shown;
//! lost connections are restored.

mod ask;
mod attention;
mod calls;
mod changes;
mod choice;
mod coming;
mod commands;
mod complete;
mod draw;
mod gone;
mod hear;
mod image;
mod join;
mod keys;
mod members;
mod outage;
mod picker;
mod popup;
mod queue;
mod rewind;
mod runs;
mod say;
mod slash;
mod status;
mod statusline;
mod steers;
mod topics;
mod transcript;
mod tree;
mod turn;
mod unknown;

use crate::chat::mode::RunMode;
use crate::chat::model::RunModel;
use crate::context::Context;
use crate::error::Error;
use crate::system::{self, Ending};
use crate::text::summary;
use ask::Asking;
use attention::Attention;
use calls::{Call, Learned, Pair};
use crabtalk_client::{Client, Watch};
use crabtalk_proto::{AttachMsg, ListAsksMsg, PendingAsk, SubscribeEvents};
use crabtalk_render::screen::{Canvas, Composer, Drawing, Heard, Raw, size, terminal_size};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use gone::Gone;
use join::Joining;
use members::Members;
use outage::Outage;
use picker::Picker;
use popup::Popup;
use reedline::{FileBackedHistory, History, HistoryItem, SearchDirection, SearchQuery};
pub(super) use rewind::Start;
use runs::Runs;
use statusline::Figures;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use steers::Steers;
use transcript::Transcript;
use tree::Tree;
use unknown::Unknown;

/// Maximum number of lines in the input history.
const REMEMBERED_LINES: usize = 1_000;

/// Minimum time between two frames, which bounds the CPU time of fast answers.
const FRAME: Duration = Duration::from_millis(40);

/// Whether the chat continues.
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
    /// When the size changed last.
    resized: Option<Instant>,
    composer: Composer,
    history: Option<FileBackedHistory>,
    popup: Option<Popup>,
    tree: Tree,
    /// Whether the tree is being read.
    walks: bool,
    /// References of the composer's text that cannot be resolved, with the text.
    unknown: Unknown,
    picker: Option<Picker>,
    transcript: Transcript,
    runs: Runs,
    steers: Steers,
    members: Members,
    asks: VecDeque<Asking>,
    /// Ids of asks answered here, whose settlement is not reported.
    answered: HashSet<String>,
    /// Asks of other conversations.
    others: Vec<PendingAsk>,
    calls: FuturesUnordered<Call>,
    /// The active `!` command.
    shell: Option<(String, futures_util::future::AbortHandle)>,
    /// Output of `!` commands for the next message.
    shown: Vec<String>,
    learned: Learned,
    model: RunModel,
    mode: RunMode,
    figures: Figures,
    outage: Outage,
    gone: Gone,
    /// Whether the message in the composer was announced.
    is_announced: bool,
    joining: Joining,
    killing: bool,
    /// Whether Ctrl-Z suspended the chat.
    suspended: bool,
    /// Deadline for a second Ctrl-C to leave.
    leaving: Option<Instant>,
    /// Whether the next Esc opens `/rewind`.
    rewinds: bool,
    /// Whether a command ended the chat.
    quits: bool,
    cwd: PathBuf,
    user_home: PathBuf,
    branch: Option<String>,
    attention: Attention,
    begun: Instant,
    since: Instant,
    drawn: Instant,
    dirty: bool,
}

/// Runs the chat until the user leaves.
pub(super) async fn live(context: &mut Context, bell: bool, start: Start) -> Result<(), Error> {
    let client = patient(context.client().await?);
    let mut live = Live::open(context, client, bell)?;
    live.start_with(start);
    let outcome = live.run().await;
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
        // Creates the file with a private mode, which reedline keeps.
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
        let mut canvas = Canvas::new(Box::new(io::stdout()), styles, terminal_size());
        canvas.set_ground(ground);
        let mut raw = Raw::begin().map_err(|e| Error::io("use the terminal", &e))?;
        raw.keep_title()
            .and_then(|()| if bell { raw.watch_focus() } else { Ok(()) })
            .map_err(|e| Error::io("write to the terminal", &e))?;
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
            resized: None,
            composer: Composer::with_history(remembered(history.as_ref())).with_vi(vi),
            history,
            popup: None,
            tree: Tree::default(),
            walks: false,
            unknown: Unknown::default(),
            picker: None,
            transcript,
            runs: Runs::default(),
            steers: Steers::default(),
            members: Members::default(),
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
            model: RunModel::new(context.global.model.clone()),
            mode: RunMode::new(context.global.mode.clone()),
            figures: Figures::default(),
            outage: Outage::default(),
            gone: Gone::default(),
            is_announced: false,
            joining: Joining::default(),
            killing: false,
            suspended: false,
            leaving: None,
            rewinds: false,
            quits: false,
            branch: None,
            user_home: std::env::var_os("HOME")
                .map(PathBuf::from)
                .unwrap_or_default(),
            cwd,
            pair,
            context,
            attention: Attention::new(bell),
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
                .note("the run continues: `crabtalk` shows it again, `crabtalk kill` ends it");
        }
        self.fit();
        let above = self.transcript.take();
        self.canvas.draw(&above, &Drawing::default())?;
        self.canvas.clear()
    }

    async fn run(&mut self) -> Result<(), Error> {
        let told = |e: io::Error| Error::io("listen for signals", &e);
        let mut ended = Ending::listen().map_err(told)?;
        let mut continued = system::continued().map_err(told)?;
        let mut watch = self.watch();
        self.read_branch();
        self.learn();
        self.begin();
        self.read_asks();
        loop {
            self.turn_by_time();
            let wake = self.wakes_at();
            let mut typed = false;
            let go = tokio::select! {
                biased;
                () = ended.next() => Go::Leave,
                Some(()) = continued.recv() => {
                    self.resume()?;
                    Go::On
                }
                event = self.raw.hear() => {
                    typed = true;
                    self.typed(event)?
                }
                Some(done) = self.calls.next(), if !self.calls.is_empty() => {
                    self.dirty = true;
                    done(self);
                    Go::On
                }
                news = self.runs.next(), if !self.runs.is_empty() && !self.joining.waits() => {
                    self.news(news);
                    Go::On
                }
                news = self.members.next() => {
                    self.members.news(news);
                    self.dirty = true;
                    Go::On
                }
                news = next(&mut watch) => {
                    match news {
                        Some(Ok(news)) => self.happened(news),
                        // Runs and calls report their own errors.
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
            // Pending keys are read before questions settle.
            if !typed {
                self.settle_asks(now);
            }
            if self.dirty && now >= self.drawn + FRAME || now >= wake {
                self.draw()
                    .map_err(|e| Error::io("write to the terminal", &e))?;
            }
        }
    }

    /// The time of the next frame.
    fn wakes_at(&self) -> Instant {
        let now = Instant::now();
        if self.dirty {
            return self.drawn + FRAME;
        }
        let spinning = !self.runs.is_empty() || self.shell.is_some();
        let spin = Duration::from_millis(draw::SPIN_MS as u64);
        let settles = self.asks.front().and_then(Asking::settles_at);
        let spins = spinning.then(|| self.drawn + spin);
        let held = self.held_until().filter(|until| *until > now);
        let all = [settles, spins, self.leaving, held].into_iter().flatten();
        // The clock in the status line ticks once a minute.
        all.min().unwrap_or(now + Duration::from_secs(60))
    }

    /// Lets a question take keys after it has been visible long enough. Called only when
    /// no keys are pending, since those were typed earlier.
    fn settle_asks(&mut self, now: Instant) {
        if let Some(asking) = self.asks.front_mut()
            && asking.settles_at().is_some_and(|at| at <= now)
        {
            asking.settle(now);
            self.dirty = true;
        }
    }

    /// Handles expired deadlines.
    fn turn_by_time(&mut self) {
        let now = Instant::now();
        if self.leaving.is_some_and(|until| until <= now) {
            self.leaving = None;
            self.dirty = true;
        }
    }

    /// Handles input of the terminal.
    fn typed(&mut self, heard: Option<Heard>) -> Result<Go, Error> {
        // The terminal is closed.
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
        // Typed characters appear at once.
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
        let of = self.pair.clone();
        let learn = calls::learn(self.client.clone(), of.clone(), cwd);
        self.call(learn, move |live, learned| match learned {
            // The chat may have switched to another conversation.
            Some(learned) if of == live.pair => live.learned(learned),
            _ => {}
        });
    }

    /// Requests the pending asks; without an answer there are none.
    fn read_asks(&mut self) {
        self.request(ListAsksMsg::default(), |live, list| {
            let asks = list.map(|list| list.asks).unwrap_or_default();
            asks.into_iter().for_each(|pending| live.other_ask(pending));
        });
    }

    /// Shows the conversation and its active run.
    fn begin(&mut self) {
        self.joining.begin();
        self.attach(None);
    }

    /// Follows a run of another client, or the active run.
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

    /// Saves a line to the input history.
    fn remember(&mut self, line: &str) {
        if let Some(history) = &mut self.history {
            // An unwritable history only loses lines.
            let _ = history.save(HistoryItem::from_command_line(line));
            let _ = history.sync();
        }
    }
}

/// A client that reconnects without a time limit.
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

/// The setting of a variable, else of the configuration.
fn chosen(variable: &str, configured: Option<String>) -> String {
    let said = std::env::var(variable).ok().filter(|said| !said.is_empty());
    said.or(configured).unwrap_or_default()
}

#[cfg(test)]
mod tests;
