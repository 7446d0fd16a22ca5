//! Checks a chain: several contracts, and which of them start from the results of which others.
//!
//! A [`Chain`] that exists can be run: every contract keeps the rules, no node waits for itself, and
//! work is passed on no more often than the document permits. If the document has a parent, no node
//! may do more than the parent on any axis; see [`grant`].

use std::collections::{BTreeMap, BTreeSet};

use provost_core::code::Code;
use provost_core::contract::check::{self, Rules};
use provost_core::contract::{self, Contract, Problem};
use provost_core::object::{Oid, sha256};
use provost_core::path::is_segment;
use serde_json::Value;

use super::{Document, grant};

/// The largest number of nodes of one chain.
pub const MOST: usize = 64;

/// How often work is passed on at most, whatever a document says.
pub const MOST_HANDOFFS: u32 = 10;

/// The id of the chain whose document has this digest and that starts from `base`.
pub fn id(sha256_of_document: &str, base: &Oid) -> String {
    let digest = sha256(format!("{sha256_of_document} {base}").as_bytes());
    format!("chain_{}", &digest[..16])
}

/// A chain that can be run.
#[derive(Debug, Clone)]
pub struct Chain {
    /// The nodes, in the order of the document.
    pub nodes: Vec<Checked>,
    /// The positions of the nodes, each after those that it needs.
    pub order: Vec<usize>,
    /// The contract that the nodes are parts of, if there is one: its commands decide about all of
    /// them together.
    pub whole: Option<contract::document::Document>,
}

/// A node whose contract keeps the rules.
#[derive(Debug, Clone)]
pub struct Checked {
    pub id: String,
    /// The positions of the nodes whose results it starts from.
    pub needs: Vec<usize>,
    pub contract: Contract,
    /// The agent of the node, if it is not that of the chain.
    pub agent: Option<String>,
}

/// Checks every rule; returns the chain or everything that is wrong with it.
pub fn check(document: &Document, rules: &Rules<'_>) -> Result<Chain, Vec<Problem>> {
    let mut problems = Problems::default();
    problems.shape(document);
    let places = problems.names(document);
    let mut needs = problems.needs(document, &places);
    let contracts = problems.contracts(document, rules);
    if let Some(contracts) = &contracts {
        one_after_the_other(contracts, &mut needs);
    }
    let order = problems.order(document, &needs);
    match &document.parent {
        Some(parent) => {
            problems.whole(parent, rules);
            problems.0.extend(grant::judge(document, parent, rules));
        }
        None => problems.orphans(document),
    }
    let (Some(order), Some(contracts)) = (order, contracts) else {
        return Err(problems.0);
    };
    if !problems.0.is_empty() {
        return Err(problems.0);
    }
    let rows = document.nodes.iter().zip(needs).zip(contracts);
    let nodes = rows.map(|((node, needs), contract)| Checked {
        id: node.id.clone(),
        needs,
        contract,
        agent: node.agent.clone(),
    });
    Ok(Chain {
        nodes: nodes.collect(),
        order,
        whole: document.parent.clone(),
    })
}

impl Chain {
    /// Every node that the node at `at` starts from, directly or not.
    pub fn behind(&self, at: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = self.nodes[at].needs.clone();
        while let Some(next) = open.pop() {
            if found.insert(next) {
                open.extend(&self.nodes[next].needs);
            }
        }
        found
    }
}

