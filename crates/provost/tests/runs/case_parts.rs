//! Parts of cases: what they may share, what they may test, what is reused, and what lands.

#![expect(clippy::expect_used, reason = "what goes wrong here is a failed test")]

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Outcome, Stage};

/// A part as a planner writes it.
fn part(id: &str, allow: &[&str], shares: &[&str], needs: &[&str]) -> Value {
    json!({ "id": id, "objective": format!("the part {id}"), "allow": allow, "shares": shares,
        "accept": ["sh check.sh"], "drops": [], "net": [], "tools": [], "minutes": 2,
        "needs": needs })
}

/// A planner that writes a contract for `allow`, and divides it into `parts`.
fn planner(stage: &Stage, allow: &[&str], parts: &[Value]) -> String {
    let plan = json!({
        "verdict": "PLAN", "summary": "files", "objective": "write the files",
        "allow": allow, "forbid": [], "accept": ["sh check.sh"], "forbidden_actions": [],
        "permit_oracle": [], "permit_governing": [], "net": [], "minutes": 2,
    });
    let split = json!({ "verdict": "PLAN", "summary": "parts", "children": parts });
    let script = format!(
        "if grep -q '\"children\"' $PROVOST_REQUEST; then\n\
         cat > $PROVOST_RESULT <<'END'\n{split}\nEND\nelse\n\
         cat > $PROVOST_RESULT <<'END'\n{plan}\nEND\nfi\n"
    );
    stage.write("agent/planner.sh", &script);
    format!("sh {}", stage.path("agent/planner.sh").display())
}

fn stage(check: &str) -> Stage {
    let stage = Stage::new();
    let policy = "[commands]\nallow = [\"sh check.sh\", \"sh check.sh src/one.txt\"]\n";
    stage.commit(&[("provost.toml", policy), ("check.sh", check)]);
    stage
}

fn begin(stage: &Stage, planner: &str, agent: &str, more: &[&str]) -> Outcome {
    let agent = stage.agent(agent);
    let words = [
        "case",
        "write the files",
        "--planner-cmd",
        planner,
        "--json",
    ];
    stage.ask(&[&words[..], &["--agent-cmd", &agent], more].concat())
}

fn approve(stage: &Stage, asked: &Outcome) -> Outcome {
    let id = asked.text("case_id").to_owned();
    let digest = asked.json["question"]["digest"].as_str().expect("a digest");
    stage.ask(&["approve", &id, "--digest", digest, "--go", "--json"])
}

fn runs(outcome: &Outcome) -> Vec<String> {
    let parts = outcome.json["parts"].as_array().expect("parts").iter();
    let runs = parts.flat_map(|part| part["runs"].as_array().expect("runs"));
    runs.map(|run| run["run_id"].as_str().expect("an id").to_owned())
        .collect()
}

/// The payload of the event of `kind` of a run whose payload has `side`, if one is named.
fn payload(stage: &Stage, run: &str, kind: &str, side: Option<&str>) -> Value {
    let text = fs::read_to_string(stage.evidence(run, "events.jsonl")).expect("a ledger");
    let mut events = text
        .lines()
        .map(|line| -> Value { serde_json::from_str(line).expect("an event") });
    let found = events.find(|event| {
        event["event_type"] == kind && side.is_none_or(|side| event["payload"]["side"] == side)
    });
    found.unwrap_or_default()["payload"].clone()
}

/// Adds the task of the part to the file that all parts share.
const ADDS: &str = r"
    part=$(sed 's/.*the part \([a-z]*\).*/\1/' $PROVOST_CONTRACT)
    echo $part >> src/shared.txt
    echo $part > src/$part.txt
";

