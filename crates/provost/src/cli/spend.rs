//! `provost spend`: what the agents of this user spent, in all repositories.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use provost_core::agent::dollars;
use provost_core::code::Code;
use provost_host::spend::{self, SpendLine};
use serde::Serialize;

use crate::answer::{Answer, Failure, Outcome};
use crate::places::Places;
use crate::show::one_line;

#[derive(Args)]
#[command(after_help = "Examples:
  provost spend
  provost spend --by model --json")]
pub(super) struct Spend {
    /// What the lines add up.
    #[arg(long, value_enum, default_value_t = By::Day)]
    by: By,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Day,
    Agent,
    Model,
}

/// What was spent on one day, by one agent or with one model.
#[derive(Debug, Default, Serialize)]
struct SpendSum {
    name: String,
    requests: u64,
    tokens: u64,
    micro_usd: u64,
    /// Requests whose cost is an estimate, or a reservation that was never settled.
    estimated: u64,
}

pub(super) fn run(spend: &Spend) -> Outcome {
    let state = Places::look()?.own()?;
    let unreadable = |error: std::io::Error| {
        let reason = format!("what was spent cannot be read: {error}");
        let place = state.directory().join("spend");
        Failure::new(Code::HostFailed, reason)
            .hint(format!("see the files in `{}`", place.display()))
    };
    let lines = spend::all(state.directory()).map_err(unreadable)?;
    let sums = sums(spend.by, &lines);
    let json = serde_json::to_value(&sums).map_err(|error| Failure::of(Code::Bug, &error))?;
    Ok(Answer::data(json, render(&sums)))
}

fn sums(by: By, lines: &[SpendLine]) -> Vec<SpendSum> {
    let mut sums: BTreeMap<&str, SpendSum> = BTreeMap::new();
    for line in lines {
        let name = match by {
            By::Day => line.at.get(..10).unwrap_or(&line.at),
            By::Agent => &line.agent,
            By::Model => &line.model,
        };
        let sum = sums.entry(name).or_default();
        sum.name = one_line(name);
        sum.requests += 1;
        sum.tokens = sum.tokens.saturating_add(line.tokens);
        sum.micro_usd = sum.micro_usd.saturating_add(line.micro_usd);
        sum.estimated += u64::from(line.estimated || !line.settled);
    }
    sums.into_values().collect()
}

fn render(sums: &[SpendSum]) -> String {
    if sums.is_empty() {
        return "no agent of yours has spent anything yet\n".to_owned();
    }
    let width = sums.iter().map(|sum| sum.name.chars().count()).max();
    let width = width.unwrap_or_default().max(10);
    let mut text = format!(
        "{:width$}  {:>8}  {:>12}  {:>10}\n",
        "", "REQUESTS", "TOKENS", "PRICE"
    );
    for sum in sums {
        let SpendSum {
            name,
            requests,
            tokens,
            ..
        } = sum;
        let price = dollars(sum.micro_usd);
        let note = match sum.estimated {
            0 => String::new(),
            some => format!("  {some} estimated"),
        };
        text += &format!("{name:width$}  {requests:>8}  {tokens:>12}  {price:>10}{note}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spending_is_added_up_by_day_agent_or_model() {
        let line = |at: &str, agent: &str, tokens, settled| SpendLine {
            id: format!("{at}{tokens}"),
            at: at.to_owned(),
            run: "r".to_owned(),
            agent: agent.to_owned(),
            model: "m".to_owned(),
            tokens,
            micro_usd: tokens * 3,
            settled,
            estimated: false,
        };
        let lines = [
            line("2026-11-17T10:00:00Z", "claude", 1000, true),
            line("2026-11-18T10:00:00Z", "codex", 20, true),
            line("2026-11-18T11:00:00Z", "claude", 300, false),
        ];
        insta::assert_snapshot!(render(&sums(By::Day, &lines)), @"
                    REQUESTS        TOKENS       PRICE
        2026-11-17         1          1000      $0.003
        2026-11-18         2           320    $0.00096  1 estimated
        ");
        let by_agent = sums(By::Agent, &lines);
        let names: Vec<&str> = by_agent.iter().map(|sum| sum.name.as_str()).collect();
        assert_eq!(names, ["claude", "codex"]);
        assert_eq!((by_agent[0].tokens, by_agent[0].requests), (1300, 2));
        assert_eq!(sums(By::Model, &lines)[0].tokens, 1320);
        assert_eq!(render(&[]), "no agent of yours has spent anything yet\n");
    }
}
