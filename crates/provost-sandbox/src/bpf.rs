//! Writes seccomp programs, which the kernel runs for every system call.
//!
//! The kernel walks a new program once for each call it knows, so a chain of comparisons costs
//! every sandbox a good part of its start. Here a binary search finds the number.
//!
//! # Invariants
//!
//! - Every path through a program ends with an answer.
//! - A call of another architecture kills the process.

use std::collections::BTreeMap;

/// One instruction.
pub(crate) type Step = libc::sock_filter;

/// How a call is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Allow,
    /// The call fails with this errno.
    Errno(u32),
    /// The lower half of an argument decides; the kernel ignores the upper half in these calls.
    Equal {
        argument: u32,
        /// What it is compared with.
        cases: Vec<(u32, Decision)>,
        /// If it is none of them.
        otherwise: Box<Decision>,
    },
    /// Bits in the lower half of an argument decide.
    AnyBit {
        argument: u32,
        bits: u32,
        /// If one of them is set.
        then: Box<Decision>,
        /// If none is.
        otherwise: Box<Decision>,
    },
}

#[cfg(target_arch = "x86_64")]
pub(crate) const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(crate) const NATIVE: u32 = 0xc000_00b7;

pub(crate) const ALLOW: u32 = 0x7fff_0000;
pub(crate) const ERRNO: u32 = 0x0005_0000;
pub(crate) const KILL: u32 = 0x8000_0000;

const LOAD: u16 = 0x20;
const RETURN: u16 = 0x06;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_ANY_BIT: u16 = 0x45;

const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// The program that decides by `rules`, allows every other call, and takes `beyond` for numbers
/// from `end` on.
pub(crate) fn program(rules: &BTreeMap<u32, Decision>, end: u32, beyond: &Decision) -> Vec<Step> {
    let mut steps = vec![
        step(LOAD, ARCHITECTURE),
        Step {
            jt: 1,
            ..step(JUMP_IF_EQUAL, NATIVE)
        },
        step(RETURN, KILL),
        step(LOAD, NUMBER),
    ];
    steps.extend(find(&ranges(rules, end, beyond)));
    steps
}

/// The first number of every range of calls about which the decision is the same.
fn ranges<'a>(
    rules: &'a BTreeMap<u32, Decision>,
    end: u32,
    beyond: &'a Decision,
) -> Vec<(u32, &'a Decision)> {
    let mut starts = BTreeMap::from([(0, &Decision::Allow)]);
    for (number, decision) in rules.range(..end) {
        starts.insert(*number, decision);
        starts.insert(number.saturating_add(1), &Decision::Allow);
    }
    starts.insert(end, beyond);
    let mut ranges: Vec<_> = starts.into_iter().collect();
    ranges.dedup_by(|next, before| next.1 == before.1);
    ranges
}

/// Finds the range of the loaded number by binary search.
fn find(ranges: &[(u32, &Decision)]) -> Vec<Step> {
    match ranges {
        // Only an empty list of ranges gets here; no call is allowed by mistake.
        [] => vec![step(RETURN, KILL)],
        [(_, decision)] => decide(decision),
        _ => {
            let (lower, upper) = ranges.split_at(ranges.len() / 2);
            branch(JUMP_IF_AT_LEAST, upper[0].0, find(upper), find(lower))
        }
    }
}

fn decide(decision: &Decision) -> Vec<Step> {
    match decision {
        Decision::Allow => vec![step(RETURN, ALLOW)],
        Decision::Errno(errno) => vec![step(RETURN, ERRNO | errno)],
        Decision::Equal {
            argument,
            cases,
            otherwise,
        } => {
            let compare = |rest, (value, decision): &(u32, Decision)| {
                branch(JUMP_IF_EQUAL, *value, decide(decision), rest)
            };
            let compared = cases.iter().rev().fold(decide(otherwise), compare);
            [load(*argument)].into_iter().chain(compared).collect()
        }
        Decision::AnyBit {
            argument,
            bits,
            then,
            otherwise,
        } => {
            let tested = branch(JUMP_IF_ANY_BIT, *bits, decide(then), decide(otherwise));
            [load(*argument)].into_iter().chain(tested).collect()
        }
    }
}

/// Branches; both branches end with an answer.
fn branch(test: u16, value: u32, then: Vec<Step>, otherwise: Vec<Step>) -> Vec<Step> {
    let test = step(test, value);
    let over = if let Ok(length) = u8::try_from(then.len()) {
        vec![Step { jf: length, ..test }]
    } else {
        // The offset of a conditional jump is one byte.
        let length = u32::try_from(then.len()).unwrap_or(u32::MAX);
        vec![Step { jt: 1, ..test }, step(JUMP, length)]
    };
    over.into_iter().chain(then).chain(otherwise).collect()
}

/// Loads the lower half of an argument; these architectures keep it first.
fn load(argument: u32) -> Step {
    step(LOAD, ARGUMENTS + 8 * argument)
}

fn step(code: u16, value: u32) -> Step {
    Step {
        code,
        jt: 0,
        jf: 0,
        k: value,
    }
}

/// Runs a program as the kernel does.
#[cfg(test)]
pub(crate) fn run(steps: &[Step], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let (mut at, mut value) = (0, 0);
    loop {
        let step = steps[at];
        let test = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
        at += 1;
        match step.code {
            LOAD if step.k == NUMBER => value = number,
            LOAD if step.k == ARCHITECTURE => value = architecture,
            LOAD => {
                let argument = arguments[(step.k as usize - ARGUMENTS as usize) / 8];
                value = u32::try_from(argument & u64::from(u32::MAX)).unwrap();
            }
            RETURN => return step.k,
            JUMP => at += step.k as usize,
            JUMP_IF_EQUAL => at += test(value == step.k),
            JUMP_IF_AT_LEAST => at += test(value >= step.k),
            JUMP_IF_ANY_BIT => at += test(value & step.k != 0),
            code => panic!("step {code:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_programs_jump_as_far_as_they_need() {
        let errno = |number: u32| Decision::Errno(1 + number % 7);
        let rules: BTreeMap<u32, Decision> = (0..2000)
            .step_by(2)
            .map(|number| (number, errno(number)))
            .collect();
        let steps = program(&rules, 5000, &Decision::Errno(0x26));
        for number in 0..5100 {
            let want = match rules.get(&number) {
                Some(Decision::Errno(errno)) => ERRNO | errno,
                _ if number >= 5000 => ERRNO | 0x26,
                _ => ALLOW,
            };
            assert_eq!(run(&steps, NATIVE, number, [0; 6]), want, "{number}");
        }
    }
}
