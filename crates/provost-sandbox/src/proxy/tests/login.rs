//! The login of an agent: which requests get it, and what becomes of one that cannot be used.

use std::sync::{Arc, Mutex};

use provost_core::code::Code;
use provost_core::net::credential::Credential;

use super::{Stage, replies, sized, status};
use crate::proxy::{ReadSecret, Secret, SecretField, UnusableSecret};

/// A login file that the test writes.
#[derive(Debug, Clone)]
struct Written(Arc<Mutex<Result<String, String>>>);

impl Written {
    fn new(token: &str) -> Self {
        Self(Arc::new(Mutex::new(Ok(token.to_owned()))))
    }

    fn write(&self, content: Result<&str, &str>) {
        let content = content.map(str::to_owned).map_err(str::to_owned);
        *self.0.lock().unwrap() = content;
    }
}

impl ReadSecret for Written {
    fn fields(&self) -> Result<Vec<SecretField>, UnusableSecret> {
        let token = self.0.lock().unwrap().clone().map_err(UnusableSecret)?;
        let field = |name: &str, value: String| SecretField {
            name: name.to_owned(),
            value,
        };
        Ok(vec![
            field("Authorization", format!("Bearer {token}")),
            field("ChatGPT-Account-ID", "acct-1".to_owned()),
        ])
    }
}

/// A proxy to `place` with a login for a model whose base address has the path `base`.
fn stage(place: &str, base: &str, written: &Written) -> Stage {
    let credential = format!("http://{place} Authorization: Bearer @codex");
    let credential = Credential::parse(&credential).unwrap();
    let secret = Secret::read(credential, Arc::new(written.clone())).for_model(base);
    Stage::with(&[place], |outlet| outlet.secrets.push(secret))
}

fn request(method: &str, place: &str, path: &str, fields: &str) -> String {
    format!(
        "{method} http://{place}{path} HTTP/1.1\r\nHost: {place}\r\n{fields}\
         Connection: close\r\n\r\n"
    )
}

const CODEX: &str = "/backend-api/codex";

/// Path of the base address, method, path, and whether the login is added.
const CALLS: [(&str, &str, &str, bool); 25] = [
    ("", "POST", "/v1/messages?beta=true", true),
    ("", "POST", "/v1/messages/count_tokens", true),
    ("/v1", "POST", "/v1/responses", true),
    ("/v1", "POST", "/v1/chat/completions", true),
    (CODEX, "POST", "/backend-api/codex/responses", true),
    (
        CODEX,
        "GET",
        "/backend-api/codex/models?client_version=1",
        true,
    ),
    (
        "",
        "POST",
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        true,
    ),
    ("", "GET", "/v1/models", true),
    // Keys, files, batches, accounts and their settings.
    ("", "POST", "/api/oauth/claude_cli/create_api_key", false),
    ("", "POST", "/v1/organizations/api_keys", false),
    ("", "POST", "/v1/files", false),
    ("", "POST", "/v1/messages/batches", false),
    ("", "GET", "/api/oauth/profile", false),
    ("/v1", "POST", "/v1/batches", false),
    ("/v1", "GET", "/v1/responses/resp_1", false),
    ("/v1", "POST", "/v1/uploads", false),
    (CODEX, "GET", "/backend-api/wham/settings/user", false),
    (CODEX, "GET", "/backend-api/wham/accounts/check", false),
    (CODEX, "POST", "/backend-api/ps/mcp", false),
    (CODEX, "POST", "/backend-api/codex/../files", false),
    (CODEX, "POST", "/responses", false),
    ("", "DELETE", "/v1/messages", false),
    ("", "GET", "/v1/messages", false),
    ("", "POST", "/v1/%6dessages", false),
    ("", "POST", "/", false),
];

#[test]
fn a_login_is_added_to_calls_of_the_model_and_to_nothing_else() {
    let place = replies(sized).to_string();
    let written = Written::new("t0ken");
    for (base, method, path, want) in CALLS {
        let stage = stage(&place, base, &written);
        let dummy = "authorization: Bearer dummy\r\nchatgpt-account-id: dummy\r\n";
        let reply = stage.ask(&request(method, &place, path, dummy));
        assert!(!reply.contains("dummy"), "{path}: {reply}");
        let sent = reply.contains("Authorization: Bearer t0ken\r\nChatGPT-Account-ID: acct-1");
        assert_eq!(sent, want, "{method} {path}: {reply}");
        let got = if want { "200" } else { "403" };
        assert_eq!(status(&reply), got, "{method} {path}: {reply}");
        assert_eq!(reply.contains("t0ken"), want, "{method} {path}: {reply}");
        let code = if want { Code::Ok } else { Code::NetworkRefused };
        assert_eq!(
            stage.finish(),
            [(place.clone(), method.to_owned(), want, code, 1)]
        );
    }
}

