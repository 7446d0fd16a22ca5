//! Runs hostile programs, bare and in every tier of the sandbox, and records which escape.
//!
//! The programs are in `tests/escape`, the table is `docs/escape.md`.
//!
//! # Invariants
//!
//! - An attack counts only if it works without a sandbox; one that never works shows nothing. Some
//!   machines refuse an attack themselves; there it is skipped, unless skips are failures.
//! - Nothing escapes from tier `namespaces`.
//! - A column needs a result for each attack.

mod list;
mod stage;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use list::{Attack, Who};
use stage::Stage;

/// Path of the table.
const PAGE: &str = "docs/escape.md";
/// Directory of the hostile programs.
const PROGRAMS: &str = "tests/escape";

/// The tiers, with the options that select them.
const TIERS: [(Tier, &[&str]); 2] = [
    (Tier::Namespaces, &[]),
    (Tier::Landlock, &["--tier", "landlock"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    /// No sandbox.
    Bare,
    Namespaces,
    Landlock,
}

impl Tier {
    fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
        }
    }
}

/// Results by tier and user: the names of attacks, and whether they escaped.
type Columns = BTreeMap<(Tier, Who), BTreeMap<String, bool>>;

/// Runs all attacks and writes the table.
pub fn write(root: &Path, program: &Path) -> Result<(), String> {
    let (attacks, columns) = attack(root, program)?;
    judge(&attacks, &columns)?;
    let idle = idle(&attacks, &columns);
    if !idle.is_empty() {
        return Err(idle.join("\n"));
    }
    fs::write(root.join(PAGE), render(&attacks, &columns)).map_err(|why| format!("{PAGE}: {why}"))
}

/// Runs all attacks, and returns what is wrong with them or with the table.
pub fn check(root: &Path, program: &Path) -> Result<String, String> {
    let (attacks, columns) = attack(root, program)?;
    judge(&attacks, &columns)?;
    let mut skipped = idle(&attacks, &columns);
    let seen_by_root = columns.contains_key(&(Tier::Bare, Who::Root));
    if !seen_by_root {
        skipped.push("the attacks of root need root".to_owned());
    }
    // Without root half of the table cannot be checked.
    if !skipped.is_empty() && std::env::var("PROVOST_TEST_REQUIRE").as_deref() == Ok("all") {
        return Err(skipped.join("\n"));
    }
    let skipped = skipped.iter().map(|what| format!("\nskipped: {what}"));
    let skipped: String = skipped.collect();
    if !seen_by_root {
        return Ok(skipped.trim_start().to_owned());
    }
    let page = fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    if page != render(&attacks, &columns) {
        return Err(format!(
            "{PAGE}: is not what was seen; run `cargo xtask escape`"
        ));
    }
    let sandboxes = columns.len() - 2;
    Ok(format!(
        "{} attacks, {sandboxes} sandboxes{skipped}",
        attacks.len()
    ))
}

/// Runs all attacks bare and in tier `namespaces`, for kernels that have no other tier; returns what
/// was seen. An attack that does not work without a sandbox is listed.
pub fn namespaces(root: &Path, program: &Path) -> Result<String, String> {
    let (attacks, columns) = attack_in(root, program, &TIERS[..1])?;
    judge(&attacks, &columns)?;
    let idle = idle(&attacks, &columns);
    let idle = idle.iter().map(|what| format!("\nidle: {what}"));
    let idle: String = idle.collect();
    let users: Vec<&str> = Who::here().into_iter().map(Who::name).collect();
    let users = users.join(" and ");
    Ok(format!(
        "{} attacks as {users}, none got out{idle}",
        attacks.len()
    ))
}

fn attack(root: &Path, program: &Path) -> Result<(Vec<Attack>, Columns), String> {
    attack_in(root, program, &TIERS)
}

fn attack_in(
    root: &Path,
    program: &Path,
    tiers: &[(Tier, &[&str])],
) -> Result<(Vec<Attack>, Columns), String> {
    let programs = root.join(PROGRAMS);
    let attacks = list::read(&programs.join("attacks"))?;
    let mut columns = Columns::new();
    for who in Who::here() {
        for &(tier, words) in tiers {
            // A stage of its own: what escapes from one tier must not help in another.
            let stage = Stage::new(&programs, program, &attacks, who)?;
            let before = stage.outside()?;
            let column = stage.sandboxed(words, &attacks)?;
            if tier == Tier::Namespaces && stage.outside()? != before {
                return Err(format!("{} changed files outside", tier.name()));
            }
            columns.insert((tier, who), column);
        }
        let stage = Stage::new(&programs, program, &attacks, who)?;
        columns.insert((Tier::Bare, who), stage.bare(&attacks)?);
    }
    Ok((attacks, columns))
}

