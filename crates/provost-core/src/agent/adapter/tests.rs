use super::*;

#[test]
fn a_program_asks_for_its_makers_places_by_itself_and_for_no_others() {
    let cases = [
        ("codex", "ab.chatgpt.com:443", true),
        ("codex", "api.openai.com:443", true),
        ("codex", "notchatgpt.com:443", false),
        ("codex", "chatgpt.com.evil.example:443", false),
        ("claude", "api.anthropic.com:443", true),
        ("claude", "http-intake.logs.us5.datadoghq.com:443", true),
        ("claude", "chatgpt.com:443", false),
        ("gemini", "play.googleapis.com:443", true),
        ("gemini", "maps.googleapis.com:443", false),
        ("exec", "chatgpt.com:443", false),
        ("codex", "127.0.0.1:443", false),
    ];
    for (name, place, want) in cases {
        let adapter = Adapter::named(name).unwrap();
        let endpoint = Endpoint::parse(place).unwrap();
        assert_eq!(adapter.is_background(&endpoint), want, "{name} {place}");
    }
}

#[test]
fn an_adapter_is_written_as_its_name_and_an_unknown_name_is_refused() {
    for adapter in &ADAPTERS {
        let name = Value::from(adapter.name());
        let read: Adapter = serde_json::from_value(name.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), name);
    }
    let error = serde_json::from_value::<Adapter>(json!("cursor")).unwrap_err();
    let want = "unknown variant `cursor`, expected one of `exec`, `codex`, `claude`, `gemini`, \
        `mcp`";
    assert_eq!(error.to_string(), want);
}
