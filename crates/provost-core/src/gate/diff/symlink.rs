//! Resolves a symbolic link by its text alone.

use crate::path::RawPath;

/// The path in the repository that `target`, written in the link `path`, names; `None` if it leaves
/// the repository.
///
/// Other links on the way are not followed: each of them is judged separately.
pub(super) fn resolve(path: &RawPath, target: &RawPath) -> Option<RawPath> {
    let target = target.as_bytes();
    if target.is_empty() || target.starts_with(b"/") {
        return None;
    }
    let mut parts: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
    parts.pop();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            other => parts.push(other),
        }
    }
    Some(RawPath::new(parts.join(&b'/')))
}

/// Whether `target`, written in the link `path`, names a place outside the repository.
pub fn leaves_repository(path: &RawPath, target: &RawPath) -> bool {
    resolve(path, target).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_by_their_text() {
        let cases = [
            ("app/link", "a.txt", Some("app/a.txt")),
            ("app/link", "./sub//x", Some("app/sub/x")),
            ("app/link", "../other", Some("other")),
            ("app/link", "..", Some("")),
            ("app/link", "../../x", None),
            ("app/link", "../../repo/app", None),
            ("link", "..", None),
            ("app/link", "/etc", None),
            ("app/link", "", None),
            ("app/link", "nowhere/../../app/b", Some("app/b")),
        ];
        for (path, target, want) in cases {
            let place = resolve(&RawPath::new(path), &RawPath::new(target));
            assert_eq!(place, want.map(RawPath::new), "{path} -> {target}");
        }
    }
}
