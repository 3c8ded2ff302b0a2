//! Appended records are read back after restarts and compaction.

use crate::support::*;
use crabtalk_domain::storage::*;
use crabtalk_domain::{Image, ImageType, Message, Role, Thinking, ToolCall, Usage};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z \n\r\"\\\\{}]{0,40}",
        Just("{\"compact\":\"x\"}\n".to_owned()),
    ]
}

prop_compose! {
    fn message()(
        role in prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::Tool)],
        content in text(),
        calls in vec((text(), text(), text()), 0..3),
        tool_call_id in text(),
        is_error in any::<bool>(),
        images in vec(vec(any::<u8>(), 1..40), 0..3),
        thinking in vec((text(), text()), 0..3),
        agent in text(),
        at in text(),
        usage in proptest::option::of((any::<u64>(), any::<u64>(), any::<Option<u64>>())),
    ) -> Message {
        let mut message = Message::new(role, content);
        let call = |(id, name, arguments)| ToolCall { id, name, arguments };
        message.tool_calls = calls.into_iter().map(call).collect();
        message.tool_call_id = tool_call_id;
        message.is_error = is_error;
        message.thinking =
            thinking.into_iter().map(|(text, signature)| Thinking { text, signature }).collect();
        let images = images.iter().map(|bytes| Image::new(ImageType::Webp, bytes));
        message = message.with_images(images.map(|image| image.expect("small")).collect());
        message.agent = agent;
        message.at = at;
        message.usage = usage.map(|(prompt_tokens, completion_tokens, cache_hit_tokens)| Usage {
            prompt_tokens, completion_tokens, cache_hit_tokens, ..Usage::default()
        });
        message
    }
}

#[derive(Debug, Clone)]
enum Step {
    Say(Vec<Message>),
    Compact(String, usize),
    Title(String),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => vec(message(), 0..4).prop_map(Step::Say),
        1 => (text(), 0..4_usize).prop_map(|(summary, keep)| Step::Compact(summary, keep)),
        1 => text().prop_map(Step::Title),
        1 => Just(Step::Restart),
    ]
}

fn shape(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|m| format!("{m:?}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_model_in_memory_agrees(sender in "\\PC{1,20}", steps in vec(step(), 0..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
        runtime.block_on(async {
            let mut home = Home::with(crabtalk_domain::storage::SyncPolicy::Never);
            let mut opened = home.open("crab", &sender).await;
            let (mut all, mut working, mut title) = (Vec::new(), Vec::new(), String::new());
            for step in steps {
                match step {
                    Step::Say(messages) => {
                        let record = |m: &Message| Record::Message(Arc::new(m.clone()));
                        let records: Vec<Record> = messages.iter().map(record).collect();
                        append(&mut opened.log, &records).await;
                        all.extend(messages.iter().cloned());
                        working.extend(messages);
                    }
                    Step::Compact(summary, keep) => {
                        let keep = keep.min(all.len());
                        let state = Record::Meta(MetaRecord::default());
                        append(&mut opened.log, &[compact(&summary, keep), state]).await;
                        // A fresh start has no summary.
                        let first = (!summary.is_empty()).then(|| Message {
                            at: "2026-11-02T00:00:00Z".into(),
                            ..Message::user(summary)
                        });
                        working = first.into_iter().collect();
                        working.extend_from_slice(&all[all.len() - keep..]);
                    }
                    Step::Title(new) => {
                        title.clone_from(&new);
                        let meta = MetaRecord { title: Some(new.clone()), ..MetaRecord::default() };
                        append(&mut opened.log, &[Record::Meta(meta)]).await;
                        append(&mut opened.log, &[titled(&new)]).await;
                    }
                    Step::Restart => {
                        home.restart();
                        opened = home.loaded("crab", &sender).await;
                    }
                }
            }
            let pair = key("crab", &sender);
            let page = home.store.page(&LogPart::Conversation(pair), None, usize::MAX).await;
            let archives = home.store.archives(&key("crab", &sender)).await.expect("lists");
            let listed = home.store.list(None, None).await.expect("lists");
            home.restart();
            let opened = home.loaded("crab", &sender).await;
            assert_eq!(shape(&opened.history), shape(&working));
            assert_eq!(opened.meta.title, title);
            let entries = page.expect("reads").entries;
            assert_eq!(entries.iter().filter(|e| !e.compact).count(), all.len());
            assert_eq!(entries.iter().filter(|e| e.compact).count(), archives.len());
            assert_eq!((listed.len(), listed[0].message_count), (1, all.len() as u64));
            assert_eq!(listed[0].meta.title, title);
        });
    }
}
