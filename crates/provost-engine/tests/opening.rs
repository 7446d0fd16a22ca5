//! How a run begins, in a simulated repository.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use provost_core::agent::provider::{BaseUrl, FoundLogins, Login};
use provost_core::agent::{self, Adapter};
use provost_core::code::Code;
use provost_core::contract::typed::Typed;
use provost_core::lease::Owner;
use provost_core::policy::Policy;
use provost_core::run::fact::{Opened, WorkspaceChoice};
use provost_engine::opening::{Request, RequestedAgent, opening};
use provost_engine::ports::PortError;
use provost_engine::sim::{SimOrigin, oid};

fn typed() -> Typed {
    Typed {
        objective: "Fix it".to_owned(),
        allow: vec!["app".to_owned()],
        accept: vec!["true".to_owned()],
        timeout_sec: 60,
        net: vec!["api.example.com:443".parse().unwrap()],
        ..Typed::default()
    }
}

fn request(typed: Typed, agent: RequestedAgent) -> Request {
    Request {
        contract: typed.document("run-1", 1),
        typed: true,
        agent,
        work: None,
        review: None,
        credentials: Vec::new(),
        logins: FoundLogins::default(),
        workspace: None,
        owner: Owner {
            host: "host".to_owned(),
            boot: "boot".to_owned(),
            pid_namespace: "1".to_owned(),
            pid: 1,
            started: 1,
        },
        version: "0".to_owned(),
    }
}

fn origin() -> SimOrigin {
    let mut policy = Policy::default();
    policy.commands = vec![vec!["make".to_owned(), "test".to_owned()]];
    let argv = vec!["my-agent".to_owned(), "--fast".to_owned()];
    let agent = agent::Agent::Command(argv);
    policy.agents.insert("mine".to_owned(), agent);
    policy.workspace = WorkspaceChoice::Overlay;
    SimOrigin {
        policy,
        ..SimOrigin::default()
    }
}

fn mine() -> RequestedAgent {
    RequestedAgent::Named("mine".to_owned())
}

fn open(request: Request) -> Result<Opened, PortError> {
    opening(&origin(), request)
}

#[test]
fn everything_a_run_refers_to_is_pinned() {
    let opened = open(request(typed(), mine())).unwrap();
    assert_eq!(opened.base_commit, oid("base"));
    assert_eq!(opened.base_tree, oid("base tree"));
    assert_eq!(opened.target.as_deref(), Some("refs/heads/main"));
    assert_eq!(opened.agent, ["my-agent", "--fast"]);
    assert!(!opened.agent_typed);
    assert_eq!(opened.commands, [["make", "test"]]);
    assert_eq!(opened.workspace, WorkspaceChoice::Overlay);
}

#[test]
fn the_user_overrides_the_agent_and_the_workspace_of_the_policy() {
    let mut request = request(typed(), RequestedAgent::Typed("other 'a b'".to_owned()));
    request.workspace = Some(WorkspaceChoice::Copy);
    let opened = open(request).unwrap();
    assert_eq!(opened.agent, ["other", "a b"]);
    assert!(opened.agent_typed);
    assert_eq!(opened.workspace, WorkspaceChoice::Copy);
}

#[test]
fn the_reviewer_is_the_one_of_the_person_or_else_of_the_policy() {
    let named = |name: &str| Some(RequestedAgent::Named(name.to_owned()));
    let reviewer = |policy: Option<&str>, asked: Option<RequestedAgent>| {
        let mut origin = origin();
        origin.policy.review = policy.map(str::to_owned);
        let mut request = request(typed(), mine());
        request.review = asked;
        opening(&origin, request).map(|opened| opened.review)
    };
    assert_eq!(reviewer(None, None).unwrap(), None);
    let of_policy = reviewer(Some("mine"), None).unwrap().unwrap();
    assert_eq!((of_policy.name.as_str(), of_policy.typed), ("mine", false));
    assert_eq!(of_policy.argv, ["my-agent", "--fast"]);
    let typed = Some(RequestedAgent::Typed("look 'a b'".to_owned()));
    let typed = reviewer(Some("mine"), typed).unwrap().unwrap();
    assert_eq!((typed.name.as_str(), typed.typed), ("exec", true));
    assert_eq!(typed.argv, ["look", "a b"]);
    let claude = reviewer(None, named("claude")).unwrap().unwrap();
    assert_eq!(claude.credentials.len(), 1, "its own key");
    assert!(claude.argv.iter().any(|word| word.contains("BLOCKED")));
    assert!(!claude.argv.iter().any(|word| word.contains("Edit")));
    let unknown = reviewer(Some("unknown"), None).unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
}

