//! Gives memory back once the start that needed it is over, and the conversations.

use crabtalk_runtime::Runtime;
use std::time::Duration;

/// Between two looks: with the time that an idle conversation stays in memory,
/// a daemon is small again within ten seconds.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Another time between two looks, in milliseconds: whoever measures wants to know
/// soon what is held for nobody.
const OTHER_TIME: &str = "CRABTALK_MEMORY_MS";

/// Memory goes back when so much of the crowd has gone: not at every
/// conversation that ends among many, and not only when the last has.
const PART_LEFT: usize = 4;

/// Looks after which it goes back in any case: a steady crowd scatters over
/// ever more pages what it allocates anew all the time.
const LOOKS_AT_MOST: u32 = 10;

/// When a start is over: what begins a moment after it has read its files by then.
const START_IS_OVER: Duration = Duration::from_millis(200);

/// The time between two looks.
fn look_every() -> Duration {
    let other = std::env::var(OTHER_TIME).ok();
    let ms = other.and_then(|ms| ms.parse().ok());
    ms.map_or(LOOK_EVERY, |ms: u64| Duration::from_millis(ms.max(1)))
}

/// Watches until it is dropped.
pub(crate) async fn give_back(runtime: &Runtime) {
    tokio::time::sleep(START_IS_OVER).await;
    // Most of the code that a start runs runs never again. It does not fail.
    let _ = tokio::task::spawn_blocking(crabtalk_heap::give_back_code).await;
    let (look_every, mut most, mut looks) = (look_every(), 0, 0);
    loop {
        tokio::time::sleep(look_every).await;
        runtime.tidy_events();
        let (conversations, _) = runtime.load();
        if tracing::enabled!(tracing::Level::DEBUG) {
            let in_use = tokio::task::spawn_blocking(crabtalk_heap::in_use).await;
            tracing::debug!(conversations, in_use = in_use.ok().flatten(), "the heap");
        }
        most = most.max(conversations);
        looks += 1;
        let crowd_left = most > 0 && conversations <= most / PART_LEFT;
        let turns_are_over = most > 0 && conversations == 0;
        // Components and clients leave something behind, too.
        if crowd_left || looks >= LOOKS_AT_MOST {
            (most, looks) = (conversations, 0);
            // Beside the clients, who may allocate again at any moment; it
            // does not fail.
            let _ = tokio::task::spawn_blocking(crabtalk_heap::give_back).await;
            if turns_are_over {
                // Nobody is there who would need the code of a turn soon.
                let _ = tokio::task::spawn_blocking(crabtalk_heap::give_back_code).await;
            }
        }
    }
}
