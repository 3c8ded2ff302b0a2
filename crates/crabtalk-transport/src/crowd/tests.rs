use super::*;

fn enter(crowd: &Crowd, process: i32) -> ConnectionSlot {
    let place = crowd.enter(Some(Source::Process(process)));
    place.expect("a place")
}

#[test]
fn one_source_leaves_places_to_others() {
    let crowd = Crowd::new(64);
    let flood: Vec<ConnectionSlot> = (0..56).map(|_| enter(&crowd, 1)).collect();
    let refused = crowd.enter(Some(Source::Process(1))).expect_err("enough");
    assert_eq!(refused.code, 429);
    let other = enter(&crowd, 2);
    assert_eq!(crowd.open(), 57);
    drop((flood, other));
    assert_eq!(crowd.open(), 0);
    enter(&crowd, 1);
}

#[test]
fn single_place_is_given_to_any_source() {
    Crowd::new(1)
        .enter(Some(Source::Process(1)))
        .expect("the place");
}

#[test]
fn incomplete_frames_share_a_budget() {
    let crowd = Crowd::new(64);
    let frame = 16 * 1024 * 1024;
    let mut flood: Vec<ConnectionSlot> = (0..5).map(|_| enter(&crowd, 1)).collect();
    for place in &mut flood[..4] {
        place.hold(frame).expect("within the budget");
    }
    assert_eq!(flood[4].hold(frame).expect_err("beyond it").code, 503);
    flood[4].hold(FREE_BYTES).expect("small frames are free");
    flood[0].hold(frame / 2).expect("returns a part");
    flood[4].hold(frame / 2).expect("takes it");
    drop(flood);
    assert_eq!(crowd.0.bytes.available_permits(), ALL_BYTES / UNIT);
}
