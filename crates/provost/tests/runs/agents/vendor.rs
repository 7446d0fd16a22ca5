//! Programs that talk to the addresses of their own vendors.
//!
//! In a network namespace of the test these addresses are a scripted model, so neither the policy
//! nor a flag says anything about them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::stage::{KEY, Program, certificate, programs};
use crate::stage::{Outcome, Stage, lacks};

/// An address that is public to the proxy; it exists in the namespace alone.
const ADDRESS: &str = "198.41.0.4";

const HOSTS: &str = "127.0.0.1 localhost\n198.41.0.4 api.anthropic.com api.openai.com\n";

/// Gives the loopback device of the namespace the address.
const DEVICE: &str = "import fcntl, socket, struct, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def ask(device, what, value): fcntl.ioctl(link, what, struct.pack('16s24s', device, value))
ask(b'lo', 0x8914, struct.pack('H', 0x41))
ask(b'lo:1', 0x8916, struct.pack('HH', socket.AF_INET, 0) + socket.inet_aton(sys.argv[1]))
";

const MODEL: &str = "set -e
mount --bind hosts /etc/hosts
python3 device.py ADDRESS
exec python3 model.py turns.json log certificate key ADDRESS 443
";

/// A stage whose user has programs and their keys, and nothing else.
pub(super) struct VendorStage {
    pub(super) inner: Stage,
    programs: Vec<Program>,
    /// The scripted model; the namespace is that of its process.
    model: Child,
    is_root: bool,
}

impl VendorStage {
    /// Puts the model of `turns` at the addresses of the vendors; `None` where that cannot be done.
    pub(super) fn new(stage: Stage, list: &[Program], turns: &Value) -> Option<Self> {
        let directory = programs()?;
        if ["python3", "openssl", "nsenter"].iter().any(|it| lacks(it)) {
            return None;
        }
        let is_root = namespace()?;
        for (name, text) in [
            ("model.py", include_str!("model.py")),
            ("device.py", DEVICE),
            ("turns.json", &turns.to_string()),
            ("hosts", HOSTS),
            ("log", ""),
        ] {
            stage.write(name, text);
        }
        certificate(&stage, "DNS:api.anthropic.com,DNS:api.openai.com");
        fs::create_dir(stage.path("bin")).unwrap();
        symlink(provost_testkit::stage::program(), stage.path("bin/provost")).unwrap();
        for program in list {
            let own = stage.path("bin").join(program.name());
            symlink(directory.join(program.name()), own).unwrap();
        }
        let mut model = stage.command("unshare");
        model
            .args(if is_root {
                &["-n", "-m"][..]
            } else {
                &["-r", "-n", "-m"]
            })
            .args(["sh", "-c", &MODEL.replace("ADDRESS", ADDRESS)])
            .current_dir(stage.path(""))
            .stdout(Stdio::piped());
        let mut model = model.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(model.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        assert_eq!(port.trim(), "443", "the model does not listen");
        Some(Self {
            inner: stage,
            programs: list.to_vec(),
            model,
            is_root,
        })
    }

    /// A program that is called in the repository, in the namespace of the model.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.inner.command("nsenter");
        command.args(["-t", &self.model.id().to_string(), "-n", "-m"]);
        if !self.is_root {
            command.args(["-U", "--preserve-credentials"]);
        }
        command
            .args(["sh", "-c", "cd \"$0\" && exec \"$@\""])
            .arg(self.inner.path("repo"))
            .args(words);
        let path = format!(
            "{}:{}",
            self.inner.path("bin").display(),
            provost_testkit::stage::PATH
        );
        command.env("PATH", path);
        command.env("SSL_CERT_FILE", self.inner.path("certificate"));
        for program in &self.programs {
            command.env(program.variable(), KEY);
        }
        command
    }

    pub(super) fn ask(&self, words: &[&str]) -> Outcome {
        let command = self.command(&[&["provost"], words].concat());
        self.inner.spawn(command).wait()
    }
}

impl Drop for VendorStage {
    fn drop(&mut self) {
        let _ = self.model.kill();
        let _ = self.model.wait();
    }
}

/// Whether a namespace is made here as root; nothing if none can be made.
fn namespace() -> Option<bool> {
    let works = |way: &[&str]| {
        let trial = Command::new("unshare").args(way).arg("true").output();
        trial.is_ok_and(|it| it.status.success())
    };
    if works(&["-n", "-m"]) {
        return Some(true);
    }
    if works(&["-r", "-n", "-m"]) {
        return Some(false);
    }
    provost_testkit::skip("no network namespace can be made here");
    None
}
