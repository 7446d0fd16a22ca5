use super::*;

fn book(state: &Path, run: &str, day: Option<u64>, most: Option<u64>) -> SpendFiles {
    let tokens = |tokens| Budget {
        tokens,
        ..Budget::default()
    };
    let limits = SpendLimits {
        run: tokens(most),
        day: tokens(day),
    };
    SpendFiles::at(state, run, "claude", limits)
}

/// Reserves `tokens` if they are left; returns what was left too.
fn take(book: &SpendFiles, tokens: u64) -> (Option<SpendRow>, Option<u64>) {
    let mut seen = None;
    let row = book.reserve("m", &mut |left| {
        seen = left.tokens;
        let fits = left.tokens.is_none_or(|left| tokens <= left);
        fits.then_some(Amount {
            tokens,
            micro_usd: 0,
        })
    });
    (row.unwrap(), seen)
}

#[test]
fn a_reservation_that_was_never_settled_counts_in_full() {
    let state = tempfile::tempdir().unwrap();
    let first = book(state.path(), "one", Some(100), None);
    let (row, left) = take(&first, 60);
    assert_eq!(left, Some(100));
    // Another process of the same user, while the first one is at work, or after `kill -9`.
    let second = book(state.path(), "two", Some(100), None);
    assert_eq!(take(&second, 60), (None, Some(40)));
    first.settle(
        &row.unwrap(),
        Amount {
            tokens: 10,
            micro_usd: 0,
        },
        false,
    );
    assert_eq!(take(&second, 60).1, Some(90));
    let lines = all(state.path()).unwrap();
    let counted: Vec<(&str, u64, bool)> = lines
        .iter()
        .map(|line| (line.run.as_str(), line.tokens, line.settled))
        .collect();
    assert_eq!(counted, [("one", 10, true), ("two", 60, false)]);
}

#[test]
fn the_limit_of_a_run_counts_its_attempts_on_all_days_and_no_other_run() {
    let state = tempfile::tempdir().unwrap();
    let run = book(state.path(), "one", None, Some(100));
    take(&run, 30);
    let directory = state.path().join(DIRECTORY);
    let today = files(&directory).unwrap().remove(0);
    fs::copy(directory.join(&today), directory.join("2020-01-01.jsonl")).unwrap();
    take(&book(state.path(), "two", None, None), 500);
    assert_eq!(take(&run, 50), (None, Some(40)));
}

/// The file of today, and its bytes.
fn today(state: &Path) -> (PathBuf, Vec<u8>) {
    let directory = state.join(DIRECTORY);
    let path = directory.join(files(&directory).unwrap().remove(0));
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

#[test]
fn a_line_that_cannot_be_read_stops_what_is_limited_and_nothing_else() {
    let state = tempfile::tempdir().unwrap();
    let free = book(state.path(), "one", None, None);
    take(&free, 5);
    let (path, mut bytes) = today(state.path());
    bytes.extend(b"{\"id\":\"tor\n");
    fs::write(&path, bytes).unwrap();
    assert!(take(&free, 5).0.is_some());
    let limited = book(state.path(), "two", Some(100), None);
    let refused = limited.reserve("m", &mut |_| panic!("nothing is known to be left"));
    assert!(refused.is_err());
}

#[test]
fn a_last_line_that_a_crash_cut_is_repaired_and_never_lowers_what_counts() {
    let state = tempfile::tempdir().unwrap();
    let first = book(state.path(), "one", Some(100), None);
    let (row, _) = take(&first, 60);
    let (path, reserved) = today(state.path());
    let spent = Amount {
        tokens: 10,
        micro_usd: 0,
    };
    first.settle(&row.unwrap(), spent, false);
    let (_, settled) = today(state.path());
    let second = book(state.path(), "two", Some(100), None);
    // Cut in the settlement: the reservation counts.
    for end in reserved.len() + 1..settled.len() - 1 {
        fs::write(&path, &settled[..end]).unwrap();
        assert_eq!(all(state.path()).unwrap()[0].tokens, 60, "{end}");
        assert_eq!(take(&second, 60), (None, Some(40)), "{end}");
    }
    // Cut in the reservation: its request was not forwarded, and its amount counts where it can
    // be read.
    let text = String::from_utf8(reserved.clone()).unwrap();
    let amount = text.find(",\"micro_usd\"").unwrap();
    for end in 1..reserved.len() {
        fs::write(&path, &reserved[..end]).unwrap();
        let left = take(&second, 1000).1.unwrap();
        assert!((40..=100).contains(&left), "{end}: {left:?}");
        assert!(left == 40 || end < amount, "{end}: {left:?}");
        // The file has whole lines again, for every other process.
        assert!(
            fs::read(&path)
                .unwrap()
                .last()
                .is_none_or(|byte| *byte == b'\n')
        );
    }
}

#[test]
fn a_process_that_keeps_the_lock_delays_others_for_a_limited_time() {
    let state = tempfile::tempdir().unwrap();
    let limited = book(state.path(), "one", Some(100), None);
    take(&limited, 5);
    let (path, _) = today(state.path());
    let held = FileLock::try_at(&path, OFlags::RDWR, Hold::Alone).unwrap();
    assert!(held.is_some());
    let began = std::time::Instant::now();
    let refused = limited.reserve("m", &mut |_| panic!("the lock is held"));
    assert!(refused.is_err() && began.elapsed() < PATIENCE * 2);
    drop(held);
    assert_eq!(take(&limited, 5).1, Some(95));
}

#[test]
fn many_at_once_do_not_pass_the_limit_of_a_day_together() {
    let state = tempfile::tempdir().unwrap();
    let granted = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|number| {
                let state = state.path();
                scope.spawn(move || {
                    let book = book(state, &format!("r{number}"), Some(100), None);
                    (0..5).filter(|_| take(&book, 7).0.is_some()).count()
                })
            })
            .collect();
        all.into_iter()
            .map(|one| one.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(granted, 14, "100 tokens are fourteen times seven");
}
