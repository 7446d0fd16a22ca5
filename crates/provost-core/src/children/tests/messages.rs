use super::*;

fn family(tools: &[MessageTool]) -> Family {
    let opened = parent(&ChildGrant {
        messages: Some(MessageTool::ALL.to_vec()),
        ..grant()
    });
    let mut asks = task("one");
    asks.messages = tools.to_vec();
    let admitted = asked(&opened, &Family::default(), &asks).unwrap();
    let mut family = Family::default();
    assert!(family.start(admitted.on(base("one")).unwrap().0));
    family
}

fn draft<'a>(key: &'a str, text: &'a str) -> MessageDraft<'a> {
    MessageDraft {
        peer: "run_child_one",
        kind: MessageKind::Message,
        key,
        reply_to: None,
        text,
        redacted: 0,
        seconds: 10,
        now: 1_000,
    }
}

fn new(family: &Family, draft: &MessageDraft<'_>) -> FamilyMessage {
    match family.post("run_parent", draft) {
        Ok(Posting::New(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_sends_one_message_and_every_message_has_its_own_id() {
    let mut family = family(&[MessageTool::ReadParentMessages]);
    let first = new(&family, &draft("a", "hello"));
    assert!(family.record_message(first.clone(), None));
    assert!(!family.record_message(first.clone(), None), "once");
    let again = family.post("run_parent", &draft("a", "hello"));
    assert_eq!(again, Ok(Posting::Repeated(first.clone())));
    let other = family.post("run_parent", &draft("a", "bye")).unwrap_err();
    assert_eq!(other.code, Code::ChildKeyReused);
    assert_ne!(new(&family, &draft("b", "hello")).id, first.id);
}

#[test]
fn what_expired_is_not_read_and_a_number_is_a_cursor() {
    let mut family = family(&[]);
    for (key, until) in [("a", 5_000), ("b", 2_000), ("c", 5_000)] {
        let message = FamilyMessage {
            way: MessageWay::Received,
            until,
            ..new(&family, &draft(key, key))
        };
        assert!(family.record_message(message, None));
    }
    let read = |after: u64, now: i64| -> Vec<(u64, String)> {
        let all = family.received("run_child_one", after, now);
        all.map(|(number, it)| (number, it.text.clone())).collect()
    };
    let want = |rows: &[(u64, &str)]| -> Vec<(u64, String)> {
        rows.iter()
            .map(|(at, text)| (*at, (*text).to_owned()))
            .collect()
    };
    assert_eq!(read(0, 1_000), want(&[(1, "a"), (2, "b"), (3, "c")]));
    assert_eq!(read(0, 2_000), want(&[(1, "a"), (3, "c")]));
    assert_eq!(read(1, 3_000), want(&[(3, "c")]));
    assert_eq!(read(0, 5_000), want(&[]));
}

#[test]
fn a_stranger_a_flood_and_a_child_that_has_ended_are_refused() {
    let mut family = family(&[MessageTool::ReadParentMessages]);
    let stranger = FamilyMessage {
        peer: "run_other".to_owned(),
        ..new(&family, &draft("a", "hello"))
    };
    assert!(!family.record_message(stranger.clone(), None));
    assert!(family.record_message(stranger, Some("run_other")));
    let long = "x".repeat(40 << 10);
    for number in 0..MOST_MESSAGES {
        let key = number.to_string();
        match family.post("run_parent", &draft(&key, &long)) {
            Ok(Posting::New(message)) => assert!(family.record_message(message, None)),
            Ok(Posting::Repeated(message)) => panic!("{message:?}"),
            Err(verdict) => {
                assert_eq!(verdict.code, Code::ChildMailboxFull);
                break;
            }
        }
        assert!(number < 100, "no limit was reached");
    }
    let member = family.members[0].clone();
    assert_eq!(member.reads_messages(), Ok(()));
    assert!(family.end(ended(&member.start, ChildBudget::default())));
    let over = family.members[0].reads_messages().unwrap_err();
    assert_eq!(over.code, Code::ChildOver);
}

#[test]
fn a_child_without_the_tool_is_not_written_to() {
    let member = family(&[MessageTool::AskParent]).members[0].clone();
    let refused = member.reads_messages().unwrap_err();
    assert_eq!(refused.code, Code::ChildToolNotGranted);
}

#[test]
fn a_reference_has_one_spelling() {
    for text in [
        "tree:src/a.txt",
        "ledger:0",
        "ledger:17",
        "file:notes.txt",
        "child:run_1/said.txt",
    ] {
        assert!(ContextRef::parse(text).is_ok(), "{text}");
    }
    for text in [
        "",
        "tree:",
        "tree:/etc/passwd",
        "tree:../a",
        "tree:a/../b",
        "tree:./a",
        "tree:a//b",
        "tree:a/",
        "tree:a\\b",
        "ledger:01",
        "ledger:+1",
        "ledger:-1",
        "file:../x",
        "file:a/b",
        "file:.hidden",
        "child:run_1/other.txt",
        "child:../said.txt",
        "http://a.example",
    ] {
        let refused = ContextRef::parse(text).unwrap_err();
        assert_eq!(refused.code, Code::HandoffRefUnresolved, "{text}");
    }
}