#[test]
fn parts_that_declare_a_shared_path_run_one_after_the_other() {
    let both = ["src/one.txt", "src/two.txt", "src/shared.txt"];
    let (one, two) = (["src/one.txt", both[2]], ["src/two.txt", both[2]]);
    let undeclared = [
        (&[][..], &[][..]),
        (&[both[2]][..], &[][..]),
        (&[][..], &[both[2]][..]),
    ];
    let stage = stage("test -e src/shared.txt\n");
    for (first, second) in undeclared {
        let parts = [
            part("one", &one, first, &[]),
            part("two", &two, second, &[]),
        ];
        let planner = planner(&stage, &both, &parts);
        let refused = begin(&stage, &planner, ADDS, &["--no-review"]);
        let verdict = &refused.json["verdict"];
        assert_eq!(refused.exit, 1, "{refused:?}");
        assert!(
            verdict["reason"].to_string().contains("shares"),
            "{verdict}"
        );
    }
    let shares = [both[2]];
    let parts = [
        part("one", &one, &shares, &[]),
        part("two", &two, &shares, &[]),
    ];
    let asked = begin(
        &stage,
        &planner(&stage, &both, &parts),
        ADDS,
        &["--no-review"],
    );
    let done = approve(&stage, &asked);
    assert_eq!(done.exit, 0, "{done:?}");
    assert_eq!(runs(&done).len(), 2, "no fix was needed: {done:?}");
    let id = done.text("case_id").to_owned();
    assert_eq!(stage.ask(&["land", &id, "--json"]).exit, 0);
    let text = fs::read_to_string(stage.path("repo/src/shared.txt")).expect("as the test made it");
    assert_eq!(text, "one\ntwo\n");
}

#[test]
fn a_part_tests_less_and_the_whole_is_judged_by_all() {
    // With a path, only that file is looked at.
    let check = "for file in ${1:-src/one.txt src/two.txt}; do test -e $file || exit 1; done\n";
    let stage = stage(check);
    let paths = ["src/one.txt", "src/two.txt"];
    let mut one = part("one", &paths[..1], &[], &[]);
    one["accept"] = json!(["sh check.sh src/one.txt"]);
    let mut wrong = one.clone();
    wrong["accept"] = json!(["sh check.sh --other"]);
    let two = part("two", &paths[1..], &[], &["one"]);
    let planner_of = |first: &Value| planner(&stage, &paths, &[first.clone(), two.clone()]);
    let agent = r"
        part=$(sed 's/.*the part \([a-z]*\).*/\1/' $PROVOST_CONTRACT)
        echo $part > src/$part.txt
    ";
    let refused = begin(&stage, &planner_of(&wrong), agent, &["--no-review"]);
    assert_eq!(refused.exit, 1, "{refused:?}");
    let asked = begin(&stage, &planner_of(&one), agent, &["--no-review"]);
    let done = approve(&stage, &asked);
    assert_eq!(done.exit, 0, "{done:?}");
    let of =
        |run: &str| payload(&stage, run, "TEST_RESULT", Some("candidate"))["commands"][0].clone();
    let first = of(&runs(&done)[0]);
    assert_eq!(first["argv"], json!(["sh", "check.sh", "src/one.txt"]));
    let whole = done.json["whole"]["run_id"]
        .as_str()
        .expect("as the test made it")
        .to_owned();
    assert_eq!(of(&whole)["argv"], json!(["sh", "check.sh"]));
}

#[test]
fn commands_that_passed_on_exactly_the_merged_tree_are_not_run_twice() {
    let stage = stage("test -e src/one.txt\n");
    let planner = planner(&stage, &["src/one.txt"], &[]);
    let more = ["--no-review", "--no-split"];
    let asked = begin(&stage, &planner, "echo good > src/one.txt", &more);
    let done = approve(&stage, &asked);
    assert_eq!(done.exit, 0, "{done:?}");
    let part = &runs(&done)[0];
    let whole = done.json["whole"]["run_id"]
        .as_str()
        .expect("as the test made it")
        .to_owned();
    let opened = payload(&stage, &whole, "RUN_OPENED", None);
    assert_eq!(
        opened["work"]["rounds"][0]["run_id"],
        json!(part),
        "{opened}"
    );
    let ran = |run: &str| payload(&stage, run, "TEST_RESULT", Some("candidate"));
    assert_eq!(ran(part)["cached"], false, "the part is tested");
    assert_eq!(
        ran(&whole)["cached"],
        true,
        "the whole takes that over: {} {}",
        ran(part),
        ran(&whole)
    );
    assert_eq!(ran(&whole)["tree"], ran(part)["tree"]);
    let reports = fs::read_to_string(stage.evidence(&whole, "reports/test_report.json"));
    assert!(
        reports.expect("as the test made it").contains(part),
        "the report names the run"
    );
    let id = done.text("case_id").to_owned();
    let verified = stage.ask(&["verify", &id, "--json"]);
    assert_eq!(verified.exit, 0, "{verified:?}");
}

