//! Which model, which tools and which reach of a request are granted.

use provost_core::agent::{Adapted, ModelGrants};
use provost_core::children::SERVER;

use super::request::ModelRequest;
use super::table::table;

/// The word in a list of tools that stands for all tools of the program that are known.
const KNOWN: &str = "known";

/// What an agent may ask of models.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Grants {
    granted: ModelGrants,
    /// The tools of the program, where the word `known`, or no list at all, grants them.
    known: Vec<String>,
    /// The beginnings of the names of tools of granted servers.
    servers: Vec<String>,
    /// The names of the tools of the broker of children.
    broker: Vec<String>,
    /// Whether tokens or money are limited.
    pub(in super::super) limited: bool,
    /// Whether money is.
    pub(in super::super) priced: bool,
}

/// What of a request is not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum RuleRefusal {
    #[error(
        "the model `{0}` is not granted; `models = [\"{0}\"]` of the agent in provost.toml grants it"
    )]
    Model(String),
    #[error(
        "the tool `{name}` is not granted; `model_tools = [{listed}\"{name}\"]` of the agent in \
         provost.toml grants it"
    )]
    Tool {
        name: String,
        /// What the line has to list beside it.
        listed: String,
    },
    #[error(
        "`{0}` reaches outside of the sandbox; `outward = [\"{0}\"]` of the agent in provost.toml \
         grants it"
    )]
    Outward(String),
    #[error("`{0}` cannot be counted, and what the agent may spend is limited")]
    Uncounted(String),
    #[error(
        "`{0}` has other prices than those that are known, and what the agent may spend is limited \
         in money; limit it by `max_tokens` alone, or leave the field out"
    )]
    OtherPrice(String),
}

impl Grants {
    pub(in super::super) fn of(agent: &Adapted) -> Self {
        let granted = ModelGrants::clone(&agent.grants);
        let tools = granted.tools.as_ref();
        let wants_known = tools.is_none_or(|tools| tools.iter().any(|tool| tool == KNOWN));
        let known = table().tools(agent.adapter.name());
        let forms = |server: &str| {
            [
                format!("mcp__{server}__"),
                format!("mcp__{server}."),
                format!("mcp_{server}_"),
            ]
        };
        let broker = |tool: &String| forms(SERVER).map(|form| form + tool);
        Self {
            known: if wants_known {
                known.to_vec()
            } else {
                Vec::new()
            },
            servers: agent.tools.keys().flat_map(|name| forms(name)).collect(),
            broker: agent.broker.iter().flat_map(broker).collect(),
            limited: agent.budget.tokens.is_some() || agent.budget.micro_usd.is_some(),
            priced: agent.budget.micro_usd.is_some(),
            granted,
        }
    }

    /// Whether traffic that cannot be read would pass a limit or a list.
    pub(in super::super) fn is_bound(&self) -> bool {
        self.limited || self.granted.models.is_some() || self.granted.tools.is_some()
    }

    /// The first thing of `request` that is not granted. Names are compared byte by byte.
    ///
    /// Without a list, the tools that are known of the program are granted where `is_own`, at its
    /// own model; at other places that the user granted, all are.
    pub(in super::super) fn refusal(
        &self,
        request: &ModelRequest,
        is_own: bool,
    ) -> Option<RuleRefusal> {
        let listed = |list: &Vec<String>, name: &str| list.iter().any(|it| it == name);
        let models = self.granted.models.as_ref();
        if models.is_some_and(|models| !listed(models, &request.model)) {
            return Some(RuleRefusal::Model(shown(&request.model)));
        }
        for name in &request.outward {
            let stateful = matches!(name.as_str(), "previous_response_id" | "conversation");
            if stateful && !self.limited {
                continue;
            }
            if stateful {
                return Some(RuleRefusal::Uncounted(shown(name)));
            }
            if !listed(&self.granted.outward, name) {
                return Some(RuleRefusal::Outward(shown(name)));
            }
        }
        if let Some(other) = request.other_price.as_ref().filter(|_| self.priced) {
            return Some(RuleRefusal::OtherPrice(shown(other)));
        }
        let tools = self.granted.tools.as_ref();
        // A program whose tools are in no table has only what its policy lists.
        if tools.is_none() && (!is_own || self.known.is_empty()) {
            return None;
        }
        let granted = |name: &&String| {
            let of_server = self.servers.iter().any(|server| name.starts_with(server));
            let outward = request.outward.contains(*name);
            let by_list = tools.is_some_and(|tools| listed(tools, name));
            of_server
                || outward
                || listed(&self.broker, name)
                || by_list
                || listed(&self.known, name)
        };
        let unknown = request.tools.iter().find(|name| !granted(name))?;
        let before = tools.map_or_else(|| vec![KNOWN.to_owned()], Clone::clone);
        let before = before.iter().map(|tool| format!("\"{}\", ", shown(tool)));
        Some(RuleRefusal::Tool {
            name: shown(unknown),
            listed: before.collect(),
        })
    }
}

