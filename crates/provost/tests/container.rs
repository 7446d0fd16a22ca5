//! Sandboxes inside something like a container: a root of its own, and masks over `/proc`.

#[cfg(test)]
mod tests {
    use std::path::Path;

    use provost_testkit::stage::{Outcome, Stage, is_root, only_home, program};
    use serde_json::Value;

    /// Makes the root of the container from files of this machine, enters it, and becomes the rest
    /// of the arguments. The first argument is a directory to hang it on, the second this program,
    /// the third says whether to lay the masks of container engines over `/proc`.
    const CONTAINER: &str = r#"
        set -e
        root=$1 program=$2 masks=$3
        shift 3
        mount -t tmpfs tmpfs "$root"
        cd "$root"
        mkdir usr etc dev proc tmp old
        mount --rbind /usr usr
        mount --rbind /etc etc
        for name in bin sbin lib lib32 lib64; do
            if [ -L "/$name" ]; then ln -s "$(readlink "/$name")" "$name"
            elif [ -d "/$name" ]; then mkdir "$name"; mount --rbind "/$name" "$name"; fi
        done
        for name in null zero full random urandom; do
            touch "dev/$name"; mount --bind "/dev/$name" "dev/$name"
        done
        cp "$program" provost
        chmod 755 provost .
        chmod 1777 tmp
        pivot_root . old
        cd /
        mount -t proc proc /proc
        if [ "$masks" = masked ]; then
            for name in kcore keys timer_list; do
                if [ -e "/proc/$name" ]; then mount --bind /dev/null "/proc/$name"; fi
            done
            mount --bind /proc/sys /proc/sys
            mount -o remount,ro,bind /proc/sys
        fi
        umount -l /old
        exec "$@"
    "#;

    /// Who is inside.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum User {
        Root,
        Ordinary,
    }

    fn users() -> Vec<User> {
        if is_root() {
            vec![User::Root, User::Ordinary]
        } else {
            vec![User::Root]
        }
    }

    /// Runs a shell script in a container.
    fn contained(user: User, masks: &str, script: &str) -> Outcome {
        let stage = Stage::empty();
        let mut command = stage.command("unshare");
        only_home(&mut command, Some(Path::new("/tmp/home")));
        if !is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command
            .args(["--mount", "--pid", "--fork", "--ipc", "--uts"])
            .args(["sh", "-c", CONTAINER, "sh"])
            .args([stage.path("repo"), program()])
            .arg(masks);
        if user == User::Ordinary {
            let own = ["--reuid=65534", "--regid=65534", "--clear-groups"];
            command.arg("setpriv").args(own);
        }
        command.args(["sh", "-c", script]);
        stage.spawn(command).wait()
    }

    fn row<'a>(answer: &'a Value, name: &str) -> &'a Value {
        let rows = answer["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name);
        row.unwrap_or_else(|| panic!("no row `{name}` in {answer}"))
    }

    #[test]
    fn a_masked_proc_costs_one_declared_hole_and_no_more() {
        for user in users() {
            for (masks, state) in [("masked", "not_enforced"), ("bare", "ok")] {
                let output = contained(user, masks, "/provost doctor --json");
                let answer = &output.json;
                assert!(answer.is_object(), "{user:?} {masks} {output:?}");
                let own = row(answer, "own /proc");
                assert_eq!(own["state"], state, "{user:?} {masks} {answer}");
                let errno = if masks == "masked" {
                    Value::from("EPERM")
                } else {
                    Value::Null
                };
                assert_eq!(own["errno"], errno, "{user:?} {masks}");
                for name in ["sandbox", "sandbox self-test", "sandbox of tier `landlock`"] {
                    let row = row(answer, name);
                    assert_eq!(row["state"], "ok", "{user:?} {masks} {row}");
                }
            }
        }
    }

    #[test]
    fn a_whole_run_is_accepted_inside() {
        const SCRIPT: &str = "set -e; mkdir -p /tmp/home /tmp/repo; cd /tmp/repo
            git init -q; git config user.name a; git config user.email a@b
            mkdir src; echo bad > src/a; printf 'grep -q good src/a\\n' > check.sh
            git add -A; git commit -qm base
            printf 'echo good > src/a; ls /proc/self/exe\\n' > /tmp/agent.sh
            exec /provost run 'make it good' --json --allow src --accept 'sh check.sh' \
                --agent-cmd 'sh /tmp/agent.sh'";
        for user in users() {
            let output = contained(user, "masked", SCRIPT);
            let answer = &output.json;
            assert_eq!(answer["verdict"]["code"], "OK", "{user:?} {output:?}");
            let holes = answer["sandbox"]["holes"].as_array().unwrap();
            assert_eq!(holes.len(), 1, "{user:?} {answer}");
        }
    }
}
