//! Keeps boards with the real program: one process, many at once, and processes that die.

#![cfg(feature = "formats")]

#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod life;
#[cfg(test)]
mod many;
#[cfg(test)]
mod page;
#[cfg(test)]
mod stage;
