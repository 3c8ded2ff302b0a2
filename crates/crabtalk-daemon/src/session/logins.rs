//! Logins to MCP servers on other machines, as clients begin and end them.
//!
//! Invariant: what comes of a login goes through the browser of whoever began it:
//! to the loopback of that machine, and nowhere else.

use super::Session;
use crate::error::Error;
use crabtalk_proto::*;

impl Session {
    pub(super) async fn begin_mcp_login(&self, request: LoginMcpMsg) -> Result<McpLogin, Error> {
        let LoginMcpMsg { name, redirect } = request;
        if !is_loopback(&redirect) {
            return Err(Error::Invalid(
                "redirect is no address of the loopback: it begins with http://127.0.0.1:PORT/"
                    .into(),
            ));
        }
        let servers = &self.node.mcps.servers;
        self.node.mcps.known().await;
        let settings = servers
            .settings(&name)
            .ok_or_else(|| Error::NotFound(format!("there is no MCP server {name:?}")))?;
        let begun = servers.begin_login(&settings, &redirect).await;
        let address = begun.map_err(|why| Error::Invalid(format!("{name}: {why}")))?;
        Ok(McpLogin { address })
    }

    pub(super) async fn end_mcp_login(&self, request: FinishMcpLoginMsg) -> Result<(), Error> {
        let FinishMcpLoginMsg { name, redirected } = request;
        let servers = &self.node.mcps.servers;
        let finished = servers.finish_login(&name, &redirected).await;
        finished.map_err(|why| Error::Invalid(format!("{name}: {why}")))
    }

    pub(super) async fn forget_mcp_login(
        &self,
        LogoutMcpMsg { name }: LogoutMcpMsg,
    ) -> Result<(), Error> {
        // It becomes part of a file's name.
        if !crabtalk_config::is_name(&name) {
            return Err(Error::Invalid(format!("{name:?} is no server's name")));
        }
        match self.node.mcps.servers.log_out(&name).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::NotFound(format!("not logged in to {name}"))),
            Err(why) => Err(Error::Failed(why)),
        }
    }
}

/// Whether an address leads to a port of the machine where it is opened.
fn is_loopback(address: &str) -> bool {
    let Some(rest) = address.strip_prefix("http://") else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let port = ["127.0.0.1:", "[::1]:", "localhost:"]
        .iter()
        .find_map(|host_name| host.strip_prefix(host_name));
    port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_comes_back_to_the_loopback_alone() {
        for fine in [
            "http://127.0.0.1:4711/callback",
            "http://[::1]:1/",
            "http://localhost:80",
        ] {
            assert!(is_loopback(fine), "{fine}");
        }
        for other in [
            "https://127.0.0.1:4711/",
            "http://127.0.0.1/",
            "http://127.0.0.1:0/",
            "http://127.0.0.1:80@evil.example/",
            "http://evil.example:80/",
            "http://127.0.0.1.evil.example:80/",
            "",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }
}
