//! What a person sees who uses the program day by day.

#[cfg(test)]
mod begin;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod looking;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod structure;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod usage;
