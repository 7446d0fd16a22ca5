//! `provost gc`: removes refs, branches and caches of runs that are no longer needed.
//!
//! # Invariants
//!
//! - `engine::retention` decides for each run, while this process holds the lock of the run.
//! - A ref is removed only at the commit it was seen at; a branch that has moved stays.
//! - A directory is renamed before it is emptied, so that no process sees half of one.

mod bodies;
mod records;
mod sweep;
mod unchanged;

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use provost_core::object::Oid;
use provost_core::run::State;
use provost_core::run::refs::{BRANCHES, KEPT};
use provost_core::wording::counted;
use provost_core::{size, time};
use provost_engine::query::{self, Landed, RunArchive as _};
use provost_engine::retention::{self, Candidate, Fate, Reason, RetentionRequest, Standing};
use provost_host::{clock, kept_work};
use serde_json::{Value, json};

use super::duration::seconds;
use crate::answer::{Answer, Failure, Outcome};
use crate::history;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::show::Reader;
use sweep::{Evidence, Extent, Mode, Sweep, Swept, Uncaptured};
use unchanged::Mark;

/// Remove refs, branches and caches that are no longer needed.
#[derive(Args)]
#[command(after_help = "\
Removed: the refs under refs/provost/, the branch provost/RUN and the recorded bodies of models of
runs whose result is on its branch or that left nothing, leftover workspaces, the output of
detached runs, directories of runs and plans that never started, and refs to objects that no longer
exist. If no run is active, also cached test results, checkouts, prepared layers and build caches
that were not used for a day.
Kept: runs and chains that have not ended, work that has not landed (unless --older-than covers
it), branches that have moved or are checked out, the bundles and the records of plans and
chains (unless --bundles), and cache entries that the current commit needs (unless --caches).
`git gc` then frees the objects. The next call completes an interrupted one.

Examples:
  provost gc --dry-run
  provost gc --keep 20
  provost gc --caches
  provost gc --older-than 30d --bundles")]
pub(super) struct Gc {
    /// Show what would be removed, and change nothing.
    #[arg(long)]
    dry_run: bool,

    /// Keep this many of the newest runs, plans and chains.
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep: usize,

    /// Remove only what began longer ago, such as 12h or 30d; the work of these runs is removed
    /// even if it has not landed.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    older_than: Option<u64>,

    /// Also remove the bundles of these runs and the records of plans and chains; the evidence is
    /// lost.
    #[arg(long)]
    bundles: bool,

    /// Remove all cache entries that are not in use; the next run makes them again.
    #[arg(long)]
    caches: bool,
}

/// A run, and everything about it that decides whether it stays.
struct Known {
    run_id: String,
    state: Option<State>,
    candidate: Candidate,
    mark: Mark,
    /// Whether this user began it; also true if it never began.
    own: bool,
}

pub(super) fn run(gc: &Gc, reader: Reader) -> Outcome {
    let observer = ProgressObserver::new(reader == Reader::Program);
    let outcome = sweep(gc, &observer);
    observer.clear();
    outcome
}

