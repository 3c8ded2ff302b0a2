//! What is kept of logins: a file for each server, for its owner alone.
//!
//! Invariant: what was kept for one address is nothing to another one.

use super::LoggedOut;
use super::revoke::Revocation;
use crate::http::Http;
use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest file of a login; tokens have some kilobytes.
const MAX_FILE: u64 = 1 << 20;

/// The folder of logins.
#[derive(Debug)]
pub(crate) struct Logins {
    folder: PathBuf,
}

/// One login.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The server's address.
    pub(super) url: String,
    /// The client's secret, where it was given one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) client_secret: String,
    /// Where the tokens can be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation: Option<Revocation>,
    pub(super) credentials: StoredCredentials,
}

impl fmt::Debug for Kept {
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

    /// What is kept for a server, wherever it was. Blocks.
    fn read(&self, name: &str) -> Result<Option<Kept>, String> {
        let path = self.path(name);
        let bytes = match crabtalk_files::read(&path, MAX_FILE) {
            Ok(bytes) => bytes,
            Err(error) if error.is_absent() => return Ok(None),
            Err(error) => return Err(format!("its login {}: {error}", path.display())),
        };
        // The library's words on a broken file might show what is in it.
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|_| format!("its login {} cannot be read", path.display()))
    }

    /// What is kept for a server at this address. Blocks.
    fn load(&self, name: &str, url: &str) -> Result<Option<Kept>, String> {
        let kept = self.read(name)?;
        Ok(kept.filter(|kept| kept.url == url))
    }

    /// Blocks.
    fn save(&self, name: &str, kept: &Kept) -> Result<(), String> {
        let path = self.path(name);
        let bytes = serde_json::to_vec(kept).map_err(|_| "it cannot be written".to_owned())?;
        let replace = crabtalk_files::Existing::Replace;
        crabtalk_files::write(&path, &bytes, replace)
            .map_err(|error| format!("its login {}: {error}", path.display()))
    }

    /// Forgets a login; whether there was one. Blocks.
    fn remove(&self, name: &str) -> Result<bool, String> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(format!("its login {}: {error}", path.display())),
        }
    }

    /// Forgets a login, and takes its tokens back where they were given.
    ///
    /// # Errors
    /// Why it stays.
    pub(crate) async fn end(
        self: &Arc<Self>,
        name: &str,
        http: Arc<dyn Http>,
    ) -> Result<LoggedOut, String> {
        let (logins, named) = (Arc::clone(self), name.to_owned());
        // What cannot be read is forgotten all the same.
        let read = blocking(move || logins.read(&named)).await;
        if !self.forget(name).await? {
            return Ok(LoggedOut::Nobody);
        }
        let Ok(Some(kept)) = read else {
            let why = "its file could not be read, so that nothing was taken back there".into();
            return Ok(LoggedOut::HereAlone { why });
        };
        let known = match &kept.revocation {
            Some(known) => Ok(Some(known.clone())),
            None => {
                let issuer = kept.credentials.issuer.as_deref();
                Revocation::look_up(&kept.url, issuer, Arc::clone(&http)).await
            }
        };
        let revocation = match known {
            Ok(Some(revocation)) => revocation,
            Ok(None) => return Ok(LoggedOut::Done),
            Err(why) => {
                let why = format!("whether its tokens can be taken back is not known: {why}");
                return Ok(LoggedOut::HereAlone { why });
            }
        };
        let taken = revocation
            .take_back(&kept.credentials, &kept.client_secret, http)
            .await;
        Ok(taken.map_or_else(|why| LoggedOut::HereAlone { why }, |()| LoggedOut::Done))
    }

    /// The same from a task.
    async fn forget(self: &Arc<Self>, name: &str) -> Result<bool, String> {
        let (logins, name) = (Arc::clone(self), name.to_owned());
        blocking(move || logins.remove(&name)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err("the login could not be looked at".into()))
}

/// The login of one server. Read once, written through.
pub(super) struct Place {
    logins: Arc<Logins>,
    name: String,
    url: String,
    /// What the file says, once it was read.
    known: Mutex<Option<Option<Kept>>>,
    /// What is saved next beside the tokens.
    beside: Mutex<Beside>,
    /// Held while the file is written; `true` once nothing may be written any more.
    closed: Arc<Mutex<bool>>,
}

/// What is kept beside the tokens.
#[derive(Clone, Default)]
pub(super) struct Beside {
    pub(super) client_secret: String,
    pub(super) revocation: Option<Revocation>,
}

impl Place {
    pub(super) fn new(logins: Arc<Logins>, name: &str, url: &str) -> Self {
        Self {
            logins,
            name: name.to_owned(),
            url: url.to_owned(),
            known: Mutex::default(),
            beside: Mutex::default(),
            closed: Arc::default(),
        }
    }

    pub(super) async fn kept(&self) -> Result<Option<Kept>, String> {
        // Whole after each line, here and below.
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

    pub(super) fn set_beside(&self, beside: Beside) {
        *self.beside.lock().unwrap_or_else(PoisonError::into_inner) = beside;
    }

    /// Lets nothing be kept any more. Blocks while something is.
    fn close(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// The same from a task.
    pub(super) async fn closed(self: &Arc<Self>) {
        let place = Arc::clone(self);
        // It cannot fail.
        let _ = blocking(move || {
            place.close();
            Ok(())
        })
        .await;
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), String> {
        let Beside {
            client_secret,
            revocation,
        } = self
            .beside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let kept = Kept {
            url: self.url.clone(),
            client_secret,
            revocation,
            credentials,
        };
        let (logins, name, written) = (Arc::clone(&self.logins), self.name.clone(), kept.clone());
        let closed = Arc::clone(&self.closed);
        blocking(move || {
            // Held over the write, so that a logout finds the file whole or finds none.
            let closed = closed.lock().unwrap_or_else(PoisonError::into_inner);
            match *closed {
                true => Err("somebody has logged out meanwhile".into()),
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

/// As the library stores.
pub(super) struct Store(pub(super) Arc<Place>);

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
    async fn a_login_is_for_one_address_and_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let logins = Arc::new(Logins::new(folder.path().join("oauth")));
        let place = |url: &str| Place::new(Arc::clone(&logins), "tickets", url);
        let one = place("https://one/mcp");
        assert!(one.kept().await.expect("nothing yet").is_none());
        one.set_beside(Beside {
            client_secret: "client's".into(),
            revocation: None,
        });
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
        // A renewal that ends after the logout brings nothing back.
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
            why.contains("cannot be read") && !why.contains("s3cret"),
            "{why}"
        );
    }
}
