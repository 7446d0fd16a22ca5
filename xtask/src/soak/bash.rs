//! Runs lines with the bash of this machine, and says what each of them wrote outside of `docs`.
//!
//! # Invariants
//!
//! - The lines run in namespaces of their own: no network, processes that end with the call, and a
//!   root where only the scratch directory can be written.
//! - Each line has a fresh directory, and one second.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::lines::PROGRAMS;

/// The files of every directory before its line runs.
const FILES: [(&str, &str); 4] = [
    ("w/docs/a.md", "a\n"),
    ("w/docs/deep/b", "b\n"),
    ("w/src/a.py", "a\n"),
    ("w/readme", "r\n"),
];

/// How many processes run lines side by side.
const SIDES: usize = 4;

/// Builds the root, and runs all lines in it; the arguments are scratch, root and sides.
const SANDBOX: &str = r#"
set -e
scratch=$1 root=$2
mount -t tmpfs -o mode=755 tmpfs "$root"
cd "$root"
mkdir -p usr dev proc s tmp
for name in bin lib lib32 lib64 libx32; do
    if [ -L "/$name" ]; then cp -P "/$name" "$name"
    elif [ -d "/$name" ]; then mkdir "$name"; mount --rbind "/$name" "$name"; fi
done
mount --rbind /usr usr
touch dev/null
mount --bind /dev/null dev/null
ln -s /proc/self/fd dev/fd
mount -t proc proc proc || mount --rbind /proc proc
mount --bind "$scratch" s
mount -o remount,bind,ro usr
mount -o remount,ro "$root"
exec chroot "$root" /bin/bash /s/driver "$3"
"#;

/// Runs the lines; a side takes every `$1`-th of them.
const DRIVER: &str = r#"
ulimit -c 0 -f 64 -v 2000000
export PATH=/s/bin HOME=/nowhere FUNCNEST=4 LC_ALL=C.UTF-8
side() {
    for ((n = $1; n < $3; n += $2)); do
        cd "/s/$n/w" || exit 1
        # What a line left running is over before its files are read.
        /usr/bin/timeout -s KILL 1 /bin/bash /s/line/"$n" </dev/null >/dev/null 2>&1
    done
}
all=$(< /s/count)
for ((k = 0; k < $1; k++)); do side "$k" "$1" "$all" & done 2>/dev/null
wait
"#;

/// Paths below the directory of a line, with what is there; a link or directory is only named.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// What each of `lines` wrote outside of `docs`: made, changed or removed.
pub fn written(lines: &[String]) -> io::Result<Vec<Vec<PathBuf>>> {
    let scratch = tempfile::tempdir()?;
    let place = scratch.path();
    let root = tempfile::tempdir()?;
    fs::create_dir(place.join("line"))?;
    fs::create_dir(place.join("bin"))?;
    for program in PROGRAMS {
        std::os::unix::fs::symlink(
            format!("/usr/bin/{program}"),
            place.join("bin").join(program),
        )?;
    }
    for (at, line) in lines.iter().enumerate() {
        fs::write(place.join("line").join(at.to_string()), line)?;
        for (name, text) in FILES {
            let file = place.join(at.to_string()).join(name);
            fs::create_dir_all(file.parent().unwrap_or(place))?;
            fs::write(file, text)?;
        }
    }
    fs::write(place.join("count"), lines.len().to_string())?;
    fs::write(place.join("driver"), DRIVER)?;
    let status = Command::new("unshare")
        .args(["-Urmpfn", "--kill-child", "sh", "-c", SANDBOX, "sandbox"])
        .args([place, root.path()])
        .arg(SIDES.to_string())
        .stdin(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!("the sandbox ended with {status}")));
    }
    let mut before = Files::new();
    let empty = place.join("before");
    for (name, text) in FILES {
        let file = empty.join(name);
        fs::create_dir_all(file.parent().unwrap_or(place))?;
        fs::write(file, text)?;
    }
    read(&empty, &empty, &mut before)?;
    let each = |at: usize| {
        let mut after = Files::new();
        let top = place.join(at.to_string());
        read(&top, &top, &mut after)?;
        Ok(difference(&before, &after))
    };
    (0..lines.len()).map(each).collect()
}

fn read(top: &Path, place: &Path, into: &mut Files) -> io::Result<()> {
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let below = path.strip_prefix(top).unwrap_or(&path).to_owned();
        let kind = path.symlink_metadata()?.file_type();
        let is_inside = below.starts_with("w/docs");
        if kind.is_dir() {
            if !is_inside {
                into.insert(below, Vec::new());
            }
            read(top, &path, into)?;
        } else if !is_inside {
            let bytes = if kind.is_file() {
                fs::read(&path)?
            } else {
                Vec::new()
            };
            into.insert(below, bytes);
        }
    }
    Ok(())
}

fn difference(before: &Files, after: &Files) -> Vec<PathBuf> {
    let all = before
        .keys()
        .chain(after.keys().filter(|path| !before.contains_key(*path)));
    all.filter(|path| before.get(*path) != after.get(*path))
        .cloned()
        .collect()
}
