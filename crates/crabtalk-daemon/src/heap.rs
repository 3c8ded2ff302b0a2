//! Gives memory back once the conversations that needed it are over.

use crabtalk_runtime::Runtime;
use std::time::Duration;

/// Between two looks: with the time that an idle conversation stays in memory,
/// a daemon is small again within ten seconds.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Memory goes back when so much of the crowd has gone: not at every
/// conversation that ends among many, and not only when the last has.
const PART_LEFT: usize = 4;

/// Watches until it is dropped.
pub(crate) async fn give_back(runtime: &Runtime) {
    let mut most = 0;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let (conversations, _) = runtime.load();
        most = most.max(conversations);
        if most > 0 && conversations <= most / PART_LEFT {
            most = conversations;
            // Beside the clients, who may allocate again at any moment; it
            // does not fail.
            let _ = tokio::task::spawn_blocking(crabtalk_heap::give_back).await;
        }
    }
}
