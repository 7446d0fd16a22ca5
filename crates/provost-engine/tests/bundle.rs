//! Attacks sealed bundles: each change is found, reported, and ends with the right status.

#[cfg(test)]
#[path = "bundle/after.rs"]
mod after;
#[cfg(test)]
#[path = "bundle/attacks.rs"]
mod attacks;
#[cfg(test)]
#[path = "bundle/course.rs"]
mod course;
#[cfg(test)]
#[path = "bundle/hostile.rs"]
mod hostile;
#[cfg(test)]
#[path = "bundle/lies.rs"]
mod lies;
#[cfg(test)]
#[path = "bundle/sample.rs"]
mod sample;
#[cfg(test)]
#[path = "bundle/states.rs"]
mod states;
