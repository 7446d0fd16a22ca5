//! `provost agent test NAME --login`: one small request, to see whether the login works.

use std::path::Path;

use provost_core::agent::launch::Answer;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_engine::opening::{OwnLogins, RequestedAgent, reading_agent};
use provost_host::login::{self, LoginReport, LoginTrial};
use provost_host::{agent, machine};
use serde::Serialize;

use super::trial::Test;
use super::{policy, version};
use crate::answer::{Answered, Failure, Outcome};
use crate::places::Places;
use crate::show::{Reader, one_line, print_message};
use crate::user_consent::{self, Typed};

/// What one request with the login of an agent showed.
#[derive(Serialize)]
struct LoginAnswer {
    agent: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<LoginReport>,
    #[serde(flatten)]
    trial: LoginTrial,
}

pub(super) fn run(test: &Test, reader: Reader) -> Outcome {
    let places = test.net.places();
    let granted: Vec<String> = places.iter().map(ToString::to_string).collect();
    let own = OwnLogins {
        typed: test.net.credentials(),
        found: &login::found(),
    };
    let named = RequestedAgent::Named(test.name.clone());
    let asked = reading_agent(&named, &policy()?, own, &granted, Answer::Free)?;
    let Some(adapted) = &asked.adapted else {
        let reason = format!("the agent `{}` is a command, without a login", test.name);
        return Err(Failure::new(Code::UsageError, reason));
    };
    if let Ok(place) = Places::around(Path::new(".")) {
        let typed = Typed {
            agent: Some(&test.name),
            review: None,
            places: &places,
            credentials: test.net.credentials(),
        };
        user_consent::to_plan(&place, &asked, &typed)?;
    }
    machine::outlet(&asked.credentials)?;
    let Some(installed) = agent::find(adapted)? else {
        let reason = format!("the agent `{}` is a server, without a login", test.name);
        return Err(Failure::new(Code::UsageError, reason));
    };
    if reader == Reader::Person {
        print_message(&format!("asking the model of {} for one word", test.name));
    }
    let answer = LoginAnswer {
        agent: test.name.clone(),
        version: version(&installed, adapted),
        login: LoginReport::of(adapted),
        trial: login::try_login(&installed, adapted, &asked.credentials)?,
    };
    Ok(answer.into())
}

impl Answered for LoginAnswer {
    fn text(&self) -> String {
        let Self { agent, version, .. } = self;
        let (agent, version) = (one_line(agent), one_line(version));
        let login = self.login.as_ref();
        let login = login.map_or("no login".to_owned(), LoginReport::text);
        let login = one_line(&login);
        let LoginTrial {
            works,
            usage,
            code,
            reason,
            ..
        } = &self.trial;
        if *works {
            let tokens = usage.tokens();
            return format!("{agent} works: {version}, {login}; {tokens} tokens\n");
        }
        let code = code.unwrap_or(Code::AgentFailed);
        let reason = one_line(reason.as_deref().unwrap_or_default());
        format!("{agent} does not work: {version}, {login}\n{code}: {reason}\n")
    }

    fn exit(&self) -> Exit {
        if self.trial.works {
            Exit::Yes
        } else {
            Exit::No
        }
    }
}
