use super::*;

fn of(api: ModelApi, body: &str) -> Result<ModelRequest, String> {
    let path = "/v1beta/models/gemini-x:generateContent";
    read(api, path, body.as_bytes()).map_err(|error| error.to_string())
}

fn outward(request: &ModelRequest) -> Vec<&str> {
    request.outward.iter().map(String::as_str).collect()
}

#[test]
fn every_api_names_model_limit_thoughts_and_tools_in_its_own_way() {
    let messages = r#"{"model":"claude-x","max_tokens":128000,"stream":true,"unknown":{"a":1},
        "thinking":{"type":"enabled","budget_tokens":9000},
        "tools":[{"name":"Bash","input_schema":{"properties":{"file_id":{"type":"string"}}}},
                 {"type":"bash_20250124","name":"bash"}]}"#;
    let request = of(ModelApi::Messages, messages).unwrap();
    assert_eq!(
        (&*request.model, request.output_limit),
        ("claude-x", Some(128_000))
    );
    assert_eq!((request.thinking, request.streamed), (9000, true));
    assert_eq!(
        (&*request.tools.join(" "), outward(&request).len()),
        ("Bash bash", 0)
    );

    let responses = r#"{"model":"gpt-x","input":[
        {"type":"additional_tools","tools":[{"type":"namespace","name":"functions",
            "tools":[{"type":"function","name":"exec"},{"type":"namespace","name":"deep",
                "tools":[{"type":"custom","name":"er"}]}]}]},
        {"type":"message","content":[{"type":"input_text","text":"x"}]}],
        "tools":[{"type":"function","name":"shell"}]}"#;
    let request = of(ModelApi::Responses, responses).unwrap();
    assert_eq!(
        request.tools,
        ["shell", "functions.exec", "functions.deep.er"]
    );
    assert_eq!((request.output_limit, request.streamed), (None, false));

    let chat = r#"{"model":"gpt-x","max_completion_tokens":5,"n":3,"tools":[
        {"type":"function","function":{"name":"f"}}],"functions":[{"name":"old"}]}"#;
    let request = of(ModelApi::Chat, chat).unwrap();
    assert_eq!((request.output_limit, request.answers), (Some(5), 3));
    assert_eq!(request.tools, ["f", "old"]);

    let content = r#"{"contents":[],"generation_config":{"maxOutputTokens":7,
        "thinkingConfig":{"thinkingBudget":-1}},
        "tools":[{"functionDeclarations":[{"name":"glob"}]},{"googleSearch":{}}]}"#;
    let request = of(ModelApi::Content, content).unwrap();
    assert_eq!(
        (&*request.model, request.output_limit),
        ("gemini-x", Some(7))
    );
    assert_eq!(request.tools, ["glob", "googleSearch"]);
    assert_eq!(outward(&request), ["googleSearch"]);
}

