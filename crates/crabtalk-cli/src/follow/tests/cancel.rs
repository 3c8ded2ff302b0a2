//! Tests of leaving and cancelling runs.

use super::*;

#[tokio::test]
async fn ctrl_c_cancels_the_run_and_waits_for_its_end() {
    let (mut fake, mut at) = ask("--agent crab --as me x").await;
    let (interrupt, out) = (at.interrupt.clone(), at.out.clone());
    let drive = async {
        fake.send(start()).await;
        fake.send(chunk("hal")).await;
        fake.next_told().await;
        // Output proves that the run has started.
        while out.text().is_empty() {
            tokio::task::yield_now().await;
        }
        interrupt.send(()).await.unwrap();
        assert_eq!(fake.next_told().await, "kill \"crab\" \"me\"");
        fake.send(end("cancelled", 499)).await;
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    assert!(matches!(done, Err(Error::Interrupted)));
    assert_eq!(out.text(), "hal\n");
}

#[tokio::test]
async fn ctrl_c_before_the_start_cancels_no_other_run() {
    let (mut fake, mut at) = ask("x").await;
    at.interrupt.send(()).await.unwrap();
    assert!(matches!(at.run().await, Err(Error::Interrupted)));
    assert!(at.err.text().contains("stays queued"));
    while let Ok(told) = fake.told.try_recv() {
        assert!(!told.starts_with("kill"), "{told}");
    }
}

#[tokio::test]
async fn cancelled_run_that_does_not_end_is_left() {
    let fake = Fake::start().await;
    let mut at = fake.at("ask --no-stdin x");
    let interrupt = at.interrupt.clone();
    let follow = at.context.follow();
    // Ctrl-C right after the start, then no event.
    let begun = RunNews::Event(Box::new(start().into()));
    let events = futures_util::stream::iter([Ok(begun)])
        .inspect(move |_| interrupt.try_send(()).unwrap())
        .chain(futures_util::stream::pending());
    tokio::time::pause();
    let ended = follow.run(events, &mut at.context.console).await.unwrap();
    assert_eq!(ended, Ended::Interrupted);
    assert!(
        at.err
            .text()
            .ends_with("the run was cancelled but has not ended\n")
    );
}

/// The last event waits for a busy disk.
#[tokio::test]
async fn cancelled_run_may_end_slowly() {
    let mut fake = Fake::start().await;
    let mut at = fake.at("ask --no-stdin x");
    let interrupt = at.interrupt.clone();
    let follow = at.context.follow();
    let begun = RunNews::Event(Box::new(start().into()));
    let ended = async {
        assert_eq!(fake.next_told().await, "kill \"\" \"\"");
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok(RunNews::Event(Box::new(end("cancelled", 499).into())))
    };
    let events = futures_util::stream::iter([Ok(begun)])
        .inspect(move |_| interrupt.try_send(()).unwrap())
        .chain(futures_util::stream::once(ended));
    tokio::time::pause();
    let ended = follow.run(events, &mut at.context.console).await.unwrap();
    assert_eq!(ended, Ended::Interrupted);
    assert!(
        at.err.text().ends_with("the run was cancelled\n"),
        "{}",
        at.err.text()
    );
}

/// The daemon does not answer the kill request.
#[tokio::test]
async fn second_ctrl_c_leaves_at_once() {
    let fake = Fake::start().await;
    let mut at = fake.at("ask --no-stdin x");
    let interrupt = at.interrupt.clone();
    let follow = at.context.follow();
    // The daemon is gone.
    drop(fake);
    let begun = RunNews::Event(Box::new(start().into()));
    let events = futures_util::stream::iter([Ok(begun)])
        .inspect(move |_| {
            interrupt.try_send(()).unwrap();
            interrupt.try_send(()).unwrap();
        })
        .chain(futures_util::stream::pending());
    let ended = follow.run(events, &mut at.context.console).await.unwrap();
    assert_eq!(ended, Ended::Interrupted);
    assert!(!at.err.text().contains("has not yet"), "{}", at.err.text());
}

#[tokio::test]
async fn attach_leaves_on_ctrl_c_and_kills_nothing() {
    let mut fake = Fake::start().await;
    let mut at = fake.at("attach");
    let interrupt = at.interrupt.clone();
    fake.send(start()).await;
    fake.send(approval("a1")).await;
    let drive = async {
        assert_eq!(fake.next_told().await, "attach \"\" \"\"");
        interrupt.send(()).await.unwrap();
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    assert!(matches!(done, Err(Error::Interrupted)));
    assert!(fake.told.try_recv().is_err());
}
