//! Conversations with known answers, made up by rule.
//!
//! Facts are told in one session and asked for in other words later: inflected,
//! answered to a question, with a name or a date. Around them stand turns that
//! share their words. The same seed gives the same conversations everywhere.

use super::{Conversation, Question, Turn};

const SESSIONS: u32 = 20;
const FACTS_PER_SESSION: usize = 3;
/// Days between sessions, more or less.
const PACE: i32 = 17;

const PAIRS: [(&str, &str); 6] = [
    ("Maya", "Oskar"),
    ("Ines", "Tomas"),
    ("Priya", "Leon"),
    ("Hanna", "Felix"),
    ("Zoe", "Marek"),
    ("Amara", "Nils"),
];

/// Facts, one a line: after which question it is told if any, what is said, and what is asked
/// later. `{x}` is a thing, `{p}` a place, `{n}` a third person, `{A}` the speaker.
const FACTS: &str = "\
I finally bought the {x} at that shop in {p}. | Where did {A} buy the {x}?
How did it go with the {x}? | I sold it to {n} for next to nothing. | Who got the {x} that {A} was selling?
So what did you call her? | We named the puppy {n}, after my aunt. | What is the name of {A}'s dog?
{n} taught me everything about the {x} back then. | Who was teaching {A} about the {x}?
Last week we drove all the way to {p} with {n}. | When did {A} drive to {p}?
Did you find it in the end? | Yes, it had fallen behind the {x} the whole time. | What did {A} find behind the {x}?
I broke my wrist when I slipped in {p}. | How was {A}'s wrist broken?
They chose me to lead the {x} group this year. | Which group was {A} chosen for as a leader?
Any plans for the summer? | I am going to spend it in {p}, painting. | Where is {A} spending the summer?
My grandmother left me her {x} in her will. | What did {A} inherit from the grandmother's will?
{n} flew in from {p} just to see the {x}. | Who came flying from {p}?
Why are you so tired? | I was awake all night mending the {x}. | What kept {A} awake at night?
The doctor forbade me coffee, I drink tea from {p} now. | What is {A} drinking since the doctor's advice?
I have been writing a novel about a {x} in {p}. | What does {A} write novels about?
Who won the competition? | {n} won it with a homemade {x}! | Who was the winner of the competition with the {x}?
We held the exhibition today and the {x} was the star. | What exhibition did {A} hold in {date}?
My brother got married in {p} yesterday. | When did {A}'s brother marry in {p}?
What happened to your {x}? | Somebody stole it at the station in {p}. | Where was the {x} of {A} stolen?
I lent the {x} to {n} and never saw it again. | To whom did {A} lend the {x}?
{n} and I sang in the choir of {p} for years. | With whom did {A} sing in a choir?
What are you growing this year? | Mostly beans, next to the old {x}. | What grows in {A}'s garden beside the {x}?
I started to learn the {x} from {n} on Fridays. | Which lessons is {A} taking from {n}?
We moved out of {p} because of the {x} next door. | Why did {A} leave {p}?
Where did you hide the {x}? | Under the stairs, {n} will never look there. | What is hidden under {A}'s stairs?";

const THINGS: &str = "telescope, violin, canoe, bicycle, sewing machine, kite, lantern, accordion, typewriter, \
    greenhouse, loom, camera, chess set, drum, sailing boat, beehive, rocking chair, piano, \
    globe, compass, clock, carpet, tent, oven, bookshelf, lawn mower, radio, sculpture, \
    hammock, saddle, teapot, quilt, harp, ladder, aquarium, mirror, surfboard, anvil, \
    fireplace, trumpet";

const PLACES: &str = "Porto, Lyon, Gdansk, Bergen, Naples, Seville, Ghent, Tartu, Graz, Cork, Split, Turku, \
    Brno, Basel, Trieste, Malmo, Kaunas, Utrecht, Zadar, Leeds, Arles, Pecs, Bremen, Siena";

const PEOPLE: &str = "Ruth, Boris, Clara, Dmitri, Elif, Fatima, Gustav, Helga, Ivo, Jonas, Klara, Lucia, Mateo, \
    Nadia, Otto, Paula";

/// Turns that share words with facts and answer nothing.
const NOISE: &str = "\
I saw a {x} in a film yesterday, it reminded me of {p}.
Do you think a {x} would be hard to buy these days?
{n} keeps talking about {p}, I have no idea why.
Somebody should write a song about a {x}.
I never learned to play anything, let alone the {x}.
My neighbour wants to sell a {x}, poor thing.
Is {p} nice in summer? I have only heard stories.
Was that {n} on the phone?
I dreamt of a {x} in the garden, how odd.
The shop in {p} closes early, they say.
Have you ever driven through {p} at night?
{n} told me that the doctor is away.
The choir is looking for new voices, by the way.
A friend of {n} broke a window in {p}.
They found a {x} under an old house, did you read that?
I should name my next plant after {n}.
The competition on the radio was about a {x}, of all things.
Marriage, moving, novels: everybody is busy this year.
That exhibition in {p} was closed, sadly.
Stolen bicycles, stolen cameras, the paper is full of it.
My stairs need paint, and the garden needs everything.
Did {n} ever come back from {p}?";

