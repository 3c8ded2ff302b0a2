//! A configured provider, ready to be called.
//! Invariant: an invalid configuration is detected when the provider is
//! built, except a missing key, which is reported by a call.

use crate::base_url::{self, Endpoint};
use crate::config::{Kind, ModelConfig, ProviderConfig};
use crate::decode::Decode;
use crate::failure::Peer;
use crate::http::{Client, RequestBody};
use crate::offline::Offline;
use crate::sight::Sight;
use crate::stream::Answer;
use crate::{anthropic, bedrock, google, openai};
use bedrock::Credentials;
use bytes::Bytes;
use crabtalk_domain::model::{Chunk, Error, ErrorKind, Request};
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use std::sync::Arc;
use std::task::{Context, Poll};

/// Maximum bytes read from an error page.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// The version of Anthropic's API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Appended to the error of a refused request with images, since every
/// later request of the conversation would be refused too.
const IMAGES_SENT: &str = "; if the images in the conversation cause this, set images = false for \
                           the model, or archive them with `crabtalk compact`";

/// An invalid configuration of a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Its `base_url` is invalid or missing.
    #[error("provider {provider:?}: {source}")]
    BaseUrl {
        /// The name of the provider.
        provider: String,
        /// The invalid address.
        source: base_url::Error,
    },
    /// A header that HTTP does not allow. Its value is not shown.
    #[error("provider {provider:?}: the header {header:?} has a name or value that HTTP forbids")]
    Header {
        /// The name of the provider.
        provider: String,
        /// The name of the header.
        header: String,
    },
    /// A key with characters that HTTP does not allow.
    #[error("provider {0:?}: the api_key has characters that HTTP forbids, a line break?")]
    Key(String),
}

/// State shared by all calls of a registry.
pub(crate) struct Shared {
    pub(crate) client: Client,
}

/// An answer that has begun.
pub(crate) enum Opened {
    Answer(Box<Answer>),
    Offline(Offline),
}

impl Opened {
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, Error>>> {
        match self {
            Self::Answer(answer) => answer.poll_chunk(cx),
            Self::Offline(offline) => offline.poll_chunk(cx),
        }
    }
}

/// A provider with its prepared requests.
pub(crate) struct Provider {
    pub(crate) config: ProviderConfig,
    /// `None` for the offline model.
    endpoint: Option<Endpoint>,
    headers: HeaderMap,
    peer: Arc<Peer>,
    /// Credentials of an AWS account, which sign requests.
    credentials: Option<Credentials>,
}

impl Provider {
    pub(crate) fn new(config: ProviderConfig, shared: &Shared) -> Result<Self, ConfigError> {
        let endpoint = match config.kind {
            Kind::Offline => None,
            Kind::OpenAi
            | Kind::Anthropic
            | Kind::Google
            | Kind::Bedrock
            | Kind::Azure
            | Kind::Ollama => {
                let endpoint = Endpoint::new(config.kind, config.base_url.as_deref());
                Some(endpoint.map_err(|source| ConfigError::BaseUrl {
                    provider: config.name.clone(),
                    source,
                })?)
            }
        };
        let headers = match &endpoint {
            Some(endpoint) => headers(&config, endpoint)?,
            None => HeaderMap::new(),
        };
        let mut secrets: Vec<String> = config.headers.iter().map(|(_, v)| v.clone()).collect();
        secrets.extend(config.api_key.as_ref().map(|key| key.expose().to_owned()));
        secrets.extend(
            credentials(&config)
                .into_iter()
                .flat_map(Credentials::secrets),
        );
        secrets.extend(shared.client.secrets().cloned());
        let peer = Arc::new(Peer {
            provider: config.name.clone(),
            url: endpoint.as_ref().map_or("offline".into(), Endpoint::shown),
            secrets,
        });
        Ok(Self {
            credentials: credentials(&config),
            config,
            endpoint,
            headers,
            peer,
        })
    }

