//! Counts the network requests of a sandbox.
//!
//! Paths, queries, fields and bodies are never recorded: they hold secrets and private data.

use std::collections::BTreeMap;

use provost_core::code::Code;
use provost_core::net::traffic::Traffic;

/// The most lines of a log; later requests are counted together, by endpoint if it was granted.
pub(super) const MOST_LINES: usize = 256;
/// The target of requests that are counted together.
const OTHERS: &str = "others";

/// The requests of a sandbox so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TrafficLog(BTreeMap<(String, String, Code, Option<String>), Traffic>);

impl TrafficLog {
    /// Adds one request, or several of the same kind.
    pub(super) fn add(&mut self, traffic: Traffic) {
        let key = |traffic: &Traffic| {
            let Traffic { target, method, .. } = traffic;
            // Each reason names another line that grants it.
            let is_asked = traffic.code == Code::ModelRequestRefused;
            let reason = traffic.reason.clone().filter(|_| is_asked);
            (target.clone(), method.clone(), traffic.code, reason)
        };
        let mut traffic = traffic;
        if self.0.len() >= MOST_LINES && !self.0.contains_key(&key(&traffic)) {
            // Granted endpoints are few, and what reached one always has its name.
            if !traffic.allow {
                OTHERS.clone_into(&mut traffic.target);
            }
            OTHERS.clone_into(&mut traffic.method);
            traffic.reason = None;
        }
        self.0
            .entry(key(&traffic))
            .and_modify(|known| {
                known.count = known.count.saturating_add(traffic.count);
                known.sent = known.sent.saturating_add(traffic.sent);
                known.received = known.received.saturating_add(traffic.received);
            })
            .or_insert(traffic);
    }

    /// The lines, by target.
    pub(super) fn into_lines(self) -> Vec<Traffic> {
        self.0.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(target: &str, code: Code) -> Traffic {
        Traffic {
            target: target.to_owned(),
            method: "GET".to_owned(),
            allow: code == Code::Ok,
            code,
            reason: None,
            count: 1,
            sent: 2,
            received: u64::MAX,
        }
    }

    #[test]
    fn requests_of_one_kind_are_one_line() {
        let mut book = TrafficLog::default();
        for (target, code) in [
            ("b:1", Code::Ok),
            ("a:1", Code::Ok),
            ("b:1", Code::Ok),
            ("b:1", Code::NetworkRefused),
        ] {
            book.add(one(target, code));
        }
        let lines: Vec<_> = book
            .into_lines()
            .into_iter()
            .map(|line| {
                (
                    line.target,
                    line.allow,
                    line.count,
                    line.sent,
                    line.received,
                )
            })
            .collect();
        assert_eq!(
            lines,
            [
                ("a:1".to_owned(), true, 1, 2, u64::MAX),
                ("b:1".to_owned(), true, 2, 4, u64::MAX),
                ("b:1".to_owned(), false, 1, 2, u64::MAX),
            ]
        );
    }

    #[test]
    fn a_sandbox_cannot_make_the_book_grow_without_end() {
        let mut book = TrafficLog::default();
        for number in 0..5000 {
            book.add(one(&format!("h{number}:1"), Code::NetworkRefused));
        }
        for number in 0..5000 {
            let mut granted = one("granted:1", Code::Ok);
            granted.method = format!("M{number}");
            book.add(granted);
        }
        let lines = book.into_lines();
        assert_eq!(lines.len(), MOST_LINES + 2);
        let granted = lines.iter().find(|line| line.target == "granted:1");
        assert_eq!(granted.unwrap().count, 5000, "it is named all the same");
        let others = lines.iter().find(|line| line.target == OTHERS).unwrap();
        assert_eq!(others.count, 5000 - MOST_LINES as u64);
    }
}
