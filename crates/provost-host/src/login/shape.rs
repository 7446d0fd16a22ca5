//! The login files of Claude Code and Codex: what is read of them, and a dummy of the same shape.
//!
//! Seen with Claude Code 2.1.325 and Codex 0.166.0. Unknown fields are ignored.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_core::agent::provider::Login;
use provost_core::json;
use provost_core::net::credential::{DUMMY, LoginFile};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::file::LoginError;
use super::report;

/// The field that says for which account a request of Codex is.
pub(super) const ACCOUNT_FIELD: &str = "ChatGPT-Account-ID";

/// When a dummy expires, in milliseconds since 1970: the year 2100, so that no program renews it.
const NEVER: i64 = 4_102_444_800_000;
/// The same as text.
const NEVER_TEXT: &str = "2100-01-01T00:00:00Z";

/// The login in a file.
pub(super) struct LoginContent {
    /// What authenticates a request.
    pub(super) token: String,
    /// The account of a subscription, where requests name it.
    pub(super) account: Option<String>,
    pub(super) kind: Login,
    /// What the user pays for, as the vendor calls it.
    pub(super) plan: Option<String>,
    /// In milliseconds since 1970.
    pub(super) expires: Option<i64>,
    /// Everything in the file that must not appear elsewhere.
    pub(super) secrets: Vec<String>,
    dummy: Dummy,
}

/// A file without a secret, with what the program reads to choose its models.
enum Dummy {
    Claude(ClaudeFile),
    Codex(Box<CodexFile>),
}

/// `.credentials.json` of Claude Code.
#[derive(Serialize, Deserialize)]
struct ClaudeFile {
    #[serde(rename = "claudeAiOauth")]
    login: Option<ClaudeLogin>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaudeLogin {
    access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(default)]
    expires_at: Option<i64>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subscription_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate_limit_tier: Option<String>,
}

/// `auth.json` of Codex.
#[derive(Serialize, Deserialize)]
struct CodexFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auth_mode: Option<String>,
    #[serde(rename = "OPENAI_API_KEY", default)]
    key: Option<String>,
    #[serde(default)]
    tokens: Option<CodexTokens>,
    #[serde(default)]
    last_refresh: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct CodexTokens {
    #[serde(default)]
    id_token: String,
    access_token: String,
    #[serde(default)]
    refresh_token: String,
    #[serde(default)]
    account_id: Option<String>,
}

/// What is read of a signed token, which is not verified here: its server does that.
#[derive(Default, Serialize, Deserialize)]
struct Claims {
    /// In seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
    #[serde(rename = "https://api.openai.com/auth", default)]
    account: AccountClaims,
}

#[derive(Default, Serialize, Deserialize)]
struct AccountClaims {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chatgpt_account_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chatgpt_plan_type: Option<String>,
}

/// The login in the `bytes` of `file`, which is at `path`.
pub(super) fn parse(
    file: LoginFile,
    bytes: &[u8],
    path: &Path,
) -> Result<LoginContent, LoginError> {
    // The reader's own words could quote a secret.
    let torn = || LoginError::Torn {
        path: path.to_owned(),
        file,
    };
    let content = match file {
        LoginFile::Claude => read::<ClaudeFile>(bytes).ok_or_else(torn)?.content(),
        LoginFile::Codex => read::<CodexFile>(bytes).ok_or_else(torn)?.content(),
    };
    content.ok_or_else(|| LoginError::NoLogin {
        path: path.to_owned(),
        file,
    })
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    json::parse_as(bytes).ok()
}

/// The texts that are there and not empty.
fn present<const N: usize>(texts: [Option<&str>; N]) -> Vec<String> {
    let there = texts.into_iter().flatten().filter(|text| !text.is_empty());
    there.map(str::to_owned).collect()
}