fn sweep(gc: &Gc, observer: &ProgressObserver) -> Outcome {
    let place = Places::find()?;
    let request = RetentionRequest {
        keep: gc.keep,
        since: gc.older_than.map(before_now),
    };
    observer.show_step("reading the runs …");
    let mode = if gc.dry_run { Mode::Say } else { Mode::Do };
    let dangling = dangling(&place, mode)?;
    let known = known(&place)?;
    let mut sweep = Sweep::new(&place, mode, observer)?;
    sweep.leftovers()?;
    let mut rows = Vec::new();
    let mut stay: BTreeMap<Reason, usize> = BTreeMap::new();
    let mut foreign = 0;
    for (number, known) in known.iter().enumerate() {
        if !known.own {
            foreign += 1;
            rows.push(json!({ "run_id": known.run_id, "stays": "it was not begun by you" }));
            continue;
        }
        let fate = retention::judge(&known.candidate, number, request);
        if let Fate::Stays(why) = fate {
            *stay.entry(why).or_default() += 1;
            if why == Reason::Unlanded {
                sweep.refused_branch(known)?;
            }
            rows.push(json!({ "run_id": known.run_id, "stays": why.words(1) }));
            continue;
        }
        let never_began = known.candidate.standing == Standing::NeverBegan;
        let evidence = if never_began || gc.bundles && fate == Fate::Goes {
            Evidence::Goes
        } else {
            Evidence::Stays
        };
        let uncaptured = match gc.older_than {
            Some(_) => Uncaptured::Goes,
            None => Uncaptured::Stays,
        };
        let swept = sweep.run(known, fate, uncaptured, evidence)?;
        rows.push(
            json!({ "run_id": known.run_id, "refs": swept.refs, "bytes": swept.bytes,
            "left": swept.left }),
        );
    }
    let ids: BTreeSet<&str> = known.iter().map(|known| known.run_id.as_str()).collect();
    sweep.stray_bodies(&ids)?;
    let strangers = sweep.strangers(&ids);
    let records = records_too(gc, &place, &known, request, &mut sweep)?;
    if known
        .iter()
        .all(|known| known.candidate.standing != Standing::Open)
    {
        sweep.caches(if gc.caches {
            Extent::Everything
        } else {
            Extent::Unneeded
        })?;
    }
    let mut answer = answer(&sweep.total, mode, &rows, &stay, strangers);
    answer.json["records"] = json!(records);
    answer.json["dangling"] = json!(dangling);
    for name in &dangling {
        answer.text += &format!("{name} pointed to objects that are gone\n");
    }
    if foreign > 0 {
        let count = counted(foreign, "run");
        answer.text += &format!("{count} not begun by you: left alone\n");
    }
    Ok(answer)
}

/// Removes records of plans and chains, and the output of runs that are gone.
fn records_too(
    gc: &Gc,
    place: &Places,
    known: &[Known],
    request: RetentionRequest,
    sweep: &mut Sweep<'_>,
) -> Result<Vec<Value>, Failure> {
    let standing = |known: &'_ Known| known.candidate.standing;
    let runs = known.iter().map(|it| (it.run_id.as_str(), standing(it)));
    let runs: BTreeMap<&str, Standing> = runs.collect();
    let mut rows = Vec::new();
    for kept in [records::plans(place)?, records::chains(place, &runs)?] {
        for (number, kept) in kept.iter().enumerate() {
            let fate = retention::judge(&kept.candidate, number, request);
            let row = match fate {
                Fate::Stays(why) => json!({ "id": kept.id, "stays": why.words(1) }),
                Fate::Goes | Fate::GoesButSalvage => {
                    let never_began = kept.candidate.standing == Standing::NeverBegan;
                    let evidence = if gc.bundles || never_began {
                        Evidence::Goes
                    } else {
                        Evidence::Stays
                    };
                    let swept = sweep.record(kept, evidence)?;
                    json!({ "id": kept.id, "bytes": swept.bytes, "left": swept.left })
                }
            };
            rows.push(row);
        }
    }
    sweep.printed(&records::strangers(place, &runs)?)?;
    Ok(rows)
}

/// The time that was `seconds` ago.
fn before_now(seconds: u64) -> i64 {
    let millis = i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
    clock::now_millis().saturating_sub(millis)
}

/// All runs that have a bundle, the newest first.
fn known(place: &Places) -> Result<Vec<Known>, Failure> {
    let mut runs = place.runs()?;
    runs.reverse();
    let names: Vec<&str> = runs.iter().map(String::as_str).collect();
    let landed = query::landed(place, &names);
    let kept = kept_work::unlanded(&place.repo, place)?;
    let with = |salvaged: bool| -> BTreeSet<&str> {
        let of_kind = kept.iter().filter(|kept| kept.is_salvaged() == salvaged);
        of_kind.map(kept_work::KeptWork::run_id).collect()
    };
    let (salvaged, captured) = (with(true), with(false));
    let known = |run_id: &String| {
        // Taken first: everything that is read after it is at least as new.
        let mark = Mark::of(&place.run(run_id));
        let state = query::state(place, run_id).ok();
        let left = state.as_ref().is_some_and(|state| !state.left.is_empty());
        let has_work = left || captured.contains(run_id.as_str());
        Known {
            run_id: run_id.clone(),
            candidate: Candidate {
                began: state
                    .as_ref()
                    .and_then(|state| time::parse(&state.began).ok()),
                standing: standing(place, run_id, state.is_some(), has_work, landed.get(run_id)),
                salvaged: salvaged.contains(run_id.as_str()),
            },
            own: state.is_none() || query::is_own(place, run_id),
            state,
            mark,
        }
    };
    Ok(runs.iter().map(known).collect())
}

