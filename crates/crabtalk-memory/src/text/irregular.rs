//! Forms that no stemmer brings together with their base.

use std::collections::HashMap;
use std::sync::LazyLock;

/// One base a line, then the forms that count as it.
const FORMS: &str = "
arise: arose arisen
awake: awoke awoken
beat: beaten
become: became
begin: began begun
bend: bent
bind: bound
bite: bit bitten
bleed: bled
blow: blew blown
break: broke broken
breed: bred
bring: brought
build: built
burn: burnt
buy: bought
catch: caught
choose: chose chosen
cling: clung
come: came
creep: crept
deal: dealt
die: dying died dies
dig: dug
draw: drew drawn
dream: dreamt
drink: drank drunk
drive: drove driven
eat: ate eaten
fall: fell fallen
feed: fed
feel: felt
fight: fought
find: found
flee: fled
fly: flew flown flies
forbid: forbade forbidden
forget: forgot forgotten
forgive: forgave forgiven
freeze: froze frozen
give: gave given
go: went gone goes
grind: ground
grow: grew grown
hang: hung
hear: heard
hide: hid hidden
hold: held
keep: kept
kneel: knelt
know: knew known
lay: laid
lead: led
lean: leant
leap: leapt
learn: learnt
leave: left
lend: lent
lie: lying lain
light: lit
lose: lost
make: made
mean: meant
meet: met
mistake: mistook mistaken
overcome: overcame
pay: paid
prove: proven
rebuild: rebuilt
rewrite: rewrote rewritten
ride: rode ridden
ring: rang rung
rise: rose risen
run: ran
say: said
see: saw seen
seek: sought
sell: sold
send: sent
sew: sewn
shake: shook shaken
shine: shone
shoot: shot
show: shown
shrink: shrank shrunk
sing: sang sung
sink: sank sunk
sit: sat
sleep: slept
slide: slid
smell: smelt
speak: spoke spoken
speed: sped
spell: spelt
spend: spent
spill: spilt
spin: spun
spoil: spoilt
spring: sprang sprung
stand: stood
steal: stole stolen
stick: stuck
sting: stung
stink: stank stunk
strike: struck stricken
string: strung
strive: strove striven
swear: swore sworn
sweep: swept
swell: swollen
swim: swam swum
swing: swung
take: took taken
teach: taught
tear: tore torn
tell: told
think: thought
throw: threw thrown
understand: understood
undertake: undertook undertaken
undo: undid undone
uphold: upheld
wake: woke woken
wear: wore worn
weave: wove woven
weep: wept
win: won
wind: wound
withdraw: withdrew withdrawn
withstand: withstood
write: wrote written
child: children kid kids
man: men
woman: women
person: people persons
foot: feet
tooth: teeth
goose: geese
mouse: mice
ox: oxen
louse: lice
wife: wives
knife: knives
life: lives
leaf: leaves
half: halves
shelf: shelves
wolf: wolves
calf: calves
loaf: loaves
thief: thieves
scarf: scarves
self: selves
elf: elves
hoof: hooves
potato: potatoes
tomato: tomatoes
hero: heroes
echo: echoes
analysis: analyses

crisis: crises
thesis: theses
hypothesis: hypotheses
diagnosis: diagnoses
criterion: criteria
phenomenon: phenomena
index: indices indexes
appendix: appendices
matrix: matrices
vertex: vertices
datum: data
medium: media
bacterium: bacteria
curriculum: curricula
cactus: cacti
fungus: fungi
nucleus: nuclei
alumnus: alumni
schema: schemata
stimulus: stimuli
radius: radii
axis: axes
quiz: quizzes
bus: buses busses
good: better best
bad: worse worst badly
far: farther further farthest furthest
old: elder eldest
little: less least
happy: happier happiest happily
easy: easier easiest easily
busy: busier busiest
big: bigger biggest
early: earlier earliest
mother: mom mum mommy mama
father: dad daddy papa
grandmother: grandma granny
grandfather: grandpa granddad
television: tv
telephone: phone phones
bicycle: bike bikes
photograph: photo photos
refrigerator: fridge
doctor: dr
favourite: favorite favorites favourites
colour: color colors colours
behaviour: behavior behaviors
centre: center centers
theatre: theater theaters
grey: gray
travel: travelling travelled traveller
cancel: cancelling cancelled
license: licence
program: programme programmes
marry: marriage married
choice: choices
death: dead
birth: born
sale: sales
flight: flights
belief: beliefs believe believed
proof: proofs
success: succeed succeeded
advice: advise advised
delete: deletion
config: configuration configure configured configs
database: db
repository: repo repos
application: app apps
directory: dir dirs
authentication: auth authenticate authenticated
administrator: admin admins
";

static MAP: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let lines = FORMS.lines().filter_map(|line| line.split_once(':'));
    lines
        .flat_map(|(base, forms)| forms.split_whitespace().map(move |form| (form, base)))
        .collect()
});

/// The base of an irregular form.
pub(super) fn base(word: &str) -> Option<&'static str> {
    MAP.get(word).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_one_map() {
        let forms = FORMS
            .lines()
            .filter_map(|l| l.split_once(':'))
            .map(|(_, f)| f);
        let all: Vec<&str> = forms.flat_map(str::split_whitespace).collect();
        assert_eq!(all.len(), MAP.len(), "a form stands twice");
        assert!(all.len() >= 250, "{}", all.len());
        let base_of_base = MAP.values().find(|base| MAP.contains_key(**base));
        assert_eq!(base_of_base, None, "a base is itself a form");
    }
}
