//! Logins with a client's secret and without a person (client credentials).
//!
//! Invariant: the secret is sent over TLS or to this machine, to the address that the
//! server names; redirects are not followed.

use super::tokens::NoToken;
use super::{OAuthClient, Tokens, check_protected, words};
use oauth2::TokenResponse;
use rmcp::transport::auth::{AuthError, ClientCredentialsConfig};

fn broken(why: impl std::fmt::Display) -> NoToken {
    NoToken::Broken(format!(
        "the client in its configuration could not log in: {why}"
    ))
}

impl Tokens {
    /// Requests a token as the server's last refusal demands.
    pub(super) async fn fetch(&self, client: &OAuthClient) -> Result<String, NoToken> {
        let failed = |error: AuthError| broken(words(&error));
        let mut manager = self.manager().await.map_err(failed)?;
        let challenge = self.challenge().filter(|said| !said.is_empty());
        let found = manager
            .resolve_metadata_from_challenge(challenge.as_deref())
            .await
            .map_err(failed)?
            .metadata;
        check_protected(&found.token_endpoint).map_err(broken)?;
        manager.set_metadata(found);
        let scopes = match client.scopes.is_empty() {
            true => manager.select_initial_scopes(&[]).await,
            false => client.scopes.clone(),
        };
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: client.id.clone(),
            client_secret: client.secret.0.clone(),
            scopes,
            resource: Some(self.url.clone()),
        };
        manager
            .validate_client_credentials_metadata(&config)
            .map_err(failed)?;
        manager
            .configure_client_credentials(&config)
            .map_err(failed)?;
        self.place.set_secret(client.secret.0.clone());
        let token = manager.exchange_client_credentials(&config).await;
        let token = token.map_err(failed)?;
        tracing::info!(server = %self.name, "logged in to an MCP server with client credentials");
        Ok(token.access_token().secret().clone())
    }
}
