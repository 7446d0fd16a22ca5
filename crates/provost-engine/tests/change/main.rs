//! Controlled changes whose calls fail, or whose agent dies at any of them.

#[cfg(test)]
mod desk;
#[cfg(test)]
mod sweep;
