//! Lists the hosts that agent programs contact on their own, for updates, telemetry and the like.
//!
//! No work needs them: the programs run without. The list is from Codex 0.166, Claude Code 2.1 and
//! Gemini CLI 0.61; a host that is missing is treated as one that the work asked for.

use super::{Adapter, provider};
use crate::net::endpoint::{Endpoint, Host};

/// Domains of one program, each with its subdomains.
fn domains(adapter: Adapter) -> &'static [&'static str] {
    match adapter {
        Adapter::Exec | Adapter::Mcp => &[],
        Adapter::Codex => &[
            "chatgpt.com",
            "openai.com",
            "oaistatic.com",
            "oaiusercontent.com",
            // For plugins and newer versions of itself.
            "github.com",
            "githubusercontent.com",
            "sentry.io",
            "statsigapi.net",
        ],
        Adapter::Claude => &[
            "anthropic.com",
            "claude.ai",
            "claude.com",
            "datadoghq.com",
            "githubusercontent.com",
            "growthbook.io",
            "sentry.io",
            "statsig.com",
            "statsigapi.net",
            "storage.googleapis.com",
        ],
        Adapter::Gemini => &[
            "accounts.google.com",
            "api.github.com",
            "cloudcode-pa.googleapis.com",
            "cloudresourcemanager.googleapis.com",
            "logging.googleapis.com",
            "oauth2.googleapis.com",
            "play.googleapis.com",
            "www.googleapis.com",
        ],
    }
}

/// Whether the program of `adapter` contacts `place` on its own.
pub fn is_background(adapter: Adapter, place: &Endpoint) -> bool {
    // The vendor's models, where the policy configures another provider.
    if provider::default(adapter).is_some_and(|own| own.endpoint == *place) {
        return true;
    }
    let Host::Name(name) = &place.host else {
        return false;
    };
    let name = name.as_str();
    let within = |domain: &&str| {
        let rest = name.strip_suffix(*domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    domains(adapter).iter().any(within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_asks_for_its_makers_places_by_itself_and_for_no_others() {
        let cases = [
            (Adapter::Codex, "ab.chatgpt.com:443", true),
            (Adapter::Codex, "api.openai.com:443", true),
            (Adapter::Codex, "notchatgpt.com:443", false),
            (Adapter::Codex, "chatgpt.com.evil.example:443", false),
            (Adapter::Claude, "api.anthropic.com:443", true),
            (
                Adapter::Claude,
                "http-intake.logs.us5.datadoghq.com:443",
                true,
            ),
            (Adapter::Claude, "chatgpt.com:443", false),
            (Adapter::Gemini, "play.googleapis.com:443", true),
            (Adapter::Gemini, "maps.googleapis.com:443", false),
            (Adapter::Exec, "chatgpt.com:443", false),
            (Adapter::Codex, "127.0.0.1:443", false),
        ];
        for (adapter, place, want) in cases {
            let endpoint = Endpoint::parse(place).unwrap();
            assert_eq!(is_background(adapter, &endpoint), want, "{adapter} {place}");
        }
    }
}