    /// Calls the provider once. `known` lists other models for the error message.
    pub(crate) async fn open(
        &self,
        shared: &Shared,
        model: &ModelConfig,
        request: &Request,
        known: &str,
    ) -> Result<Opened, Error> {
        if let Some(reason) = self.config.missing_key() {
            let name = &self.config.name;
            let message = format!("{reason}; set api_key of [provider.{name}] or its variable");
            return Err(self.peer.error(ErrorKind::NotConfigured, &message));
        }
        let sight = Sight::new(self.config.kind, model);
        let Some(endpoint) = &self.endpoint else {
            return Ok(Opened::Offline(Offline::answer(request, &sight)));
        };
        let id = &model.id;
        let (body, decoder): (_, Box<dyn Decode>) = match self.config.kind {
            Kind::Anthropic => (
                anthropic::body(id, request, &sight),
                Box::<anthropic::Decoder>::default(),
            ),
            Kind::Google => (
                google::body(id, request, &sight),
                Box::<google::Decoder>::default(),
            ),
            Kind::Bedrock => (
                bedrock::body(id, request, &sight),
                Box::<bedrock::Decoder>::default(),
            ),
            Kind::OpenAi | Kind::Azure | Kind::Ollama | Kind::Offline => (
                openai::body(id, request, &sight),
                Box::<openai::Decoder>::default(),
            ),
        };
        let call = self.post(endpoint, &model.id, body)?;
        let response = shared.client.call(self.config.timeout, call).await;
        let response = response.map_err(|failure| self.peer.unanswered(failure))?;
        if !response.status.is_success() {
            let page = response.body.beginning(MAX_ERROR_BYTES);
            let page = tokio::time::timeout(self.config.timeout, page).await;
            let page = page.unwrap_or_default();
            let (status, headers) = (response.status, &response.headers);
            let mut error = self.peer.refused(status, headers, &page, &model.id, known);
            if error.kind == ErrorKind::Invalid && sight.shows_images(request) {
                error.message.push_str(IMAGES_SENT);
            }
            return Err(error);
        }
        let answer = Answer::new(
            response.body,
            !is_json(&response.headers),
            decoder,
            self.config.idle_timeout,
            self.peer.clone(),
        );
        Ok(Opened::Answer(Box::new(answer)))
    }

    /// Opens a connection ahead of a call (MODEL-8), unless the key is missing.
    pub(crate) fn expect(&self, shared: &Shared) {
        if let (Some(endpoint), None) = (&self.endpoint, self.config.missing_key()) {
            shared.client.expect(endpoint.address("/"));
        }
    }

    /// An error of this provider.
    pub(crate) fn error(&self, kind: ErrorKind, message: &str) -> Error {
        self.peer.error(kind, message)
    }

    /// Whether the provider is on this machine and therefore costs nothing.
    pub(crate) fn is_local(&self) -> bool {
        self.endpoint.as_ref().is_none_or(Endpoint::is_loopback)
    }

    fn post(
        &self,
        endpoint: &Endpoint,
        model_id: &str,
        body: Bytes,
    ) -> Result<http::Request<RequestBody>, Error> {
        let target = endpoint.target_of(model_id);
        let mut headers = self.headers.clone();
        if let Some(credentials) = &self.credentials {
            let now = jiff::Timestamp::now();
            for (name, value) in credentials.sign(&endpoint.authority, &target, &body, now) {
                let name = HeaderName::from_static(name);
                let mut value = HeaderValue::try_from(value).map_err(|_| self.bad_key())?;
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        let mut request = http::Request::new(RequestBody::new(body));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = endpoint.address(&target);
        *request.headers_mut() = headers;
        Ok(request)
    }

    fn bad_key(&self) -> Error {
        let error = ConfigError::Key(self.config.name.clone());
        self.peer
            .error(ErrorKind::NotConfigured, &error.to_string())
    }
}

/// The AWS credentials in a key that signs instead of being sent.
fn credentials(config: &ProviderConfig) -> Option<Credentials> {
    let key = config.api_key.as_ref()?;
    (config.kind == Kind::Bedrock)
        .then(|| Credentials::read(key.expose()))
        .flatten()
}

/// Whether the server answers with one document instead of a stream.
fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.trim_start().starts_with("application/json"))
}

fn headers(config: &ProviderConfig, endpoint: &Endpoint) -> Result<HeaderMap, ConfigError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let accept = if config.kind == Kind::Bedrock {
        "application/vnd.amazon.eventstream"
    } else {
        "text/event-stream"
    };
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    let agent = concat!("crabtalk/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    let host = HeaderValue::from_str(&endpoint.authority).expect("parsed as an authority");
    headers.insert(HOST, host);
    let key = config.api_key.as_ref().map_or("", |key| key.expose());
    let is_signed = credentials(config).is_some();
    if !key.is_empty() && !is_signed {
        let (name, value) = match config.kind {
            Kind::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            Kind::Azure => (HeaderName::from_static("api-key"), key.to_owned()),
            Kind::Google => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
            Kind::OpenAi | Kind::Bedrock | Kind::Ollama | Kind::Offline => {
                (AUTHORIZATION, format!("Bearer {key}"))
            }
        };
        let mut value =
            HeaderValue::try_from(value).map_err(|_| ConfigError::Key(config.name.clone()))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    if config.kind == Kind::Anthropic {
        let version = HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert(HeaderName::from_static("anthropic-version"), version);
    }
    for (name, value) in &config.headers {
        let parsed = HeaderName::try_from(name.as_str())
            .ok()
            .zip(HeaderValue::try_from(value).ok());
        let (name, mut value) = parsed.ok_or_else(|| ConfigError::Header {
            provider: config.name.clone(),
            header: name.clone(),
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
