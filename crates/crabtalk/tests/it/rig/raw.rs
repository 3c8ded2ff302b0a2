//! A client that shares no code with CrabTalk: frames and protobuf by hand.

use super::TestEnv;
use super::wait::within;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Writes and reads frames.
pub(crate) struct RawClient(UnixStream);

/// A message being written.
#[derive(Default)]
pub(crate) struct Fields(Vec<u8>);

/// A message as it was read: field numbers and values in order.
#[derive(Debug)]
pub(crate) struct Message(Vec<(u64, Value)>);

/// A field's value.
#[derive(Debug)]
pub(crate) enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Fields {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// A message within this one.
    pub(crate) fn message(self, field: u64, inner: Self) -> Self {
        self.bytes(field, &inner.0)
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.number(field << 3 | 2);
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }
}

impl Message {
    fn read(mut bytes: &[u8]) -> Self {
        fn number(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let (first, rest) = bytes.split_first().expect("a whole number");
                *bytes = rest;
                value |= u64::from(first & 0x7f) << shift;
                if first & 0x80 == 0 {
                    break;
                }
            }
            value
        }
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = number(&mut bytes);
            let value = match key & 7 {
                0 => Value::Number(number(&mut bytes)),
                2 => {
                    let length = usize::try_from(number(&mut bytes)).unwrap();
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Value::Bytes(value.to_vec())
                }
                other => panic!("no message of the protocol has wire type {other}"),
            };
            fields.push((key >> 3, value));
        }
        Self(fields)
    }

    /// The numbers of its fields.
    pub(crate) fn fields(&self) -> Vec<u64> {
        self.0.iter().map(|(field, _)| *field).collect()
    }

    /// The messages in a field.
    pub(crate) fn messages(&self, field: u64) -> Vec<Self> {
        let all = self.0.iter().filter(|(number, _)| *number == field);
        all.map(|(_, value)| match value {
            Value::Bytes(bytes) => Self::read(bytes),
            Value::Number(_) => panic!("field {field} is a number: {self:?}"),
        })
        .collect()
    }

    /// The only message in a field.
    #[track_caller]
    pub(crate) fn message(&self, field: u64) -> Self {
        let found = self.messages(field).pop();
        found.unwrap_or_else(|| panic!("no field {field} in {self:?}"))
    }

    /// A text; absent is empty.
    pub(crate) fn text(&self, field: u64) -> String {
        match self.0.iter().find(|(number, _)| *number == field) {
            Some((_, Value::Bytes(bytes))) => String::from_utf8(bytes.clone()).unwrap(),
            Some((_, Value::Number(_))) => panic!("field {field} is a number: {self:?}"),
            None => String::new(),
        }
    }

    /// A number; absent is 0.
    pub(crate) fn number(&self, field: u64) -> u64 {
        match self.0.iter().find(|(number, _)| *number == field) {
            Some((_, Value::Number(value))) => *value,
            Some((_, Value::Bytes(_))) => panic!("field {field} is no number: {self:?}"),
            None => 0,
        }
    }

    /// The code and text of an error message.
    #[track_caller]
    pub(crate) fn error(&self) -> (u64, String) {
        let error = self.message(1);
        (error.number(1), error.text(2))
    }
}

impl RawClient {
    pub(crate) async fn connect(env: &TestEnv) -> Self {
        Self(UnixStream::connect(env.socket()).await.unwrap())
    }

    /// Writes raw bytes.
    pub(crate) async fn bytes(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Writes a frame around a payload.
    pub(crate) async fn payload(&mut self, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap();
        self.bytes(&length.to_be_bytes()).await;
        self.bytes(payload).await;
    }

    /// Sends one variant of the client's envelope.
    pub(crate) async fn send(&mut self, variant: u64, fields: Fields) {
        let envelope = Fields::default().message(variant, fields);
        self.payload(&envelope.0).await;
    }

    /// Sends a request and reads the one answer.
    pub(crate) async fn ask(&mut self, variant: u64, fields: Fields) -> Message {
        self.send(variant, fields).await;
        self.read().await
    }

    /// The next frame.
    pub(crate) async fn read(&mut self) -> Message {
        self.next().await.expect("the daemon closed the connection")
    }

    /// The next frame; `None` when the daemon closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        let read = async {
            let length = self.0.read_u32().await.ok()?;
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut payload).await.unwrap();
            Some(Message::read(&payload))
        };
        within("an answer", read).await
    }
}
