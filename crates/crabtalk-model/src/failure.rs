//! Converts failures of providers to the domain's errors.
//! Invariants: no message contains a key or header value; quotes from a
//! provider have at most [`MAX_QUOTE_CHARS`].

use crate::http::Failure;
use crabtalk_domain::model::{Error, ErrorKind};
use http::{HeaderMap, StatusCode, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use serde_json::Value;
use std::time::Duration;

/// Fits every sentence that providers write, but not an HTML page.
const MAX_QUOTE_CHARS: usize = 500;

/// Length of the shortest secret to hide; hiding a header value such as `1` would
/// garble every message.
const MIN_SECRET_BYTES: usize = 6;

/// The provider of a failure, as shown in messages.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The provider's configured name.
    pub(crate) provider: String,
    /// The address, without secrets.
    pub(crate) url: String,
    /// Texts that must not be shown.
    pub(crate) secrets: Vec<String>,
}

impl Peer {
    /// An error that names the provider.
    pub(crate) fn error(&self, kind: ErrorKind, message: &str) -> Error {
        let message = format!("provider {:?}: {message}", self.provider);
        Error::new(kind, self.redact(&message))
    }

    /// A provider's text, shortened and without secrets.
    pub(crate) fn quote(&self, text: &str) -> String {
        let text = self.redact(text);
        let mut chars = text
            .trim()
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c });
        let mut short: String = chars.by_ref().take(MAX_QUOTE_CHARS).collect();
        if chars.next().is_some() {
            short.push_str(" ...");
        }
        short
    }

    /// Quotes bytes like [`Self::quote`].
    pub(crate) fn quote_bytes(&self, bytes: &[u8]) -> String {
        // More than is quoted, much less than the longest event.
        let bytes = bytes.get(..8 * MAX_QUOTE_CHARS).unwrap_or(bytes);
        self.quote(&String::from_utf8_lossy(bytes))
    }

    fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self
            .secrets
            .iter()
            .filter(|secret| secret.len() >= MIN_SECRET_BYTES)
        {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "***");
            }
        }
        text
    }

    /// The error of a call without an answer.
    pub(crate) fn unanswered(&self, failure: Failure) -> Error {
        let url = &self.url;
        match failure {
            Failure::Connect(error) => self.error(
                ErrorKind::Unreachable,
                &format!(
                    "cannot connect to {url}: {error}; check that the server runs, and its base_url"
                ),
            ),
            Failure::Proxy { proxy, reason } => self.error(
                ErrorKind::Unreachable,
                &format!(
                    "cannot connect to {url} through the proxy {proxy}: {}; see HTTPS_PROXY, \
                     HTTP_PROXY, ALL_PROXY and NO_PROXY in the daemon's environment",
                    self.quote(&reason)
                ),
            ),
            Failure::Tls(reason) => self.error(
                ErrorKind::Unreachable,
                &format!("no trusted connection to {url}: {}", self.quote(&reason)),
            ),
            Failure::Timeout(after) => self.error(
                ErrorKind::Timeout,
                &format!("{url} sent no response within {after:?}; see timeout_secs"),
            ),
            Failure::Broken(reason) => self.error(
                ErrorKind::Malformed,
                &format!(
                    "{url} closed the connection before it answered: {}",
                    self.quote(&reason)
                ),
            ),
        }
    }

    /// The error for an unsuccessful status. `id` is the requested model and
    /// `known` lists the configured models.
    pub(crate) fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        id: &str,
        known: &str,
    ) -> Error {
        let mut report = Report::of_body(body);
        report.add_headers(headers);
        let retry_after = retry_after(headers, Timestamp::now()).or(report.retry_after);
        let kind = report.kind(Some(status), retry_after);
        let said = if report.message.is_empty() {
            String::new()
        } else {
            format!(": {}", self.quote(&report.message))
        };
        let status = status.as_u16();
        let text = match kind {
            ErrorKind::Refused => {
                format!("refused the credentials ({status}){said}; check its api_key")
            }
            ErrorKind::UnknownModel => {
                format!("has no model {id:?} ({status}){said}; configured models are {known}")
            }
            ErrorKind::TooLong => {
                format!("the conversation is too long for {id:?} ({status}){said}")
            }
            ErrorKind::RateLimited { retry_after } => format!(
                "too many requests ({status}){said}{}",
                retry_after.map_or(String::new(), |t| format!("; retry after {}s", t.as_secs()))
            ),
            ErrorKind::Invalid if report.message.is_empty() => {
                format!("answered {status} at {}; check its base_url", self.url)
            }
            ErrorKind::NotConfigured
            | ErrorKind::Invalid
            | ErrorKind::Provider { .. }
            | ErrorKind::Unreachable
            | ErrorKind::Timeout
            | ErrorKind::Stalled
            | ErrorKind::Malformed
            | ErrorKind::Filtered
            | ErrorKind::Budget
            | ErrorKind::Limit => format!("answered {status}{said}"),
        };
        self.error(kind, &text)
    }

    /// An error event within a stream.
    pub(crate) fn in_stream(&self, error: &Value) -> Error {
        let report = Report::of_json(error);
        let status = report
            .code
            .parse()
            .ok()
            .and_then(|code| StatusCode::from_u16(code).ok());
        let kind = report.kind(status.filter(|s| s.as_u16() >= 400), None);
        let message = if report.message.is_empty() {
            error.to_string()
        } else {
            report.message.clone()
        };
        self.error(
            kind,
            &format!("failed while answering: {}", self.quote(&message)),
        )
    }
}