#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn add(&mut self, path: String, problem: impl Into<String>) {
        self.0.push(Problem {
            path,
            code: Code::ChainInvalid,
            problem: problem.into(),
        });
    }

    fn shape(&mut self, document: &Document) {
        if document.nodes.is_empty() {
            self.add("/nodes".to_owned(), "names nothing to do");
        }
        if document.nodes.len() > MOST {
            self.add("/nodes".to_owned(), format!("names more than {MOST} nodes"));
        }
        if !(1..=MOST_HANDOFFS).contains(&document.max_handoffs) {
            let problem = format!("is not between 1 and {MOST_HANDOFFS}");
            self.add("/max_handoffs".to_owned(), problem);
        }
    }

    /// Reports fields that need a parent, in a chain without one.
    fn orphans(&mut self, document: &Document) {
        for (at, node) in document.nodes.iter().enumerate() {
            let fields = [
                ("package", node.package.is_some()),
                ("drops", !node.drops.is_empty()),
            ];
            for (field, _) in fields.into_iter().filter(|(_, there)| *there) {
                let problem = "is taken from a `parent`, and this chain names none";
                self.add(format!("/nodes/{at}/{field}"), problem);
            }
        }
    }

    /// The contract that the nodes are parts of keeps the rules itself: its commands are run.
    fn whole(&mut self, parent: &contract::document::Document, rules: &Rules<'_>) {
        let value = serde_json::to_value(parent).unwrap_or(Value::Null);
        let found = check::check(&value, rules);
        self.0.extend(found.into_iter().map(|problem| Problem {
            path: format!("/parent{}", problem.path),
            ..problem
        }));
    }

    /// The position of each name; an invalid or repeated name is a problem.
    fn names<'a>(&mut self, document: &'a Document) -> BTreeMap<&'a str, usize> {
        let mut places = BTreeMap::new();
        for (at, node) in document.nodes.iter().enumerate() {
            if !is_segment(&node.id) {
                let problem = "may hold letters, digits, `.`, `_` and `-`, at most 128";
                self.add(format!("/nodes/{at}/id"), problem);
            }
            if let Some(first) = places.get(node.id.as_str()) {
                let problem = format!("(`{}`) is the name of /nodes/{first} already", node.id);
                self.add(format!("/nodes/{at}/id"), problem);
            } else {
                places.insert(node.id.as_str(), at);
            }
        }
        places
    }

    fn needs(&mut self, document: &Document, places: &BTreeMap<&str, usize>) -> Vec<Vec<usize>> {
        let mut needs = Vec::new();
        for (at, node) in document.nodes.iter().enumerate() {
            let mut of_node = Vec::new();
            for (number, name) in node.needs.iter().enumerate() {
                let path = format!("/nodes/{at}/needs/{number}");
                match places.get(name.as_str()) {
                    None => self.add(path, format!("(`{name}`) is no node of this chain")),
                    Some(place) if of_node.contains(place) => {
                        self.add(path, format!("(`{name}`) is there twice"));
                    }
                    Some(place) => of_node.push(*place),
                }
            }
            needs.push(of_node);
        }
        needs
    }

    /// The positions in an order in which each comes after what it needs, if there is one.
    fn order(&mut self, document: &Document, needs: &[Vec<usize>]) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = Vec::new();
        let mut handoffs = vec![0_u32; needs.len()];
        let mut left: BTreeSet<usize> = (0..needs.len()).collect();
        while let Some(next) = left
            .iter()
            .copied()
            .find(|at| needs[*at].iter().all(|need| order.contains(need)))
        {
            left.remove(&next);
            let longest = needs[next].iter().map(|need| handoffs[*need] + 1).max();
            handoffs[next] = longest.unwrap_or(0);
            order.push(next);
            if handoffs[next] > document.max_handoffs {
                let (count, most) = (handoffs[next], document.max_handoffs);
                let problem = format!("passes work on {count} times; {most} are allowed");
                self.add(format!("/nodes/{next}/needs"), problem);
            }
        }
        if left.is_empty() {
            return Some(order);
        }
        // Of the nodes that are left, some only wait for a cycle; those in it reach themselves.
        for at in left {
            if reaches(needs, at, at) {
                let problem = "is part of a circle: it waits for itself";
                self.add(format!("/nodes/{at}/needs"), problem);
            }
        }
        None
    }

    fn contracts(&mut self, document: &Document, rules: &Rules<'_>) -> Option<Vec<Contract>> {
        let mut contracts = Vec::new();
        for (at, node) in document.nodes.iter().enumerate() {
            let Some(written) = &node.contract else {
                let problem = "names no contract: write `contract` or `contract_file`";
                self.add(format!("/nodes/{at}"), problem);
                continue;
            };
            let value = serde_json::to_value(written).unwrap_or(Value::Null);
            let found = check::check(&value, rules);
            let resolved = contract::resolve_by(written.clone(), rules);
            match resolved {
                Ok(contract) if found.is_empty() => contracts.push(contract),
                _ => self.0.extend(found.into_iter().map(|problem| Problem {
                    path: format!("/nodes/{at}/contract{}", problem.path),
                    ..problem
                })),
            }
        }
        (contracts.len() == document.nodes.len()).then_some(contracts)
    }
}

/// Makes each node need the earlier ones that it declares to share a path with, unless one of the
/// two starts from the other anyway: it continues their files, and no merge has to choose.
fn one_after_the_other(contracts: &[Contract], needs: &mut [Vec<usize>]) {
    for at in 0..contracts.len() {
        for earlier in 0..at {
            let shares = contracts[at].shares.overlaps(&contracts[earlier].shares);
            if shares && !reaches(needs, at, earlier) && !reaches(needs, earlier, at) {
                needs[at].push(earlier);
            }
        }
    }
}

/// Whether `from` needs `to`, directly or not.
fn reaches(needs: &[Vec<usize>], from: usize, to: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut open: Vec<usize> = needs[from].clone();
    while let Some(next) = open.pop() {
        if next == to {
            return true;
        }
        if seen.insert(next) {
            open.extend(&needs[next]);
        }
    }
    false
}
