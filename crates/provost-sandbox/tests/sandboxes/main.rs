//! Tests the sandbox from the inside, as the user who runs the tests and, for root, as an ordinary
//! user too.

#[cfg(test)]
mod death;
#[cfg(test)]
mod fork_server;
#[cfg(test)]
mod held;
#[cfg(test)]
mod landlock;
#[cfg(test)]
mod life;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod network;
#[cfg(test)]
mod selftest;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod walls;
