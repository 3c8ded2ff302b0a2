use super::output;
use crate::tests::Fake;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn models_are_a_table_or_json() {
    let fake = Fake::start().await;
    assert_eq!(
        output(&fake, "models").await,
        "MODEL  ID     PROVIDER  STATE   KIND    CONTEXT  PRICE IN/OUT\n\
         big    big-1  main      active  openai  1000     ~1.5/3\n\
         old    old-1  main      off     openai\n"
    );
    let lines = output(&fake, "models --json").await;
    let lines: Vec<Value> = lines.lines().map(json).collect();
    assert_eq!(
        (&lines[0]["kind"], &lines[0]["context"]),
        (&"openai".into(), &1000.into())
    );
    assert_eq!(lines[1]["input_price"], Value::Null);
}

#[tokio::test]
async fn models_and_providers_are_chosen_and_switched() {
    let mut fake = Fake::start().await;
    output(&fake, "models use big").await;
    assert_eq!(fake.next_told().await, "use big");
    output(&fake, "providers disable main").await;
    assert_eq!(fake.next_told().await, "switch 1 main false");
    output(&fake, "providers enable main").await;
    assert_eq!(fake.next_told().await, "switch 1 main true");
    output(&fake, "providers rm main").await;
    assert_eq!(fake.next_told().await, "delete main");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table");
    std::fs::write(&file, "kind = \"offline\"").unwrap();
    output(
        &fake,
        &format!("providers set new --file {}", file.display()),
    )
    .await;
    assert_eq!(fake.next_told().await, "set new kind = \"offline\"");
}

#[tokio::test]
async fn providers_are_a_table_and_one_is_shown_masked() {
    let fake = Fake::start().await;
    assert_eq!(
        output(&fake, "providers").await,
        "PROVIDER  KIND    STATE   MODELS\nmain      openai  active  a, b\n"
    );
    assert_eq!(
        json(&output(&fake, "providers show main").await)["api_key"],
        "***"
    );
    let mut at = fake.at("providers show mian");
    let error = at.run().await.unwrap_err().to_string();
    assert_eq!(error, "unknown provider \"mian\"; there are: main");
}

#[tokio::test]
async fn stats_show_spending() {
    let fake = Fake::start().await;
    let stats = output(&fake, "stats").await;
    assert!(
        stats.contains("money today              $0.5000 of $2.5, resets "),
        "{stats}"
    );
    let agents = "AGENT  CALLS  READ  CACHED  WRITTEN  MONEY    UNPRICED  BUDGET\n\
                  crab   2      30    0       4        $0.5000  0         100 tokens a day\n";
    assert!(stats.ends_with(agents), "{stats}");
    assert_eq!(output(&fake, "stats --by agent").await, agents);
    let days = output(&fake, "stats --by day --days 7").await;
    assert!(days.contains("\nof 7  2      30 "), "{days}");
    let mut at = fake.at("stats --by run");
    at.run().await.unwrap();
    assert_eq!(at.err.text(), "no spending\n");
    let all = json(&output(&fake, "stats --json").await);
    assert_eq!(all["spending"][1]["tokens_per_day"], 100);
    assert_eq!(all["spending"][1]["agent"], "crab");
}
