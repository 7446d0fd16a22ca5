use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;

use provost_core::bundle::layout::ATTESTATION;
use provost_core::user_secret::Secret;
use provost_engine::query;
use provost_load::ManyRuns;
use tempfile::TempDir;

use super::*;

/// A repository with runs, seen by a user who did not begin them.
struct Repository {
    directory: TempDir,
    place: Places,
    runs: ManyRuns,
    index: RepositoryIndex,
    log: ChangeLog,
    now: i64,
}

impl Repository {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let made = Command::new("git").args(["init", "-q"]).arg(at).status();
        assert!(made.unwrap().success());
        let secret = at.join("secret");
        fs::write(&secret, Secret::of([7; 32]).line()).unwrap();
        let runs = ManyRuns::new(&at.join(".provost"), &secret, &"1".repeat(40)).unwrap();
        fs::create_dir_all(at.join(".provost/runs")).unwrap();
        Self {
            place: Places::look_at(at).unwrap(),
            runs,
            index: RepositoryIndex::kept_in(Some(&at.join("kept"))),
            log: ChangeLog::default(),
            now: 1_000_000,
            directory,
        }
    }

    /// Looks until everything is read.
    fn look(&mut self) -> Arc<RoomListing> {
        loop {
            self.now += LIST_PERIOD;
            let at = ("r", &self.place);
            self.index.look(at, self.now, &mut self.log).unwrap();
            let listing = self.index.listing();
            if listing.unread == 0 {
                return listing;
            }
        }
    }

    fn forget(&mut self) {
        let kept = self.directory.path().join("kept");
        self.index = RepositoryIndex::kept_in(Some(&kept));
        self.log = ChangeLog::default();
    }

    fn statuses(&mut self) -> Vec<(String, RunStatus)> {
        let rows = &self.look().rows;
        let rows = rows.iter().map(|row| &row.summary);
        rows.map(|it| (it.run_id.clone(), it.status)).collect()
    }
}

fn kinds(log: &ChangeLog, after: u64) -> Vec<RoomChangeKind> {
    log.after(after).changes.iter().map(|it| it.kind).collect()
}

#[test]
fn runs_appear_grow_and_vanish_and_each_change_is_reported_once() {
    let mut here = Repository::new();
    let sealed = here.runs.sealed(2).unwrap();
    let mut growing = here.runs.growing(1).unwrap();
    let open = growing[0].id.clone();
    let all = [
        (open.clone(), RunStatus::Running),
        (sealed[1].clone(), RunStatus::Success),
        (sealed[0].clone(), RunStatus::Success),
    ];
    assert_eq!(here.statuses(), all);
    let last = here.log.last();
    assert_eq!(kinds(&here.log, 0)[..3], [RoomChangeKind::Appeared; 3]);
    here.look();
    assert_eq!(kinds(&here.log, last), [], "nothing changed");

    let before = here.index.live(&here.place, &open, here.now).unwrap();
    let mut step = 0;
    while growing[0].grow().unwrap() {
        step += 1;
        if step % 12 != 0 {
            continue;
        }
        here.look();
        let known = here.index.runs[&open].open.as_ref().unwrap();
        let whole = query::state(&here.place, &open).unwrap();
        assert_eq!(known.state.latest, whole.latest);
        assert_eq!(known.state.attempt, whole.attempt);
    }
    let after = here.index.live(&here.place, &open, here.now).unwrap();
    assert!(after.attempt > before.attempt, "{after:?}");
    drop(growing);
    here.now += DRIVER_PERIOD;
    assert_eq!(here.statuses()[0], (open, RunStatus::Interrupted));

    let last = here.log.last();
    fs::remove_dir_all(here.place.run(&sealed[0])).unwrap();
    here.look();
    assert_eq!(kinds(&here.log, last), [RoomChangeKind::Removed]);
}

#[test]
fn a_kept_row_saves_reading_a_ledger_and_counts_only_for_the_same_files() {
    let mut here = Repository::new();
    let sealed = here.runs.sealed(3).unwrap();
    let rows = here.look().rows.clone();
    // Only rows whose files are old enough are kept.
    sleep(Duration::from_millis(2_100));
    here.index.keep(here.now + KEEP_PERIOD);
    let kept = here.directory.path().join("kept/serve-rows.jsonl");
    let text = fs::read_to_string(&kept).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");

    // A row that is not read from the ledger shows what is in the file.
    fs::write(&kept, text.replace("say hello from", "kept words of")).unwrap();
    let ledger = here.place.run(&sealed[1]).join(LEDGER);
    let bytes = fs::read(&ledger).unwrap();
    fs::remove_file(&ledger).unwrap();
    fs::write(&ledger, bytes).unwrap();
    here.forget();
    let words: Vec<String> = here
        .look()
        .rows
        .iter()
        .map(|row| row.summary.objective[..10].to_owned())
        .collect();
    assert_eq!(words, ["kept words", "say hello ", "kept words"]);

    let text = text.replace("say hello from", "kept words of");
    // Rows of another version, and lines that are damaged, are not read.
    for damaged in [
        text.replace("rows 1", "rows 0"),
        text.replace("\"run_id\"", "\"run\""),
        String::new(),
    ] {
        fs::write(&kept, damaged).unwrap();
        here.forget();
        let again = here.look();
        let all = again.rows.iter().zip(&rows);
        assert!(all.into_iter().all(|(one, other)| {
            serde_json::to_value(one.as_ref()).unwrap()
                == serde_json::to_value(other.as_ref()).unwrap()
        }));
    }
    fs::remove_file(here.place.run(&sealed[0]).join(ATTESTATION)).unwrap();
    fs::write(&kept, &text).unwrap();
    here.forget();
    let status = here.statuses()[2].1;
    assert_eq!(
        status,
        RunStatus::Interrupted,
        "a row of a run without seal"
    );
}

#[test]
fn a_ledger_that_was_replaced_or_damaged_is_not_continued() {
    let mut here = Repository::new();
    let mut growing = here.runs.growing(2).unwrap();
    here.look();
    let (one, other) = (growing[0].id.clone(), growing[1].id.clone());
    let path = |id: &str| here.place.run(id).join(LEDGER);
    let (first, second) = (path(&one), path(&other));
    assert!(growing[0].grow().unwrap());
    // The events of the other run, longer than what was read.
    for _ in 0..5 {
        growing[1].grow().unwrap();
    }
    fs::copy(&second, &first).unwrap();
    append(&second, b"{\"not\": \"a record\"}\n");
    let rows = here.statuses();
    assert_eq!(rows[0], (other, RunStatus::Unreadable));
    assert_eq!(rows[1], (one, RunStatus::Unreadable));
}

fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    let mut file = fs::File::options().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}
