//! Requests of the 0.0.20 generation that are gone, and what there is instead.

/// What became of a request by its number in the envelope; `None` for one that
/// never was.
pub(crate) fn replacement(number: u32) -> Option<&'static str> {
    Some(match number {
        12 => {
            "list_provider_presets (removed): set_provider takes a kind (openai, anthropic, google, \
             bedrock, azure, ollama) and needs no preset"
        }
        20 => {
            "install_plugin (removed): import skills with `crabtalk skills import DIR`, and write MCP \
             servers and agents into the configuration"
        }
        21 => {
            "uninstall_plugin (removed): delete the skill's folder, or switch a resource off with \
             set_enabled"
        }
        22 => "list_plugins (removed): list_skills, list_mcps and list_agents say what there is",
        24 => {
            "start_service (removed): services belong to the system's service manager \
             (systemctl --user, launchctl)"
        }
        25 => {
            "stop_service (removed): services belong to the system's service manager \
             (systemctl --user, launchctl)"
        }
        26 => {
            "service_logs (removed): read the service's file in the folder logs of the home, or ask the \
             system's service manager"
        }
        37 => "search_plugins (removed): list_skills says which skills there are",
        _ => return None,
    })
}