#[test]
fn a_program_cannot_use_a_login_of_its_own_at_the_model() {
    let place = replies(sized).to_string();
    let stage = stage(&place, "", &Written::new("t0ken"));
    let own = "X-Api-Key: stolen\r\nx-goog-api-key: stolen\r\nCookie: s=stolen\r\n\
        OpenAI-Organization: stolen\r\nOpenAI_Project: stolen\r\nX-Goog-User-Project: stolen\r\n";
    let reply = stage.ask(&request("POST", &place, "/v1/messages", own));
    assert!(
        reply.contains("Bearer t0ken") && !reply.contains("stolen"),
        "{reply}"
    );
    for query in [
        "key=stolen",
        "alt=sse&KEY=stolen",
        "%6bey=stolen",
        "access_token=a",
    ] {
        for path in ["/v1/messages", "/v1/models"] {
            let method = if path == "/v1/models" { "GET" } else { "POST" };
            let reply = stage.ask(&request(method, &place, &format!("{path}?{query}"), ""));
            assert_eq!(status(&reply), "403", "{query}: {reply}");
            assert!(!reply.contains("t0ken"), "{reply}");
        }
    }
    let other = "X-HTTP-Method-Override: DELETE\r\n";
    let reply = stage.ask(&request("POST", &place, "/v1/messages", other));
    assert_eq!(status(&reply), "403", "{reply}");
}

#[test]
fn an_encrypted_tunnel_to_a_place_with_a_login_is_refused() {
    let place = replies(|_| sized("never")).to_string();
    let stage = stage(&place, "", &Written::new("t0ken"));
    let reply = stage.ask(&format!(
        "CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n\x16\x03\x01 hello"
    ));
    assert!(!reply.contains("never"), "{reply}");
    let refused = (
        place.clone(),
        "CONNECT".to_owned(),
        false,
        Code::NetworkRefused,
        1,
    );
    assert_eq!(stage.finish(), [refused]);
}

#[test]
fn a_redirect_is_given_to_the_program_and_not_followed() {
    let place = replies(|head| {
        assert!(head.starts_with("POST /v1/messages "), "{head}");
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: /v1/files\r\nContent-Length: 0\r\n\r\n"
            .to_owned()
    })
    .to_string();
    let stage = stage(&place, "", &Written::new("t0ken"));
    let reply = stage.ask(&request("POST", &place, "/v1/messages", ""));
    assert_eq!(status(&reply), "307", "{reply}");
    assert!(!reply.contains("t0ken"), "{reply}");
    let reply = stage.ask(&request("POST", &place, "/v1/files", ""));
    assert_eq!(status(&reply), "403", "{reply}");
}

#[test]
fn a_login_is_read_for_each_request_and_an_unusable_one_reaches_no_server() {
    let place = replies(sized).to_string();
    let written = Written::new("first");
    let stage = stage(&place, "", &written);
    let ask = || stage.ask(&request("POST", &place, "/v1/messages", ""));
    assert!(ask().contains("Bearer first"));
    written.write(Ok("second"));
    let reply = ask();
    assert!(
        reply.contains("Bearer second") && !reply.contains("first"),
        "{reply}"
    );
    written.write(Err("the login expired 2 h ago"));
    let reply = ask();
    assert_eq!(status(&reply), "401", "{reply}");
    assert!(
        reply.contains("LOGIN_UNUSABLE: the login expired 2 h ago"),
        "{reply}"
    );
    let want = [
        (place.clone(), "POST".to_owned(), true, Code::Ok, 2),
        (
            place.clone(),
            "POST".to_owned(),
            false,
            Code::LoginUnusable,
            1,
        ),
    ];
    let mut traffic = stage.finish();
    traffic.sort_by_key(|line| !line.2);
    assert_eq!(traffic, want);
}
