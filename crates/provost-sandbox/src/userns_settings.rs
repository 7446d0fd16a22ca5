//! Kernel settings that refuse user namespaces, which sandboxes of tier `namespaces` need.

use std::fs;
use std::path::Path;

/// A setting of the kernel that keeps ordinary users from making a user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    pub name: &'static str,
    /// The value that refuses.
    pub off: &'static str,
    /// A value that permits.
    pub on: &'static str,
}

const SWITCHES: [Switch; 3] = [
    Switch {
        name: "user.max_user_namespaces",
        off: "0",
        on: "15000",
    },
    Switch {
        name: "kernel.unprivileged_userns_clone",
        off: "0",
        on: "1",
    },
    Switch {
        name: APPARMOR,
        off: "1",
        on: "0",
    },
];
const APPARMOR: &str = "kernel.apparmor_restrict_unprivileged_userns";

/// Files that container engines put into their containers.
const CONTAINER: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

impl Switch {
    fn is_off(&self) -> bool {
        let path = format!("/proc/sys/{}", self.name.replace('.', "/"));
        fs::read_to_string(path).is_ok_and(|value| value.trim() == self.off)
    }
}

/// The settings that refuse user namespaces here.
pub fn switched_off() -> Vec<Switch> {
    SWITCHES.into_iter().filter(Switch::is_off).collect()
}

/// What the user can do where a user namespace, or something inside one, is refused.
pub(super) fn remedy() -> String {
    let container = CONTAINER.iter().any(|file| Path::new(file).exists());
    remedy_of(&switched_off(), container)
}

fn remedy_of(off: &[Switch], container: bool) -> String {
    if !off.is_empty() {
        let settings: Vec<String> = off
            .iter()
            .map(|switch| format!("{}={}", switch.name, switch.on))
            .collect();
        let profile = if off.iter().any(|switch| switch.name == APPARMOR) {
            ", or give this program an AppArmor profile with `userns`"
        } else {
            ""
        };
        return format!("as root: `sysctl -w {}`{profile}", settings.join(" "));
    }
    if container {
        return "the container refuses it: run it with a seccomp profile that allows clone, unshare, \
                setns, mount, open_tree, move_mount and pivot_root; see `provost explain containers`"
            .to_owned();
    }
    "a security module, or a seccomp filter of the parent process, refuses it: start it from a \
     plain shell, or see `provost explain containers`"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_is_about_what_is_in_the_way() {
        let cases = [
            (&[][..], false, "a security module"),
            (&[][..], true, "the container refuses it"),
            (
                &SWITCHES[..1],
                true,
                "`sysctl -w user.max_user_namespaces=15000`",
            ),
            (&SWITCHES[2..], false, "AppArmor profile"),
        ];
        for (off, container, want) in cases {
            let said = remedy_of(off, container);
            assert!(said.contains(want), "{said}");
        }
        assert!(!remedy_of(&SWITCHES[..2], false).contains("AppArmor"));
    }
}
