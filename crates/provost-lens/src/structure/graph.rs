//! Follows imports: cycles, and how deep the imports below a file go.

use std::collections::BTreeMap;

use super::Import;
use provost_core::path::RepoPath;

/// The import graph, with files as numbers.
#[derive(Debug, Default)]
pub struct Graph<'a> {
    names: Vec<&'a RepoPath>,
    edges: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
    /// The graph of those `imports` that are not deferred.
    pub fn of(imports: &'a [Import]) -> Self {
        let imports = || imports.iter().filter(|import| !import.deferred);
        let mut names: Vec<&RepoPath> = imports().map(|import| &import.to).collect();
        names.extend(imports().map(|import| &import.from));
        // Imports of one file are usually adjacent, so most duplicates go before the sort.
        names.dedup();
        names.sort_unstable();
        names.dedup();
        let number = |name: &RepoPath| names.binary_search(&name).ok();
        let mut edges = vec![Vec::new(); names.len()];
        // Imports of one file are usually adjacent, so it is looked up once for all of them.
        let mut last: Option<(&RepoPath, usize)> = None;
        for import in imports() {
            let known = last.filter(|(from, _)| **from == import.from);
            let from = known.map(|(_, from)| from).or_else(|| number(&import.from));
            if let (Some(from), Some(to)) = (from, number(&import.to)) {
                last = Some((&import.from, from));
                edges[from].push(to);
            }
        }
        Self { names, edges }
    }

    /// The graph with an edge for each number in `edges[n]`, from the file at `n` of `files`, which
    /// are sorted, to the file with that number. Files without an edge are no part of it.
    pub fn numbered(files: &[&'a RepoPath], edges: &[Vec<usize>]) -> Self {
        let mut takes_part = vec![false; files.len()];
        for (from, all) in edges.iter().enumerate().take(files.len()) {
            for to in all.iter().filter(|to| **to < files.len()) {
                takes_part[from] = true;
                takes_part[*to] = true;
            }
        }
        // The number of each file among those that have an edge.
        let mut numbers = vec![0; files.len()];
        let mut graph = Self::default();
        for (at, name) in files.iter().enumerate() {
            if takes_part[at] {
                numbers[at] = graph.names.len();
                graph.names.push(*name);
            }
        }
        for (at, _) in files.iter().enumerate().filter(|(at, _)| takes_part[*at]) {
            let all = edges.get(at).into_iter().flatten();
            let known = all.filter_map(|to| numbers.get(*to)).copied();
            graph.edges.push(known.collect());
        }
        graph
    }

    /// The cycles: files that can reach each other, two or more together, sorted.
    pub fn cycles(&self) -> Vec<Vec<&'a RepoPath>> {
        let mut cycles: Vec<Vec<&RepoPath>> = self
            .components()
            .into_iter()
            .filter(|members| members.len() > 1)
            .map(|members| {
                let mut paths: Vec<&RepoPath> = members.iter().map(|at| self.names[*at]).collect();
                paths.sort_unstable();
                paths
            })
            .collect();
        cycles.sort_unstable();
        cycles
    }

    /// The longest chain of imports below each file; a cycle has the depth of what it imports.
    pub fn depths(&self) -> BTreeMap<&'a RepoPath, u32> {
        let components = self.components();
        let mut home = vec![0; self.names.len()];
        for (number, members) in components.iter().enumerate() {
            for at in members {
                home[*at] = number;
            }
        }
        // The components that a component imports are complete before it.
        let mut depth = vec![0_u32; components.len()];
        for (number, members) in components.iter().enumerate() {
            let below = members
                .iter()
                .flat_map(|at| &self.edges[*at])
                .map(|to| home[*to])
                .filter(|other| *other != number)
                .map(|other| depth[other] + 1)
                .max();
            depth[number] = below.unwrap_or(0);
        }
        let deep = |(at, name): (usize, &&'a RepoPath)| (*name, depth[home[at]]);
        self.names.iter().enumerate().map(deep).collect()
    }

    /// Strongly connected components by Tarjan's algorithm, imported ones first. It keeps its own
    /// stack, because a chain of imports can be longer than the call stack permits.
    fn components(&self) -> Vec<Vec<usize>> {
        const UNSEEN: usize = usize::MAX;
        let count = self.names.len();
        let (mut index, mut low) = (vec![UNSEEN; count], vec![0; count]);
        let mut on_stack = vec![false; count];
        let (mut stack, mut work, mut found) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = 0;
        for root in 0..count {
            if index[root] != UNSEEN {
                continue;
            }
            work.push((root, 0));
            while let Some((at, edge)) = work.pop() {
                if edge == 0 {
                    index[at] = next;
                    low[at] = next;
                    next += 1;
                    stack.push(at);
                    on_stack[at] = true;
                }
                if let Some(to) = self.edges[at].get(edge) {
                    work.push((at, edge + 1));
                    if index[*to] == UNSEEN {
                        work.push((*to, 0));
                    } else if on_stack[*to] {
                        low[at] = low[at].min(index[*to]);
                    }
                    continue;
                }
                if low[at] == index[at] {
                    let from = stack.iter().rposition(|member| *member == at).unwrap_or(0);
                    let members = stack.split_off(from);
                    for member in &members {
                        on_stack[*member] = false;
                    }
                    found.push(members);
                }
                if let Some((parent, _)) = work.last() {
                    low[*parent] = low[*parent].min(low[at]);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(edges: &[(&str, &str)]) -> Vec<Import> {
        let path = |name: &str| RepoPath::try_from(name).unwrap();
        let edge = |(from, to): &(&str, &str)| Import {
            from: path(from),
            to: path(to),
            deferred: false,
        };
        edges.iter().map(edge).collect()
    }

    #[test]
    fn circles_are_found_and_nothing_else() {
        let edges = imports(&[
            ("a", "b"),
            ("b", "c"),
            ("c", "a"),
            ("c", "d"),
            ("d", "e"),
            ("e", "d"),
            ("x", "a"),
        ]);
        let names: Vec<Vec<&str>> = Graph::of(&edges)
            .cycles()
            .into_iter()
            .map(|cycle| cycle.into_iter().map(RepoPath::as_str).collect())
            .collect();
        assert_eq!(names, [vec!["a", "b", "c"], vec!["d", "e"]]);
    }

    #[test]
    fn depth_counts_the_longest_way_down() {
        let edges = imports(&[("a", "b"), ("b", "c"), ("a", "c"), ("d", "e"), ("e", "d")]);
        let graph = Graph::of(&edges);
        let depths: Vec<(&str, u32)> = graph
            .depths()
            .into_iter()
            .map(|(path, depth)| (path.as_str(), depth))
            .collect();
        assert_eq!(depths, [("a", 2), ("b", 1), ("c", 0), ("d", 0), ("e", 0)]);
    }

    #[test]
    fn numbers_make_the_same_graph_as_names() {
        let edges = imports(&[("b", "d"), ("b", "f"), ("d", "b"), ("f", "a")]);
        let paths = ["a", "b", "c", "d", "e", "f"].map(|name| RepoPath::try_from(name).unwrap());
        let files: Vec<&RepoPath> = paths.iter().collect();
        let numbers = [vec![], vec![3, 5], vec![], vec![1], vec![], vec![0]];
        let (named, numbered) = (Graph::of(&edges), Graph::numbered(&files, &numbers));
        assert_eq!(numbered.names, named.names);
        assert_eq!(numbered.edges, named.edges);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let names: Vec<String> = (0..50_000).map(|at| format!("m{at:05}")).collect();
        let edges: Vec<(&str, &str)> = names
            .windows(2)
            .map(|pair| (pair[0].as_str(), pair[1].as_str()))
            .collect();
        let edges = imports(&edges);
        let graph = Graph::of(&edges);
        assert_eq!(graph.cycles(), Vec::<Vec<&RepoPath>>::new());
        assert_eq!(graph.depths().values().max(), Some(&49_999));
    }
}
