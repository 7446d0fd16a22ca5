//! Whole runs of the real binary: hostile agents, honest ones, and drivers that die.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod asks;
#[cfg(test)]
mod bundle_files;
#[cfg(test)]
mod case;
mod case_parts;
#[cfg(test)]
mod chain;
#[cfg(test)]
mod children;
#[cfg(test)]
mod collected;
#[cfg(test)]
mod command;
#[cfg(test)]
mod contracts;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod cross_tests;
#[cfg(test)]
mod defaults;
#[cfg(test)]
mod divided;
#[cfg(test)]
mod export;
#[cfg(test)]
mod family;
#[cfg(test)]
mod fix;
#[cfg(test)]
mod forbidden;
#[cfg(test)]
mod foreseen;
#[cfg(test)]
mod honest;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod keep_work;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod landing;
#[cfg(test)]
mod landing_commit;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod loopback;
#[cfg(test)]
mod network;
mod oracle;
#[cfg(test)]
mod overlay;
mod own_agents;
#[cfg(test)]
mod person_keys;
#[cfg(test)]
mod plan;
#[cfg(test)]
mod prepare;
#[cfg(test)]
mod promises;
#[cfg(test)]
mod proven;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod review;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod several;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod tier;
#[cfg(test)]
mod warm;
#[cfg(test)]
mod warm_cargo;
#[cfg(test)]
mod why;
#[cfg(test)]
mod widenings;
