use super::*;

/// The count of a reply: tokens read, cached, written, and whether it is an estimate.
fn counted(api: ModelApi, kind: &str, body: &str) -> (u64, u64, u64, bool) {
    // With pieces of all sizes: the result must not depend on them.
    let mut all = Vec::new();
    for size in [1, 7, body.len().max(1)] {
        let mut meter = Meter::new(api);
        meter.head(200, kind.as_bytes(), None);
        body.as_bytes()
            .chunks(size)
            .for_each(|part| meter.push(part));
        let counted = meter.finish(30);
        let Usage {
            input_tokens,
            cached_tokens,
            output_tokens,
            ..
        } = counted.usage;
        all.push((
            input_tokens,
            cached_tokens,
            output_tokens,
            counted.estimated,
        ));
    }
    assert!(all.windows(2).all(|two| two[0] == two[1]), "{all:?}");
    all[0]
}

const SSE: &str = "text/event-stream; charset=utf-8";
const JSON: &str = "application/json";

#[test]
fn a_compaction_counts_although_the_sum_leaves_it_out() {
    let body = "{\"usage\":{\"input_tokens\":10,\"output_tokens\":5,\"iterations\":[\
         {\"type\":\"compaction\",\"input_tokens\":90,\"output_tokens\":2},\
         {\"type\":\"message\",\"input_tokens\":10,\"output_tokens\":5}]}}";
    assert_eq!(counted(ModelApi::Messages, JSON, body), (100, 0, 7, false));
}

#[test]
fn every_interface_says_its_tokens_in_its_own_way() {
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":\
        {\"input_tokens\":6,\"cache_read_input_tokens\":4,\"cache_creation_input_tokens\":2,\
        \"output_tokens\":1}}}\r\n\n";
    let delta = "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":50}}\n\n";
    let cases = [
        (
            ModelApi::Messages,
            SSE,
            format!("{start}{delta}"),
            (12, 4, 50),
        ),
        (
            ModelApi::Messages,
            JSON,
            "{\"type\":\"message\",\"usage\":{\"input_tokens\":6,\"output_tokens\":5}}".to_owned(),
            (6, 0, 5),
        ),
        (
            ModelApi::Responses,
            SSE,
            "data: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n\
             data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":10,\
             \"input_tokens_details\":{\"cached_tokens\":4},\"output_tokens\":5}}}"
                .to_owned(),
            (10, 4, 5),
        ),
        (
            ModelApi::Responses,
            JSON,
            "{\"usage\":{\"input_tokens\":10,\"output_tokens\":5}}".to_owned(),
            (10, 0, 5),
        ),
        (
            ModelApi::Chat,
            SSE,
            "data: {\"choices\":[],\"usage\":null}\n\ndata: {\"usage\":{\"prompt_tokens\":7,\
             \"prompt_tokens_details\":{\"cached_tokens\":3},\"completion_tokens\":9}}\n\n\
             data: [DONE]\n\n"
                .to_owned(),
            (7, 3, 9),
        ),
        (
            ModelApi::Content,
            SSE,
            "data: {\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":1}}\n\n\
             data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\
             \"promptTokenCount\":10,\"cachedContentTokenCount\":4,\"candidatesTokenCount\":5,\
             \"thoughtsTokenCount\":3,\"totalTokenCount\":18}}\n\n"
                .to_owned(),
            (10, 4, 8),
        ),
        (
            ModelApi::Content,
            JSON,
            "[{\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":1}},\
             {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\
             \"promptTokenCount\":10,\"candidatesTokenCount\":5,\"totalTokenCount\":15}}]"
                .to_owned(),
            (10, 0, 5),
        ),
    ];
    for (api, kind, body, (read, cached, written)) in cases {
        let want = (read, cached, written, false);
        assert_eq!(counted(api, kind, &body), want, "{api:?} {kind}");
    }
}

#[test]
fn what_ends_without_its_count_is_estimated_and_never_free() {
    let start = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":6,\
        \"output_tokens\":1}}}\n\n";
    let length = start.len() as u64;
    assert_eq!(
        counted(ModelApi::Messages, SSE, start),
        (6, 0, length.div_ceil(3), true)
    );
    assert_eq!(
        counted(ModelApi::Responses, SSE, "data: {}\n\n"),
        (10, 0, 4, true)
    );
    assert_eq!(
        counted(ModelApi::Chat, JSON, "{\"id\":1}"),
        (10, 0, 3, true)
    );
    assert_eq!(counted(ModelApi::Chat, JSON, "no json"), (10, 0, 3, true));
    assert_eq!(counted(ModelApi::Content, JSON, ""), (10, 0, 0, true));
    let encoded = |encoding: &[u8]| {
        let mut meter = Meter::new(ModelApi::Chat);
        meter.head(200, JSON.as_bytes(), Some(encoding));
        meter.push(b"{\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":9}}");
        meter.finish(30).estimated
    };
    assert!(encoded(b"gzip") && !encoded(b"identity"));
    let mut long = Meter::new(ModelApi::Chat);
    long.head(200, JSON.as_bytes(), None);
    for _ in 0..17 {
        long.push(&vec![b' '; 1 << 20]);
    }
    let long = long.finish(30);
    assert!(long.estimated && long.usage.output_tokens > 5 << 20);
}

