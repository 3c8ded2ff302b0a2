//! Gives memory back once the conversations that needed it are over.

use crabtalk_runtime::Runtime;
use std::time::Duration;

/// Between two looks: with the time that an idle conversation stays in memory,
/// a daemon is small again within ten seconds.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Memory goes back when so much of the crowd has gone: not at every
/// conversation that ends among many, and not only when the last has.
const PART_LEFT: usize = 4;

/// Looks after which it goes back in any case: a steady crowd scatters over
/// ever more pages what it allocates anew all the time.
const LOOKS_AT_MOST: u32 = 10;

/// Watches until it is dropped.
pub(crate) async fn give_back(runtime: &Runtime) {
    let (mut most, mut looks) = (0, 0);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        runtime.tidy_events();
        let (conversations, _) = runtime.load();
        most = most.max(conversations);
        looks += 1;
        if most > 0 && (conversations <= most / PART_LEFT || looks >= LOOKS_AT_MOST) {
            (most, looks) = (conversations, 0);
            // Beside the clients, who may allocate again at any moment; it
            // does not fail.
            let _ = tokio::task::spawn_blocking(crabtalk_heap::give_back).await;
        }
    }
}
