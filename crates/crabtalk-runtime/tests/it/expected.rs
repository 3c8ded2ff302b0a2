//! A message that is coming (MODEL-8): the model that will answer is told, and nothing
//! else happens.

use crate::rig::*;
use crabtalk_domain::storage::Storage;
use crabtalk_runtime::{Catalog, Error};
use crabtalk_testkit::{MemoryStore, ScriptedModel};
use std::sync::Arc;

fn rig_of(change: impl FnOnce(&mut Catalog)) -> Rig {
    let mut catalog = catalog();
    change(&mut catalog);
    rig_on(ScriptedModel::new(vec![]), MemoryStore::default(), catalog)
}

/// An agent of the catalogue has another model.
fn with_own_model(catalog: &mut Catalog) {
    let ada = catalog
        .agents
        .values_mut()
        .find(|a| a.name.as_str() == "ada");
    Arc::make_mut(ada.expect("an agent")).model = "own".into();
}

#[tokio::test]
async fn expected_messages_warm_the_model_of_the_run() {
    let rig = rig_of(with_own_model);
    rig.runtime.expect("", None).expect("the default agent");
    rig.runtime.expect("crab", None).expect("an agent");
    rig.runtime.expect("ada", None).expect("an agent");
    rig.runtime.expect("ada", Some("chosen")).expect("an agent");
    let told = rig.model.expected();
    assert_eq!(told, ["scripted", "scripted", "own", "chosen"]);
    // Nothing is created.
    assert!(rig.model.requests().is_empty());
    assert!(rig.runtime.attach(&key()).is_none());
    assert!(rig.store.list(None, None).await.expect("listed").is_empty());
}

#[tokio::test]
async fn expected_messages_can_be_switched_off() {
    let off = |catalog: &mut Catalog| catalog.prewarm = false;
    let rig = rig_of(off);
    rig.runtime.expect("crab", None).expect("an agent");
    assert!(rig.model.expected().is_empty());

    rig.runtime.set_catalog(catalog());
    rig.runtime.expect("crab", None).expect("an agent");
    assert_eq!(rig.model.expected(), ["scripted"]);

    let mut changed = catalog();
    off(&mut changed);
    rig.runtime.set_catalog(changed);
    rig.runtime.expect("crab", None).expect("an agent");
    assert_eq!(rig.model.expected(), ["scripted"]);
}

#[tokio::test]
async fn expected_messages_to_unknown_agents_are_refused() {
    for prewarm in [true, false] {
        let rig = rig_of(|catalog| catalog.prewarm = prewarm);
        let refused = rig.runtime.expect("nobody", None);
        assert!(
            matches!(refused, Err(Error::UnknownAgent { .. })),
            "{refused:?}"
        );
        assert!(rig.model.expected().is_empty());
    }
}
