use provost_evidence::dsse;

use super::*;

pub(crate) const BASE: &str = "1111111111111111111111111111111111111111";

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32], "").unwrap()
}

pub(crate) fn keys(seeds: &[u8]) -> FleetKeys {
    let listed = |seeds: &[u8]| {
        let rows = seeds
            .iter()
            .map(|seed| (format!("key-{seed}"), key(*seed).public()));
        rows.collect::<std::collections::BTreeMap<_, _>>()
    };
    FleetKeys {
        repository: "demo".to_owned(),
        submitters: listed(seeds),
        workers: listed(seeds),
        landers: listed(seeds),
    }
}

pub(crate) fn ticket() -> Ticket {
    Ticket {
        run: "run_20260101_000000_000_0123456789ab".to_owned(),
        repository: "demo".to_owned(),
        contract_sha256: "c".repeat(64),
        policy_sha256: "d".repeat(64),
        agent: "script".to_owned(),
        budget: TicketBudget::default(),
        hub: "main".to_owned(),
        target: "refs/heads/main".to_owned(),
        pool: "linux".to_owned(),
        attempts: 3,
        deadline: 2_000_000,
        issued_at: 1_000_000,
        nonce: "0123456789abcdef".to_owned(),
    }
}

pub(crate) fn base() -> Oid {
    Oid::try_from(BASE).unwrap()
}

fn signed(ticket: &Ticket, seed: u8) -> String {
    ticket.sign(&base(), &key(seed))
}

#[test]
fn a_ticket_counts_only_with_a_key_of_its_base_and_of_the_tip() {
    let cases: [(&str, &[u8], &[u8], &str); 4] = [
        (
            "listed in both",
            &[1, 2],
            &[1],
            "run_20260101_000000_000_0123456789ab by key-1",
        ),
        (
            "unknown",
            &[2],
            &[1, 2],
            "is not under [fleet.submitters] at its base commit",
        ),
        ("revoked", &[1], &[2], "no longer under [fleet.submitters]"),
        ("enrolled after the base", &[], &[1], "at its base commit"),
    ];
    for (name, at_base, at_tip, want) in cases {
        let answer = open(
            signed(&ticket(), 1).as_bytes(),
            &keys(at_base),
            &keys(at_tip),
        );
        let answer = match answer {
            Ok(opened) => format!("{} by {}", opened.ticket.run, opened.submitter),
            Err(error) => error.to_string(),
        };
        assert!(answer.contains(want), "{name}: {answer}");
    }
}

#[test]
fn no_byte_of_a_ticket_can_be_changed() {
    let text = signed(&ticket(), 1);
    let listed = keys(&[1]);
    let original = open(text.as_bytes(), &listed, &listed).unwrap();
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        if let Ok(opened) = open(&bytes, &listed, &listed) {
            // The key id is a hint that no signature covers; the ticket itself is the same.
            assert_eq!(opened.ticket, original.ticket, "byte {at}");
            assert_ne!(opened.sha256, original.sha256, "byte {at}");
        }
    }
}

#[test]
fn a_statement_of_another_kind_is_no_ticket() {
    let listed = keys(&[1]);
    let text = signed(&ticket(), 1);
    let payload = Envelope::parse(text.as_bytes())
        .unwrap()
        .unverified_payload()
        .unwrap();
    let payload = String::from_utf8(payload).unwrap();
    for (from, to) in [
        ("ticket/v1", "run/v1"),
        ("\"agent\"", "\"agens\""),
        ("\"pool\"", "\"pol\""),
    ] {
        let other = payload.replace(from, to);
        let envelope = dsse::sign(other.as_bytes(), &key(1)).render();
        assert!(open(envelope.as_bytes(), &listed, &listed).is_err(), "{to}");
    }
}

/// The name of a field, and what makes it unfit.
type Unfit = (&'static str, fn(&mut Ticket));

#[test]
fn every_field_has_a_form() {
    let cases: [Unfit; 10] = [
        ("run", |it| it.run = "../x".to_owned()),
        ("repository", |it| it.repository = String::new()),
        ("contract_sha256", |it| it.contract_sha256.truncate(63)),
        ("policy_sha256", |it| it.policy_sha256 = "g".repeat(64)),
        ("agent", |it| it.agent = "a/b".to_owned()),
        ("target", |it| it.target = "refs/heads/../main".to_owned()),
        ("target", |it| it.target = "refs/provost/x".to_owned()),
        ("attempts", |it| it.attempts = 0),
        ("deadline", |it| it.deadline = it.issued_at),
        ("nonce", |it| it.nonce = "1".to_owned()),
    ];
    let listed = keys(&[1]);
    for (field, change) in cases {
        let mut changed = ticket();
        change(&mut changed);
        let error = open(signed(&changed, 1).as_bytes(), &listed, &listed).unwrap_err();
        assert!(
            matches!(error, TicketRefusal::Field(name) if name == field),
            "{field}: {error}"
        );
    }
}

#[test]
fn a_ticket_is_about_one_contract_one_policy_and_one_base() {
    let listed = keys(&[1]);
    let opened = open(signed(&ticket(), 1).as_bytes(), &listed, &listed).unwrap();
    let (contract, policy) = ("c".repeat(64), "d".repeat(64));
    let other = "e".repeat(64);
    let (base, other_base) = (base(), Oid::try_from("2".repeat(40)).unwrap());
    let facts = TicketFacts {
        repository: "demo",
        contract_sha256: &contract,
        policy_sha256: &policy,
        base_commit: &base,
    };
    let cases = [
        (facts, None),
        (
            TicketFacts {
                repository: "x",
                ..facts
            },
            Some("repository"),
        ),
        (
            TicketFacts {
                contract_sha256: &other,
                ..facts
            },
            Some("contract"),
        ),
        (
            TicketFacts {
                policy_sha256: &other,
                ..facts
            },
            Some("policy"),
        ),
        (
            TicketFacts {
                base_commit: &other_base,
                ..facts
            },
            Some("base commit"),
        ),
    ];
    for (facts, want) in cases {
        let differs = match opened.is_about(facts) {
            Ok(()) => None,
            Err(TicketRefusal::Differs { what }) => Some(what),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(differs, want);
    }
}

#[test]
fn clocks_may_differ_by_minutes_and_no_more() {
    let listed = keys(&[1]);
    let opened = open(signed(&ticket(), 1).as_bytes(), &listed, &listed).unwrap();
    let (issued, deadline) = (1_000_000, 2_000_000);
    let cases = [
        (issued - CLOCK_SKEW - 1, "future"),
        (issued - CLOCK_SKEW, ""),
        (deadline + CLOCK_SKEW, ""),
        (deadline + CLOCK_SKEW + 1, "deadline"),
    ];
    for (now, want) in cases {
        let error = opened.is_in_time(now).err().map(|error| error.to_string());
        assert!(error.unwrap_or_default().contains(want), "{now}");
    }
    assert!(opened.is_in_time(i64::MIN).is_err() && opened.is_in_time(i64::MAX).is_err());
}
