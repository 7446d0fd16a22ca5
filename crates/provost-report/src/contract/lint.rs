//! Advice about a contract that breaks no rule.
//!
//! Advice decides nothing: a contract that only deserves advice can be run.

use provost_core::contract::check;
use provost_core::contract::document::{Document, Network};
use provost_core::gate::command;
use provost_core::schema::validate::Misfit;

/// Programs whose success says nothing about the work.
const IDLE: &[&str] = &[
    "true", ":", "echo", "printf", "ls", "cat", "pwd", "date", "sleep",
];

/// Programs that read files and run no test.
const LOOKING: &[&str] = &["test", "grep", "diff", "cmp", "find", "stat"];

/// More network endpoints than a task usually needs.
const MANY_PLACES: usize = 5;

/// Longer than this an agent is usually stuck, in seconds.
const LONG: u64 = 2 * 3600;

/// The fields of a contract in the order of reading, each with a short description.
pub const FIELDS: &[(&str, &str)] = &[
    (
        "task_id",
        "Names the task: 8 to 128 letters, digits, `.`, `_`, `-`.",
    ),
    (
        "task_type",
        "What kind of work it is; nothing follows from it.",
    ),
    (
        "inputs",
        "`spec` is the instruction. The artifact is the schema of the agent's result.",
    ),
    (
        "allowed_paths",
        "What the agent may change; each entry covers everything below it.",
    ),
    (
        "acceptance_tests",
        "What decides about the result; never given to a shell.",
    ),
    (
        "x_provost",
        "What is forbidden, permitted, granted and limited beside that.",
    ),
    (
        "tool_permissions",
        "`network: allow` needs the places in `x_provost.net`.",
    ),
    ("timeout_retry", "When the agent, or one command, is ended."),
    (
        "rollback",
        "`baseline_ref` is the revision that the work starts from.",
    ),
    (
        "required_outputs",
        "`json` or `report`: the agent has to leave a result.",
    ),
    (
        "forbidden_actions",
        "In words, for the agent; the sandbox and the gates decide.",
    ),
    ("owner_agent", "Who asked."),
    ("assigned_agent", "Who works."),
    ("mcp_tool_set", "Tools that the agent is given."),
    ("evidence_links", "Where more evidence is; carried."),
    ("log_refs", "Where the author expects logs; carried."),
];

pub fn lint(document: &Document) -> Vec<Misfit> {
    let mut advice = check::advice(document);
    let mut say = |path: String, problem: &str| {
        advice.push(Misfit::new(path, problem));
    };
    commands(document, &mut say);
    network(document, &mut say);
    limits(document, &mut say);
    permissions(document, &mut say);
    advice
}

fn commands(document: &Document, say: &mut impl FnMut(String, &str)) {
    let tests = &document.acceptance_tests;
    let mut looking = true;
    for (at, test) in tests.iter().enumerate() {
        let argv = command::split(&test.cmd).unwrap_or_default();
        let program = argv.first().map(String::as_str).unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or(program);
        if IDLE.contains(&program) {
            let problem = "passes whatever the agent did; name a command that tests the work";
            say(format!("/acceptance_tests/{at}/cmd"), problem);
        } else if !LOOKING.contains(&program) {
            looking = false;
        }
    }
    if looking {
        let problem = "holds no test: its commands only look at files";
        say("/acceptance_tests".to_owned(), problem);
    }
    if tests.iter().any(|test| !test.must_pass) {
        let at = tests.iter().position(|test| !test.must_pass);
        let place = format!("/acceptance_tests/{}/must_pass", at.unwrap_or_default());
        say(place, "is false, so this command decides nothing");
    }
}

fn network(document: &Document, say: &mut impl FnMut(String, &str)) {
    let extension = document.x_provost.as_ref();
    let places = extension.map_or(&[][..], |extension| extension.net.as_slice());
    if places.len() > MANY_PLACES {
        let problem = "names many places; what an agent can reach it can also send to";
        say("/x_provost/net".to_owned(), problem);
    }
    if document.tool_permissions.network == Network::Allow {
        for (at, place) in places.iter().enumerate() {
            if place.ends_with(":80") {
                let problem =
                    "is not encrypted; every machine on the way can read and change the traffic";
                say(format!("/x_provost/net/{at}"), problem);
            }
        }
    }
}

