//! Counts the groups of methods of a class that share nothing.
//!
//! Two methods belong together if both access the same member of the class, or one calls the other.
//! Constructors access everything and methods without access say nothing; neither counts.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::scope::Method;
use crate::facts::name_hash;
use crate::groups::Groups;
use crate::language::Members;

/// The member of the class that `node` accesses, if any.
pub(super) fn part(members: Members, node: Node<'_>, source: &[u8]) -> Option<u32> {
    let Members::Through {
        words,
        object,
        part,
    } = members
    else {
        return None;
    };
    let text = |node: Node<'_>| source.get(node.byte_range()).unwrap_or_default();
    let object = text(node.child_by_field_name(object)?);
    if !words.iter().any(|word| word.as_bytes() == object) {
        return None;
    }
    let part = text(node.child_by_field_name(part)?);
    Some(name_hash(part))
}

/// Number of groups; `None` if fewer than two methods count.
pub(super) fn parts(members: Members, methods: &[Method], fields: &[u32]) -> Option<u32> {
    if members == Members::Unknown {
        return None;
    }
    let mut names: Vec<u32> = methods.iter().map(|method| method.name).collect();
    names.sort_unstable();
    let mut fields = fields.to_vec();
    fields.sort_unstable();
    let known =
        |hash: &u32| fields.binary_search(hash).is_ok() || names.binary_search(hash).is_ok();
    let touched: Vec<(u32, Vec<u32>)> = methods
        .iter()
        .filter(|method| !method.constructor)
        .map(|method| {
            let touched = match members {
                Members::Bare => method.touched.iter().copied().filter(known).collect(),
                _ => method.parts.clone(),
            };
            (method.name, touched)
        })
        .collect();
    let called = |name: u32| touched.iter().any(|(_, parts)| parts.contains(&name));
    let telling: Vec<&(u32, Vec<u32>)> = touched
        .iter()
        .filter(|(name, parts)| !parts.is_empty() || called(*name))
        .collect();
    if telling.len() < 2 {
        return None;
    }
    let mut groups = Groups::new(telling.len());
    let mut owner: BTreeMap<u32, usize> = BTreeMap::new();
    for (at, (name, parts)) in telling.iter().enumerate() {
        for part in parts.iter().chain([name]) {
            let first = *owner.entry(*part).or_insert(at);
            groups.join(first, at);
        }
    }
    u32::try_from(groups.count()).ok()
}
