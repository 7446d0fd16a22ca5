//! Finds the part that broke the whole, by the commands of the whole on the first parts alone.

/// What is known about the first `n` parts together: whether the commands pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PrefixResult {
    Passes,
    Fails,
}

/// The next step of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    /// The first `n` parts together have to be tested; 0 is the base alone.
    Test(usize),
    /// The part at this position broke the whole.
    Part(usize),
}

/// The part among `parts` that turned passing commands into failing ones; the last one if they
/// never passed.
///
/// All parts together fail. If the commands pass on the base, half of what is left is tested each
/// time; otherwise the parts are taken away from the end, one by one, until the commands pass.
pub(super) fn blame(parts: usize, known: impl Fn(usize) -> Option<PrefixResult>) -> Blame {
    let last = parts.saturating_sub(1);
    if parts <= 1 {
        return Blame::Part(last);
    }
    match known(0) {
        None => Blame::Test(0),
        Some(PrefixResult::Passes) => {
            let (mut passes, mut fails) = (0, parts);
            while fails - passes > 1 {
                let middle = passes + (fails - passes) / 2;
                match known(middle) {
                    None => return Blame::Test(middle),
                    Some(PrefixResult::Passes) => passes = middle,
                    Some(PrefixResult::Fails) => fails = middle,
                }
            }
            Blame::Part(passes)
        }
        Some(PrefixResult::Fails) => {
            for count in (1..parts).rev() {
                match known(count) {
                    None => return Blame::Test(count),
                    Some(PrefixResult::Passes) => return Blame::Part(count),
                    Some(PrefixResult::Fails) => {}
                }
            }
            Blame::Part(last)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The part to blame and how many prefixes were tested, if `passes[n]` says whether the first
    /// `n` parts pass.
    fn search(passes: &[bool]) -> (usize, usize) {
        let tested = RefCell::new(BTreeMap::new());
        loop {
            match blame(passes.len(), |count| tested.borrow().get(&count).copied()) {
                Blame::Part(at) => return (at, tested.borrow().len()),
                Blame::Test(count) => {
                    let result = if passes[count] {
                        PrefixResult::Passes
                    } else {
                        PrefixResult::Fails
                    };
                    let before = tested.borrow_mut().insert(count, result);
                    assert_eq!(before, None, "{count} is tested twice");
                }
            }
        }
    }

    #[test]
    fn the_part_that_turns_passing_commands_red_is_found() {
        // Whether the first 0, 1, 2, … parts pass; all of them together never do.
        let cases: [(&str, &[bool], usize); 6] = [
            ("one part", &[true], 0),
            ("the first", &[true, false, false, false], 0),
            ("the last", &[true, true, true, true], 3),
            ("never passed", &[false, false, false], 2),
            ("passed once", &[false, false, true, false], 2),
            ("passed until the last", &[false, true, true], 2),
        ];
        for (name, passes, want) in cases {
            assert_eq!(search(passes).0, want, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_regression_is_found_in_few_tests(parts in 2_usize..64, culprit in 0_usize..64) {
            let culprit = culprit % parts;
            let passes: Vec<bool> = (0..parts).map(|count| count <= culprit).collect();
            let (found, tests) = search(&passes);
            prop_assert_eq!(found, culprit);
            prop_assert!(tests <= 2 + parts.ilog2() as usize, "{} tests", tests);
        }
    }
}