const SMALL_TALK: &str = "\
That sounds wonderful, tell me more!
Oh no, I am sorry to hear that.
Ha, typical!
How was your day otherwise?
Work has been busy, nothing special.
I had soup for lunch and a long walk after.
Good to hear from you again.
Same here, honestly.
You always find something.
Let us talk soon, I have to run.
The weather has been strange lately.
I could not agree more.
Really? I would not have guessed.
Give my love to everyone at home.
What a week it has been.
I am still thinking about what you said.
Nice, congratulations!
We should do that more often.
Take care of yourself.
I will write to you next week.";

/// A small generator of numbers, the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }

    fn pick(&mut self, from: impl Iterator<Item = &'static str>) -> &'static str {
        let from: Vec<_> = from.collect();
        from[self.roll(from.len())]
    }
}

/// Makes conversations, each with 60 questions.
pub(crate) fn conversations(seed: u64) -> Vec<Conversation> {
    let make = |(at, pair): (usize, &(&str, &str))| {
        let mut dice = Dice(seed.wrapping_add(at as u64 * 7919));
        dice.roll(2);
        conversation(pair, &mut dice)
    };
    PAIRS.iter().enumerate().map(make).collect()
}

fn conversation(pair: &(&str, &str), dice: &mut Dice) -> Conversation {
    let mut out = Conversation::default();
    let mut day = 19_400 + dice.roll(200) as i32;
    for session in 0..SESSIONS {
        day += PACE - 4 + dice.roll(9) as i32;
        for slot in 0..FACTS_PER_SESSION {
            chatter(&mut out, pair, session, day, dice);
            let number = session as usize * FACTS_PER_SESSION + slot;
            let fact = FACTS.lines().cycle().nth(number).expect("never ends");
            tell(&mut out, fact, pair, session, day, dice);
        }
        chatter(&mut out, pair, session, day, dice);
    }
    out
}

fn chatter(out: &mut Conversation, pair: &(&str, &str), session: u32, day: i32, dice: &mut Dice) {
    for _ in 0..6 + dice.roll(7) {
        let text = match dice.roll(2) {
            0 => dice.pick(SMALL_TALK.lines()).to_owned(),
            _ => {
                let template = dice.pick(NOISE.lines());
                fill(
                    template,
                    dice.pick(THINGS.split(", ")),
                    dice.pick(PLACES.split(", ")),
                    dice.pick(PEOPLE.split(", ")),
                )
            }
        };
        say(out, [pair.0, pair.1][dice.roll(2)], text, session, day);
    }
}

fn tell(
    out: &mut Conversation,
    fact: &str,
    pair: &(&str, &str),
    session: u32,
    day: i32,
    dice: &mut Dice,
) {
    let (speaker, other) = match dice.roll(2) {
        0 => (pair.0, pair.1),
        _ => (pair.1, pair.0),
    };
    let (thing, place, person) = (
        dice.pick(THINGS.split(", ")),
        dice.pick(PLACES.split(", ")),
        dice.pick(PEOPLE.split(", ")),
    );
    let (lead, said, asked) = match fact.split(" | ").collect::<Vec<_>>()[..] {
        [said, asked] => (None, said, asked),
        [lead, said, asked] => (Some(lead), said, asked),
        _ => panic!("{fact}"),
    };
    if let Some(lead) = lead {
        say(out, other, fill(lead, thing, place, person), session, day);
    }
    let turn = out.turns.len();
    say(out, speaker, fill(said, thing, place, person), session, day);
    let asked = fill(asked, thing, place, person);
    let text = asked
        .replace("{A}", speaker)
        .replace("{date}", &month_of(day));
    out.questions.push(Question {
        text,
        evidence: vec![turn],
    });
}

fn say(out: &mut Conversation, speaker: &str, text: String, session: u32, day: i32) {
    out.turns.push(Turn {
        speaker: speaker.to_owned(),
        text,
        session,
        day: Some(day),
    });
}

fn fill(template: &str, thing: &str, place: &str, person: &str) -> String {
    template
        .replace("{x}", thing)
        .replace("{p}", place)
        .replace("{n}", person)
}

fn month_of(day: i32) -> String {
    let date = jiff::civil::date(1970, 1, 1).saturating_add(jiff::Span::new().days(day));
    date.strftime("%B %Y").to_string()
}