/// A name for a message: characters that look like others are shown by their numbers.
fn shown(name: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_graphic() {
            letter.to_string()
        } else {
            letter.escape_unicode().to_string()
        }
    };
    name.chars().take(100).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use provost_core::agent::Adapter;
    use provost_core::net::model_api::ModelApi;

    use super::super::request::read;
    use super::*;

    fn grants(set: impl FnOnce(&mut Adapted)) -> Grants {
        let mut agent = Adapter::named("claude").and_then(Adapter::plain).unwrap();
        set(&mut agent);
        Grants::of(&agent)
    }

    fn refused(grants: &Grants, fields: &str) -> Option<String> {
        let body = format!("{{\"model\":\"m\"{fields}}}");
        let request = read(ModelApi::Messages, "/v1/messages", body.as_bytes()).unwrap();
        let refusal = grants.refusal(&request, true);
        refusal.map(|refusal| refusal.to_string())
    }

    #[test]
    fn a_model_or_a_tool_that_is_not_listed_is_refused_with_the_line_that_grants_it() {
        let open = grants(|_| {});
        assert!(!open.is_bound());
        assert_eq!(refused(&open, r#","tools":[{"name":"Bash"}]"#), None);
        let reason = refused(&open, r#","tools":[{"name":"Bash"},{"name":"Agent"}]"#).unwrap();
        let line = "`model_tools = [\"known\", \"Agent\"]`";
        assert!(reason.contains(line), "{reason}");
        let elsewhere = br#"{"model":"m","tools":[{"name":"Agent"}]}"#;
        let elsewhere = read(ModelApi::Messages, "/v1/messages", elsewhere).unwrap();
        assert_eq!(open.refusal(&elsewhere, false), None);
        let bound = grants(|agent| {
            agent.grants.models = Some(vec!["m".to_owned()]);
            agent.grants.tools = Some(vec!["known".to_owned(), "Mine".to_owned()]);
            agent.tools.insert("docs".to_owned(), Vec::new());
        });
        assert!(bound.is_bound());
        let fine = r#","tools":[{"name":"Bash"},{"name":"Mine"},{"name":"mcp__docs__find"}]"#;
        assert_eq!(refused(&bound, fine), None);
        for (tool, shown) in [
            ("Agent", "Agent"),
            ("bash", "bash"),
            ("mcp__other__x", "mcp__other__x"),
            // The first letter is Cyrillic.
            ("\u{412}ash", "\\u{412}ash"),
        ] {
            let reason = refused(&bound, &format!(r#","tools":[{{"name":"{tool}"}}]"#)).unwrap();
            let line = format!("`model_tools = [\"known\", \"Mine\", \"{shown}\"]`");
            assert!(reason.contains(&line), "{reason}");
        }
        let other = grants(|agent| agent.grants.models = Some(vec!["n".to_owned()]));
        let reason = refused(&other, "").unwrap();
        assert!(reason.contains("`models = [\"m\"]`"), "{reason}");
    }

    #[test]
    fn of_the_broker_exactly_the_tools_of_the_agent_are_granted() {
        let agent = grants(|agent| agent.broker = vec!["child_start".to_owned()]);
        for name in [
            "mcp__provost__child_start",
            "mcp__provost.child_start",
            "mcp_provost_child_start",
        ] {
            let tools = format!(r#","tools":[{{"name":"{name}"}}]"#);
            assert_eq!(refused(&agent, &tools), None, "{name}");
            assert!(refused(&grants(|_| {}), &tools).is_some(), "{name}");
        }
        for name in [
            "mcp__provost__child_wait",
            "mcp__provost__child_start_",
            "mcp__provost__ask_parent",
            "child_start",
        ] {
            let tools = format!(r#","tools":[{{"name":"{name}"}}]"#);
            assert!(refused(&agent, &tools).is_some(), "{name}");
        }
    }

    #[test]
    fn what_reaches_outside_is_refused_unless_it_is_granted() {
        let plain = grants(|_| {});
        let granted = grants(|agent| agent.grants.outward = vec!["web_search".to_owned()]);
        let search = r#","tools":[{"type":"web_search_20250305","name":"web_search"}]"#;
        assert!(refused(&plain, search).unwrap().contains("outward = "));
        assert_eq!(refused(&granted, search), None);
        let servers = r#","mcp_servers":[{"type":"url"}]"#;
        assert!(refused(&granted, servers).unwrap().contains("mcp_servers"));
        assert_eq!(
            refused(&plain, r#","mcp_servers":[],"container":null"#),
            None
        );
    }

    #[test]
    fn what_a_provider_remembers_is_refused_where_spending_is_limited() {
        let body = br#"{"model":"m","previous_response_id":"r"}"#;
        let request = read(ModelApi::Responses, "/v1/responses", body).unwrap();
        assert_eq!(grants(|_| {}).refusal(&request, true), None);
        let limited = grants(|agent| agent.budget.tokens = Some(9));
        let want = RuleRefusal::Uncounted("previous_response_id".to_owned());
        assert_eq!(limited.refusal(&request, true), Some(want));
    }

    #[test]
    fn what_has_other_prices_is_refused_where_money_is_limited() {
        let priced = grants(|agent| agent.budget.micro_usd = Some(9));
        let plain = grants(|agent| agent.budget.tokens = Some(9));
        for field in [
            r#","service_tier":"priority""#,
            r#","speed":"fast""#,
            r#","inference_geo":"us""#,
        ] {
            assert_eq!(refused(&plain, field), None);
            assert!(refused(&priced, field).unwrap().contains("other prices"));
        }
        for field in [
            r#","service_tier":"standard_only""#,
            r#","speed":"standard","inference_geo":null"#,
        ] {
            assert_eq!(refused(&priced, field), None);
        }
    }
}
