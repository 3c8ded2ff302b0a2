//! A week of restarts and compactions.

use super::{recall, say, summarising, texts};
use crate::rig::{ModelServer, TestEnv, entries};
use crabtalk_proto::{Client, CompactMsg};
use crabtalk_testkit::scripted::openai;
use serde_json::Value;

const WEEK: [&str; 7] = [
    "My passport lies in the blue tin above the stove.",
    "The fence at the back has to be painted before winter.",
    "Anna comes for dinner on Thursday and eats no fish.",
    "The invoice of the plumber was paid this morning.",
    "I sold the old bicycle to a neighbour.",
    "The library wants its book about crabs back.",
    "Tomorrow the train leaves at a quarter past nine.",
];

#[tokio::test]
async fn first_message_is_recalled_after_compactions() {
    let replies = (0..=WEEK.len()).map(|_| openai::text("Noted."));
    let summary = "Small things of the house were talked about.";
    let model = ModelServer::start(summarising(replies, summary)).await;
    let env = TestEnv::with_model(&model);
    for (day, said) in WEEK.into_iter().enumerate() {
        let daemon = env.daemon().await;
        say(&env, "user", said).await;
        if day % 2 == 0 && day < 6 {
            let compacted = env.connect().await.compact(CompactMsg::default()).await;
            assert_eq!(compacted.unwrap().summary, summary);
        }
        if day % 2 == 0 {
            daemon.kill().await;
        } else {
            assert!(daemon.terminate().await.success());
        }
    }
    let _daemon = env.daemon().await;
    say(&env, "user", "Where does my passport lie?").await;

    let requests = model.requests().await;
    let last = requests.last().unwrap();
    let block = recall(last).unwrap();
    assert!(block.contains(WEEK[0]), "{block}");
    assert!(block.contains("said by user"), "{block}");
    let year = block.contains("(said by user, 20");
    assert!(year, "without its time: {block}");
    // Only there: three summaries replaced it in the history.
    let elsewhere = texts(last);
    let mut elsewhere = elsewhere.iter().filter(|text| !text.contains("<recall>"));
    assert!(elsewhere.all(|text| !text.contains("blue tin")), "{last}");

    // Recalled text is not stored, so it never recalls itself.
    let history = entries(&env, "crab", "user").await;
    assert!(
        history
            .iter()
            .all(|entry| !entry.content.contains("<recall>"))
    );
    for log in env.logs() {
        assert!(!std::fs::read_to_string(log).unwrap().contains("<recall>"));
    }

    // The archives have all of it.
    let archives = env.run(&["archives", "--json"]).await.ok();
    let archives: Vec<Value> = archives
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(archives.len(), 3);
    assert!(archives.iter().all(|archive| archive["summary"] == summary));
    let first = env.run(&["archives", "show", "1"]).await.ok();
    assert!(first.contains(&format!("user> {}", WEEK[0])), "{first}");
    let second = env.run(&["archives", "show", "2"]).await.ok();
    assert!(
        !second.contains(WEEK[0]) && second.contains(WEEK[1]),
        "{second}"
    );
    let missing = env.run(&["archives", "show", "4"]).await.fails(1);
    assert!(missing.contains("no archive 4"), "{missing}");
    let found = env.run(&["search", "passport"]).await.ok();
    assert!(
        found.contains("| archive 1 | 20") && found.contains("blue tin"),
        "{found}"
    );
}
