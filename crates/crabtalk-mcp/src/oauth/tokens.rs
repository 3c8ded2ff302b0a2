//! The tokens of one server, and their renewal.

use super::calls::Calls;
use super::logins::{Logins, ServerLogin, Store, StoredLogin};
use super::{OAuthClient, wanted, words};
use crate::http::Http;
use futures_util::future::{FutureExt, Shared};
use oauth2::TokenResponse;
use rmcp::transport::auth::{AuthError, AuthorizationManager, OAuthClientConfig};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_util::task::TaskTracker;

/// Tokens that expire within this time are renewed before they are sent.
const ALMOST_OVER_SECS: u64 = 30;

/// How long a logout waits for a renewal in flight.
const RENEWAL_WITHIN: Duration = Duration::from_secs(10);

/// A renewal in flight, which results in the new token.
type Renewal = Shared<Pin<Box<dyn Future<Output = Result<String, NoToken>> + Send>>>;

/// The reason why no token can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoToken {
    /// A person has to log in.
    Login,
    /// A failure that may be temporary.
    Broken(String),
}

fn broken(error: &AuthError) -> NoToken {
    NoToken::Broken(format!("its token could not be renewed: {}", words(error)))
}

/// The tokens of one server.
pub(crate) struct Tokens {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) place: Arc<ServerLogin>,
    pub(super) http: Arc<dyn Http>,
    tasks: TaskTracker,
    /// The client credentials, if configured.
    alone: Option<OAuthClient>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The renewal in flight.
    renewal: Option<Renewal>,
    /// The server's last challenge.
    challenge: Option<String>,
    /// Whether a person has to log in.
    is_refused: bool,
}

impl Tokens {
    pub(crate) fn new(
        name: &str,
        url: &str,
        client: &OAuthClient,
        logins: Arc<Logins>,
        http: Arc<dyn Http>,
        tasks: TaskTracker,
    ) -> Self {
        Self {
            name: name.to_owned(),
            url: url.to_owned(),
            place: Arc::new(ServerLogin::new(logins, name, url)),
            http,
            tasks,
            alone: client.is_alone.then(|| client.clone()),
            state: Mutex::default(),
        }
    }

    /// Whether the tokens are for this address and client.
    pub(crate) fn is_for(&self, url: &str, client: &OAuthClient) -> bool {
        let alone = client.is_alone.then_some(client);
        self.url == url && self.alone.as_ref() == alone
    }

    /// Whether client credentials are configured.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.is_some()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The saved login, if it is this client's.
    async fn kept(&self) -> Result<Option<StoredLogin>, NoToken> {
        let kept = self.place.kept().await.map_err(NoToken::Broken)?;
        let is_theirs = |kept: &StoredLogin| {
            let client = self.alone.as_ref();
            client.is_none_or(|client| client.id == kept.credentials.client_id)
        };
        Ok(kept.filter(is_theirs))
    }

    /// The token to send; `None` without a login.
    pub(crate) async fn bearer(self: &Arc<Self>) -> Result<Option<String>, NoToken> {
        let Some(kept) = self.kept().await? else {
            return Ok(None);
        };
        let stored = kept.credentials;
        let Some(token) = stored.token_response else {
            return Ok(None);
        };
        let ends = token
            .expires_in()
            .zip(stored.token_received_at)
            .map(|(lasts, from)| from.saturating_add(lasts.as_secs()));
        let is_old = ends.is_some_and(|ends| ends < now() + ALMOST_OVER_SECS);
        let can_be_renewed = token.refresh_token().is_some() && !self.state().is_refused;
        if is_old && (can_be_renewed || self.is_alone()) {
            return self.renewed().await.map(Some);
        }
        Ok(Some(token.access_token().secret().clone()))
    }

    /// A token to replace a refused one.
    pub(crate) async fn instead_of(self: &Arc<Self>, refused: &str) -> Result<String, NoToken> {
        let kept = self.kept().await?;
        if kept.is_none() && self.is_alone() {
            return self.renewed().await;
        }
        let token = kept.and_then(|kept| kept.credentials.token_response);
        let token = token.ok_or(NoToken::Login)?;
        let current = token.access_token().secret();
        if current != refused {
            // Another request has renewed it.
            return Ok(current.clone());
        }
        if token.refresh_token().is_none() && !self.is_alone() {
            return Err(NoToken::Login);
        }
        self.renewed().await
    }

