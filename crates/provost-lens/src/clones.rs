//! Finds duplicated code: equal functions, nearly equal functions, and equal runs of statements.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::structure::{Category, Confidence, Family, Settings, Severity, Spot};
use provost_core::wording::counted as worded;
use rayon::slice::ParallelSliceMut as _;

use crate::facts::{StatementFact, mix};
use crate::found::{Draft, Function, counted, digits, spot};
use crate::groups::Groups;

/// The fewest tokens of a function that is compared for near equality.
const NEAR_TOKENS: u32 = 60;

/// Common part of two nearly equal functions, in percent.
const NEAR_PERCENT: usize = 80;

/// How many of the kept hashes two functions must share to be compared.
const NEAR_SHARED: usize = 16;

/// The most functions with one shingle hash; more is an idiom and no copy.
const CROWD: usize = 64;

/// How many places of one run of statements are compared with each other.
const MOST_PLACES: usize = 256;

/// All duplicates.
pub(crate) fn find(functions: &[Function<'_>], settings: &Settings) -> Vec<Draft> {
    let shared = || {
        rayon::join(
            || sharing(functions, settings),
            || windows(functions, settings),
        )
    };
    let ((exact, member_of), (pairs, windows)) = rayon::join(|| same(functions, settings), shared);
    let mut drafts: Vec<Draft> = exact;
    drafts.extend(near(functions, pairs, &member_of));
    drafts.extend(blocks(functions, settings, &windows, &member_of));
    drafts
}

/// Whether a function is large enough to be compared.
fn large(function: &Function<'_>, settings: &Settings) -> bool {
    function.lines() >= settings.min_loc && function.fact.statements >= settings.min_stmt
}

/// Confidence of a copy: copies among tests, or with syntax errors in them, decide nothing.
fn confidence<'a>(members: impl Iterator<Item = &'a Function<'a>>) -> Confidence {
    let (mut tests, mut unsound) = (true, false);
    for member in members {
        tests &= member.test;
        unsound |= member.fact.unsound;
    }
    if tests || unsound {
        Confidence::Low
    } else {
        Confidence::High
    }
}

