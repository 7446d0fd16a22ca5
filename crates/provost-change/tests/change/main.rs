//! Controlled changes whose calls fail, or whose agent dies at any of them.

#[cfg(test)]
mod stage;
#[cfg(test)]
mod sweep;
