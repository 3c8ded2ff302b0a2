//! The contract of the record ports, which every database must fulfil.
//!
//! Each function gets a way to open the database, and reopens it
//! like a restarted daemon.
//!
//! # Panics
//!
//! All functions panic if an operation fails or returns an unexpected result.

use crabtalk_domain::records::{
    AuditEntry, AuditLog, ChangeJournal, CostOf, CostRow, Costs, CronBooks, CronBooksChange,
    CronFact, CronRow, Event, Events, ReservedCost,
};
use crabtalk_domain::{CallTotal, ConversationKey, Cost, Usage};
use jiff::civil::Date;
use std::ops::Deref;

const TAKES: &str = "the database takes the operation";

/// Events are stored until they are done, and numbers are not reused.
pub async fn events<D: Deref<Target: Events>>(open: impl Fn() -> D) {
    let event = |payload: &str| Event {
        source: "test".into(),
        payload: payload.into(),
        depth: 1,
        fires: vec![3, 4],
        ..Event::default()
    };
    let events = open();
    assert_eq!(events.publish(event("one"), 1).await, Ok(1));
    assert_eq!(events.publish(event("two"), 1).await, Ok(2));
    assert_eq!(events.next_subscription(7).await, Ok(7));
    events.done(2).await.expect(TAKES);
    events.done(9).await.expect("an unknown number is done");
    drop(events);
    let events = open();
    let waiting = events.waiting().await.expect(TAKES);
    let one = Event {
        id: 1,
        ..event("one")
    };
    assert_eq!(waiting, [one]);
    assert_eq!(events.publish(event("three"), 1).await, Ok(3));
    assert_eq!(events.publish(event("later"), 20).await, Ok(20));
    assert_eq!(events.next_subscription(1).await, Ok(8));
}

/// The books store runs with their ends, newest first.
pub async fn crons<D: Deref<Target: CronBooks>>(open: impl Fn() -> D) {
    let begun = |entry, run| CronFact::Begun {
        entry,
        run,
        text: format!("run {run}"),
    };
    let books = open();
    let change = CronBooksChange {
        accounts: vec![(1, Some("first".into())), (2, Some("second".into()))],
        facts: vec![begun(1, 5), begun(2, 6)],
    };
    books.write(change).await.expect(TAKES);
    let ended = CronFact::Ended {
        run: 5,
        text: "well".into(),
    };
    let skipped = CronFact::Skipped {
        entry: 2,
        text: "asleep".into(),
    };
    let change = CronBooksChange {
        accounts: vec![(1, None)],
        facts: vec![ended, skipped],
    };
    books.write(change).await.expect(TAKES);
    drop(books);
    let books = open();
    let content = books.load().await.expect(TAKES);
    assert_eq!(content.accounts, [(2, "second".to_owned())]);
    assert_eq!((content.last_entry, content.last_run), (2, 6));
    let run = |run: u64, end: Option<&str>| CronRow::Run(format!("run {run}"), end.map(Into::into));
    let skip = CronRow::Skipped("asleep".into());
    let all = books.latest(None, 10).await.expect(TAKES);
    assert_eq!(all, [skip.clone(), run(6, None), run(5, Some("well"))]);
    assert_eq!(
        books.latest(Some(1), 10).await,
        Ok(vec![run(5, Some("well"))])
    );
    assert_eq!(books.latest(Some(2), 1).await, Ok(vec![skip]));
}