#[test]
fn a_landed_case_leaves_no_branch_and_says_what_landed() {
    let stage = stage("test ! -e src/bad\n");
    let paths = ["src/one.txt", "src/two.txt"];
    let parts = [
        part("one", &paths[..1], &[], &[]),
        part("two", &paths[1..], &[], &[]),
    ];
    let agent = r"
        part=$(sed 's/.*the part \([a-z]*\).*/\1/' $PROVOST_CONTRACT)
        echo $part > src/$part.txt
    ";
    let asked = begin(
        &stage,
        &planner(&stage, &paths, &parts),
        agent,
        &["--no-review"],
    );
    let done = approve(&stage, &asked);
    assert_eq!(done.exit, 0, "{done:?}");
    let id = done.text("case_id").to_owned();
    let shown = stage.ask(&["case", "show", &id, "--json"]);
    assert_eq!(shown.json["case_id"], json!(id), "{shown:?}");
    let word = stage.ask(&["case", "land", "--no-review", "--json"]);
    assert_eq!((word.exit, word.code()), (2, "USAGE_ERROR"), "{word:?}");

    // The branch of a part is no work of its own while the case may land.
    let branch = format!("provost/{}", runs(&done)[0]);
    let judged = stage.ask(&[
        "judge",
        &branch,
        "--allow",
        "src/one.txt",
        "--accept",
        "sh check.sh",
        "--json",
    ]);
    assert_eq!(judged.exit, 0, "{judged:?}");
    let taken = stage.ask(&["land", judged.text("run_id"), "--json"]);
    assert_eq!(taken.code(), "CHAIN_NOT_ACCEPTED", "{taken:?}");

    assert_eq!(stage.ask(&["land", &id, "--json"]).exit, 0);
    let branches = stage.git(&["branch", "--list", "provost/*"]);
    let left: Vec<&str> = branches.lines().collect();
    assert!(
        runs(&done).iter().all(|run| !branches.contains(run)),
        "{left:?}"
    );
    let verified = stage.ask(&["verify", &id, "--json"]);
    let accepted = stage.git(&["rev-parse", "HEAD^{tree}"]);
    assert_eq!(
        verified.json["landed"]["is_accepted_tree"], true,
        "{verified:?}"
    );
    assert_eq!(verified.json["landed"]["tree"], json!(accepted.trim()));
    assert_eq!(verified.json["brought"][1]["paths"], json!(["src/two.txt"]));
    assert!(
        stage
            .ask(&["verify", &id])
            .says("exactly the accepted tree")
    );
}

