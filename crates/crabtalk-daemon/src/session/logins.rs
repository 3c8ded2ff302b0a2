//! Logs in to remote MCP servers.
//!
//! Invariant: a login redirects the client's browser only to its own machine's loopback.

use super::Session;
use crate::error::Error;
use crabtalk_proto::*;

impl Session {
    pub(super) async fn begin_mcp_login(&self, request: LoginMcpMsg) -> Result<McpLogin, Error> {
        let LoginMcpMsg { name, redirect } = request;
        if !is_loopback(&redirect) {
            return Err(Error::Invalid(
                "redirect is not a loopback address: it has to begin with http://127.0.0.1:PORT/"
                    .into(),
            ));
        }
        let servers = &self.node.mcps.servers;
        self.node.mcps.known().await;
        let settings = servers
            .settings(&name)
            .ok_or_else(|| Error::NotFound(format!("unknown MCP server {name:?}")))?;
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
        // The name becomes part of a file name.
        if !crabtalk_config::is_name(&name) {
            return Err(Error::Invalid(format!("{name:?} is not a server name")));
        }
        match self.node.mcps.servers.log_out(&name).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::NotFound(format!("not logged in to {name}"))),
            Err(why) => Err(Error::Failed(why)),
        }
    }
}

/// Whether an address is a port on the loopback interface.
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
    fn login_redirects_to_loopback_only() {
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