impl ClaudeFile {
    fn content(self) -> Option<LoginContent> {
        let login = self.login.filter(|login| !login.access_token.is_empty())?;
        let secrets = present([Some(&login.access_token), login.refresh_token.as_deref()]);
        let plan = login.subscription_type.clone();
        let expires = login.expires_at;
        let token = login.access_token.clone();
        let dummy = ClaudeLogin {
            access_token: DUMMY.to_owned(),
            refresh_token: None,
            expires_at: Some(NEVER),
            ..login
        };
        Some(LoginContent {
            token,
            account: None,
            kind: Login::File,
            plan,
            expires,
            secrets,
            dummy: Dummy::Claude(Self { login: Some(dummy) }),
        })
    }
}

impl CodexFile {
    /// A key comes before tokens, as in Codex, unless the file says which of them counts.
    fn content(self) -> Option<LoginContent> {
        let key = self.key.filter(|key| !key.is_empty());
        let tokens = self.tokens.filter(|it| !it.access_token.is_empty());
        let all = [
            key.as_deref(),
            tokens.as_ref().map(|it| it.access_token.as_str()),
            tokens.as_ref().map(|it| it.refresh_token.as_str()),
            tokens.as_ref().map(|it| it.id_token.as_str()),
        ];
        let secrets = present(all);
        let by_tokens = self.auth_mode.as_deref() == Some("chatgpt");
        let by_key = self.auth_mode.as_deref() == Some("apikey");
        if let Some(token) = key.filter(|_| !by_tokens) {
            return Some(LoginContent {
                token,
                account: None,
                kind: Login::FileKey,
                plan: None,
                expires: None,
                secrets,
                dummy: Dummy::Codex(Box::new(dummy_codex(None))),
            });
        }
        let tokens = tokens.filter(|_| !by_key)?;
        let identity = Claims::of(&tokens.id_token);
        let plan = identity.account.chatgpt_plan_type;
        let account = tokens.account_id.or(identity.account.chatgpt_account_id);
        Some(LoginContent {
            account,
            kind: Login::File,
            expires: Claims::of(&tokens.access_token)
                .exp
                .map(|exp| exp.saturating_mul(1000)),
            token: tokens.access_token,
            dummy: Dummy::Codex(Box::new(dummy_codex(plan.clone()))),
            plan,
            secrets,
        })
    }
}

/// A login of Codex by tokens, without a secret.
fn dummy_codex(plan: Option<String>) -> CodexFile {
    let claims = Claims {
        exp: Some(NEVER / 1000),
        account: AccountClaims {
            chatgpt_account_id: Some(DUMMY.to_owned()),
            chatgpt_plan_type: plan,
        },
    };
    CodexFile {
        auth_mode: None,
        key: None,
        tokens: Some(CodexTokens {
            // Codex reads it, and takes no other form.
            id_token: claims.unsigned(),
            access_token: DUMMY.to_owned(),
            refresh_token: String::new(),
            account_id: Some(DUMMY.to_owned()),
        }),
        last_refresh: Some(NEVER_TEXT.to_owned()),
    }
}

impl Claims {
    /// The claims of a signed token; none if it is not one.
    fn of(token: &str) -> Self {
        let claims = token.split('.').nth(1);
        let bytes = claims.and_then(|it| URL_SAFE_NO_PAD.decode(it.trim_end_matches('=')).ok());
        bytes.and_then(|bytes| read(&bytes)).unwrap_or_default()
    }

    /// A token with these claims that no server takes.
    fn unsigned(&self) -> String {
        let claims = serde_json::to_vec(self).unwrap_or_default();
        let parts: [&[u8]; 3] = [br#"{"alg":"none"}"#, &claims, DUMMY.as_bytes()];
        parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join(".")
    }
}

impl LoginContent {
    /// The file for the sandbox.
    pub(super) fn dummy(&self) -> String {
        let text = match &self.dummy {
            Dummy::Claude(file) => serde_json::to_string(file),
            Dummy::Codex(file) => serde_json::to_string(file),
        };
        text.unwrap_or_default()
    }

    /// Refuses a login that has expired at the time `now`.
    pub(super) fn require_valid(
        &self,
        file: LoginFile,
        path: &Path,
        now: i64,
    ) -> Result<(), LoginError> {
        match self.expires {
            Some(expires) if expires <= now => Err(LoginError::Expired {
                path: path.to_owned(),
                file,
                when: report::when(expires, now),
            }),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