/// Six parts in two chains. The reviewer refuses the whole once, and so do its commands.
#[test]
fn six_parts_in_two_chains_are_fixed_by_commands_and_by_a_reviewer() {
    let names = ["aa", "ab", "ac", "ba", "bb", "bc"];
    // `ab` and `bb` each pass alone, and not together until one is fixed.
    let stage = stage("! { grep -qs raw src/ab.txt && grep -qs raw src/bb.txt; }\n");
    let paths = names.map(|name| format!("src/{name}.txt"));
    let allow: Vec<&str> = paths.iter().map(String::as_str).collect();
    let needs: [&[&str]; 6] = [&[], &["aa"], &["ab"], &[], &["ba"], &["bb"]];
    let parts: Vec<Value> = (0..6)
        .map(|at| part(names[at], &allow[at..=at], &[], needs[at]))
        .collect();
    let agent = r#"
        path=$(sed 's/.*"allowed_paths":\["\([^"]*\)".*/\1/' $PROVOST_CONTRACT)
        if grep -q 'What came of it so far' $PROVOST_CONTRACT
        then echo fixed > $path
        else echo raw > $path
        fi
    "#;
    // Refuses the whole as long as the last part was not fixed.
    let review = |verdict: &str| {
        let report = json!({ "verdict": verdict, "summary": "s", "violations": [],
            "findings": [] });
        format!("cat > $PROVOST_RESULT <<'END'\n{report}\nEND\n")
    };
    let is_fine = "test ! -e src/aa.txt || test ! -e src/ba.txt || ! grep -q raw src/bc.txt";
    let reviewer = format!(
        "cd $PROVOST_TREE\nif {is_fine}\nthen\n{}else\n{}fi\n",
        review("PASS"),
        review("FAIL"),
    );
    stage.write("agent/review.sh", &reviewer);
    let reviewer = format!("sh {}", stage.path("agent/review.sh").display());
    let more = ["--review-cmd", &reviewer, "--retries", "3"];
    let asked = begin(&stage, &planner(&stage, &allow, &parts), agent, &more);
    assert_eq!(asked.exit, 3, "{asked:?}");
    let done = approve(&stage, &asked);
    assert_eq!(done.exit, 0, "{done:?}");
    assert_eq!(runs(&done).len(), 8, "six parts and two fixes: {done:?}");
    let head = stage.git(&["rev-parse", "HEAD"]);
    let id = done.text("case_id").to_owned();
    assert_eq!(stage.ask(&["land", &id, "--json"]).exit, 0);
    assert_eq!(stage.git(&["rev-parse", "HEAD^"]), head, "one commit");
    let verified = stage.ask(&["verify", &id, "--json"]);
    assert_eq!(verified.exit, 0, "{verified:?}");
    assert_eq!(
        verified.json["brought"]
            .as_array()
            .expect("as the test made it")
            .len(),
        6
    );
}

/// Ends the driver at each event of a case, then resumes.
#[cfg(feature = "failpoints")]
mod killed {
    use super::*;

    const KILLED: i32 = 128 + 9;

    const AGENT: &str = r#"
        path=$(sed 's/.*"allowed_paths":\["\([^"]*\)".*/\1/' $PROVOST_CONTRACT)
        if grep -q 'What came of it so far' $PROVOST_CONTRACT
        then echo fixed > $path
        else echo raw > $path
        fi
    "#;

    fn dying(stage: &Stage, words: &[&str], count: u32) -> Outcome {
        let mut command = stage.provost(words);
        command.env(
            "FAILPOINTS",
            format!("after-case-record={count}*off->return"),
        );
        stage.spawn(command).wait()
    }

    fn ground() -> (Stage, Vec<String>) {
        let stage = stage("! { grep -qs raw src/one.txt && grep -qs raw src/two.txt; }\n");
        let paths = ["src/one.txt", "src/two.txt"];
        let parts = [
            part("one", &paths[..1], &[], &[]),
            part("two", &paths[1..], &[], &[]),
        ];
        let planner = planner(&stage, &paths, &parts);
        let agent = stage.agent(AGENT);
        let words = [
            "case",
            "write the files",
            "--no-review",
            "--json",
            "--planner-cmd",
        ];
        let words = [&words[..], &[&planner, "--agent-cmd", &agent]].concat();
        (stage, words.iter().map(ToString::to_string).collect())
    }

    fn words(list: &[String]) -> Vec<&str> {
        list.iter().map(String::as_str).collect()
    }

