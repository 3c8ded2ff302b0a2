use super::*;
use crabtalk_testkit::ManualClock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

fn services() -> Services {
    Services::new(Arc::new(ManualClock::default()))
}

fn row(services: &Services, name: &str) -> Row {
    let rows = services.rows();
    let row = rows.into_iter().find(|row| row.name == name);
    row.expect("the service was started")
}

/// Waits for a state.
async fn until(services: &Services, name: &str, wanted: impl Fn(&Row) -> bool) -> Row {
    let mut rows = services.0.rows.subscribe();
    let found = |rows: &Vec<Row>| rows.iter().any(|row| row.name == name && wanted(row));
    let rows = rows.wait_for(found).await.expect("services are there");
    let row = rows.iter().find(|row| row.name == name);
    row.expect("it was found").clone()
}

/// Counts the starts of a service and fails in each.
fn failing(starts: &Arc<AtomicU32>) -> Service {
    let starts = Arc::clone(starts);
    Service::restarted("frail", "tests", move |_| {
        let starts = Arc::clone(&starts);
        async move {
            starts.fetch_add(1, Ordering::Relaxed);
            Err(anyhow::anyhow!("no luck"))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_is_started_again_and_shown() {
    let (services, starts) = (services(), Arc::default());
    services.start(failing(&starts));
    let row = until(&services, "frail", |row| row.restarts == 1).await;
    assert_eq!(row.owner, "tests");
    assert_eq!(row.on_failure, OnFailure::Restart);
    assert_eq!(row.last_error, "no luck");
    assert_eq!(starts.load(Ordering::Relaxed), 2);
    let row = until(&services, "frail", |row| row.state == State::Pausing).await;
    assert_eq!(row.since, stamp(ManualClock::default().now()));
}

#[tokio::test(start_paused = true)]
async fn pauses_between_starts_grow_up_to_a_minute() {
    let (services, starts) = (services(), Arc::<AtomicU32>::default());
    services.start(failing(&starts));
    until(&services, "frail", |row| row.restarts == 7).await;
    let began = Instant::now();
    until(&services, "frail", |row| row.restarts == 9).await;
    assert_eq!(began.elapsed().as_secs(), 120);
}

#[tokio::test(start_paused = true)]
async fn what_ran_well_for_long_is_back_soon() {
    let services = services();
    services.start(Service::restarted("steady", "tests", |_| async {
        tokio::time::sleep(Duration::from_secs(500)).await;
        anyhow::bail!("now and then")
    }));
    let began = Instant::now();
    until(&services, "steady", |row| row.restarts == 4).await;
    let took = began.elapsed().as_secs();
    assert_eq!(took, 4 * 501);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_like_any_other() {
    let services = services();
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    services.start(Service::restarted("jumpy", "tests", move |_| {
        // In the making of the future, then in the future, then never more.
        let call = counted.fetch_add(1, Ordering::Relaxed);
        assert_ne!(call, 0, "not yet");
        async move {
            if call == 1 {
                panic!("call {call}");
            }
            std::future::pending().await
        }
    }));
    let row = until(&services, "jumpy", |row| row.restarts == 1).await;
    assert!(row.last_error.starts_with("it panicked: "), "{row:?}");
    let row = until(&services, "jumpy", |row| row.restarts == 2).await;
    assert_eq!(row.last_error, "it panicked: call 1");
    assert_eq!(row.state, State::Running);
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_a_vital_service_ends_the_daemon() {
    let services = services();
    services.start(Service::vital("heart", "tests", |_| async {
        Err(anyhow::anyhow!("it stopped"))
    }));
    let broken = services.broken().await;
    assert_eq!(broken, "the service \"heart\" failed: it stopped");
    assert_eq!(row(&services, "heart").state, State::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_vital_service_that_returns_or_panics_ends_the_daemon_too() {
    for panics in [false, true] {
        let services = services();
        services.start(Service::vital("heart", "tests", move |_| async move {
            assert!(!panics, "out of beat");
            Ok(())
        }));
        let broken = services.broken().await;
        let why = match panics {
            true => "it panicked: out of beat",
            false => "it returned before the daemon's end",
        };
        assert_eq!(broken, format!("the service \"heart\" failed: {why}"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_optional_service_that_fails_stays_off_and_others_go_on() {
    let services = services();
    services.start(Service::once("luxury", "tests", |_| async {
        Err(anyhow::anyhow!("too dear"))
    }));
    services.start(Service::restarted("other", "tests", |_| {
        std::future::pending()
    }));
    let failed = until(&services, "luxury", |row| row.state == State::Failed).await;
    assert_eq!(failed.last_error, "too dear");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(row(&services, "luxury").restarts, 0);
    assert_eq!(row(&services, "other").state, State::Running);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_for_once_is_done() {
    let services = services();
    services.start(Service::once("errand", "tests", |_| async { Ok(()) }));
    until(&services, "errand", |row| row.state == State::Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_drops_what_may_be_dropped_and_waits_for_what_drains() {
    let services = services();
    let (last_words, drained) = (Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
    services.start(Service::restarted("plain", "tests", |_| {
        std::future::pending()
    }));
    let (said, counted) = (Arc::clone(&last_words), Arc::clone(&drained));
    let draining = Service::vital("drains", "tests", async move |stop: CancellationToken| {
        stop.cancelled().await;
        said.notified().await;
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    services.start(draining.draining());
    services.start(failing(&Arc::default()));
    until(&services, "frail", |row| row.state == State::Pausing).await;
    services.stop();
    until(&services, "plain", |row| row.state == State::Stopped).await;
    // A pause does not delay the shutdown.
    until(&services, "frail", |row| row.state == State::Stopped).await;
    assert_eq!(row(&services, "drains").state, State::Running);
    last_words.notify_one();
    services.ended().await;
    assert_eq!(row(&services, "drains").state, State::Stopped);
    assert_eq!(drained.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_error_is_cut_for_status() {
    let services = services();
    services.start(Service::once("wordy", "tests", |_| async {
        Err(anyhow::anyhow!("é".repeat(MAX_ERROR_BYTES)))
    }));
    let row = until(&services, "wordy", |row| row.state == State::Failed).await;
    assert_eq!(row.last_error.len(), MAX_ERROR_BYTES);
}