#[test]
fn what_cannot_begin_is_refused_with_what_to_do() {
    let from = |base: &str| Typed {
        base: Some(base.to_owned()),
        ..typed()
    };
    let to = |target: &str| Typed {
        target: Some(target.to_owned()),
        ..typed()
    };
    let secret = |text: &str| {
        let mut request = request(typed(), mine());
        request.credentials = vec![text.parse().unwrap()];
        request
    };
    let command = |text: &str| request(typed(), RequestedAgent::Typed(text.to_owned()));
    let cases = vec![
        (
            "no such base",
            request(from("gone"), mine()),
            Some((Code::NotFound, "commit something first")),
        ),
        (
            "the id of a tag",
            request(from(&oid("tag").to_string()), mine()),
            Some((Code::UsageError, "name the commit")),
        ),
        (
            "the id of the commit",
            request(from(&oid("base").to_string()), mine()),
            None,
        ),
        (
            "no branch",
            request(to("gone"), mine()),
            Some((Code::NotFound, "")),
        ),
        (
            "no such agent",
            request(typed(), RequestedAgent::Named("default".to_owned())),
            Some((Code::NotFound, "give a command")),
        ),
        (
            "half an agent",
            command("a 'b"),
            Some((Code::UsageError, "for a shell, quote it")),
        ),
        (
            "an empty command",
            command(" "),
            Some((Code::UsageError, "")),
        ),
        (
            "a secret for a place of the contract",
            secret("https://api.example.com authorization: $TOKEN"),
            None,
        ),
        (
            "a secret for elsewhere",
            secret("https://elsewhere.example.com authorization: $TOKEN"),
            Some((Code::UsageError, "add it to `x_provost.net`")),
        ),
    ];
    for (name, request, want) in cases {
        check_refusal(name, request, want);
    }
}

/// Opens `request`, which is refused by the code and a hint that begins so, or not at all.
fn check_refusal(name: &str, request: Request, want: Option<(Code, &str)>) {
    match (open(request), want) {
        (Ok(_), None) => {}
        (Err(error), Some((code, hint))) => {
            assert_eq!(error.code, code, "{name}: {error}");
            let said = error.hint.unwrap_or_default();
            assert!(said.starts_with(hint), "{name}: {said}");
            assert_eq!(said.is_empty(), hint.is_empty(), "{name}: {said}");
        }
        (answer, want) => assert_eq!(answer.is_ok(), want.is_none(), "{name}: {answer:?}"),
    }
}

#[test]
fn a_result_without_a_branch_is_refused_before_any_work() {
    let mut origin = origin();
    origin.checked_out = None;
    let error = opening(&origin, request(typed(), mine())).unwrap_err();
    assert_eq!(error.code, Code::UsageError);
}

/// An origin whose policy has an agent with an adapter, at this address.
fn with_model(url: &str, login: Login) -> SimOrigin {
    let mut origin = origin();
    let mut adapted = Adapter::named("codex").and_then(Adapter::plain).unwrap();
    adapted.provider.as_mut().unwrap().base_url = BaseUrl::parse(url).unwrap();
    adapted.provider.as_mut().unwrap().login = login;
    let agent = agent::Agent::Adapted(adapted);
    origin.policy.agents.insert("model".to_owned(), agent);
    origin
}