    /// Resumes the case `id`, lands it and returns the tree; nothing but the whole ever lands.
    fn settle(stage: &Stage, id: &str, name: &str) -> String {
        let head = stage.git(&["rev-parse", "HEAD"]);
        let done = stage.ask(&["resume", id, "--json"]);
        assert_eq!(done.exit, 0, "{name}: {done:?}");
        assert_eq!(
            runs(&done).len(),
            3,
            "{name}: two parts and a fix: {done:?}"
        );
        for run in runs(&done) {
            let agents =
                fs::read_to_string(stage.evidence(&run, "events.jsonl")).expect("a ledger");
            let count = |what: &str| agents.matches(what).count();
            // An agent that ended is not asked again; one that died is a recorded attempt.
            assert_eq!(count("\"AGENT_ENDED\""), 1, "{name}: {run}");
        }
        assert_eq!(
            stage.git(&["rev-parse", "HEAD"]),
            head,
            "{name}: nothing landed"
        );
        assert_eq!(stage.ask(&["land", id, "--json"]).exit, 0, "{name}");
        assert_eq!(
            stage.git(&["rev-parse", "HEAD^"]),
            head,
            "{name}: one commit"
        );
        assert_eq!(stage.ask(&["verify", id, "--json"]).exit, 0, "{name}");
        // Other files of a stage name its directory.
        stage.git(&["rev-parse", "HEAD:src"])
    }

    fn only_case(stage: &Stage) -> String {
        let mut runs = stage.runs().into_iter();
        runs.find(|name| name.starts_with("case_")).expect("a case")
    }

    #[test]
    fn a_death_at_any_event_before_the_approval() {
        let mut deaths = 0;
        for count in 0..8 {
            let (stage, begin) = ground();
            let died = dying(&stage, &words(&begin), count);
            let id = only_case(&stage);
            if died.exit == KILLED {
                deaths += 1;
                let resumed = stage.ask(&["resume", &id, "--json"]);
                assert_eq!(resumed.exit, 3, "{count}: {resumed:?}");
                let again = stage.ask(&["show", &id, "--json"]);
                assert_eq!(
                    again.json["question"]["parts"]
                        .as_array()
                        .expect("parts")
                        .len(),
                    3
                );
                continue;
            }
            assert_eq!(died.exit, 3, "{died:?}");
            assert_eq!(deaths, 4, "opened, planned, divided, asked");
            return;
        }
        panic!("no end");
    }

    #[test]
    fn a_death_at_every_third_event_after_the_approval() {
        deaths_after_the_approval(0);
    }

    #[test]
    fn a_death_at_every_third_event_after_the_approval_from_the_second() {
        deaths_after_the_approval(1);
    }

    #[test]
    fn a_death_at_every_third_event_after_the_approval_from_the_third() {
        deaths_after_the_approval(2);
    }

    #[expect(clippy::panic, reason = "what goes wrong here is a failed test")]
    fn deaths_after_the_approval(first: u32) {
        let mut trees = Vec::new();
        for count in (first..30).step_by(3) {
            let (stage, begin) = ground();
            let asked = stage.ask(&words(&begin));
            let id = asked.text("case_id").to_owned();
            let digest = asked.json["question"]["digest"].as_str().expect("a digest");
            let approve = ["approve", &id, "--digest", digest, "--go", "--json"];
            let died = dying(&stage, &approve, count);
            if died.exit != KILLED {
                assert_eq!(died.exit, 0, "{died:?}");
                assert!(count > 12, "{count}: hardly anything was tried");
                let calm = settle(&stage, &id, "calm");
                assert!(trees.iter().all(|tree| *tree == calm), "{trees:?}");
                return;
            }
            trees.push(settle(&stage, &id, &format!("death {count}")));
        }
        panic!("no end");
    }

    #[test]
    fn a_death_while_landing_lands_once() {
        let (stage, begin) = ground();
        let asked = stage.ask(&words(&begin));
        let id = asked.text("case_id").to_owned();
        assert_eq!(approve(&stage, &asked).exit, 0);
        let head = stage.git(&["rev-parse", "HEAD"]);
        let died = dying(&stage, &["land", &id, "--json"], 0);
        assert_eq!(died.exit, KILLED, "{died:?}");
        assert_eq!(stage.ask(&["land", &id, "--json"]).exit, 0);
        assert_eq!(stage.git(&["rev-parse", "HEAD^"]), head, "one commit");
        let branches = stage.git(&["branch", "--list", "provost/*"]);
        assert_eq!(branches.trim(), "", "none is left");
    }
}
