//! What a contract grants of children.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::family::ChildBudget;
use super::tools::MessageTool;
use crate::agent::Budget;
use crate::closed::closed;

/// The most children of all generations that a contract may grant.
pub const MOST_CHILDREN: u32 = 64;

/// The most generations that a contract may grant.
pub const MOST_LEVELS: u32 = 8;

/// How many processes all children have together at a time, if the contract does not say.
const PROCESSES: u64 = 512;

/// The fewest processes that a sandbox can work with.
const FEWEST_PROCESSES: u64 = 16;

closed! {
    /// The children that the agent may start.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct ChildGrant {
        /// How many agents, of all generations together; at most 64.
        pub count: u32,
        /// How many generations; 1 if left out, at most 8.
        pub depth?: u32,
        /// Tokens of models that all children use together; none if left out.
        pub tokens?: u64,
        /// Millionths of a US dollar that all children spend together; none if left out.
        pub micro_usd?: u64,
        /// Seconds of all children added up; the time limit of the contract if left out.
        pub seconds?: u64,
        /// Processes and threads that all children have together at a time; 512 if left out.
        pub processes?: u64,
        /// Models that children may use beside the model of their parent.
        pub models?: Vec<String>,
        /// Tools for messages that agents of the family may keep; none if left out.
        pub messages?: Vec<MessageTool>,
    }
}

impl ChildGrant {
    pub fn levels(&self) -> u32 {
        self.depth.unwrap_or(1)
    }

    /// What all children may use together, under a contract with this time limit.
    pub fn budget(&self, timeout_sec: u64) -> ChildBudget {
        ChildBudget {
            tokens: self.tokens.unwrap_or(0),
            micro_usd: self.micro_usd.unwrap_or(0),
            seconds: self.seconds.unwrap_or(timeout_sec),
            processes: self.processes.unwrap_or(PROCESSES),
        }
    }

    /// Takes what children may spend from the budget of the agent itself.
    pub fn take_from(&self, own: &mut Budget) {
        let less = |own: Option<u64>, theirs: Option<u64>| {
            own.map(|own| own.saturating_sub(theirs.unwrap_or(0)))
        };
        own.tokens = less(own.tokens, self.tokens);
        own.micro_usd = less(own.micro_usd, self.micro_usd);
    }

    /// What each of `parts` gets, so that all of them together have no more than this; `None` if
    /// that is too little for one child each.
    pub fn divided(&self, parts: u32) -> Option<Self> {
        let parts = parts.max(1);
        let share = |whole: u64| whole / u64::from(parts);
        let processes = share(self.processes.unwrap_or(PROCESSES));
        let count = self.count / parts;
        (count > 0 && processes >= FEWEST_PROCESSES).then(|| Self {
            count,
            tokens: self.tokens.map(share),
            micro_usd: self.micro_usd.map(share),
            seconds: self.seconds.map(share),
            processes: Some(processes),
            ..self.clone()
        })
    }

    /// Every field that is out of range, with the reason.
    pub fn flaws(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        if self.count > MOST_CHILDREN {
            found.push(("count", format!("is more than {MOST_CHILDREN}")));
        }
        if self.levels() > MOST_LEVELS {
            found.push(("depth", format!("is more than {MOST_LEVELS}")));
        }
        if self.count > 0 && self.levels() == 0 {
            found.push(("depth", "is 0, and `count` grants children".to_owned()));
        }
        let processes = self.processes.unwrap_or(PROCESSES);
        if self.count > 0 && processes < FEWEST_PROCESSES {
            let problem = format!("is less than {FEWEST_PROCESSES}, which one sandbox needs");
            found.push(("processes", problem));
        }
        let models = self.models.iter().flatten();
        if models
            .into_iter()
            .any(|model| !crate::agent::is_model(model))
        {
            found.push((
                "models",
                "holds a text that is no name of a model".to_owned(),
            ));
        }
        found
    }

    /// The grant for people, in one line.
    pub fn words(&self, timeout_sec: u64) -> String {
        let budget = self.budget(timeout_sec);
        let mut words = format!("{} in {} generation(s)", self.count, self.levels());
        words += &format!(", {} s", budget.seconds);
        words += &format!(", {} processes", budget.processes);
        if budget.tokens > 0 {
            words += &format!(", {} tokens", budget.tokens);
        }
        if budget.micro_usd > 0 {
            words += &format!(", {}", crate::agent::dollars(budget.micro_usd));
        }
        if let Some(models) = self.models.as_ref().filter(|models| !models.is_empty()) {
            words += &format!(", models {}", models.join(", "));
        }
        if let Some(tools) = self.messages.as_ref().filter(|tools| !tools.is_empty()) {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
            words += &format!(", messages by {}", names.join(", "));
        }
        words
    }
}
