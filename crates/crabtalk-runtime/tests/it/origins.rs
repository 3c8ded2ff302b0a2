//! Where runs come from, as logs say it.

use crate::rig::*;
use crabtalk_domain::storage::{NewConversation, Record, RunPhase, RunRecord, Storage};
use crabtalk_domain::{BoxFuture, Hook, Message, Origin, People, Principal, RunContext, TokenName};
use crabtalk_runtime::{Parts, RunRequest};
use crabtalk_testkit::{MemoryStore, Reply, ScriptedModel};
use std::future::ready;
use std::sync::{Arc, Mutex};

fn token() -> Origin {
    let name = TokenName::new("local").expect("a name");
    Origin::Client {
        principal: Principal::Token(name),
    }
}

/// The start record of the first run.
fn written(rig: &Rig) -> String {
    let records = rig.store.records(&key()).into_iter();
    let mut origins = records.filter_map(|record| {
        let Record::Run(run) = record else {
            return None;
        };
        (run.phase == RunPhase::Start).then_some(run.origin)
    });
    origins.next().expect("a run began")
}

#[tokio::test]
async fn tokens_are_not_logged_as_the_owner() {
    for (origin, want) in [
        (Origin::local(), "client:local"),
        (token(), "client:token/local"),
    ] {
        let rig = rig(vec![Reply::text("hello")]);
        let request = RunRequest {
            origin,
            ..RunRequest::new(key(), "hi")
        };
        rig.send(request).await;
        assert_eq!(written(&rig), want);
    }
}

/// Notes for whom runs are.
#[derive(Default)]
struct ForWhom(Mutex<Vec<(u64, bool)>>);

impl Hook for ForWhom {
    fn on_before_run<'a>(
        &'a self,
        run: RunContext<'a>,
        _: &'a [Arc<Message>],
        _: &'a dyn People,
    ) -> BoxFuture<'a, Vec<Message>> {
        let mut runs = self.0.lock().expect("not poisoned");
        runs.push((run.run, run.for_owner));
        Box::pin(ready(Vec::new()))
    }
}

/// A daemon that carries on what a log says was cut off, and how that ended.
async fn carried_on(origin: &str) -> (RunRecord, Vec<(u64, bool)>) {
    let store = MemoryStore::default();
    let new = NewConversation::default();
    let opened = store.open(&key(), Some(new)).await.expect("opens");
    let mut log = opened.expect("it was created").log;
    let start = RunRecord {
        id: 1,
        origin: origin.into(),
        ..RunRecord::default()
    };
    let said = Arc::new(Message::user("go"));
    log.append(&[Record::Run(start), Record::Message(said)])
        .await
        .expect("appends");
    drop(log);
    let model = ScriptedModel::new(vec![Reply::text("done")]);
    let hook = Arc::new(ForWhom::default());
    let of_hook = Arc::clone(&hook) as Arc<dyn Hook>;
    let rig = rig_from(model, store, resuming(), |parts| Parts {
        hook: of_hook,
        ..parts
    });
    rig.runtime.resume(&key()).expect("there");
    let end = rig.runtime.last_end(&key()).await.expect("it is over");
    let for_whom = hook.0.lock().expect("not poisoned").clone();
    (end, for_whom)
}

/// A golden line: what earlier versions wrote is the owner still.
#[tokio::test]
async fn old_local_origins_resume_as_owner() {
    let (end, for_whom) = carried_on("client:local").await;
    assert_eq!((end.id, end.code), (2, 0));
    assert_eq!(for_whom, [(2, true)]);
    let (end, for_whom) = carried_on("client:token/local").await;
    assert_eq!((end.id, end.code), (2, 0));
    assert_eq!(for_whom, [(2, false)]);
}

#[tokio::test]
async fn unknown_origins_are_not_resumed() {
    for origin in ["client:laptop", "client:Local", "client:", "someone", ""] {
        let (end, for_whom) = carried_on(origin).await;
        assert_eq!((end.id, end.code), (1, 500), "{origin:?}");
        assert_eq!(for_whom, []);
    }
}
