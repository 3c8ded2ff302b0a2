use super::*;

const PLACES: usize = 64;

fn of(places: usize) -> Crowd {
    Crowd::new(Limits {
        connections: places,
        ..Limits::default()
    })
}

fn enter(crowd: &Crowd, process: i32) -> Place {
    let place = crowd.enter(Some(Source::Process(process)));
    place.expect("a place")
}

#[test]
fn one_source_leaves_places_to_others() {
    let crowd = of(PLACES);
    let flood: Vec<Place> = (0..56).map(|_| enter(&crowd, 1)).collect();
    let refused = crowd.enter(Some(Source::Process(1))).expect_err("enough");
    assert_eq!(refused.code, 429);
    let other = enter(&crowd, 2);
    drop((flood, other));
    enter(&crowd, 1);
}

#[test]
fn a_single_place_is_anybodys() {
    let crowd = of(1);
    crowd.enter(Some(Source::Process(1))).expect("the only one");
}

#[test]
fn frames_that_are_not_complete_share_a_budget_and_leave_some_to_others() {
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

#[test]
fn strangers_leave_places_to_who_is_known() {
    let crowd = of(256);
    let stranger = |process| {
        let mut place = enter(&crowd, process);
        place.is_strangers().map(|()| place)
    };
    let strangers_of =
        |process| -> Vec<Place> { (0..64).map_while(|_| stranger(process).ok()).collect() };
    let mut first = strangers_of(1);
    assert_eq!(first.len(), STRANGERS_OF_SOURCE);
    assert_eq!(stranger(1).expect_err("enough of one source").code, 429);
    let others = [strangers_of(2), strangers_of(3)];
    // Of 256 places 192 may be strangers'.
    assert_eq!(stranger(4).expect_err("enough of all").code, 429);
    first[0].known();
    stranger(4).expect("its place");
    stranger(1).expect("one of it is known");
    drop((first, others));
    assert_eq!(crowd.open(), 0);
    assert_eq!(crowd.shared().strangers, 0);
    assert!(crowd.shared().sources.is_empty());
}