/// A provider's error, parsed from any of the formats.
#[derive(Debug, Default)]
struct Report {
    message: String,
    /// The `code` and `type` fields.
    code: String,
    class: String,
    /// Google's reason, which is more specific than its status.
    reason: String,
    /// The delay in the body, if the header is missing.
    retry_after: Option<Duration>,
}

/// Header with the type of Bedrock's error.
const BEDROCK_ERROR: &str = "x-amzn-errortype";

impl Report {
    fn of_body(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Array(list)) => list.first().map(Self::of_json).unwrap_or_default(),
            Ok(json) => Self::of_json(&json),
            Err(_) => Self {
                message: String::from_utf8_lossy(body).into_owned(),
                ..Self::default()
            },
        }
    }

    fn of_json(json: &Value) -> Self {
        let error = json
            .get("error")
            .filter(|error| !error.is_null())
            .unwrap_or(json);
        let text = |value: Option<&Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) | None => String::new(),
        };
        let message = [
            error.get("message"),
            error.get("detail"),
            json.get("message"),
            json.get("Message"),
            Some(error),
        ]
        .into_iter()
        .map(text)
        .find(|message| !message.is_empty())
        .unwrap_or_default();
        let details = || error.get("details").and_then(Value::as_array);
        let detail = |field: &str| {
            let mut all = details().into_iter().flatten();
            all.find_map(|detail| detail.get(field)?.as_str())
        };
        let class = text(error.get("type"));
        Self {
            message,
            code: text(error.get("code")),
            reason: detail("reason").unwrap_or_default().to_owned(),
            class: if class.is_empty() {
                text(error.get("status"))
            } else {
                class
            },
            retry_after: detail("retryDelay").and_then(seconds),
        }
    }

    fn add_headers(&mut self, headers: &HeaderMap) {
        let class = headers.get(BEDROCK_ERROR).and_then(|v| v.to_str().ok());
        if let Some(class) = class.filter(|_| self.class.is_empty()) {
            // A namespace may follow the name.
            self.class = class.split(':').next().unwrap_or_default().to_owned();
        }
    }

    /// The kind of the error, by status, then by the provider's codes.
    fn kind(&self, status: Option<StatusCode>, retry_after: Option<Duration>) -> ErrorKind {
        let says = |word: &str| self.code == word || self.class == word;
        let mut kind = match status.map(|status| status.as_u16()) {
            Some(401 | 403) => return ErrorKind::Refused,
            Some(402) => return ErrorKind::Refused,
            Some(413) => return ErrorKind::TooLong,
            Some(408) => ErrorKind::Timeout,
            Some(429) => ErrorKind::RateLimited { retry_after },
            // Bedrock reports that the model failed.
            Some(424) => ErrorKind::Provider { retry_after },
            Some(404) if self.is_about_model() => ErrorKind::UnknownModel,
            Some(400) if self.message.contains("Invalid model name") => ErrorKind::UnknownModel,
            Some(400..=499) => ErrorKind::Invalid,
            Some(300..=399) => ErrorKind::Invalid,
            Some(_) | None => ErrorKind::Provider { retry_after },
        };
        if self.reason == "API_KEY_INVALID" {
            return ErrorKind::Refused;
        }
        if says("ValidationException") && self.message.contains("model identifier") {
            return ErrorKind::UnknownModel;
        }
        // An exhausted quota does not recover soon.
        if says("insufficient_quota") || says("billing_error") {
            kind = ErrorKind::Refused;
        } else if self.is_too_long() {
            kind = ErrorKind::TooLong;
        } else if says("model_not_found") {
            kind = ErrorKind::UnknownModel;
        } else if status.is_none() {
            kind = match (self.class.as_str(), self.code.as_str()) {
                ("authentication_error" | "permission_error", _) | (_, "invalid_api_key") => {
                    ErrorKind::Refused
                }
                ("throttlingException", _)
                | ("rate_limit_error" | "rate_limit_exceeded", _)
                | (_, "rate_limit_exceeded") => ErrorKind::RateLimited { retry_after },
                ("invalid_request_error" | "validationException", _) => ErrorKind::Invalid,
                ("content_filter", _) | (_, "content_filter") => ErrorKind::Filtered,
                _ => kind,
            };
        }
        if kind == ErrorKind::Invalid
            && (says("content_filter") || says("content_policy_violation"))
        {
            kind = ErrorKind::Filtered;
        }
        kind
    }

    fn is_about_model(&self) -> bool {
        let said = self.message.to_ascii_lowercase();
        self.code == "model_not_found"
            || self.code == "DeploymentNotFound"
            || said.contains("model") && !said.contains("url")
    }

    /// Providers report this only in the message, so this is the only place that
    /// matches on message text.
    fn is_too_long(&self) -> bool {
        if self.code == "context_length_exceeded" || self.class == "exceed_context_size_error" {
            return true;
        }
        let said = self.message.to_ascii_lowercase();
        [
            "prompt is too long",
            "maximum context length",
            "context length exceeded",
            "exceeds the context window",
            "exceeds the available context size",
            "exceed context limit",
            "input is too long",
            "context window exceeds limit",
            "too many tokens in the prompt",
            "exceeds the maximum number of tokens",
            "contextwindowexceedederror",
        ]
        .iter()
        .any(|words| said.contains(words))
    }
}

/// Parses Google's durations, such as `35s`.
fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// `Retry-After`, in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests;
