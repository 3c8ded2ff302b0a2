//! Detects and tests models for `init` and `doctor`.
//!
//! Invariants: neither the configuration nor a conversation changes; a test asks the
//! model for one word within [`TIME`].

use super::Session;
use crate::error::Error;
use crate::models::Asked;
use crabtalk_domain::Message;
use crabtalk_domain::model::{Model, Request};
use crabtalk_proto::*;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The system prompt of the test.
const SYSTEM: &str = "You are asked whether you can be reached.";

/// The message of the test.
const QUESTION: &str = "Answer with the one word: ready";

/// Time limit with retries. A local server may have to load the model first.
const TIME: Duration = Duration::from_secs(60);

/// Maximum characters of the answer to return.
const SHOWN: usize = 200;

impl Session {
    pub(super) async fn try_model(
        &self,
        TestModelMsg { model }: TestModelMsg,
    ) -> Result<ModelTest, Error> {
        let models = Arc::clone(&self.node.models);
        let began = Instant::now();
        let asked = async {
            models.find().await.map_err(|e| e.to_string())?;
            let mut request = Request::new(SYSTEM, vec![Arc::new(Message::user(QUESTION))]);
            request.model.clone_from(&model);
            let answer = Asked(Arc::clone(&models)).send(request);
            answer.await.map_err(|e| e.to_string())
        };
        let outcome = tokio::time::timeout(TIME, asked).await;
        let outcome =
            outcome.unwrap_or_else(|_| Err(format!("no answer within {} s", TIME.as_secs())));
        let mut test = ModelTest {
            model: match model.is_empty() {
                true => models.active(),
                false => model,
            },
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            why: models.why(),
            ..ModelTest::default()
        };
        let known = models.list().into_iter().find(|m| m.name == test.model);
        test.provider = known.map(|known| known.provider).unwrap_or_default();
        match outcome {
            Err(why) => test.error = why,
            Ok(answer) => {
                test.ok = true;
                test.answer = answer.content.chars().take(SHOWN).collect();
                let usage = answer.usage.unwrap_or_default();
                (test.input_tokens, test.output_tokens) =
                    (usage.prompt_tokens, usage.completion_tokens);
            }
        }
        Ok(test)
    }

    pub(super) async fn found_providers(
        &self,
        _: FindProvidersMsg,
    ) -> Result<FoundProviderList, Error> {
        let found = self.node.models.could_be().await;
        let told = found.into_iter().map(|found| FoundProvider {
            kind: found.provider.kind.as_str().to_owned(),
            variable: found.variable.unwrap_or_default().to_owned(),
            base_url: found.provider.base_url.unwrap_or_default(),
            models: found.provider.models.into_iter().map(|m| m.name).collect(),
            name: found.provider.name,
        });
        Ok(FoundProviderList {
            providers: told.collect(),
        })
    }
}
