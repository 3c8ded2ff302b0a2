use super::*;
use crate::config::{Kind, ModelConfig};
use crate::head::Heads;
use crate::{anthropic, bedrock, google, openai};
use crabtalk_domain::tool::ToolOutput;
use crabtalk_domain::{History, Image, ImageType, ToolCall};

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

type Format = fn(&str, &Request, &Sight<'_>, &Heads) -> Body;

const FORMATS: [(Kind, &str, Format); 5] = [
    (Kind::OpenAi, "gpt-4o", openai::body),
    (Kind::OpenAi, "pixtral-12b", openai::body),
    (Kind::Anthropic, "claude-sonnet-4-5", anthropic::body),
    (Kind::Google, "gemini-2.5-pro", google::body),
    (
        Kind::Bedrock,
        "anthropic.claude-sonnet-4-5-v1:0",
        bedrock::body,
    ),
];

fn written(format: (Kind, &str, Format), request: &Request) -> Vec<u8> {
    let (kind, id, body) = format;
    let model = ModelConfig::new(id);
    body(id, request, &Sight::new(kind, &model), &Heads::default())
        .pieces()
        .collect::<Vec<_>>()
        .concat()
}

/// The same request of a history that nobody wrote before.
fn forgotten(request: &Request) -> Request {
    Request {
        history: request.history.to_vec().into(),
        ..request.clone()
    }
}

/// One run: a question with something injected, a few steps with results, an
/// answer; every request on the way is given to `see`.
fn one_run(dice: &mut Dice, history: &mut History, see: &mut dyn FnMut(&Request)) {
    let text = |dice: &mut Dice| "word ".repeat(dice.roll(2_000) as usize);
    let injected_at = history.len();
    history.push(Arc::new(Message::user(format!("?{}", text(dice)))));
    let injected = Arc::new(vec![Message::injected("today"); dice.roll(2) as usize]);
    for step in 0..=dice.roll(6) {
        let mut request = Request::new("You are brief.", history.clone());
        request.injected = Arc::clone(&injected);
        request.injected_at = injected_at;
        see(&request);
        let mut asked = Message::assistant(text(dice));
        let calls = (0..dice.roll(4)).map(|call| ToolCall {
            id: format!("call_{step}_{call}"),
            name: "read".into(),
            arguments: "{}".into(),
        });
        asked.tool_calls = calls.collect();
        let calls = asked.tool_calls.clone();
        if calls.is_empty() {
            break;
        }
        history.push(Arc::new(asked));
        for call in calls {
            let output = ToolOutput::ok(text(dice));
            let image = || Image::new(ImageType::Png, &[7; 300]).expect("small enough");
            let images = (0..dice.roll(6) / 5).map(|_| image());
            let output = output.with_images(images.collect());
            history.push(Arc::new(Message::result(&call.id, output)));
        }
    }
    let answer = ["", "done"][dice.roll(2) as usize];
    history.push(Arc::new(Message::assistant(answer)));
}

#[test]
fn what_is_kept_is_what_would_be_written_anew() {
    for format in FORMATS {
        let mut dice = Dice(7);
        let mut history = History::default();
        let (mut seen, mut longest) = (0, 0);
        for _ in 0..40 {
            one_run(&mut dice, &mut history, &mut |request| {
                let ours = written(format, request);
                assert!(ours == written(format, &forgotten(request)), "{format:?}");
                serde_json::from_slice::<serde_json::Value>(&ours).expect("JSON");
                seen += 1;
                longest = longest.max(ours.len());
            });
        }
        assert!(seen > 50 && longest > 10 * PIECE_BYTES, "{seen} {longest}");
    }
}

#[test]
fn most_of_a_long_history_is_not_written_again() {
    let mut dice = Dice(11);
    let mut history = History::default();
    let mut pieces: Vec<*const u8> = Vec::new();
    let mut again = 0;
    for _ in 0..40 {
        one_run(&mut dice, &mut history, &mut |request| {
            let model = ModelConfig::new("m");
            let sight = Sight::new(Kind::OpenAi, &model);
            let now = openai::body("m", request, &sight, &Heads::default()).pieces;
            let now: Vec<_> = now.iter().map(|piece| piece.as_ptr()).collect();
            again = now.iter().filter(|piece| pieces.contains(piece)).count();
            pieces = now;
        });
    }
    assert!(
        again > 20 && again + 8 > pieces.len(),
        "{again} of {}",
        pieces.len()
    );
}

#[test]
fn histories_that_went_different_ways_are_told_apart() {
    let long = |text: &str| Arc::new(Message::user(text.repeat(PIECE_BYTES)));
    let request = |history: &History| Request::new("", history.clone());
    let start = History::from(vec![long("a"), long("b")]);
    let (mut one, mut other) = (start.clone(), start);
    one.extend([long("c"), long("d"), long("e")]);
    other.extend([long("x"), long("y"), long("z")]);
    for history in [&one, &other, &one] {
        let ours = written(FORMATS[0], &request(history));
        assert!(ours == written(FORMATS[0], &forgotten(&request(history))));
    }
}

#[test]
fn the_form_of_what_is_kept_is_remembered() {
    let image = Image::new(ImageType::Png, &[7; 300]).expect("small enough");
    let mut call = Message::assistant("x".repeat(2 * PIECE_BYTES));
    call.tool_calls.push(ToolCall::default());
    let result = Message::result("", ToolOutput::ok("r").with_images(vec![image]));
    let mut history = History::from(vec![Arc::new(Message::user("q")), Arc::new(call)]);
    history.extend([result, Message::assistant("a"), Message::user("b")].map(Arc::new));
    let mut request = Request::new("", history);
    for format in FORMATS.iter().chain(FORMATS.iter().rev()) {
        for has_guests in [false, true] {
            request.has_guests = has_guests;
            assert!(written(*format, &request) == written(*format, &forgotten(&request)));
        }
    }
    for id in ["gpt-4o", "blind", "blinder", "gpt-4o"] {
        let format = (Kind::OpenAi, id, openai::body as Format);
        assert!(written(format, &request) == written(format, &forgotten(&request)));
    }
}

#[test]
fn images_that_left_the_history_are_not_sent_again() {
    for format in FORMATS {
        let mut history = History::default();
        for step in 0..30_u8 {
            let image = Image::new(ImageType::Png, &[step; 20_000]).expect("small enough");
            let mut call = Message::assistant("");
            call.tool_calls.push(ToolCall::default());
            let result = Message::result("", ToolOutput::ok("r").with_images(vec![image]));
            history.extend([call, result, Message::user("and?")].map(Arc::new));
            let request = Request::new("", history.clone());
            assert!(written(format, &request) == written(format, &forgotten(&request)));
        }
    }
}
