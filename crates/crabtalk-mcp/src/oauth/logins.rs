//! Stores logins in a private file per server.
//!
//! Invariant: a login is used only for the address that it was made for.

use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest file of a login.
const MAX_FILE: u64 = 1 << 20;

/// The folder of logins.
#[derive(Debug)]
pub(crate) struct Logins {
    folder: PathBuf,
}

/// One login.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredLogin {
    /// The server's address.
    pub(super) url: String,
    /// The client's secret, if it got one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) client_secret: String,
    pub(super) credentials: StoredCredentials,
}

impl fmt::Debug for StoredLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept(..)")
    }
}

impl Logins {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Reads the login to a server at this address. Blocks.
    fn load(&self, name: &str, url: &str) -> Result<Option<StoredLogin>, String> {
        let path = self.path(name);
        let bytes = match crabtalk_files::read(&path, MAX_FILE) {
            Ok(bytes) => bytes,
            Err(error) if error.is_absent() => return Ok(None),
            Err(error) => return Err(format!("its login {}: {error}", path.display())),
        };
        // The library's error might quote parts of the file.
        let kept: StoredLogin = serde_json::from_slice(&bytes)
            .map_err(|_| format!("cannot read its login {}", path.display()))?;
        Ok((kept.url == url).then_some(kept))
    }

    /// Writes the login. Blocks.
    fn save(&self, name: &str, kept: &StoredLogin) -> Result<(), String> {
        let path = self.path(name);
        let bytes =
            serde_json::to_vec(kept).map_err(|_| "the file cannot be written".to_owned())?;
        let replace = crabtalk_files::Existing::Replace;
        crabtalk_files::write(&path, &bytes, replace)
            .map_err(|error| format!("its login {}: {error}", path.display()))
    }

    /// Deletes a login; returns whether there was one. Blocks.
    fn remove(&self, name: &str) -> Result<bool, String> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(format!("its login {}: {error}", path.display())),
        }
    }

    /// Deletes a login; returns whether there was one.
    pub(crate) async fn forget(self: &Arc<Self>, name: &str) -> Result<bool, String> {
        let (logins, name) = (Arc::clone(self), name.to_owned());
        blocking(move || logins.remove(&name)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err("cannot access the file of a login".into()))
}

/// The login of one server, cached after the first read.
pub(super) struct ServerLogin {
    logins: Arc<Logins>,
    name: String,
    url: String,
    /// The contents of the file, once read.
    known: Mutex<Option<Option<StoredLogin>>>,
    /// The client's secret, saved with the next tokens.
    secret: Mutex<String>,
    /// Locked while the file is written; `true` after a logout.
    closed: Arc<Mutex<bool>>,
}

impl ServerLogin {
    pub(super) fn new(logins: Arc<Logins>, name: &str, url: &str) -> Self {
        Self {
            logins,
            name: name.to_owned(),
            url: url.to_owned(),
            known: Mutex::default(),
            secret: Mutex::default(),
            closed: Arc::default(),
        }
    }

    pub(super) async fn kept(&self) -> Result<Option<StoredLogin>, String> {
        let known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let (logins, name, url) = (
            Arc::clone(&self.logins),
            self.name.clone(),
            self.url.clone(),
        );
        let kept = blocking(move || logins.load(&name, &url)).await?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept.clone());
        Ok(kept)
    }

    pub(super) fn set_secret(&self, secret: String) {
        *self.secret.lock().unwrap_or_else(PoisonError::into_inner) = secret;
    }

    /// Refuses later saves. Blocks during a save.
    fn close(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Calls [`Self::close`] from a task.
    pub(super) async fn closed(self: &Arc<Self>) {
        let place = Arc::clone(self);
        // The closure cannot fail.
        let _ = blocking(move || {
            place.close();
            Ok(())
        })
        .await;
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), String> {
        let secret = self.secret.lock();
        let client_secret = secret.unwrap_or_else(PoisonError::into_inner).clone();
        let kept = StoredLogin {
            url: self.url.clone(),
            client_secret,
            credentials,
        };
        let (logins, name, written) = (Arc::clone(&self.logins), self.name.clone(), kept.clone());
        let closed = Arc::clone(&self.closed);
        blocking(move || {
            // Locked during the write, so that a logout deletes the written file.
            let closed = closed.lock().unwrap_or_else(PoisonError::into_inner);
            match *closed {
                true => Err("the login was deleted while its token was renewed".into()),
                false => logins.save(&name, &written),
            }
        })
        .await?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Some(kept));
        Ok(())
    }

    async fn clear(&self) -> Result<(), String> {
        self.logins.forget(&self.name).await?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(None);
        Ok(())
    }
}

/// The library's port to the store.
pub(super) struct Store(pub(super) Arc<ServerLogin>);

type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'a>>;

impl CredentialStore for Store {
    fn load<'a, 'b>(&'a self) -> Stored<'b, Option<StoredCredentials>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let kept = self
                .0
                .kept()
                .await
                .map_err(AuthError::CredentialStoreError)?;
            Ok(kept.map(|kept| kept.credentials))
        })
    }

    fn save<'a, 'b>(&'a self, credentials: StoredCredentials) -> Stored<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let saved = self.0.save(credentials).await;
            saved.map_err(AuthError::CredentialStoreError)
        })
    }

    fn clear<'a, 'b>(&'a self) -> Stored<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            self.0
                .clear()
                .await
                .map_err(AuthError::CredentialStoreError)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn credentials() -> StoredCredentials {
        let token = json!({"access_token": "s3cret", "token_type": "bearer"});
        StoredCredentials::new(
            "client".into(),
            serde_json::from_value(token).expect("a token"),
            Vec::new(),
            None,
        )
    }

    #[tokio::test]
    async fn login_is_private_and_bound_to_its_address() {
        let folder = tempfile::tempdir().expect("a folder");
        let logins = Arc::new(Logins::new(folder.path().join("oauth")));
        let place = |url: &str| ServerLogin::new(Arc::clone(&logins), "tickets", url);
        let one = place("https://one/mcp");
        assert!(one.kept().await.expect("nothing yet").is_none());
        one.set_secret("client's".into());
        one.save(credentials()).await.expect("saved");
        let again = place("https://one/mcp").kept().await.expect("read");
        let again = again.expect("it is kept");
        assert_eq!(again.client_secret, "client's");
        assert!(!format!("{again:?}").contains("s3cret"));
        assert!(
            place("https://other/mcp")
                .kept()
                .await
                .expect("read")
                .is_none()
        );
        {
            use std::os::unix::fs::PermissionsExt;
            let file = folder.path().join("oauth/tickets.json");
            let mode = std::fs::metadata(file).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(logins.forget("tickets").await, Ok(true));
        assert_eq!(logins.forget("tickets").await, Ok(false));
        // A renewal that ends after the logout is not saved.
        let late = Arc::new(place("https://one/mcp"));
        late.closed().await;
        late.save(credentials()).await.expect_err("it is over");
        assert_eq!(logins.forget("tickets").await, Ok(false));
        std::fs::write(folder.path().join("oauth/tickets.json"), "{s3cret").expect("written");
        let why = place("https://one/mcp")
            .kept()
            .await
            .expect_err("it is broken");
        assert!(
            why.contains("cannot read its login") && !why.contains("s3cret"),
            "{why}"
        );
    }
}