fn limits(document: &Document, say: &mut impl FnMut(String, &str)) {
    let extension = document.x_provost.as_ref();
    let asked = extension.and_then(|extension| extension.limits);
    if asked.is_none_or(|asked| asked.is_empty()) {
        let problem = "names no limits, so the usual ones hold: 8 GiB of memory, 4096 processes, \
                       20 GiB of disk, 10 minutes without progress";
        say("/x_provost/limits".to_owned(), problem);
    }
    if document.timeout_retry.timeout_sec > LONG {
        let problem = "is more than two hours";
        say("/timeout_retry/timeout_sec".to_owned(), problem);
    }
}

fn permissions(document: &Document, say: &mut impl FnMut(String, &str)) {
    let extension = document.x_provost.as_ref();
    let Some(permit) = extension.and_then(|extension| extension.permit.as_ref()) else {
        return;
    };
    if permit.fewer_tests {
        let problem = "lets an agent pass by removing tests";
        say("/x_provost/permit/fewer_tests".to_owned(), problem);
    }
    let kinds = [
        ("oracle", &permit.oracle, "decide what passing means"),
        ("governing", &permit.governing, "instruct agents"),
    ];
    for (kind, entries, what) in kinds {
        for (at, entry) in entries.iter().enumerate() {
            if !entry.rsplit('/').next().unwrap_or(entry).contains('.') {
                let problem = format!("may be a directory: all files in it that {what} may change");
                say(format!("/x_provost/permit/{kind}/{at}"), &problem);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_core::contract::document::Permissions;
    use provost_core::contract::limits::Asked;
    use provost_core::contract::typed::Typed;

    fn typed() -> Typed {
        Typed {
            objective: "Fix it".to_owned(),
            allow: vec!["src/greet.py".to_owned()],
            accept: vec!["pytest -q".to_owned()],
            timeout_sec: 600,
            limits: Asked {
                memory_bytes: Some(1 << 30),
                ..Asked::default()
            },
            ..Typed::default()
        }
    }

    fn places(typed: Typed) -> Vec<String> {
        let advice = lint(&typed.document("run-1", 0));
        advice.into_iter().map(|one| one.path).collect()
    }

    #[test]
    fn a_narrow_contract_deserves_no_advice_and_every_width_is_named() {
        assert_eq!(places(typed()), [""; 0]);
        let of = |change: fn(&mut Typed)| {
            let mut typed = typed();
            change(&mut typed);
            places(typed)
        };
        let cases: [(Vec<String>, &str); 8] = [
            (
                of(|it| it.allow = vec!["src".to_owned()]),
                "/allowed_paths/0",
            ),
            (
                of(|it| it.accept.push("true".to_owned())),
                "/acceptance_tests/1/cmd",
            ),
            (
                of(|it| it.accept = vec!["grep -q x src/greet.py".to_owned()]),
                "/acceptance_tests",
            ),
            (of(|it| it.limits = Asked::default()), "/x_provost/limits"),
            (
                of(|it| it.timeout_sec = 10_000),
                "/timeout_retry/timeout_sec",
            ),
            (
                of(|it| it.net = vec!["a.example:80".parse().unwrap()]),
                "/x_provost/net/0",
            ),
            (
                of(|it| it.permit.fewer_tests = true),
                "/x_provost/permit/fewer_tests",
            ),
            (
                of(|it| {
                    it.permit = Permissions {
                        oracle: vec!["ci".to_owned(), "tox.ini".to_owned()],
                        ..Permissions::default()
                    };
                }),
                "/x_provost/permit/oracle/0",
            ),
        ];
        for (found, want) in cases {
            assert_eq!(found, [want]);
        }
    }
}
