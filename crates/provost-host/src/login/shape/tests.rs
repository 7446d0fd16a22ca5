use super::*;

const CLAUDE: &str = r#"{"claudeAiOauth":{"accessToken":"sk-ant-oat01-abc","refreshToken":
    "sk-ant-ort01-def","expiresAt":1700000000000,"scopes":["user:inference"],
    "subscriptionType":"max","rateLimitTier":"t","later":{"a":1}},"mcpOAuth":{}}"#;

fn parsed(file: LoginFile, text: &str) -> Result<LoginContent, LoginError> {
    parse(file, text.as_bytes(), Path::new("/home/ann/login"))
}

/// A token with these claims.
fn signed(claims: &str) -> String {
    let parts = ["{\"alg\":\"RS256\"}", claims, "signature"];
    parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join(".")
}

/// The file of a user of Codex with a subscription.
fn codex() -> String {
    let id = signed(
        r#"{"email":"ann@example.com","https://api.openai.com/auth":
            {"chatgpt_plan_type":"plus","chatgpt_account_id":"acct-of-claims"}}"#,
    );
    let access = signed(r#"{"exp":1700000000,"scp":["a"]}"#);
    format!(
        r#"{{"OPENAI_API_KEY":null,"tokens":{{"id_token":"{id}","access_token":"{access}",
            "refresh_token":"rt-1","account_id":"acct-1"}},"last_refresh":"2026-01-01T00:00:00Z"}}"#
    )
}

#[test]
fn the_login_of_claude_code_has_a_token_a_plan_and_an_expiry() {
    let login = parsed(LoginFile::Claude, CLAUDE).unwrap();
    assert_eq!(login.token, "sk-ant-oat01-abc");
    assert_eq!(login.secrets, ["sk-ant-oat01-abc", "sk-ant-ort01-def"]);
    assert_eq!(
        (login.plan.as_deref(), login.expires),
        (Some("max"), Some(1_700_000_000_000))
    );
    assert_eq!((login.kind, login.account.is_none()), (Login::File, true));
    let want = concat!(
        r#"{"claudeAiOauth":{"accessToken":"kept-outside-the-box","expiresAt":4102444800000,"#,
        r#""scopes":["user:inference"],"subscriptionType":"max","rateLimitTier":"t"}}"#
    );
    assert_eq!(login.dummy(), want);
}

#[test]
fn the_login_of_codex_has_a_token_an_account_and_an_expiry() {
    let login = parsed(LoginFile::Codex, &codex()).unwrap();
    assert_eq!(login.account.as_deref(), Some("acct-1"));
    assert_eq!(
        (login.plan.as_deref(), login.expires),
        (Some("plus"), Some(1_700_000_000_000))
    );
    assert_eq!((login.kind, login.secrets.len()), (Login::File, 3));
    assert!(login.secrets.contains(&login.token) && login.secrets.contains(&"rt-1".to_owned()));
    let dummy = login.dummy();
    for secret in &login.secrets {
        assert!(!dummy.contains(secret.as_str()), "{dummy}");
    }
    assert!(!dummy.contains("acct-1"), "{dummy}");
    // What Codex reads of it is there.
    let again = parsed(LoginFile::Codex, &dummy).unwrap();
    assert_eq!(
        (again.token.as_str(), again.plan.as_deref()),
        (DUMMY, Some("plus"))
    );
    let unnamed = codex().replace(r#","account_id":"acct-1""#, "");
    let login = parsed(LoginFile::Codex, &unnamed).unwrap();
    assert_eq!(login.account.as_deref(), Some("acct-of-claims"));
}

#[test]
fn a_key_in_the_file_of_codex_comes_first_unless_the_file_says_otherwise() {
    let both = codex().replace("null", "\"sk-key\"");
    let mode = |mode: &str| both.replacen('{', &format!(r#"{{"auth_mode":"{mode}","#), 1);
    let kind = |text: &str| {
        parsed(LoginFile::Codex, text)
            .map(|login| login.kind)
            .unwrap()
    };
    assert_eq!(kind(&both), Login::FileKey);
    assert_eq!(kind(&mode("apikey")), Login::FileKey);
    assert_eq!(kind(&mode("chatgpt")), Login::File);
    let login = parsed(LoginFile::Codex, r#"{"OPENAI_API_KEY":"sk-key"}"#).unwrap();
    assert_eq!((login.token.as_str(), login.expires), ("sk-key", None));
}

#[test]
fn what_is_no_login_is_refused_without_its_words() {
    let torn = [
        (LoginFile::Claude, &CLAUDE[..90]),
        (LoginFile::Claude, ""),
        (LoginFile::Claude, "\0\0\0"),
        (LoginFile::Claude, "[]"),
        (LoginFile::Claude, r#"{"claudeAiOauth":{"accessToken":7}}"#),
        (LoginFile::Codex, r#"{"tokens":{"refresh_token":"secret"}}"#),
        (LoginFile::Codex, r#"{"OPENAI_API_KEY":["secret"]}"#),
    ];
    for (file, text) in torn {
        let error = parsed(file, text).err().unwrap();
        assert!(matches!(error, LoginError::Torn { .. }), "{text}: {error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let empty = [
        (LoginFile::Claude, "{}"),
        (LoginFile::Claude, r#"{"claudeAiOauth":null}"#),
        (LoginFile::Claude, r#"{"claudeAiOauth":{"accessToken":""}}"#),
        (LoginFile::Codex, "{}"),
        (LoginFile::Codex, r#"{"OPENAI_API_KEY":"","tokens":null}"#),
        (
            LoginFile::Codex,
            r#"{"auth_mode":"apikey","tokens":{"access_token":"a"}}"#,
        ),
    ];
    for (file, text) in empty {
        let error = parsed(file, text).err().unwrap();
        assert!(
            matches!(error, LoginError::NoLogin { .. }),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_login_is_refused_from_the_moment_it_expires() {
    let login = parsed(LoginFile::Claude, CLAUDE).unwrap();
    let at = |now: i64| login.require_valid(LoginFile::Claude, Path::new("/h/login"), now);
    assert!(at(1_699_999_999_999).is_ok());
    let error = at(1_700_000_000_000 + 3 * 3_600_000).unwrap_err();
    let want = "the login of Claude Code in `/h/login` expired 3 h ago (2023-11-14 22:13:20 UTC)";
    assert_eq!(error.to_string(), want);
    assert!(
        error.hint().contains("claude auth login"),
        "{}",
        error.hint()
    );
    assert!(at(1_700_000_000_000).is_err());
    assert_eq!(
        report::when(1_700_000_000_000, 1_700_000_000_000 - 90_000),
        "expires in 90 s (2023-11-14 22:13:20 UTC)"
    );
}