#[test]
fn what_reaches_outside_is_found_where_it_stands() {
    let cases = [
        (ModelApi::Messages, r#""mcp_servers":[{}]"#, "mcp_servers"),
        (ModelApi::Messages, r#""container":"c""#, "container"),
        (
            ModelApi::Messages,
            r#""messages":[{"content":[{"source":{"type":"file","file_id":"f"}}]}]"#,
            "file_id",
        ),
        (
            ModelApi::Messages,
            r#""tools":[{"type":"computer_20250124","name":"computer"}]"#,
            "computer",
        ),
        (ModelApi::Responses, r#""background":true"#, "background"),
        (
            ModelApi::Responses,
            r#""tools":[{"type":"web_search_preview"}]"#,
            "web_search",
        ),
        (
            ModelApi::Responses,
            r#""tools":[{"type":"mcp","server_url":"u"}]"#,
            "mcp",
        ),
        (
            ModelApi::Responses,
            r#""tools":[{"type":"code_interpreter"}]"#,
            "code_interpreter",
        ),
        (
            ModelApi::Responses,
            r#""input":[{"type":"item_reference","id":"i"}]"#,
            "previous_response_id",
        ),
        (ModelApi::Responses, r#""prompt":{"id":"p"}"#, "prompt"),
        (ModelApi::Chat, r#""web_search_options":{}"#, "web_search"),
        (
            ModelApi::Content,
            r#""cachedContent":"c""#,
            "cached_content",
        ),
        (
            ModelApi::Content,
            r#""contents":[{"parts":[{"fileData":{"fileUri":"u"}}]}]"#,
            "file_id",
        ),
    ];
    for (api, field, want) in cases {
        let request = of(api, &format!("{{\"model\":\"m\",{field}}}")).unwrap();
        assert_eq!(outward(&request), [want], "{field}");
    }
    let data = r#"{"model":"m","background":false,"messages":[{"content":[
        {"type":"tool_use","input":{"file_id":"data of a tool"}}]}]}"#;
    assert!(of(ModelApi::Messages, data).unwrap().outward.is_empty());
}

#[test]
fn a_request_with_two_readings_or_none_is_refused() {
    let deep = format!(
        r#"{{"model":"m","messages":{}{}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    let cases = [
        (ModelApi::Messages, "", "cannot be read"),
        (ModelApi::Messages, "[]", "no object"),
        (ModelApi::Messages, "{}", "model"),
        (ModelApi::Messages, r#"{"model":""}"#, "no model"),
        (
            ModelApi::Messages,
            r#"{"model":"a","model":"b"}"#,
            "cannot be read",
        ),
        (
            ModelApi::Messages,
            r#"{"model":"a","Model":"b"}"#,
            "two ways",
        ),
        (
            ModelApi::Messages,
            r#"{"model":"a","maxTokens":1}"#,
            "two ways",
        ),
        (
            ModelApi::Messages,
            r#"{"model":"a","max_tokens":-1}"#,
            "max_tokens",
        ),
        (
            ModelApi::Messages,
            r#"{"model":"a","max_tokens":"9"}"#,
            "max_tokens",
        ),
        (
            ModelApi::Messages,
            r#"{"model":"a","tools":[{}]}"#,
            "without a name",
        ),
        (
            ModelApi::Messages,
            r#"{"model":"a","tools":{"name":"x"}}"#,
            "tools",
        ),
        (
            ModelApi::Chat,
            r#"{"model":"a","max_tokens":1,"max_completion_tokens":1}"#,
            "two output",
        ),
        (
            ModelApi::Content,
            r#"{"generationConfig":{},"generation_config":{}}"#,
            "cannot be read",
        ),
        (ModelApi::Messages, &deep, "cannot be read"),
        (ModelApi::Messages, "{\"model\":\"a\"} x", "cannot be read"),
    ];
    for (api, body, want) in cases {
        let error = of(api, body).unwrap_err();
        assert!(error.contains(want), "{body}: {error}");
    }
    let large = format!(r#"{{"model":"m","x":"{}"}}"#, "x".repeat(17 << 20));
    assert!(
        of(ModelApi::Messages, &large)
            .unwrap_err()
            .contains("at most")
    );
}

#[test]
fn a_tool_is_seen_whatever_stands_beside_its_name() {
    let cases = [
        (
            r#""tools":[{"type":"function","name":"x","tools":[]}]"#,
            "x",
        ),
        (
            r#""tools":[{"type":"function","name":"x","tools":[{"name":"y"}]}]"#,
            "x.y x",
        ),
        (
            r#""input":[{"type":"tool_search_output","tools":[{"name":"x"}]}]"#,
            "x",
        ),
    ];
    for (field, want) in cases {
        let request = of(ModelApi::Responses, &format!(r#"{{"model":"m",{field}}}"#)).unwrap();
        assert_eq!(request.tools.join(" "), want, "{field}");
    }
}

#[test]
fn names_with_twins_are_refused_at_any_depth() {
    let cases = [
        (
            ModelApi::Messages,
            r#""tools":[{"name":"Bash","Name":"Agent"}]"#,
        ),
        (
            ModelApi::Messages,
            r#""tools":[{"name":"Bash","ty\u0440e":"x","Type":"mcp"}]"#,
        ),
        (
            ModelApi::Responses,
            r#""input":[{"type":"additional_tools","Tools":[{"name":"x"}]}]"#,
        ),
        (
            ModelApi::Messages,
            r#""messages":[{"content":[{"type":"image","\u017fource":{"type":"url","url":"u"}}]}]"#,
        ),
        (ModelApi::Messages, r#""thinking":{"budgetTokens":9}"#),
        // A letter of full width, and a space without width.
        (ModelApi::Messages, r#""\uff54ools":[{"name":"x"}]"#),
        (
            ModelApi::Messages,
            r#""messages":[{"too\u200bls":[{"name":"x"}]}]"#,
        ),
        (
            ModelApi::Content,
            r#""generationConfig":{"maxoutputtokens":9}"#,
        ),
    ];
    for (api, field) in cases {
        let error = of(api, &format!(r#"{{"model":"m",{field}}}"#)).unwrap_err();
        assert!(error.contains("two ways"), "{field}: {error}");
    }
    // What tools declare and get is data.
    let data = r#"{"model":"m","metadata":{"Name":"x"},"tools":[{"name":"Bash",
        "input_schema":{"properties":{"Type":{},"URL":{}}}}],"messages":[{"content":[
        {"type":"tool_use","name":"Bash","input":{"Name":"x","Tools":[1]}}]}]}"#;
    assert_eq!(of(ModelApi::Messages, data).unwrap().tools, ["Bash"]);
}

#[test]
fn tools_are_seen_wherever_they_stand() {
    let cases = [
        r#""input":[{"type":"message","tools":[{"name":"x"}]}]"#,
        r#""input":[{"type":"message","content":[{"tools":[{"type":"namespace","name":"g",
            "tools":[{"name":"x"}]}]}]}]"#,
        r#""instructions":[{"type":"additional_tools","tools":[{"name":"x"}]}]"#,
        r#""extra":{"deep":[{"tools":[{"name":"x"}]}]}"#,
    ];
    for field in cases {
        let request = of(ModelApi::Responses, &format!(r#"{{"model":"m",{field}}}"#)).unwrap();
        assert!(request.tools[0].ends_with('x'), "{field}");
    }
    let listed = r#"{"model":"m","input":[{"type":"mcp_list_tools","tools":[{"name":"x"}]}]}"#;
    assert_eq!(outward(&of(ModelApi::Responses, listed).unwrap()), ["mcp"]);
}

#[test]
fn media_have_a_fixed_reserve_and_what_is_fetched_reaches_outside() {
    let url = "https://x.example/a";
    let cases = [
        (
            ModelApi::Messages,
            r#""messages":[{"content":[{"type":"image","source":{"type":"base64","data":"A"}}]}]"#
                .to_owned(),
            IMAGE_TOKENS,
            "",
        ),
        (
            ModelApi::Messages,
            format!(
                r#""messages":[{{"content":[{{"type":"tool_result","content":[{{"type":"document",
                "source":{{"type":"url","url":"{url}"}}}}]}}]}}]"#
            ),
            DOCUMENT_TOKENS,
            "url",
        ),
        (
            ModelApi::Messages,
            r#""messages":[{"content":[{"type":"document","source":{"type":"text","data":"A"}}]}]"#
                .to_owned(),
            0,
            "",
        ),
        (
            ModelApi::Chat,
            format!(
                r#""messages":[{{"content":[{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}]"#
            ),
            IMAGE_TOKENS,
            "url",
        ),
        (
            ModelApi::Responses,
            format!(r#""input":[{{"content":[{{"type":"input_file","file_url":"{url}"}}]}}]"#),
            DOCUMENT_TOKENS,
            "url",
        ),
        (
            ModelApi::Content,
            r#""contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"A"}},
                {"inline_data":{"mime_type":"application/pdf","data":"A"}}]}]"#
                .to_owned(),
            IMAGE_TOKENS + DOCUMENT_TOKENS,
            "",
        ),
    ];
    for (api, field, tokens, reached) in cases {
        let request = of(api, &format!(r#"{{"model":"m",{field}}}"#)).unwrap();
        assert_eq!(request.media_tokens, tokens, "{field}");
        assert_eq!(outward(&request).concat(), reached, "{field}");
    }
    let cached = r#"{"model":"m","system":[{"type":"text","text":"x",
        "cache_control":{"type":"ephemeral","ttl":"1h"}}]}"#;
    assert!(of(ModelApi::Messages, cached).unwrap().long_cache);
    let tool = r#"{"model":"m","tools":[{"name":"x","cache_control":{"ttl":"1h"}}]}"#;
    assert!(of(ModelApi::Messages, tool).unwrap().long_cache);
    let usual = cached.replace("1h", "5m");
    assert!(!of(ModelApi::Messages, &usual).unwrap().long_cache);
}

#[test]
fn a_query_that_could_hide_the_count_is_refused() {
    let path = |query: &str| format!("/v1beta/models/m:generateContent{query}");
    let asked = |query: &str| read(ModelApi::Content, &path(query), b"{}").is_ok();
    assert!(asked("") && asked("?alt=sse") && asked("?alt=json"));
    assert!(!asked("?fields=candidates") && !asked("?alt=sse&$fields=x") && !asked("?alt=proto"));
}

#[test]
fn names_that_hide_something_are_refused() {
    let long = format!(r#"{{"model":"{}"}}"#, "m".repeat(257));
    let cases = [
        (
            r#"{"model":"a","max_tokens":1,"max_token\u017f":9}"#,
            "two ways",
        ),
        (
            r#"{"model":"a","tools":[{"name":"known","function":{"name":"other"}}]}"#,
            "two names",
        ),
        (r#"{"model":"a\nb"}"#, "control characters"),
        (&long, "256 bytes"),
    ];
    for (body, want) in cases {
        let error = of(ModelApi::Chat, body).unwrap_err();
        assert!(error.contains(want), "{body}: {error}");
    }
}
