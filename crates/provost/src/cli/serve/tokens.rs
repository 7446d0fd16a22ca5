//! `provost serve token`: tokens of the API, hashed in the user's state directory.

use std::fs;
use std::io::ErrorKind;

use clap::{Args, Subcommand, ValueEnum};
use provost_core::code::Code;
use provost_core::json;
use provost_fs::atomic::{self, Durability};
use provost_host::clock;
use provost_host::user_state::UserState;
use provost_web::{NewToken, TokenRow, TokenScope, new_token};
use serde::Serialize;

use super::super::duration::seconds;
use crate::answer::{Answer, Failure, Outcome};
use crate::places;
use crate::show::one_line;

const FILE: &str = "serve-tokens.json";

/// The longest time that a token is valid.
const LONGEST_SEC: u64 = 90 * 86_400;

#[derive(Subcommand)]
pub(super) enum Token {
    /// Make a token, and print it once.
    New(NewArguments),
    /// List the tokens.
    List,
    /// Revoke a token.
    Revoke(Revoked),
}

#[derive(Args)]
#[command(after_help = "\
Only its digest is kept. With the scope `read` a token reads /api/v1 and can command nothing; with
`command` it can also approve, reject, cancel, retry, land and continue.

Example:
  provost serve token new ci --scope read --expires 7d")]
pub(super) struct NewArguments {
    /// A name of your choice.
    name: String,

    /// What it permits.
    #[arg(long, value_enum, default_value_t = ScopeArgument::Read)]
    scope: ScopeArgument,

    /// How long it is valid: 20m, 2h, up to 90d.
    #[arg(long = "expires", alias = "for", value_name = "TIME", default_value = "7d", value_parser = lasting)]
    lasts: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum ScopeArgument {
    /// Read.
    Read,
    /// Read and command.
    Command,
}

#[derive(Args)]
#[command(after_help = "Example:\n  provost serve token revoke ci")]
pub(super) struct Revoked {
    /// The name of the token.
    name: String,
}

fn lasting(text: &str) -> Result<u64, String> {
    match seconds(text)? {
        long if long > LONGEST_SEC => Err("a token is valid for 90 days at most".to_owned()),
        0 => Err("a token is valid for a second at least".to_owned()),
        fine => Ok(fine),
    }
}

#[derive(Serialize)]
struct MadeToken<'a> {
    name: &'a str,
    token: &'a str,
    scope: TokenScope,
    until: &'a str,
}

pub(super) fn run(token: &Token) -> Outcome {
    let state = super::state()?;
    let mut rows = read(&state)?;
    match token {
        Token::New(NewArguments { name, scope, lasts }) => {
            if rows.iter().any(|row| row.name == *name) {
                let reason = format!("there is a token `{}` already", one_line(name));
                let hint = "choose another name, or revoke it first";
                return Err(Failure::new(Code::UsageError, reason).hint(hint));
            }
            let lasts = i64::try_from(lasts.saturating_mul(1000)).unwrap_or(i64::MAX);
            let scope = match scope {
                ScopeArgument::Read => TokenScope::Read,
                ScopeArgument::Command => TokenScope::Command,
            };
            let NewToken { token, row } = new_token(name, scope, clock::now_millis(), lasts)?;
            rows.push(row.clone());
            write(&state, &rows)?;
            let made = MadeToken {
                name,
                token: &token,
                scope,
                until: &row.until,
            };
            let text = format!("{token}\n");
            Ok(Answer::data(made, text))
        }
        Token::List => {
            let line = |row: &TokenRow| {
                let (name, scope) = (one_line(&row.name), row.scope.word());
                format!("{name}  {scope}  until {}\n", row.until)
            };
            let text: String = rows.iter().map(line).collect();
            Ok(Answer::data(&rows, text))
        }
        Token::Revoke(Revoked { name }) => {
            let before = rows.len();
            rows.retain(|row| row.name != *name);
            if rows.len() == before {
                let reason = format!("there is no token `{}`", one_line(name));
                let hint = "provost serve token list";
                return Err(Failure::new(Code::NotFound, reason).hint(hint));
            }
            write(&state, &rows)?;
            Ok(Answer::data(&rows, "revoked\n"))
        }
    }
}

/// The tokens of the user. A file that cannot be read admits none.
pub(super) fn read(state: &UserState) -> Result<Vec<TokenRow>, Failure> {
    let path = state.directory().join(FILE);
    let failed =
        |reason: String| Failure::new(Code::HostFailed, format!("`{}`: {reason}", path.display()));
    match fs::read(&path) {
        Ok(bytes) => json::parse_as(&bytes).map_err(|error| failed(error.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn write(state: &UserState, rows: &[TokenRow]) -> Result<(), Failure> {
    let path = state.made().map_err(places::refused)?.join(FILE);
    let failed =
        |reason: String| Failure::new(Code::HostFailed, format!("`{}`: {reason}", path.display()));
    let text = serde_json::to_vec(rows).map_err(|error| failed(error.to_string()))?;
    atomic::replace(&path, &text, 0o600, Durability::Synced)
        .map_err(|error| failed(error.to_string()))
}