fn standing(
    place: &Places,
    run_id: &str,
    readable: bool,
    has_work: bool,
    landed: Option<&Landed>,
) -> Standing {
    if place.is_driven(run_id) || readable && !place.is_sealed(run_id) {
        return Standing::Open;
    }
    if !readable && query::never_began(place, run_id) {
        return match history::idle(place, run_id) {
            Some(idle) if idle > retention::NOT_BEGUN => Standing::NeverBegan,
            _ => Standing::Open,
        };
    }
    match landed {
        _ if !readable => Standing::Unknown,
        Some(Landed { held: None, .. }) => Standing::Unknown,
        _ if has_work => Standing::Unlanded,
        Some(_) => Standing::Landed,
        None => Standing::Empty,
    }
}

fn answer(
    total: &Swept,
    mode: Mode,
    rows: &[Value],
    stay: &BTreeMap<Reason, usize>,
    strangers: usize,
) -> Answer {
    let verb = match mode {
        Mode::Do => "removed",
        Mode::Say => "would remove",
    };
    let refs = counted(total.refs.len(), "ref");
    let directories = match total.directories.len() {
        1 => "1 directory".to_owned(),
        count => format!("{count} directories"),
    };
    let mut text = format!("{verb} {refs}, {directories}");
    if total.checkouts > 0 {
        let count = usize::try_from(total.checkouts).unwrap_or(usize::MAX);
        text += &format!(", {}", counted(count, "cached checkout"));
    }
    if total.layers > 0 {
        let count = usize::try_from(total.layers).unwrap_or(usize::MAX);
        text += &format!(", {}", counted(count, "prepared layer"));
    }
    if total.builds > 0 {
        let count = usize::try_from(total.builds).unwrap_or(usize::MAX);
        text += &format!(", {}", counted(count, "build cache"));
    }
    if total.results > 0 {
        text += &format!(", {}", counted(total.results, "cached test result"));
    }
    if total.outputs > 0 {
        text += &format!(", {}", counted(total.outputs, "output"));
    }
    text += &format!("; {}\n", size::rough(total.bytes));
    for name in &total.refs {
        text += &format!("  {name}\n");
    }
    for directory in &total.directories {
        text += &format!("  {}\n", directory.display());
    }
    for left in &total.left {
        text += &format!("left alone: {left}\n");
    }
    for (why, count) in stay {
        let words = why.words(*count);
        text += &format!("{} left alone: {words}\n", counted(*count, "run"));
    }
    if strangers > 0 {
        let refs = counted(strangers, "ref");
        text += &format!("{refs} left alone: the bundle of the run is not here\n");
    }
    let json = json!({ "dry_run": mode == Mode::Say, "refs": total.refs, "bytes": total.bytes,
        "directories": total.directories, "checkouts": total.checkouts, "layers": total.layers,
        "builds": total.builds, "results": total.results, "outputs": total.outputs,
        "left": total.left, "runs": rows,
        "strangers": strangers });
    Answer::data(json, text)
}

/// Removes our refs to objects that are gone, because `git gc` fails over them.
fn dangling(place: &Places, mode: Mode) -> Result<Vec<String>, Failure> {
    let refs = refs(place)?;
    let found = place.repo.dangling(refs.iter())?;
    for name in found.iter().filter(|_| mode == Mode::Do) {
        if let Some(at) = refs.get(name) {
            place.repo.delete_ref(name, at)?;
        }
    }
    Ok(found)
}

/// Our refs, each with its commit.
type Refs = BTreeMap<String, Oid>;

fn refs(place: &Places) -> Result<Refs, Failure> {
    let mut all = Refs::new();
    for prefix in [KEPT, BRANCHES] {
        let refs = place.repo.refs(prefix);
        all.extend(refs?);
    }
    Ok(all)
}
