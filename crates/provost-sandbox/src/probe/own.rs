//! What the payload is given: rights, ids, descriptors, environment, limits.

use std::fs;

use provost_core::tier::Tier;
use rustix::process::Resource;

use super::super::minimal_root::INSIDE_ID;
use super::super::wall::Wall;
use super::{Outcome, Task, Trial};

pub(super) const TRIALS: &[Trial] = &[
    Trial {
        name: "descriptors",
        walls: &[Wall::Descriptors],
        tried: "find a descriptor beside the three streams",
        attempt: descriptors,
    },
    Trial {
        name: "environment",
        walls: &[Wall::Environment],
        tried: "find a variable that the profile does not have",
        attempt: environment,
    },
    Trial {
        name: "capabilities",
        walls: &[Wall::Capabilities],
        tried: "find a capability in any set",
        attempt: capabilities,
    },
    Trial {
        name: "no_new_privileges",
        walls: &[Wall::NoNewPrivileges],
        tried: "be able to gain rights by a program",
        attempt: |_| status_is("NoNewPrivs", "1"),
    },
    Trial {
        name: "ids",
        walls: &[Wall::Ids],
        tried: "have an id of the host",
        attempt: ids,
    },
    Trial {
        name: "groups",
        walls: &[Wall::Groups],
        tried: "keep a group of the driver",
        attempt: groups,
    },
    Trial {
        name: "session",
        walls: &[Wall::Session],
        tried: "be in a session of the driver",
        attempt: session,
    },
    Trial {
        name: "limits",
        walls: &[Wall::Limits],
        tried: "use more than the profile lets",
        attempt: limits,
    },
];

/// Only the three streams are open, and the listing of them.
fn descriptors(_: &Task) -> Outcome {
    let listed =
        fs::read_dir("/proc/self/fd").map(|entries| entries.filter_map(Result::ok).count());
    match listed {
        Ok(count) => Outcome::seen(count == 4, format!("{} open", count.saturating_sub(1))),
        Err(error) => Outcome::seen(false, error.to_string()),
    }
}

fn environment(task: &Task) -> Outcome {
    let extra: Vec<String> = std::env::vars_os()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .filter(|name| !task.env.contains_key(name))
        .collect();
    Outcome::seen(extra.is_empty(), extra.join(" "))
}

fn status(field: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name == field).then(|| value.trim().to_owned())
    })
}

fn status_is(field: &str, wanted: &str) -> Outcome {
    let value = status(field);
    let held = value.as_deref() == Some(wanted);
    Outcome::seen(held, value.unwrap_or_else(|| "not there".to_owned()))
}

fn capabilities(task: &Task) -> Outcome {
    const NONE: &str = "0000000000000000";
    let mut sets = vec!["CapInh", "CapPrm", "CapEff", "CapAmb"];
    // Outside a user namespace only root can reduce the bounding set, and only root could gain
    // from it.
    if task.tier == Tier::Namespaces || rustix::process::geteuid().is_root() {
        sets.push("CapBnd");
    }
    Outcome::all(sets.into_iter().map(|set| status_is(set, NONE)))
}

fn ids(_: &Task) -> Outcome {
    let all = format!("{INSIDE_ID}\t{INSIDE_ID}\t{INSIDE_ID}\t{INSIDE_ID}");
    Outcome::all(["Uid", "Gid"].map(|field| {
        let seen = status_is(field, &all);
        Outcome {
            note: seen.note.replace('\t', " "),
            ..seen
        }
    }))
}

/// A group that is not mapped shows as the overflow group; it still gives access to files. Only a
/// driver that may drop its groups does; one that may not has the rights of its own user anyway.
fn groups(task: &Task) -> Outcome {
    match status("Groups") {
        Some(groups) => Outcome::seen(groups.is_empty() || task.keeps_groups, groups),
        None => Outcome::seen(false, "not there"),
    }
}

/// A session from outside has the id 0, or another one than this process. Both ids come from the
/// same place: the `/proc` around a sandbox numbers processes differently than the sandbox.
fn session(_: &Task) -> Outcome {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program name before it may contain any character, blanks and brackets too.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let session = fields.split_whitespace().nth(3).unwrap_or("not there");
    let own = text.split(' ').next().unwrap_or_default();
    Outcome::seen(session == own && own != "0", session)
}

fn limits(task: &Task) -> Outcome {
    let wanted = [
        (Resource::Core, 0),
        (Resource::Nofile, task.limits.open_files),
        (Resource::Fsize, task.limits.file_bytes),
        (Resource::Nproc, task.limits.processes),
    ];
    let held = wanted.iter().all(|(resource, most)| {
        let limit = rustix::process::getrlimit(*resource).maximum;
        limit.is_some_and(|limit| limit <= *most)
    });
    Outcome::seen(held, "")
}
