use super::*;
use crate::ticket;
use crate::ticket::tests::{base, key, keys, ticket as example};

fn oid(digit: char) -> Oid {
    Oid::try_from(digit.to_string().repeat(40)).unwrap()
}

/// Facts under which a result lands; each test changes one.
struct Case {
    at_base: FleetKeys,
    at_tip: FleetKeys,
    bundle: BundleFacts,
    held: Option<u64>,
    tip: Oid,
    candidate_tree: Oid,
    policy_is_unchanged: bool,
    now: i64,
}

impl Case {
    fn good(sha256: &str) -> Self {
        Self {
            at_base: keys(&[1, 2, 3]),
            at_tip: keys(&[1, 2, 3]),
            bundle: BundleFacts {
                signer: key(2).public(),
                accepted: true,
                ticket: Some(TicketUse {
                    sha256: sha256.to_owned(),
                    fence: "7.2".to_owned(),
                }),
                contract_sha256: "c".repeat(64),
                base_commit: base(),
                policy_sha256: "d".repeat(64),
                tree: Some(oid('a')),
            },
            held: Some(7),
            tip: base(),
            candidate_tree: oid('a'),
            policy_is_unchanged: true,
            now: 1_500_000,
        }
    }
}

fn words(change: impl FnOnce(&mut Case)) -> String {
    let listed = keys(&[1]);
    let text = example().sign(&base(), &key(1));
    let opened = ticket::open(text.as_bytes(), &listed, &listed).unwrap();
    let mut case = Case::good(&opened.sha256);
    change(&mut case);
    let decision = decide(&LandingFacts {
        ticket: &opened,
        fence: "7.2".parse().unwrap(),
        held: case.held,
        bundle: &case.bundle,
        keys_at_base: &case.at_base,
        keys_at_tip: &case.at_tip,
        lander: &key(3).public(),
        tip: &case.tip,
        candidate_tree: &case.candidate_tree,
        policy_is_unchanged: case.policy_is_unchanged,
        now: case.now,
    });
    match decision {
        LandingDecision::Land => "land".to_owned(),
        LandingDecision::Moved => "moved".to_owned(),
        LandingDecision::Refuse(verdict) => format!("{}: {}", verdict.code, verdict.reason),
    }
}

/// A name, what is changed, and the code that follows.
type Broken = (&'static str, fn(&mut Case), &'static str);

#[test]
fn every_fact_must_hold() {
    assert_eq!(words(|_| ()), "land");
    assert_eq!(words(|it| it.tip = oid('9')), "moved");
    let cases: [Broken; 14] = [
        (
            "lander revoked",
            |it| {
                it.at_tip.landers.remove("key-3");
            },
            "FLEET_KEY_REFUSED",
        ),
        (
            "lander new",
            |it| {
                it.at_base.landers.remove("key-3");
            },
            "FLEET_KEY_REFUSED",
        ),
        (
            "worker revoked",
            |it| {
                it.at_tip.workers.remove("key-2");
            },
            "FLEET_KEY_REFUSED",
        ),
        (
            "worker unknown",
            |it| it.bundle.signer = key(9).public(),
            "FLEET_KEY_REFUSED",
        ),
        ("lease gone", |it| it.held = None, "FENCE_STALE"),
        ("lease of later", |it| it.held = Some(8), "FENCE_STALE"),
        (
            "other attempt",
            |it| it.bundle.ticket.as_mut().unwrap().fence = "7.1".to_owned(),
            "FENCE_STALE",
        ),
        ("no ticket", |it| it.bundle.ticket = None, "another ticket"),
        (
            "other ticket",
            |it| it.bundle.ticket.as_mut().unwrap().sha256 = "0".repeat(64),
            "another ticket",
        ),
        ("refused", |it| it.bundle.accepted = false, "was refused"),
        (
            "contract",
            |it| it.bundle.contract_sha256 = "0".repeat(64),
            "its contract",
        ),
        (
            "policy",
            |it| it.bundle.policy_sha256 = "0".repeat(64),
            "other rules",
        ),
        ("tree", |it| it.candidate_tree = oid('b'), "not the tree"),
        (
            "provost.toml",
            |it| it.policy_is_unchanged = false,
            "provost.toml",
        ),
    ];
    for (name, change, want) in cases {
        let found = words(|case| {
            // A moved target must not hide a refusal.
            case.tip = oid('9');
            change(case);
        });
        assert!(found.contains(want), "{name}: {found}");
    }
    assert!(words(|it| it.bundle.tree = None).contains("not the tree"));
    assert!(words(|it| it.now = i64::MAX).contains("deadline"));
}

#[test]
fn a_landing_is_read_back_only_with_the_key_of_a_lander() {
    let landing = FleetLanding {
        run: "run_1".to_owned(),
        ticket_sha256: "0".repeat(64),
        fence: "7.2".to_owned(),
        target: "refs/heads/main".to_owned(),
        from: oid('1'),
        bundle: oid('2'),
        landed_at: 5,
    };
    let text = landing.sign(&oid('3'), &key(3));
    let read = FleetLanding::open(text.as_bytes(), &[key(3).public()]).unwrap();
    assert_eq!(read, (oid('3'), landing));
    assert!(FleetLanding::open(text.as_bytes(), &[key(1).public()]).is_err());
    let ticket = example().sign(&base(), &key(3));
    assert!(FleetLanding::open(ticket.as_bytes(), &[key(3).public()]).is_err());
}