/// Groups of equal functions, and for each function in a group its hash.
fn same(functions: &[Function<'_>], settings: &Settings) -> (Vec<Draft>, HashMap<usize, u64>) {
    let mut shapes: Vec<(usize, u64, usize)> = functions
        .iter()
        .enumerate()
        .filter(|(_, function)| large(function, settings))
        .map(|(at, function)| (function.language, function.fact.shape, at))
        .collect();
    shapes.sort_unstable();
    let groups: Vec<((usize, u64), Vec<usize>)> = shapes
        .chunk_by(|one, other| (one.0, one.1) == (other.0, other.1))
        .filter(|group| group.len() > 1)
        .map(|group| {
            let members = group.iter().map(|(_, _, at)| *at).collect();
            ((group[0].0, group[0].1), members)
        })
        .collect();
    let mut member_of = HashMap::new();
    for ((_, shape), members) in &groups {
        member_of.extend(members.iter().map(|at| (*at, *shape)));
    }
    let inner = inside_others(functions, &member_of);
    let mut drafts = Vec::new();
    for ((_, shape), members) in &groups {
        // Functions inside copies are copies too, which adds nothing.
        if members.iter().all(|at| inner.contains(at)) {
            continue;
        }
        let all = || members.iter().map(|at| &functions[*at]);
        let count = members.len();
        drafts.push(Draft {
            head: "clone:function",
            key: digits(*shape),
            family: Family::Clone,
            category: Category::Function,
            severity: if count > 3 {
                Severity::Critical
            } else {
                Severity::Warning
            },
            confidence: confidence(all()),
            symbol: functions[members[0]].fact.name.clone().into_owned(),
            places: all().map(Function::spot).collect(),
            value: counted(count),
            limit: 1,
            shape: digits(*shape),
            message: format!("{} do the same", worded(count, "function")),
        });
    }
    (drafts, member_of)
}

/// Functions inside another one that is a member of a group.
fn inside_others(functions: &[Function<'_>], members: &HashMap<usize, u64>) -> HashSet<usize> {
    let mut numbers: Vec<usize> = members.keys().copied().collect();
    // Sorted by start; of equal starts the longest comes first.
    numbers.sort_unstable_by_key(|at| {
        let function = &functions[*at];
        let end = std::cmp::Reverse(function.fact.end_line);
        (function.path, function.fact.line, end)
    });
    let mut inner = HashSet::new();
    let mut around: Option<usize> = None;
    for at in numbers {
        let function = &functions[at];
        let covered = around.is_some_and(|other| {
            let outer = &functions[other];
            outer.path == function.path && outer.fact.end_line >= function.fact.end_line
        });
        if covered {
            inner.insert(at);
        } else {
            around = Some(at);
        }
    }
    inner
}

/// Groups of nearly equal functions.
fn near(
    functions: &[Function<'_>],
    pairs: Vec<(usize, usize)>,
    member_of: &HashMap<usize, u64>,
) -> Vec<Draft> {
    let mut groups = Groups::new(functions.len());
    let mut joined = HashSet::new();
    for (one, other) in pairs {
        let same = member_of
            .get(&one)
            .is_some_and(|key| member_of.get(&other) == Some(key));
        if !same && alike(&functions[one], &functions[other]) {
            groups.join(one, other);
            joined.extend([one, other]);
        }
    }
    let mut clusters: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in joined {
        clusters.entry(groups.leader(at)).or_default().push(at);
    }
    clusters
        .into_values()
        .map(|members| near_draft(functions, members))
        .collect()
}

/// Pairs of functions that share enough of the kept hashes to be compared, sorted.
fn sharing(functions: &[Function<'_>], settings: &Settings) -> Vec<(usize, usize)> {
    let compared: Vec<usize> = (0..functions.len())
        .filter(|at| {
            let function = &functions[*at];
            large(function, settings) && function.fact.tokens >= NEAR_TOKENS
        })
        .collect();
    // Hash and index of the compared function, as one number that sorts fast.
    let mut holders: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (place, at) in compared.iter().enumerate() {
        let function = &functions[*at];
        let list = holders.entry(function.language).or_default();
        let hashes = function.fact.sketch.all();
        list.extend(hashes.map(|hash| (u64::from(hash) << HASH) | place as u64));
    }
    let mut counts = vec![0; compared.len()];
    let mut pairs = Vec::new();
    for list in holders.values_mut() {
        list.par_sort_unstable();
        for (one, other) in sharing_in(list, &mut counts) {
            pairs.push((compared[one], compared[other]));
        }
    }
    pairs.sort_unstable();
    pairs
}

/// The pairs among the `holders` of one language, which are sorted; `counts` must be all zero.
fn sharing_in(holders: &[u64], counts: &mut [usize]) -> Vec<(usize, usize)> {
    // The index of each function that shares a hash with later ones, and its place among the
    // holders.
    let mut sharing: Vec<u64> = Vec::with_capacity(holders.len() / 2);
    let mut from = 0;
    for same in holders.chunk_by(|one, other| one >> HASH == other >> HASH) {
        if (2..=CROWD).contains(&same.len()) {
            let all = same.iter().zip(from..).take(same.len() - 1);
            sharing.extend(all.map(|(one, at)| (one << HASH) | at));
        }
        from += same.len() as u64;
    }
    sharing.par_sort_unstable();
    let mut pairs = Vec::new();
    for all in sharing.chunk_by(|one, other| one >> HASH == other >> HASH) {
        let others = || {
            all.iter().flat_map(|one| {
                let rest = holders.get(place_of(*one)..).unwrap_or_default();
                let hash = rest.first().map(|first| first >> HASH);
                let later = rest.iter().skip(1);
                later.take_while(move |other| Some(*other >> HASH) == hash)
            })
        };
        others().for_each(|other| counts[place_of(*other)] += 1);
        let one = all.first().map_or(0, |one| place_of(one >> HASH));
        // A count is reset at its first use, so later ones find zero.
        for other in others().map(|other| place_of(*other)) {
            if std::mem::take(&mut counts[other]) >= NEAR_SHARED {
                pairs.push((one, other));
            }
        }
    }
    pairs
}

/// Bits of an index beside a hash; there are fewer functions than that.
const HASH: u32 = 32;

fn place_of(holder: u64) -> usize {
    usize::try_from(holder & u64::from(u32::MAX)).unwrap_or(usize::MAX)
}

/// Whether enough of two functions is equal, estimated from the smallest hashes of both.
fn alike(one: &Function<'_>, other: &Function<'_>) -> bool {
    let (left, right) = (&one.fact.sketch, &other.fact.sketch);
    let most = left.len().min(right.len());
    let (mut a, mut b, mut seen, mut both) = (0, 0, 0, 0);
    // The smallest hashes of the union, and how many of them are in both.
    while seen < most && (a < left.len() || b < right.len()) {
        seen += 1;
        match (left.get(a), right.get(b)) {
            (Some(x), Some(y)) if x == y => {
                both += 1;
                a += 1;
                b += 1;
            }
            (Some(x), Some(y)) if x < y => a += 1,
            (Some(_), None) => a += 1,
            _ => b += 1,
        }
    }
    both * 100 >= seen * NEAR_PERCENT
}

fn near_draft(functions: &[Function<'_>], mut members: Vec<usize>) -> Draft {
    members.sort_unstable();
    let all = || members.iter().map(|at| &functions[*at]);
    let mut shapes: Vec<u64> = all().map(|function| function.fact.shape).collect();
    shapes.sort_unstable();
    let key = shapes.iter().fold(0, |hash, shape| mix(hash, *shape));
    let count = members.len();
    Draft {
        head: "clone:near",
        key: digits(key),
        family: Family::Clone,
        category: Category::Near,
        severity: Severity::Info,
        confidence: confidence(all()).min(Confidence::Medium),
        symbol: functions[members[0]].fact.name.clone().into_owned(),
        places: all().map(Function::spot).collect(),
        value: counted(count),
        limit: 1,
        shape: digits(key),
        message: format!("{} are nearly the same", worded(count, "function")),
    }
}

/// A function, and one of its outermost statements.
type Place = (usize, usize);

/// A run of statements: the function, the first statement, the count.
type Run = (usize, usize, usize);

/// Consecutive statements: the hash of all of them, and their place.
type Window = (u64, u32, u32);

/// All windows of the minimal number of statements, by language and sorted, so that equal ones are
/// adjacent.
fn windows(functions: &[Function<'_>], settings: &Settings) -> BTreeMap<usize, Vec<Window>> {
    let width = settings.block_min_stmt as usize;
    let mut windows: BTreeMap<usize, Vec<Window>> = BTreeMap::new();
    for (at, function) in functions.iter().enumerate() {
        let block = &function.fact.block;
        let count = (block.len() + 1).saturating_sub(width);
        if count == 0 {
            continue;
        }
        let list = windows.entry(function.language).or_default();
        for first in 0..count {
            let fold = |hash: u64, statement: StatementFact| mix(hash, statement.0);
            let hash = block.run(first, width).fold(11, fold);
            list.push((hash, counted(at), counted(first)));
        }
    }
    for list in windows.values_mut() {
        list.par_sort_unstable();
    }
    windows
}

/// Runs of statements among `windows` that occur twice.
fn blocks(
    functions: &[Function<'_>],
    settings: &Settings,
    windows: &BTreeMap<usize, Vec<Window>>,
    member_of: &HashMap<usize, u64>,
) -> Vec<Draft> {
    let width = settings.block_min_stmt as usize;
    let mut pairs: Vec<(Place, Place, usize)> = Vec::new();
    let lists = windows
        .values()
        .flat_map(|list| list.chunk_by(|one, other| one.0 == other.0));
    for list in lists.filter(|list| list.len() > 1) {
        let list = list.iter().take(MOST_PLACES);
        let list: Vec<Place> = list
            .map(|(_, at, first)| (*at as usize, *first as usize))
            .collect();
        for (place, one) in list.iter().enumerate() {
            // Within one function a run must not overlap its own copy.
            let apart = |other: &&Place| other.0 != one.0 || other.1 - one.1 >= width;
            // The next few suffice: what equals both is found from there.
            for other in list[place + 1..].iter().filter(apart).take(4) {
                let key = member_of.get(&one.0);
                let same = key.is_some() && key == member_of.get(&other.0);
                if !same && let Some(count) = run(functions, *one, *other) {
                    pairs.push((*one, *other, count));
                }
            }
        }
    }
    pairs.retain(|pair| enough(functions, settings, pair));
    // The longest first; what lies inside those is the same duplicate again.
    pairs.sort_unstable_by_key(|(one, other, count)| (std::cmp::Reverse(*count), *one, *other));
    let mut covered: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
    let mut runs: BTreeMap<(usize, u64), Vec<Run>> = BTreeMap::new();
    for (one, other, count) in pairs {
        let known = |place: Place| {
            let list = covered.get(&place.0).into_iter().flatten();
            list.clone()
                .any(|(from, to)| *from <= place.1 && place.1 + count <= *to)
        };
        if known(one) && known(other) {
            continue;
        }
        let block = functions[one.0].fact.block.run(one.1, count);
        let key = block.fold(13, |hash, statement| mix(hash, statement.0));
        let places = runs.entry((functions[one.0].language, key)).or_default();
        for place in [one, other] {
            let run = (place.0, place.1, count);
            if !places.contains(&run) {
                places.push(run);
            }
            let list = covered.entry(place.0).or_default();
            list.push((place.1, place.1 + count));
        }
    }
    runs.into_iter()
        .map(|((_, key), places)| block_draft(functions, key, &places))
        .collect()
}

/// How many statements two runs share, if both begin where the common part begins.
fn run(functions: &[Function<'_>], one: (usize, usize), other: (usize, usize)) -> Option<usize> {
    let hash = |(function, at): (usize, usize)| {
        functions[function]
            .fact
            .block
            .get(at)
            .map(|statement| statement.0)
    };
    let before = |(function, at): (usize, usize)| at.checked_sub(1).map(|at| (function, at));
    if let (Some(left), Some(right)) = (before(one), before(other))
        && hash(left) == hash(right)
    {
        return None;
    }
    // Within one function a run must not overlap its own copy.
    let most = if one.0 == other.0 {
        one.1.abs_diff(other.1)
    } else {
        usize::MAX
    };
    let mut count = 0;
    while count < most {
        let (left, right) = ((one.0, one.1 + count), (other.0, other.1 + count));
        if hash(left).is_none() || hash(left) != hash(right) {
            break;
        }
        count += 1;
    }
    Some(count)
}

/// Whether a run is long enough to be reported.
fn enough(
    functions: &[Function<'_>],
    settings: &Settings,
    (one, other, count): &(Place, Place, usize),
) -> bool {
    let lines = |place: &Place| {
        let mut block = functions[place.0].fact.block.run(place.1, *count);
        let first = block.next();
        match (first, block.next_back().or(first)) {
            (Some(first), Some(last)) => last.2 + 1 - first.1.min(last.2),
            _ => 0,
        }
    };
    *count >= settings.block_min_stmt as usize
        && lines(one).min(lines(other)) >= settings.block_min_loc
}

fn block_draft(functions: &[Function<'_>], key: u64, places: &[Run]) -> Draft {
    let place = |(at, first, count): &Run| -> Spot {
        let function = &functions[*at];
        let mut block = function.fact.block.run(*first, *count);
        let start = block.next();
        let line = start.map_or(0, |statement| statement.1);
        let end = block.next_back().or(start);
        let end = end.map_or(0, |statement| statement.2);
        spot(function.path, &function.fact.name, line, end)
    };
    let count = places.len();
    Draft {
        head: "clone:block",
        key: digits(key),
        family: Family::Clone,
        category: Category::Block,
        severity: Severity::Warning,
        confidence: confidence(places.iter().map(|(at, _, _)| &functions[*at])),
        symbol: places.first().map_or_else(String::new, |(at, _, _)| {
            functions[*at].fact.name.clone().into_owned()
        }),
        places: places.iter().map(place).collect(),
        value: counted(count),
        limit: 1,
        shape: digits(key),
        message: format!("{} of statements do the same", worded(count, "run")),
    }
}
