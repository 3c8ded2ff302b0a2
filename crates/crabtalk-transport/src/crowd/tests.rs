use super::*;

const PLACES: usize = 64;

fn of(places: usize) -> Crowd {
    Crowd::new(Limits {
        connections: places,
        ..Limits::default()
    })
}

fn enter(crowd: &Crowd, process: i32) -> Place {
    crowd
        .enter(Some(Source::Process(process)))
        .expect("a place")
        .0
}

#[tokio::test(start_paused = true)]
async fn one_source_leaves_places_to_others() {
    let crowd = of(PLACES);
    let flood: Vec<Place> = (0..56).map(|_| enter(&crowd, 1)).collect();
    let refused = crowd.enter(Some(Source::Process(1))).expect_err("enough");
    assert_eq!(refused.code, 429);
    let other = enter(&crowd, 2);
    drop((flood, other));
    enter(&crowd, 1);
}

#[tokio::test(start_paused = true)]
async fn a_single_place_is_anybodys() {
    let crowd = of(1);
    crowd.enter(Some(Source::Process(1))).expect("the only one");
}

#[tokio::test(start_paused = true)]
async fn who_comes_too_fast_waits_and_is_then_refused_and_others_are_not() {
    let crowd = of(PLACES);
    let mut longest = Duration::ZERO;
    let mut came = 0;
    let refused = loop {
        match crowd.enter(Some(Source::Process(1))) {
            Ok((_, wait)) => {
                assert!(wait >= longest);
                longest = wait;
                came += 1;
            }
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.code, 429);
    assert_eq!(longest, MAX_WAIT);
    assert_eq!(came, BURST + 1 + PER_SECOND);
    let (_, wait) = crowd.enter(Some(Source::Process(2))).expect("a place");
    assert_eq!(wait, Duration::ZERO);
    // A refused one costs no turn: after the wait it goes on.
    tokio::time::advance(Duration::from_millis(1)).await;
    crowd.enter(Some(Source::Process(1))).expect("its turn");
}

#[tokio::test(start_paused = true)]
async fn who_was_here_long_ago_is_forgotten() {
    let crowd = of(PLACES);
    for source in 0..100_000 {
        enter(&crowd, source);
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert!(crowd.shared().sources.len() <= 4 * MANY_SOURCES);
}

#[tokio::test(start_paused = true)]
async fn frames_that_are_not_complete_share_a_budget_and_leave_some_to_others() {
    let crowd = of(PLACES);
    let frame = 16 * 1024 * 1024;
    let mut flood: Vec<Place> = (0..4).map(|_| enter(&crowd, 1)).collect();
    for place in &mut flood[..3] {
        place.hold(frame).expect("within the share");
    }
    let refused = flood[3].hold(frame).expect_err("beyond it");
    assert_eq!(refused.code, 503);
    // What is small needs no share.
    flood[3].hold(FREE_BYTES).expect("free");
    let mut other = enter(&crowd, 2);
    other.hold(frame).expect("room for another");
    let mut third = enter(&crowd, 3);
    assert!(third.hold(frame).is_err());
    flood[0].hold(0).expect("given back");
    third.hold(frame).expect("its turn");
    drop((flood, other, third));
    assert_eq!(crowd.shared().bytes, 0);
}

/// A connection on which nothing was said, and whether it has to give way.
struct Silent {
    place: Place,
    give_way: CancellationToken,
}

impl Silent {
    fn of(crowd: &Crowd, process: i32) -> Self {
        let mut place = enter(crowd, process);
        let give_way = place.is_strangers();
        Self { place, give_way }
    }

    fn many(crowd: &Crowd, process: i32, count: usize) -> Vec<Self> {
        (0..count).map(|_| Self::of(crowd, process)).collect()
    }
}

/// Which of them have to give way.
fn gone(silent: &[Silent]) -> Vec<usize> {
    let gone = silent.iter().enumerate();
    let gone = gone.filter(|(_, silent)| silent.give_way.is_cancelled());
    gone.map(|(at, _)| at).collect()
}

#[tokio::test(start_paused = true)]
async fn strangers_leave_places_to_who_is_known_and_the_longest_silent_give_way() {
    // Of 64 places 48 may be strangers', and 36 of them one source's.
    let crowd = of(PLACES);
    let flood = Silent::many(&crowd, 1, 36);
    assert_eq!(gone(&flood), [0_usize; 0]);
    let more = Silent::many(&crowd, 1, 2);
    assert_eq!(gone(&flood), [0, 1], "its own, those that came first");
    let others = Silent::many(&crowd, 2, 12);
    assert_eq!(gone(&flood), [0, 1]);
    // A third one never pays for what the first has most of.
    let third = Silent::many(&crowd, 3, 2);
    assert_eq!(gone(&flood), [0, 1, 2, 3]);
    let late = Silent::many(&crowd, 1, 1);
    assert_eq!(gone(&flood), [0, 1, 2, 3, 4]);
    for kept in [&more, &others, &third, &late] {
        assert_eq!(gone(kept), [0_usize; 0]);
    }
    drop((flood, more, others, third, late));
    assert_eq!(crowd.open(), 0);
    assert!(crowd.shared().strangers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_has_said_who_it_is_gives_way_to_nobody() {
    let crowd = of(PLACES);
    let mut known = Silent::of(&crowd, 1);
    known.place.known();
    let flood = Silent::many(&crowd, 1, 40);
    assert_eq!(gone(&[known]), [0_usize; 0]);
    assert_eq!(gone(&flood), [0, 1, 2, 3]);
    drop(flood);
    assert_eq!(gone(&Silent::many(&crowd, 1, 36)), [0_usize; 0]);
}