/// A reservation is counted after the end of its life, and each call is counted once.
pub async fn costs<D: Deref<Target: Costs>>(open: impl Fn() -> D) {
    let day: Date = "2026-11-21".parse().expect("a date");
    let row = |of| CostRow {
        day,
        of,
        speaker: "crab".into(),
        total: CallTotal {
            calls: 1,
            usage: Usage {
                prompt_tokens: 10,
                ..Usage::default()
            },
            cost: Cost::default(),
        },
        ..CostRow::default()
    };
    let reserved = |number| ReservedCost { life: 1, number };
    let costs = open();
    for number in 1..=3 {
        let of = CostOf::Reservation(reserved(number));
        costs.add(row(of), None).await.expect(TAKES);
    }
    costs.release(reserved(1)).await.expect(TAKES);
    let settled = costs.add(row(CostOf::Call), Some(reserved(2)));
    settled.await.expect(TAKES);
    costs.add(row(CostOf::Run(0)), None).await.expect(TAKES);
    drop(costs);
    let costs = open();
    for (life, calls) in [(1, 1), (2, 2)] {
        let of_day = costs.of_day(day, life).await.expect(TAKES);
        let [(speaker, total)] = of_day.as_slice() else {
            panic!("one agent: {of_day:?}")
        };
        assert_eq!((speaker.as_str(), total.calls), ("crab", calls));
        assert_eq!(total.usage.prompt_tokens, 10 * calls);
        let report = costs.report(day, day, life, 10).await.expect(TAKES);
        assert_eq!(report.days, [(day, *total)]);
        assert_eq!(report.runs.len(), 1);
    }
    let tomorrow = day.tomorrow().expect("a date");
    assert_eq!(costs.of_day(tomorrow, 1).await, Ok(Vec::new()));
}

/// The journal stores the entries of each run in order.
pub async fn changes<D: Deref<Target: ChangeJournal>>(open: impl Fn() -> D) {
    let key = |agent| ConversationKey::new(agent, "user").expect("a valid key");
    let (ada, bob) = (key("ada"), key("bob"));
    let texts = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
    let journal = open();
    for (key, run, entries) in [
        (&ada, 1, &["a", "b"][..]),
        (&bob, 1, &["c"]),
        (&ada, 2, &["d"]),
        (&ada, 1, &["e"]),
    ] {
        let append = journal.append(key, run, texts(entries));
        append.await.expect(TAKES);
    }
    drop(journal);
    let journal = open();
    assert_eq!(journal.entries(&ada, 1).await, Ok(texts(&["a", "b", "e"])));
    assert_eq!(journal.runs(&ada).await, Ok(vec![2, 1]));
    let by_age = journal.by_age().await.expect(TAKES);
    assert_eq!(
        by_age,
        [(bob.clone(), 1), (ada.clone(), 2), (ada.clone(), 1)]
    );
    journal.remove(&ada, Some(1)).await.expect(TAKES);
    assert_eq!(journal.runs(&ada).await, Ok(vec![2]));
    journal.remove(&ada, None).await.expect(TAKES);
    assert_eq!(journal.by_age().await, Ok(vec![(bob, 1)]));
}

/// The chain continues after a restart, and a new chain keeps earlier entries.
pub async fn audit<D: Deref<Target: AuditLog>>(open: impl Fn() -> D) {
    let entry = |what: &str| AuditEntry::new("2026-01-01T00:00:00Z".into(), what, "local");
    let audit = open();
    for (number, what) in (1..).zip(["login", "reload", "login"]) {
        assert_eq!(audit.append(entry(what)).await, Ok(number));
    }
    drop(audit);
    let audit = open();
    assert_eq!(audit.append(entry("after")).await, Ok(4));
    let check = audit.verify().await.expect(TAKES);
    assert_eq!((check.entries, check.problem), (4, None));
    let page = audit.latest(None, 2).await.expect(TAKES);
    assert!(page.more && page.lines[1].contains("after"), "{page:?}");
    let page = audit.latest(Some(3), 10).await.expect(TAKES);
    assert_eq!((page.lines.len(), page.more), (2, false));
    audit.begin_chain(entry("mended")).await.expect(TAKES);
    assert_eq!(audit.append(entry("more")).await, Ok(2));
    let check = audit.verify().await.expect(TAKES);
    assert_eq!((check.entries, check.problem), (2, None));
}
