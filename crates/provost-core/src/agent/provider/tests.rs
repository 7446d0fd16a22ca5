use super::*;
use crate::agent::launch::{self, Answer};

fn adapter(name: &str) -> Adapter {
    Adapter::named(name).unwrap()
}

/// The agent `name` with this `login` in its policy, resolved for a user with the logins `found`.
fn logged_in(name: &str, login: Login, found: &[Login]) -> Provider {
    let adapter = adapter(name);
    let found = found.iter().map(|login| (adapter, *login)).collect();
    let provider = adapter.plain_with(login).unwrap().provider.unwrap();
    provider.with_login(adapter, &[], &FoundLogins(found))
}

#[test]
fn an_agent_uses_the_first_login_that_its_user_has_unless_the_policy_chooses() {
    use Login::{Brokered, File, FileKey, Key, None, Token};
    const KEY: &str = "X-Api-Key: $ANTHROPIC_API_KEY";
    const TOKEN: &str = "Authorization: Bearer $CLAUDE_CODE_OAUTH_TOKEN";
    const FILE: &str = "Authorization: Bearer @claude";
    const CODEX_KEY: &str = "Authorization: Bearer $OPENAI_API_KEY";
    const CODEX: &str = "Authorization: Bearer @codex";
    let cases: [(&str, Login, &[Login], &str); 12] = [
        ("claude", Brokered, &[Key, Token, File], KEY),
        ("claude", Brokered, &[Token, File], TOKEN),
        ("claude", Brokered, &[File], FILE),
        ("claude", Brokered, &[], KEY),
        ("claude", File, &[Key, Token, File], FILE),
        ("claude", Token, &[Key], TOKEN),
        ("claude", Key, &[Token, File], KEY),
        ("codex", Brokered, &[Key, File], CODEX_KEY),
        ("codex", Brokered, &[FileKey], CODEX),
        ("codex", File, &[Key, FileKey], CODEX),
        ("codex", File, &[], CODEX),
        (
            "gemini",
            Brokered,
            &[Key],
            "X-Goog-Api-Key: $GEMINI_API_KEY",
        ),
    ];
    for (name, login, found, want) in cases {
        let provider = logged_in(name, login, found);
        assert!(
            provider.is_makers_own(adapter(name)),
            "{name} {login:?} {found:?}"
        );
        let credential = provider.credential(adapter(name)).unwrap().to_string();
        assert!(
            credential.ends_with(want),
            "{name} {login:?} {found:?}: {credential}"
        );
    }
    assert_eq!(
        logged_in("claude", None, &[Key]).credential(adapter("claude")),
        Option::None
    );
}

#[test]
fn the_place_of_the_vendor_follows_the_login_and_no_other_place_does() {
    let url = |login, found: &[Login]| logged_in("codex", login, found).base_url.to_string();
    let (api, chat) = (
        "https://api.openai.com:443/v1",
        "https://chatgpt.com:443/backend-api/codex",
    );
    assert_eq!(url(Login::Brokered, &[Login::Key, Login::File]), api);
    assert_eq!(url(Login::Brokered, &[Login::File]), chat);
    assert_eq!(url(Login::Brokered, &[Login::FileKey]), api);
    assert_eq!(url(Login::File, &[Login::FileKey]), api);
    let elsewhere = Provider {
        base_url: BaseUrl::parse("https://models.example.com/v1").unwrap(),
        login: Login::Brokered,
    };
    let found = FoundLogins(vec![(adapter("codex"), Login::File)]);
    let provider = elsewhere.clone().with_login(adapter("codex"), &[], &found);
    assert_eq!(provider.base_url, elsewhere.base_url);
    // What the user typed for the place decides before what was found.
    let typed = "https://models.example.com Authorization: Bearer $OPENAI_API_KEY";
    let typed = [typed.parse().unwrap()];
    let provider = elsewhere.with_login(adapter("codex"), &typed, &found);
    assert_eq!(provider.login, Login::Brokered);
}

#[test]
fn a_program_finds_a_dummy_where_it_looks_for_its_login() {
    let environment =
        |name: &str, login| launch::environment(&adapter(name).plain_with(login).unwrap());
    let claude = environment("claude", Login::Token);
    assert_eq!(claude["CLAUDE_CODE_OAUTH_TOKEN"], "kept-outside-the-box");
    for (name, login) in [("claude", Login::Token), ("claude", Login::File)] {
        // It would come first.
        assert!(
            !environment(name, login).contains_key("ANTHROPIC_API_KEY"),
            "{login:?}"
        );
    }
    assert!(environment("codex", Login::FileKey).contains_key("OPENAI_API_KEY"));
    assert!(!environment("codex", Login::File).contains_key("OPENAI_API_KEY"));
    let words = |login| {
        let codex = adapter("codex").plain_with(login).unwrap();
        launch::argv(&codex, Answer::Free).join(" ")
    };
    assert!(words(Login::File).contains("requires_openai_auth=true"));
    assert!(words(Login::File).contains("base_url=\"http://chatgpt.com:443/backend-api/codex\""));
    assert!(!words(Login::File).contains("env_key"));
    assert!(words(Login::FileKey).contains("env_key=\"OPENAI_API_KEY\""));
}
