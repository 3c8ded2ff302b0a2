//! Reads a model's stream and publishes it.

use super::Stop;
use super::announce::Announcer;
use crate::listen::Listener;
use crate::publisher::Publisher;
use crate::spending::Bill;
use crabtalk_domain::AgentEvent;
use crabtalk_domain::model::{Chunk, Error, ErrorKind, Response};

/// The open block of the stream.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Block {
    None,
    Text,
    Thinking,
}

/// An answer during streaming.
pub(super) struct AnswerStream<'a> {
    publisher: &'a Publisher,
    speaker: &'a str,
    bill: Bill<'a>,
    block: Block,
}

impl<'a> AnswerStream<'a> {
    pub(super) fn new(publisher: &'a Publisher, speaker: &'a str, bill: Bill<'a>) -> Self {
        Self {
            publisher,
            speaker,
            bill,
            block: Block::None,
        }
    }

    /// Reads the answer to its end. The model is called while the disk still syncs the
    /// request's messages; the first chunk is published after the events of
    /// `announcer`.
    pub(super) async fn read(
        mut self,
        mut stream: Listener,
        announcer: &mut Announcer,
    ) -> Result<Response, Stop> {
        let mut next = if announcer.is_empty() {
            stream.next().await
        } else {
            let (first, flushed) = futures_util::join!(stream.next(), announcer.flush());
            flushed?;
            first
        };
        while let Some(chunk) = next {
            self.take(chunk?);
            if self.bill.is_complete() {
                break;
            }
            next = stream.next().await;
        }
        self.enter(Block::None);
        // Lets readers publish the end of the text before it is stored.
        tokio::task::yield_now().await;
        if !self.bill.is_complete() {
            let message = format!("the model's answer ended early ({})", self.speaker);
            return Err(Error::new(ErrorKind::Malformed, message).into());
        }
        Ok(self.bill.into_response())
    }

    fn take(&mut self, chunk: Chunk) {
        match &chunk {
            Chunk::Notice(text) => self.publisher.publish(AgentEvent::Notice(text.clone())),
            Chunk::Text(text) if !text.is_empty() => {
                self.enter(Block::Text);
                self.publisher.publish(AgentEvent::Text(text.clone()));
            }
            Chunk::Thinking(text) if !text.is_empty() => {
                self.enter(Block::Thinking);
                self.publisher.publish(AgentEvent::Thinking(text.clone()));
            }
            Chunk::Text(_)
            | Chunk::Thinking(_)
            | Chunk::Answering { .. }
            | Chunk::ThinkingSignature(_)
            | Chunk::ToolCallStart { .. }
            | Chunk::ToolCallArguments { .. }
            | Chunk::Usage(_)
            | Chunk::Stop(_) => {}
        }
        self.bill.push(chunk);
    }

    fn enter(&mut self, block: Block) {
        if self.block == block {
            return;
        }
        match self.block {
            Block::Text => self.publisher.publish(AgentEvent::TextEnd),
            Block::Thinking => self.publisher.publish(AgentEvent::ThinkingEnd),
            Block::None => {}
        }
        match block {
            Block::Text => self.publisher.publish(AgentEvent::TextStart),
            Block::Thinking => self.publisher.publish(AgentEvent::ThinkingStart),
            Block::None => {}
        }
        self.block = block;
    }
}
