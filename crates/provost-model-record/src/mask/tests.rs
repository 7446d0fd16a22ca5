use super::*;
use serde_json::json;

#[test]
fn every_rule_is_a_pattern() {
    assert_eq!(compiled().len(), TEXT_RULES.len());
}

/// Kind, text, and the text under the mask.
const HIDDEN: &[(&str, &str, &str)] = &[
    ("id", "see 0f8fad5b-d9cb-469f-a165-70867728950e", "see <id>"),
    ("id", "at_01a1f052-3c07-7833-8e70-ed83b5b9123b", "at_<id>"),
    ("id", "run_01jz3q8m5c7v9x2k4n6p8r0stw done", "run_<id> done"),
    ("id", "01JZ3Q8M5C7V9X2K4N6P8R0STW", "<id>"),
    ("id", "toolu_01A09q90qw90lq917835lq9", "toolu_<id>"),
    ("id", "Chunk ID: 3fa9c1", "Chunk ID: <id>"),
    (
        "id",
        r#"x {"chunk_id":"6cdb12","session_id":4711,"exit_code":0}"#,
        r#"x {"chunk_id":"<id>","session_id":<id>,"exit_code":0}"#,
    ),
    (
        "id",
        r#"{"session_id":4711,"wall_time_seconds":7.1e-6,"exit_code":0,"output":"1795030633\npid=12\nx"}"#,
        r#"{"exit_code":0,"output":"<time>\npid=<id>\nx","session_id":"<id>","wall_time_seconds":"<duration>"}"#,
    ),
    ("id", "session ID 4711", "session ID <id>"),
    ("id", "pid=312", "pid=<id>"),
    (
        "id",
        "cc_entrypoint=sdk-cli; cch=0a1b2;",
        "cc_entrypoint=sdk-cli; cch=<id>;",
    ),
    ("time", "at 2026-11-18T19:37:13.123Z.", "at <time>."),
    (
        "time",
        "Today's date is 2026-11-18.",
        "Today's date is <time>.",
    ),
    ("time", "2026-11-18 19:37:13 +0100", "<time>"),
    ("time", "Wed Nov 18 19:37:13 UTC 2026", "<time>"),
    ("time", "is Wednesday, November 18, 2026 (", "is <time> ("),
    (
        "time",
        "-rw-r--r-- 1 u u 5 Nov 18 19:37 a.txt",
        "-rw-r--r-- 1 u u 5 <time> a.txt",
    ),
    ("time", "11/18/2026", "<time>"),
    ("time", "at 7:37:13 PM", "at <time>"),
    ("time", "1795030633", "<time>"),
    ("time", "1795030633123", "<time>"),
    ("time", "a 1795030633 1795030634.5", "a <time> <time>"),
    (
        "time",
        "run_shell_command_1795033752870_0",
        "run_shell_command_<time>_0",
    ),
    (
        "duration",
        "Wall time: 0.0512 seconds",
        "Wall time: <duration>",
    ),
    ("duration", "3 passed in 0.02s", "3 passed in <duration>"),
    ("duration", "took 12 ms", "took <duration>"),
    (
        "duration",
        r#"x {"exit_code":0,"duration_seconds":0.1}"#,
        r#"x {"exit_code":0,"duration_seconds":<duration>}"#,
    ),
    (
        "port",
        "http://127.0.0.1:43210/x",
        "http://127.0.0.1:<port>/x",
    ),
    ("port", "localhost:8080", "localhost:<port>"),
    ("port", "listens on port 8080", "listens on port <port>"),
    (
        "temporary",
        "cat /tmp/claude-1000/x.txt",
        "cat /tmp/<temporary>/x.txt",
    ),
    ("temporary", "/var/tmp/a.b", "/var/tmp/<temporary>"),
    ("temporary", "tmp.Xa81bcD made", "<temporary> made"),
];

#[test]
fn what_may_differ_is_hidden() {
    for (kind, before, after) in HIDDEN.iter().copied() {
        assert_eq!(text(before), after, "{kind}");
        // The mask of a masked text is the same text.
        assert_eq!(text(after), after, "{kind}");
    }
}

#[test]
fn what_is_not_in_the_mask_stays() {
    let rows = [
        "make it good",
        "exit code 0, 12 files, version 2.1.325",
        "src/a.txt:12:5: error[E0308]",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "/workspace/tmp/x and /template/y",
        "call_0 and msg_1",
        "0x1795030633 and 21795030633",
        "max 200000 tokens",
        "a ratio of 16:9 and May",
        "[not a list",
    ];
    for row in rows {
        assert_eq!(text(row), row);
    }
}

#[test]
fn fields_and_places_are_hidden_and_their_schemas_are_not() {
    let request = json!({
        "metadata": {"user_id": "user_1_session_2"},
        "prompt_cache_key": "x",
        "max_tokens": 100,
        "messages": [{"role": "user", "timestamp": 5, "content": "port 80", "pid": {"type": "integer"}}],
    });
    let masked = super::request(request.clone(), false);
    let want = json!({
        "metadata": "<id>",
        "prompt_cache_key": "<id>",
        "max_tokens": 100,
        "messages": [{"role": "user", "timestamp": "<time>", "content": "port <port>",
            "pid": {"type": "integer"}}],
    });
    assert_eq!(masked, want);
    assert_eq!(super::request(request, true)["max_tokens"], "<limit>");
}

/// The digests and the masked requests agree about what is equal.
#[test]
fn a_digest_hides_what_the_mask_hides() {
    let long = "x ".repeat(400);
    let of = |prompt: &str, id: &str, limit: u64| {
        json!({"metadata": {"user_id": id}, "max_tokens": limit, "turn_id": id,
            "messages": [{"role": "user", "content": format!("{long}{prompt}")}]})
    };
    let first = of("took 5 ms", "a", 1);
    let rows = [
        (of("took 9 ms", "b", 1), false, true),
        (of("took 9 ms", "b", 2), false, false),
        (of("took 9 ms", "b", 2), true, true),
        (of("took 9 pieces", "a", 1), false, false),
    ];
    let mut digests = MaskedDigests::default();
    for (other, lowered, equal) in rows {
        let same = digests.of(first.clone(), lowered) == digests.of(other.clone(), lowered);
        assert_eq!(same, equal, "{other}");
        let masked = super::request(first.clone(), lowered) == super::request(other, lowered);
        assert_eq!(masked, equal);
    }
    // What belongs to which field is in the digest, too.
    let (one, other) = (json!({"a": "b", "c": []}), json!({"a": [], "c": "b"}));
    assert_ne!(digests.of(one, false), digests.of(other, false));
}
