//! Acceptance commands that start on the build caches of a trusted commit.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::stage::{Ask, Outcome, Stage};

/// Builds what is newer than its object, and links every object, also those without a source. It
/// runs code of the change too.
const BUILD: &str = "mkdir -p build
for source in src/*.txt; do
  object=build/$(basename $source).o
  if [ ! -e $object ] || [ $source -nt $object ]; then
    cp $source $object && echo built $source
  fi
done
[ ! -e src/code.sh ] || sh src/code.sh
cat build/*.o > build/program
grep -q good build/program
";

const WARM: &str = "[cache]\nacceptance = [\"build\"]\n";

fn stage(policy: &str, more: &[(&str, &str)]) -> Stage {
    let stage = Stage::new();
    let files = [
        ("provost.toml", policy),
        ("check.sh", BUILD),
        (".gitignore", "/target/\n/build/\n/node_modules/\n*.o\n"),
    ];
    stage.commit(&files);
    if !more.is_empty() {
        stage.commit(more);
    }
    stage
}

/// How the candidate of a run started, and why.
fn cache(outcome: &Outcome) -> (&str, &str) {
    let cache = &outcome.json["tests"]["cache"];
    let text = |name: &str| cache[name].as_str().unwrap_or_default();
    (text("start"), text("reason"))
}

/// A run that must be accepted, with evidence that holds.
fn accepted(stage: &Stage, script: &str) -> Outcome {
    let outcome = stage.run(script, &Ask::default());
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let verified = stage.verify(outcome.text("run_id"));
    assert_eq!(verified.exit, 0, "{verified:?}");
    outcome
}

fn log(stage: &Stage, outcome: &Outcome, name: &str) -> String {
    let place = stage.evidence(outcome.text("run_id"), name);
    fs::read_to_string(place).unwrap_or_default()
}

/// The build caches in the cache of the repository.
fn kept(stage: &Stage) -> Vec<PathBuf> {
    let caches = fs::read_dir(stage.path("cache/provost")).unwrap().flatten();
    let builds = caches.map(|cache| cache.path().join("build"));
    let entries = builds.flat_map(|builds| fs::read_dir(builds).into_iter().flatten().flatten());
    let mut entries: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    entries.sort();
    entries
}

#[test]
fn a_candidate_starts_on_the_cache_of_its_base() {
    for kind in ["copy", "overlay"] {
        let policy = format!("{WARM}[workspace]\nkind = \"{kind}\"\n");
        let stage = stage(&policy, &[]);
        let head = stage.git(&["rev-parse", "--short=12", "HEAD"]);
        let first = accepted(&stage, "echo good > src/a.txt");
        let run = first.text("run_id").to_owned();
        let (start, reason) = cache(&first);
        let files = stage.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
        let files = files.lines().count();
        let want = format!("1 of {files} files newer than the cache of commit {head}");
        assert_eq!((start, reason), ("warm", want.as_str()), "{kind}");
        let built = log(&stage, &first, "ci/base/1.stdout.log");
        assert_eq!(built, "built src/a.txt\nbuilt src/b.txt\n", "{kind}");
        let built = log(&stage, &first, "ci/candidate/1.stdout.log");
        assert_eq!(built, "built src/a.txt\n", "{kind}");

        // The report and the statement say so, and name the cache by its digest.
        let digest = &first.json["tests"]["cache"]["layer"]["sha256"];
        let report: Value = serde_json::from_str(&log(&stage, &first, "reports/test_report.json"))
            .unwrap_or_default();
        assert!(
            report.to_string().contains(digest.as_str().unwrap()),
            "{report}"
        );
        let events = log(&stage, &first, "events.jsonl");
        assert!(events.contains(digest.as_str().unwrap()), "{kind}");
        let shown = stage.ask(&["show", &run]);
        assert!(shown.says(&format!("warm: {want}")), "{shown:?}");
        assert_eq!(kept(&stage).len(), 1, "{kind}");

        // The next run of the same base finds both the result and the cache.
        let next = accepted(&stage, "echo good > src/b.txt");
        assert_eq!(cache(&next).0, "warm", "{kind}");
        assert_eq!(
            log(&stage, &next, "ci/candidate/1.stdout.log"),
            "built src/b.txt\n"
        );

        // What lands is tested cold, and a replay is cold as well.
        let again = stage.ask(&["replay", &run, "--reexec", "--json"]);
        assert_eq!(again.exit, 0, "{again:?}");
        let landed = stage.ask(&["land", &run, "--json"]);
        assert_eq!(landed.exit, 0, "{landed:?}");
        let after = log(&stage, &first, "after.jsonl");
        let tests: Vec<&str> = after
            .lines()
            .filter(|it| it.contains("\"TEST_RESULT\""))
            .collect();
        assert_eq!(tests.len(), 3, "{after}");
        assert!(
            tests.iter().all(|it| it.contains("\"start\":\"cold\"")),
            "{after}"
        );
        assert!(tests[2].contains("`land` tests cold"), "{after}");
        assert_eq!(stage.verify(&run).exit, 0);
    }
}

#[test]
fn a_policy_lets_warm_results_land_and_turns_warm_starts_off() {
    let stage = stage(&format!("{WARM}land = \"warm\"\n"), &[]);
    let run = accepted(&stage, "echo good > src/a.txt");
    assert_eq!(cache(&run).0, "warm");
    let landed = stage.ask(&["land", run.text("run_id"), "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    assert!(!log(&stage, &run, "after.jsonl").contains("TEST_RESULT"));

    stage.commit(&[("provost.toml", &format!("{WARM}candidate = \"cold\"\n"))]);
    let run = accepted(&stage, "echo better good > src/a.txt");
    assert_eq!(cache(&run), ("cold", "`[cache]` of provost.toml says cold"));
}

#[test]
fn nothing_that_an_agent_leaves_changes_the_verdict_of_a_cold_start() {
    let plant = "mkdir -p build target node_modules src/build
        for place in build target node_modules; do
            echo good > $place/x.o; echo good > $place/a.txt.o; echo good > $place/program
            touch -d '2030-01-01' $place/*
        done
        echo good > src/x.o";
    let cases = [
        (
            "planted files",
            format!("{plant}; echo more >> src/b.txt"),
            "warm",
        ),
        (
            "a source whose object would link",
            "rm src/c.txt".to_owned(),
            "cold",
        ),
        ("an emptied source", ": > src/c.txt".to_owned(), "warm"),
        (
            "a build file",
            "rm src/c.txt; echo all: > src/Makefile".to_owned(),
            "cold",
        ),
        (
            "code that plants",
            "echo 'echo good > build/z.o' > src/code.sh; echo x > src/c.txt".to_owned(),
            "warm",
        ),
    ];
    let base = [("src/c.txt", "good\n")];
    let warm = stage(WARM, &base);
    let cold = stage(&format!("{WARM}candidate = \"cold\"\n"), &base);
    let permit = Ask {
        more: &["--permit-oracle", "src/Makefile"],
        ..Ask::default()
    };
    for (name, script, start) in &cases {
        let [warm, cold] = [&warm, &cold].map(|stage| stage.run(script, &permit));
        let code = |outcome: &Outcome| (outcome.code().to_owned(), outcome.exit);
        assert_eq!(code(&warm), code(&cold), "{name}: {warm:?} {cold:?}");
        let refused = warm.json["tests"]["cache"]["refused"].is_object();
        let started = if refused { "warm" } else { cache(&warm).0 };
        assert_eq!(started, *start, "{name}: {warm:?}");
    }
    // Code of a candidate that wrote into a warm cache wrote to its own layer alone.
    let last = warm.run(": > src/c.txt", &Ask::default());
    assert_eq!(last.code(), "ACCEPTANCE_FAILED", "{last:?}");
    assert_eq!(kept(&warm).len(), 1);
    assert_eq!(warm.workspaces().len(), 0);
}

#[test]
fn a_warm_round_that_fails_is_repeated_cold_and_both_are_recorded() {
    // A build that breaks on its own cache.
    let check =
        "mkdir -p build && [ ! -e build/stale ] && : > build/stale && grep -q good src/a.txt";
    let stage = stage(WARM, &[("check.sh", check)]);
    for (script, code) in [
        ("echo good > src/a.txt", "OK"),
        ("echo bad > src/a.txt", "ACCEPTANCE_FAILED"),
    ] {
        let outcome = stage.run(script, &Ask::default());
        assert_eq!(outcome.code(), code, "{outcome:?}");
        assert_eq!(
            cache(&outcome),
            ("cold", "a round that started warm did not pass")
        );
        let refused = &outcome.json["tests"]["cache"]["refused"];
        assert_eq!(refused["commands"][0]["ending"]["exited"], 1, "{refused}");
        assert!(refused["layer"]["sha256"].is_string(), "{refused}");
        for name in ["1.stdout.log", "cold.1.stdout.log"] {
            let run = outcome.text("run_id");
            assert!(
                stage
                    .evidence(run, &format!("ci/candidate/{name}"))
                    .is_file(),
                "{name}"
            );
        }
        assert_eq!(stage.verify(outcome.text("run_id")).exit, 0, "{code}");
    }
}

#[test]
fn doubts_about_a_cache_make_a_round_cold_and_harm_nothing() {
    let good = "echo good > src/a.txt";
    // A base that is not in the history of the target.
    let aside = stage(WARM, &[]);
    aside.git(&["branch", "other", "HEAD~1"]);
    let ask = Ask {
        more: &["--target", "other"],
        ..Ask::default()
    };
    let outcome = aside.run(good, &ask);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let want = "the base is not in the history of `refs/heads/other`";
    assert_eq!(cache(&outcome), ("cold", want));
    assert_eq!(kept(&aside).len(), 0);

    // A cache that was changed on disk, and one that is gone: it is made again.
    let changed = stage(WARM, &[]);
    assert_eq!(cache(&accepted(&changed, good)).0, "warm");
    let [entry] = &kept(&changed)[..] else {
        panic!("{:?}", kept(&changed))
    };
    fs::write(entry.join("tree/0/a.txt.o"), "good\n").unwrap();
    let outcome = accepted(&changed, good);
    assert_eq!(
        cache(&outcome),
        ("cold", "the cache of the base was changed on disk")
    );
    // What a killed process began is no cache.
    fs::rename(entry, entry.with_extension("new")).unwrap();
    assert_eq!(cache(&accepted(&changed, good)).0, "warm");
    assert_eq!(kept(&changed), std::slice::from_ref(entry));
    let swept = changed.ask(&["gc", "--caches", "--json"]);
    assert_eq!(swept.json["builds"], 1, "{swept:?}");
    assert_eq!(kept(&changed).len(), 0);

    // No room for a cache: the run says so and is judged all the same.
    let full = stage(WARM, &[]);
    accepted(&full, "echo one good > src/a.txt");
    let builds = kept(&full)[0].parent().unwrap().to_owned();
    fs::remove_dir_all(&builds).unwrap();
    fs::write(&builds, "no directory").unwrap();
    let outcome = accepted(&full, good);
    assert_eq!(cache(&outcome).0, "cold", "{outcome:?}");
    assert!(log(&full, &outcome, "events.jsonl").contains("the build cache could not be kept"));
}

#[test]
fn two_runs_at_once_make_and_use_one_cache() {
    let stage = stage(WARM, &[]);
    let script = "if grep -q src/b.txt $PROVOST_CONTRACT; then echo good > src/b.txt
        else echo good > src/a.txt; fi";
    let scopes: [&[&str]; 2] = [&["src/a.txt"], &["src/b.txt"]];
    let running = [0, 1].map(|at: usize| {
        let ask = Ask {
            allow: scopes[at],
            ..Ask::default()
        };
        stage.start(script, &ask)
    });
    for running in running {
        let outcome = running.wait();
        assert_eq!(outcome.code(), "OK", "{outcome:?}");
    }
    assert_eq!(kept(&stage).len(), 1);
}