#[test]
fn a_known_program_is_an_agent_without_a_policy() {
    let named = |name: &str| request(typed(), RequestedAgent::Named(name.to_owned()));
    for (name, variable) in [("codex", "OPENAI_API_KEY"), ("claude", "ANTHROPIC_API_KEY")] {
        let opened = open(named(name)).unwrap();
        assert_eq!(opened.agent[0], name);
        assert!(opened.adapted.is_some() && !opened.agent_typed);
        let variables: Vec<_> = opened
            .credentials
            .iter()
            .map(|it| it.source.variable().unwrap())
            .collect();
        assert_eq!(variables, [variable]);
    }
    let mut request = named("codex");
    let own = "https://api.openai.com Authorization: Bearer $OTHER";
    request.contract.x_provost.as_mut().unwrap().net = vec!["api.openai.com:443".to_owned()];
    request.credentials = vec![own.parse().unwrap()];
    let opened = open(request).unwrap();
    assert_eq!(opened.credentials.len(), 1, "the person's own key counts");
    assert_eq!(open(named("exec")).unwrap_err().code, Code::NotFound);
}

#[test]
fn a_known_program_uses_the_login_that_its_user_has() {
    for (name, login, want) in [
        (
            "claude",
            Login::Token,
            "https://api.anthropic.com:443 Authorization: Bearer $CLAUDE_CODE_OAUTH_TOKEN",
        ),
        (
            "claude",
            Login::File,
            "https://api.anthropic.com:443 Authorization: Bearer @claude",
        ),
        (
            "codex",
            Login::File,
            "https://chatgpt.com:443 Authorization: Bearer @codex",
        ),
        (
            "codex",
            Login::FileKey,
            "https://api.openai.com:443 Authorization: Bearer @codex",
        ),
    ] {
        let mut request = request(typed(), RequestedAgent::Named(name.to_owned()));
        request.logins = FoundLogins(vec![(Adapter::named(name).unwrap(), login)]);
        let opened = open(request).unwrap();
        let credentials: Vec<_> = opened.credentials.iter().map(ToString::to_string).collect();
        assert_eq!(credentials, [want]);
        assert_eq!(opened.adapted.unwrap().login(), login);
    }
}

#[test]
fn no_policy_sends_a_key_to_a_place_that_was_not_named() {
    let key = "https://models.example.com Authorization: Bearer $OPENAI_API_KEY";
    let wants = [
        // Endpoint of the model, login of the agent, grants, credentials, and what is missing.
        (
            Login::Brokered,
            None,
            None,
            Some("give it the credential 'https://models"),
        ),
        (
            Login::Brokered,
            Some("models.example.com:443"),
            None,
            Some("give it the credential"),
        ),
        (
            Login::Brokered,
            Some("models.example.com:443"),
            Some(key),
            None,
        ),
        (
            Login::None,
            None,
            None,
            Some("if you trust that place, grant it"),
        ),
        (Login::None, Some("models.example.com:443"), None, None),
        (
            Login::None,
            Some("models.example.com:443"),
            Some(key),
            Some("no login"),
        ),
    ];
    for (login, net, credential, want) in wants {
        let origin = with_model("https://models.example.com/v1", login);
        let mut request = request(typed(), RequestedAgent::Named("model".to_owned()));
        let net = net.into_iter().map(str::to_owned).collect();
        request.contract.x_provost.as_mut().unwrap().net = net;
        request.credentials = credential.iter().map(|it| it.parse().unwrap()).collect();
        let refusal = opening(&origin, request).err();
        assert_eq!(refusal.is_some(), want.is_some(), "{login:?} {refusal:?}");
        let refused = refusal.map(|it| (it.code, it.reason.clone()));
        if let (Some((code, reason)), Some(want)) = (refused, want) {
            assert_eq!(code, Code::UsageError);
            assert!(reason.contains(want), "{reason}");
        }
    }
}
