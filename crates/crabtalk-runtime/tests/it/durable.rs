//! Acknowledged changes are on disk (STORE-4).

use crate::rig::*;
use crabtalk_testkit::Reply;

#[tokio::test]
async fn acknowledged_titles_survive_power_cuts() {
    let rig = rig(vec![Reply::text("hello")]);
    rig.run("hi").await;
    let title = |title: &str| Some(title.to_owned());
    let pair = key();
    let set = rig.runtime.set(&pair, title("While in memory"), None);
    set.await.expect("it exists");
    let cut = rig.store.power_cut().lines(&key());
    assert_eq!(last(&cut), "meta title While in memory");

    // And when it has to be opened for that.
    let again = rig_on(rig.model.clone(), rig.store.power_cut(), catalog());
    let set = again.runtime.set(&pair, title("From disk"), None);
    set.await.expect("it exists");
    let cut = again.store.power_cut().lines(&key());
    assert_eq!(last(&cut), "meta title From disk");
}

#[tokio::test]
async fn acknowledged_summaries_survive_power_cuts() {
    let rig = rig(vec![Reply::text("hello"), Reply::text("They greeted.")]);
    rig.run("hi").await;
    let summary = rig.compact().await;
    assert_eq!(summary, "They greeted.");
    let cut = rig.store.power_cut().lines(&key());
    assert!(cut.contains(&"compact (keep 0): They greeted.".to_owned()));
}
