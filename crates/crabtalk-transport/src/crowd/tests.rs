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

#[tokio::test(start_paused = true)]
async fn strangers_leave_places_to_who_is_known_and_to_other_strangers() {
    let crowd = of(PLACES);
    let stranger = |process| {
        let mut place = enter(&crowd, process);
        place.is_strangers().map(|()| place)
    };
    // Of 64 places 48 may be strangers', and 36 of them one source's.
    let flood: Vec<Place> = (0..36).map(|_| stranger(1).expect("a place")).collect();
    assert_eq!(stranger(1).expect_err("enough").code, 429);
    let others: Vec<Place> = (0..12).map(|_| stranger(2).expect("a place")).collect();
    assert_eq!(stranger(3).expect_err("enough").code, 429);
    assert_eq!(crowd.open(), 48);
    // Whoever is known needs none of those places, and gives its own back.
    let mut known = enter(&crowd, 3);
    known.known();
    let mut others = others;
    others[0].known();
    let late = stranger(3).expect("a place that became free");
    drop((flood, others, known, late));
    assert_eq!(crowd.open(), 0);
    let again: Vec<Place> = (0..36).map(|_| stranger(1).expect("a place")).collect();
    assert_eq!(again.len(), 36);
}