#[test]
fn replies_share_the_memory_in_which_they_are_kept() {
    let total = std::sync::Arc::default();
    let meter = || {
        let meter = Meter::new(ModelApi::Chat).keeping(HeldBytes::new(&total), None);
        let mut meter = meter;
        meter.head(200, JSON.as_bytes(), None);
        meter
    };
    let mut all: Vec<Meter> = (0..6).map(|_| meter()).collect();
    for meter in &mut all {
        for _ in 0..15 {
            meter.push(&vec![b' '; 1 << 20]);
        }
    }
    let kept: usize = all.iter().map(|meter| meter.text.len()).sum();
    assert!(kept <= 64 << 20, "{kept}");
    assert!(all.iter().any(|meter| !meter.readable));
    drop(all);
    let mut next = meter();
    next.push(b"{\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":9}}");
    assert!(!next.finish(30).estimated);
}

#[test]
fn a_refused_request_costs_nothing_and_says_why() {
    let mut meter = Meter::new(ModelApi::Messages);
    meter.head(401, JSON.as_bytes(), None);
    meter.push(b"{\"type\":\"error\",\"error\":{\"message\":\"invalid \\u001bx-api-key\"}}");
    let counted = meter.finish(3000);
    assert_eq!(
        (counted.usage, counted.estimated),
        (Usage::default(), false)
    );
    assert_eq!(counted.words.as_deref(), Some("invalid x-api-key"));
}

#[test]
fn no_tokens_for_text_that_was_written_is_no_count() {
    let words = "abc".repeat(40);
    let delta = format!(
        "data: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"{words}\"}}}}\n\n\
         data: {{\"type\":\"message_delta\",\"usage\":{{\"input_tokens\":6,\"output_tokens\":0}}}}\n\n"
    );
    let chat = format!(
        "{{\"choices\":[{{\"message\":\"{words}\"}}],\"usage\":{{\"prompt_tokens\":6,\
         \"completion_tokens\":0}}}}"
    );
    let whole = format!(
        "{{\"content\":[{{\"text\":\"{words}\"}}],\"usage\":{{\"input_tokens\":6,\
         \"output_tokens\":0}}}}"
    );
    let output = format!(
        "{{\"output\":[{{\"text\":\"{words}\"}}],\"usage\":{{\"input_tokens\":6,\
         \"output_tokens\":0}}}}"
    );
    let cases = [
        (ModelApi::Messages, SSE, delta),
        (ModelApi::Messages, JSON, whole),
        (ModelApi::Responses, JSON, output),
        (ModelApi::Chat, JSON, chat),
    ];
    for (api, kind, body) in cases {
        assert_eq!(
            counted(api, kind, &body),
            (6, 0, 40, true),
            "{api:?} {kind}"
        );
    }
    let none = "{\"usage\":{\"prompt_tokens\":6,\"completion_tokens\":0}}";
    assert_eq!(counted(ModelApi::Chat, JSON, none), (6, 0, 0, false));
}

#[test]
fn a_count_before_the_end_of_a_stream_is_not_its_last() {
    let early = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}],\
        \"usage\":{\"prompt_tokens\":6,\"completion_tokens\":1}}\n\n";
    let bytes = early.len() as u64;
    assert_eq!(
        counted(ModelApi::Chat, SSE, early),
        (6, 0, bytes.div_ceil(3), true)
    );
    let last = early.replace("null", "\"stop\"");
    assert_eq!(counted(ModelApi::Chat, SSE, &last), (6, 0, 1, false));
}

#[test]
fn a_reply_is_cut_by_its_bytes_unless_its_length_was_announced() {
    let body = "{\"text\":\"the words of the reply\",\"usage\":{\"prompt_tokens\":7,";
    for announced in [true, false] {
        let mut meter = Meter::within(ModelApi::Chat, 14, true);
        meter.head(200, JSON.as_bytes(), None);
        if announced {
            meter.announce_length();
        }
        meter.push(body.as_bytes());
        assert_eq!(meter.is_beyond(), !announced);
    }
    // What cannot be read is cut in any case.
    let mut meter = Meter::within(ModelApi::Chat, 14, true);
    meter.head(200, JSON.as_bytes(), Some(b"gzip"));
    meter.announce_length();
    meter.push(body.as_bytes());
    assert!(meter.is_beyond());
}
