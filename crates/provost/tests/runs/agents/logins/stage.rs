//! A stage whose user has a subscription.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use provost_core::secret::Known;
use serde_json::{Value, json};

use crate::agents::stage::{AgentStage, Program, Way};
use crate::stage::{Outcome, Running};

/// The year 2100, in milliseconds and in seconds.
pub(super) const LATER: [u64; 2] = [4_102_444_800_000, 4_102_444_800];

/// A way to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    ClaudeToken,
    ClaudeKey,
    ClaudeFile,
    CodexFile,
    CodexFileKey,
    GeminiKey,
}

pub(super) const ALL: [By; 6] = [
    By::ClaudeToken,
    By::ClaudeKey,
    By::ClaudeFile,
    By::CodexFile,
    By::CodexFileKey,
    By::GeminiKey,
];

impl By {
    pub(super) fn program(self) -> Program {
        match self {
            Self::ClaudeToken | Self::ClaudeKey | Self::ClaudeFile => Program::Claude,
            Self::CodexFile | Self::CodexFileKey => Program::Codex,
            Self::GeminiKey => Program::Gemini,
        }
    }

    /// The variable that holds it, unless it is in a file.
    pub(super) fn variable(self) -> Option<&'static str> {
        match self {
            Self::ClaudeToken => Some("CLAUDE_CODE_OAUTH_TOKEN"),
            Self::ClaudeKey | Self::GeminiKey => Some(self.program().variable()),
            Self::ClaudeFile | Self::CodexFile | Self::CodexFileKey => None,
        }
    }

    /// What the user types for the model, which is not at the vendor's place here.
    fn field(self) -> &'static str {
        match self {
            Self::ClaudeToken => "Authorization: Bearer $CLAUDE_CODE_OAUTH_TOKEN",
            Self::ClaudeKey => "X-Api-Key: $ANTHROPIC_API_KEY",
            Self::ClaudeFile => "Authorization: Bearer @claude",
            Self::CodexFile | Self::CodexFileKey => "Authorization: Bearer @codex",
            Self::GeminiKey => "X-Goog-Api-Key: $GEMINI_API_KEY",
        }
    }

    /// What the model gets where it is sent `token`.
    pub(super) fn sent(self, token: &str) -> String {
        match self {
            Self::ClaudeKey | Self::GeminiKey => token.to_owned(),
            Self::ClaudeToken | Self::ClaudeFile | Self::CodexFile | Self::CodexFileKey => {
                format!("Bearer {token}")
            }
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::ClaudeToken | Self::ClaudeKey | Self::ClaudeFile | Self::GeminiKey => "",
            Self::CodexFile => "/backend-api/codex",
            Self::CodexFileKey => "/v1",
        }
    }

    pub(super) fn file(self) -> &'static str {
        match self.program() {
            Program::Codex => "home/.codex/auth.json",
            Program::Claude | Program::Gemini => "home/.claude/.credentials.json",
        }
    }
}

/// A signed token with these claims.
pub(super) fn signed(claims: &Value, signature: &str) -> String {
    use base64::Engine as _;
    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let head = encode(r#"{"alg":"RS256"}"#);
    format!(
        "{head}.{}.{}",
        encode(&claims.to_string()),
        encode(signature)
    )
}

/// The tokens of one login: what is sent, and what else is in the file.
pub(super) struct Tokens {
    pub(super) sent: String,
    pub(super) all: Vec<String>,
    pub(super) content: Value,
}

pub(super) fn tokens(by: By, name: &str, [millis, seconds]: [u64; 2]) -> Tokens {
    match by {
        By::ClaudeToken | By::ClaudeFile => {
            let [sent, refresh] = ["oat", "ort"].map(|kind| format!("sk-ant-{kind}01-{name}-Xy7q"));
            let content = json!({ "claudeAiOauth": {
                "accessToken": sent, "refreshToken": refresh, "expiresAt": millis,
                "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
            } });
            Tokens {
                all: vec![sent.clone(), refresh],
                sent,
                content,
            }
        }
        By::CodexFile => {
            let account = json!({ "chatgpt_plan_type": "plus", "chatgpt_account_id": "acct-9" });
            let claims = json!({ "https://api.openai.com/auth": account, "exp": seconds });
            let [id, sent] = ["id", "access"].map(|it| signed(&claims, &format!("{it}-{name}")));
            let refresh = format!("rt-{name}-Xy7q");
            let content = json!({ "OPENAI_API_KEY": null, "tokens": {
                "id_token": id, "access_token": sent, "refresh_token": refresh,
                "account_id": "acct-9",
            }, "last_refresh": "2026-01-01T00:00:00Z" });
            Tokens {
                all: vec![id, sent.clone(), refresh],
                sent,
                content,
            }
        }
        By::CodexFileKey | By::ClaudeKey | By::GeminiKey => {
            let sent = match by {
                By::ClaudeKey => format!("sk-ant-api03-{name}-Xy7q"),
                By::GeminiKey => format!("AIza-{name}-Xy7q"),
                _ => format!("sk-key-{name}-Xy7q"),
            };
            Tokens {
                content: json!({ "OPENAI_API_KEY": sent }),
                all: vec![sent.clone()],
                sent,
            }
        }
    }
}

pub(super) struct LoginStage {
    pub(super) agent: AgentStage,
    pub(super) by: By,
}

impl LoginStage {
    pub(super) fn new(by: By, turns: &Value) -> Option<Self> {
        let agent = AgentStage::new(by.program(), Way::Plain, turns, "")?;
        let policy = format!(
            "[agents.it]\nadapter = \"{}\"\nbase_url = \"http://{}{}\"\n\
             [commands]\nallow = [\"sh check.sh\"]\n",
            by.program().name(),
            agent.place,
            by.path(),
        );
        agent.inner.commit(&[("provost.toml", &policy)]);
        Some(Self { agent, by })
    }

    /// Writes the login file whole, as the programs do.
    pub(super) fn write(&self, content: &str) {
        let path = self.agent.inner.path(self.by.file());
        let beside = path.with_extension("new");
        fs::write(&beside, content).unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(&beside, &path).unwrap();
    }

    pub(super) fn credential(&self) -> String {
        let (place, field) = (&self.agent.place, self.by.field());
        format!("http://{place} {field}")
    }

    pub(super) fn start(&self, tokens: &Tokens) -> Running {
        let credential = self.credential();
        let words = [
            "run",
            "make it good",
            "--json",
            "--agent",
            "it",
            "--allow",
            "src",
            "--accept",
            "sh check.sh",
            "--credential",
            &credential,
        ];
        let mut command = self.agent.command(&words);
        if let Some(variable) = self.by.variable() {
            command.env(variable, &tokens.sent);
        }
        self.agent.inner.spawn(command)
    }

    pub(super) fn run(&self, tokens: &Tokens) -> Outcome {
        self.start(tokens).wait()
    }

    /// The requests that reached the model's host and were no turn.
    pub(super) fn others(&self) -> String {
        fs::read_to_string(self.agent.inner.path("log.others")).unwrap_or_default()
    }
}

/// Searches every file below `directory` in all spellings that the secret rules know.
pub(super) fn none_below(directory: &Path, known: &Known) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            none_below(&entry.path(), known);
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).unwrap();
            assert!(!known.is_in(&bytes), "{}", entry.path().display());
        }
    }
}
