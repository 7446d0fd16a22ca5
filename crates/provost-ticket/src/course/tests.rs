use provost_core::code::Code;

use super::*;

fn oid(digit: char) -> Oid {
    Oid::try_from(digit.to_string().repeat(40)).unwrap()
}

fn report(end: AttemptEnd) -> CourseEvent {
    CourseEvent::Executed(AttemptReport {
        end,
        fence: "7.1".parse().unwrap(),
        worker: "w".to_owned(),
        bundle: Some(oid('b')),
        base: oid('0'),
    })
}

fn check(events: Vec<CourseEvent>) -> String {
    let mut course = Course::default();
    for event in events {
        course.apply(event);
    }
    match course.next() {
        CourseStep::Lease => "lease".to_owned(),
        CourseStep::Execute { number } => format!("execute {number}"),
        CourseStep::Rejudge {
            number, from, tip, ..
        } => format!("rejudge {number} {from} {}", tip.short()),
        CourseStep::Land(report) => format!("land {}", report.fence),
        CourseStep::Done(CourseEnd::Landed { fence, .. }) => format!("landed {fence}"),
        CourseStep::Done(CourseEnd::Refused(verdict)) => format!("refused {}", verdict.code),
        CourseStep::Done(CourseEnd::Cancelled) => "cancelled".to_owned(),
        CourseStep::Done(CourseEnd::Lost { reason }) => format!("lost: {reason}"),
    }
}

#[test]
fn a_run_asks_executes_and_lands() {
    let granted = || CourseEvent::Granted { number: 7 };
    let accepted = || report(AttemptEnd::Accepted);
    let refused = || report(AttemptEnd::Refused(Verdict::deny(Code::DiffRefused, "no")));
    let landed = || CourseEvent::Landing(LandingEnd::Landed { commit: oid('c') });
    let moved = || CourseEvent::Landing(LandingEnd::Moved { tip: oid('d') });
    let cases: [(Vec<CourseEvent>, &str); 9] = [
        (vec![], "lease"),
        (vec![granted()], "execute 7"),
        (vec![granted(), accepted()], "land 7.1"),
        (vec![granted(), accepted(), landed()], "landed 7.1"),
        (
            vec![granted(), accepted(), moved()],
            "rejudge 7 7.1 dddddddddd",
        ),
        (vec![granted(), accepted(), moved(), accepted()], "land 7.1"),
        (
            vec![granted(), refused(), accepted(), landed()],
            "refused DIFF_REFUSED",
        ),
        (
            vec![granted(), CourseEvent::Cancelled, accepted()],
            "cancelled",
        ),
        (vec![landed()], "lease"),
    ];
    for (events, want) in cases {
        let words = format!("{events:?}");
        assert_eq!(check(events), want, "{words}");
    }
}

#[test]
fn a_target_that_always_moves_ends_the_run() {
    let mut course = Course::default();
    course.apply(CourseEvent::Granted { number: 7 });
    for _ in 0..MOST_REJUDGED {
        course.apply(report(AttemptEnd::Accepted));
        course.apply(CourseEvent::Landing(LandingEnd::Moved { tip: oid('d') }));
        assert!(matches!(course.next(), CourseStep::Rejudge { .. }));
    }
    course.apply(report(AttemptEnd::Accepted));
    course.apply(CourseEvent::Landing(LandingEnd::Moved { tip: oid('d') }));
    assert!(matches!(
        course.next(),
        CourseStep::Done(CourseEnd::Lost { .. })
    ));
}
