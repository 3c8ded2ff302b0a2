//! Ranking by example.

use super::*;

/// Turns as `speaker: text`, an empty line begins the next conversation.
fn index(turns: &str) -> Index {
    let mut index = Index::new();
    for (conversation, turns) in (0..).zip(turns.split("\n\n")) {
        for (speaker, text) in turns.lines().filter_map(|turn| turn.split_once(": ")) {
            let (session, day) = (conversation, None);
            let document = Document {
                conversation,
                session,
                speaker,
                day,
            };
            index.append(&document, &Analysed::of(text)).expect("room");
        }
    }
    index
}

fn find(index: &Index, query: &str, k: usize) -> Vec<DocId> {
    let query = Query::parse(query, None);
    let shard = Shard {
        index,
        level: Level::Document,
        said: true,
        keep: &|_| true,
        whole: None,
    };
    search(&[shard], &query, k)
        .into_iter()
        .map(|found| found.doc)
        .collect()
}

fn sessions(index: &Index, query: &str) -> Vec<Found> {
    let shard = Shard {
        index,
        level: Level::Session,
        said: true,
        keep: &|_| true,
        whole: None,
    };
    search(&[shard], &Query::parse(query, None), 9)
}

#[test]
fn inflected_and_irregular_words_are_found() {
    let index = index("a: I bought a telescope\na: nothing here\na: walking dogs all day");
    assert_eq!(find(&index, "Who buys telescopes?", 1), [0]);
    assert_eq!(find(&index, "walked the dog", 1), [2]);
    assert!(find(&index, "unheard of", 5).is_empty());
    assert!(find(&index, "the of and", 5).is_empty());
}

#[test]
fn the_answer_beats_its_question() {
    let index = index("a: What is the name of your parrot?\nb: Kiwi.\na: weather is fine\nb: bye");
    assert_eq!(find(&index, "name of the parrot", 2)[..], [0, 1]);
    let gap = find(&index, "name of the parrot", 9);
    assert!(gap.contains(&2), "neighbours are found too: {gap:?}");
}

#[test]
fn neighbours_stay_in_their_conversation() {
    let index = index("a: the harbour at dawn\n\nb: an unrelated remark");
    assert_eq!(find(&index, "harbour", 9), [0]);
}

#[test]
fn named_speaker_outranks_mentions_of_the_name() {
    let index = index("ann: my pottery class\nbob: pottery pottery\nann: bob likes it");
    assert_eq!(find(&index, "Ann's pottery", 1), [0]);
    assert_eq!(find(&index, "Bob's pottery", 1), [1]);
    assert_eq!(find(&index, "Bob", 1), [2], "a bare name is a word again");
    let found = find(&index, "Bob's pottery", 3);
    assert_eq!(found[1], 2, "being mentioned counts a little: {found:?}");
}

#[test]
fn dates_help_and_suffice() {
    let mut index = Index::new();
    for (session, day) in [(0, 19_000), (1, 19_400), (2, 19_401)] {
        let document = Document {
            session,
            conversation: session,
            day: Some(day),
            ..Document::default()
        };
        index
            .append(&document, &Analysed::of("we went hiking"))
            .expect("room");
    }
    // Day 19,400 is 2023-02-12.
    assert_eq!(find(&index, "hiking on 12 February 2023", 1), [1]);
    assert_eq!(find(&index, "2023-02-13", 1), [2]);
    assert_eq!(find(&index, "hikes in 2022", 1), [0]);
}

#[test]
fn pairs_break_ties() {
    let index = index("a: garden red door\n\na: red garden door");
    assert_eq!(find(&index, "red garden", 1), [1]);
    assert_eq!(find(&index, "garden red", 1), [0]);
}

#[test]
fn several_indexes_rank_as_one() {
    let turns = [
        "a: red kite",
        "a: blue kite and kite",
        "a: a boat",
        "a: red boat with a kite",
    ];
    let whole = index(&turns.join("\n\n"));
    let (left, right) = (
        index(&turns[..2].join("\n\n")),
        index(&turns[2..].join("\n\n")),
    );
    let query = Query::parse("red kite", None);
    let shard = |index| Shard {
        index,
        level: Level::Document,
        said: true,
        keep: &|_| true,
        whole: None,
    };
    let one: Vec<_> = search(&[shard(&whole)], &query, 9)
        .iter()
        .map(|f| (f.doc, f.score))
        .collect();
    let two: Vec<_> = search(&[shard(&left), shard(&right)], &query, 9)
        .iter()
        .map(|f| (f.doc + 2 * f.shard as u32, f.score))
        .collect();
    assert_eq!(one, two);
}

#[test]
fn sessions_rank_by_their_best_document() {
    let index = index("a: the lighthouse\na: a lighthouse keeper\n\na: keeper of bees");
    let found = sessions(&index, "lighthouse keeper");
    let found: Vec<DocId> = found.iter().map(|f| f.doc).collect();
    assert_eq!(found, [1, 2]);
}

#[test]
fn session_repeating_a_topic_ranks_higher() {
    let once = "a: the lighthouse keeper\na: x\na: x\na: x\na: x\na: x\na: x\na: x";
    let twice = format!("{once}\na: the lighthouse keeper");
    let index = index(&format!("{twice}\n\n{once}"));
    let found = sessions(&index, "lighthouse keeper");
    assert!(found[0].doc < 9 && found[1].doc >= 9, "{found:?}");
    assert!(found[0].score > found[1].score + 1.0, "{found:?}");
}

#[test]
fn what_may_not_be_kept_leaves_room_for_others() {
    let index = index("a: plum\n\na: plum plum\n\na: plum plum plum");
    let query = Query::parse("plums", None);
    let shard = Shard {
        index: &index,
        level: Level::Session,
        said: true,
        keep: &|doc| doc == 0,
        whole: None,
    };
    assert_eq!(search(&[shard], &query, 1)[0].doc, 0);
}

#[test]
fn coverage_tells_how_much_was_answered() {
    let index = index("a: my dog is called rex\n\na: taxes are due\n\na: rain today");
    let cover = |query: &str| {
        let shard = Shard {
            index: &index,
            level: Level::Document,
            said: true,
            keep: &|_| true,
            whole: None,
        };
        search(&[shard], &Query::parse(query, None), 1)
            .first()
            .map_or(0.0, |f| f.coverage)
    };
    assert!(cover("dog called") > 0.9);
    assert!(
        (0.3..0.7).contains(&cover("dog licence")),
        "{}",
        cover("dog licence")
    );
    let long = "refactor the parser module so that every grammar rule has tests, mind the dog";
    assert!(cover(long) < 0.2, "{}", cover(long));
}