    /// Renews the token, or waits for the renewal in flight.
    async fn renewed(self: &Arc<Self>) -> Result<String, NoToken> {
        let renewal = {
            let mut state = self.state();
            let under_way = state.renewal.clone().filter(|one| one.peek().is_none());
            let renewal = under_way.unwrap_or_else(|| {
                // In a separate task: dropping a renewal halfway could lose the only
                // token that the server accepts.
                let tokens = Arc::clone(self);
                let task = self.tasks.spawn(async move { tokens.renew().await });
                let done = async move {
                    let done = task.await;
                    let ended = || NoToken::Broken("its token could not be renewed".into());
                    done.unwrap_or_else(|_| Err(ended()))
                };
                done.boxed().shared()
            });
            state.renewal = Some(renewal.clone());
            renewal
        };
        renewal.await
    }

    async fn renew(&self) -> Result<String, NoToken> {
        if let Some(client) = &self.alone {
            return self.fetch(client).await;
        }
        let kept = self.place.kept().await.map_err(NoToken::Broken)?;
        let kept = kept.ok_or(NoToken::Login)?;
        let mut manager = self.manager().await.map_err(|e| broken(&e))?;
        let is_known = manager.initialize_from_store().await;
        if !is_known.map_err(|e| broken(&e))? {
            return Err(NoToken::Login);
        }
        self.place.set_secret(kept.client_secret.clone());
        if !kept.client_secret.is_empty() {
            let client = OAuthClientConfig::new(kept.credentials.client_id, self.url.clone())
                .with_client_secret(kept.client_secret);
            manager.configure_client(client).map_err(|e| broken(&e))?;
        }
        match manager.refresh_token().await {
            Ok(token) => {
                tracing::info!(server = %self.name, "renewed the token of an MCP server");
                Ok(token.access_token().secret().clone())
            }
            Err(AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired) => {
                self.state().is_refused = true;
                Err(NoToken::Login)
            }
            Err(error) => Err(broken(&error)),
        }
    }

    /// Waits for a renewal in flight; later renewals are not saved.
    pub(crate) async fn close(&self) {
        let under_way = self.state().renewal.clone();
        if let Some(renewal) = under_way {
            // A renewal that ends later is not saved.
            let _ = tokio::time::timeout(RENEWAL_WITHIN, renewal).await;
        }
        self.place.closed().await;
    }

    /// The library's client of the authorization server.
    pub(super) async fn manager(&self) -> Result<AuthorizationManager, AuthError> {
        let url = self.url.as_str();
        let calls = Arc::new(Calls::new(url, Arc::clone(&self.http)));
        let mut manager = AuthorizationManager::new_with_oauth_http_client(url, calls).await?;
        manager.set_credential_store(Store(Arc::clone(&self.place)));
        Ok(manager)
    }

    /// Records that the server demands a login.
    pub(crate) fn refuse(&self, challenge: &str) {
        let mut state = self.state();
        state.is_refused = true;
        state.challenge = Some(challenge.to_owned());
    }

    /// Records that the server demands more scopes.
    pub(crate) fn remember(&self, challenge: &str) {
        if !challenge.is_empty() {
            self.state().challenge = Some(challenge.to_owned());
        }
    }

    /// The error for a token with too few scopes.
    pub(crate) fn wants_more(&self) -> String {
        let name = &self.name;
        if self.is_alone() {
            return format!(
                "the token of [mcp.{name}.oauth] does not allow this: give its client more rights \
                 at the server, or set `scopes`"
            );
        }
        format!("its token does not allow this: log in again with `crabtalk mcps login {name}`")
    }

    /// Records that the server accepted the token.
    pub(crate) fn take(&self) {
        self.state().is_refused = false;
    }

    /// The error for a missing or refused login.
    pub(crate) fn wanted(&self) -> String {
        let name = &self.name;
        match self.is_alone() {
            true => format!("it refused the token of the client in [mcp.{name}.oauth]"),
            false => wanted(name),
        }
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.state().is_refused
    }

    /// The server's last challenge.
    pub(super) fn challenge(&self) -> Option<String> {
        self.state().challenge.clone()
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
