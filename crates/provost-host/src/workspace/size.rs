//! Counts the bytes below a directory.

use std::fs;
use std::path::Path;

/// The bytes of all files below `directory`, links not followed. What cannot be read counts as
/// zero.
pub fn size(directory: &Path) -> u64 {
    let mut waiting = vec![directory.to_owned()];
    let mut bytes = 0_u64;
    while let Some(path) = waiting.pop() {
        let Ok(data) = path.symlink_metadata() else {
            continue;
        };
        if !data.is_dir() {
            bytes = bytes.saturating_add(data.len());
            continue;
        }
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        waiting.extend(entries.map(|entry| entry.path()));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_at_any_depth_and_not_through_links() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path();
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(top.join("a/b/file"), "12345").unwrap();
        fs::write(top.join("other"), "1").unwrap();
        assert_eq!(size(top), 6);
        assert_eq!(size(&top.join("a")), 5);
        std::os::unix::fs::symlink("..", top.join("a/up")).unwrap();
        assert_eq!(size(&top.join("a")), 5 + 2);
        assert_eq!(size(&top.join("gone")), 0);
    }
}