/// The attacks that do not work here even without a sandbox, so that they show nothing.
fn idle(attacks: &[Attack], columns: &Columns) -> Vec<String> {
    let mut idle = Vec::new();
    for ((tier, who), outcomes) in columns {
        let able = |attack: &&Attack| attack.who == Who::User || *who == Who::Root;
        for Attack { name, .. } in attacks.iter().filter(able) {
            if *tier == Tier::Bare && outcomes.get(name) == Some(&false) {
                idle.push(format!(
                    "{name}: does not work without a sandbox as {}",
                    who.name()
                ));
            }
        }
    }
    idle
}

/// Whether every attack was made, and none escaped from the tier that promises it.
fn judge(attacks: &[Attack], columns: &Columns) -> Result<(), String> {
    let mut wrong = Vec::new();
    for ((tier, who), outcomes) in columns {
        for attack in attacks {
            let out = outcomes.get(&attack.name).copied();
            let name = &attack.name;
            match (tier, out) {
                (_, None) => wrong.push(format!("{name}: no result")),
                (Tier::Namespaces, Some(true)) => {
                    wrong.push(format!(
                        "{name}: got out of {} as {}",
                        tier.name(),
                        who.name()
                    ));
                }
                // What escapes from the weaker tier is in the table, and `doctor` lists it.
                (Tier::Bare | Tier::Namespaces | Tier::Landlock, Some(_)) => {}
            }
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

fn render(attacks: &[Attack], columns: &Columns) -> String {
    let mut page = format!(
        "# What gets out of a sandbox\n\n\
        Written by `cargo xtask escape`, which lets the {} hostile programs of `tests/escape` loose: \
        without a sandbox,\nwhere each of them gets what it wants, and in each tier, as root and as an \
        ordinary user. `./test` compares.\nAn attack that only root can make is made by the user \
        too, and has to fail in a sandbox as well.\n\n",
        attacks.len()
    );
    let tiers = TIERS.map(|(tier, _)| tier);
    page += "| attack | what it tries | works bare for |";
    for tier in tiers {
        let _ = write!(page, " `{0}`, root | `{0}`, user |", tier.name());
    }
    page += "\n|---|---|---|";
    page += &"---|---|".repeat(tiers.len());
    page += "\n";
    for attack in attacks {
        let able = match attack.who {
            Who::User => "everybody",
            Who::Root => "root",
        };
        let _ = write!(page, "| `{}` | {} | {able} |", attack.name, attack.words);
        for tier in tiers {
            for who in [Who::Root, Who::User] {
                let column = columns.get(&(tier, who));
                let cell = match column.and_then(|column| column.get(&attack.name)) {
                    Some(true) => "**out**",
                    Some(false) => "stopped",
                    None => "not seen",
                };
                let _ = write!(page, " {cell} |");
            }
        }
        page += "\n";
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(bare: bool, namespaces: bool) -> Columns {
        let one = |out| BTreeMap::from([("a/b".to_owned(), out)]);
        Columns::from([
            ((Tier::Bare, Who::User), one(bare)),
            ((Tier::Namespaces, Who::User), one(namespaces)),
        ])
    }

    #[test]
    fn an_attack_must_work_and_must_not_get_out() {
        let attacks = [list::parse("a/b | does | user | try").unwrap()];
        assert!(judge(&attacks, &columns(true, false)).is_ok());
        assert!(idle(&attacks, &columns(true, false)).is_empty());
        assert_eq!(idle(&attacks, &columns(false, false)).len(), 1);
        assert!(judge(&attacks, &columns(false, false)).is_ok());
        assert!(judge(&attacks, &columns(true, true)).is_err());
        let none = Columns::from([((Tier::Namespaces, Who::User), BTreeMap::new())]);
        assert!(judge(&attacks, &none).is_err());
    }
}
