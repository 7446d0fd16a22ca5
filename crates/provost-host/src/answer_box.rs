//! Answer box: carries the answer to a question of a running agent to the process that drives it.
//!
//! An answer is a file in the runtime root, outside the directory of the run: a late write there
//! would not be part of the seal. The first answer counts. It carries a code made with the secret
//! of its user, so that no other program of the machine can leave one.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::json;
use provost_core::question::QuestionAnswer;
use provost_core::user_secret::{Purpose, Secret};
use provost_engine::ports::{Answers, PortError};
use serde::{Deserialize, Serialize};

/// The answers that are left for one run.
#[derive(Debug, Clone)]
pub struct AnswerBox {
    directory: PathBuf,
    run_id: String,
    secret: Secret,
}

/// The content of the file of an answer.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeftAnswer {
    answer: QuestionAnswer,
    mac: String,
}

impl AnswerBox {
    /// The answers in the runtime root `root` for the run `run_id`, with the secret of the user.
    pub fn of(root: &Path, run_id: &str, secret: Secret) -> Self {
        Self {
            directory: root.join("answers").join(run_id),
            run_id: run_id.to_owned(),
            secret,
        }
    }

    /// Leaves `answer`; false if there is one for the same question already.
    pub fn leave(&self, answer: &QuestionAnswer) -> Result<bool, PortError> {
        let Some(file) = self.file(&answer.digest) else {
            return Err(PortError::new(
                Code::Bug,
                "the digest of a question is hexadecimal",
            ));
        };
        let wrong = |error: &dyn std::error::Error| {
            let reason = format!("`{}`: {error}", file.display());
            PortError::new(Code::HostFailed, reason)
        };
        let mac = self.secret.mac(Purpose::Answer, &self.covered(answer));
        let left = LeftAnswer {
            answer: answer.clone(),
            mac,
        };
        let text = serde_json::to_vec(&left).map_err(|error| wrong(&error))?;
        let mut directory = DirBuilder::new();
        directory.recursive(true).mode(0o700);
        let beside = file.with_extension(std::process::id().to_string());
        let made = directory.create(&self.directory).and_then(|()| {
            let mut written = File::create(&beside)?;
            written.write_all(&text)?;
            // Atomic, and never in place of an earlier answer.
            match fs::hard_link(&beside, &file) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            }
        });
        let _ = fs::remove_file(&beside);
        made.map_err(|error| wrong(&error))
    }

    /// The answer for the question `digest`; a file that this user did not make is removed.
    fn read(&self, digest: &str) -> Option<QuestionAnswer> {
        let bytes = fs::read(self.file(digest)?).ok()?;
        let left: Option<LeftAnswer> = json::parse_as(&bytes).ok();
        let own = left.filter(|left| {
            let covered = self.covered(&left.answer);
            self.secret.made(&left.mac, Purpose::Answer, &covered)
        });
        if own.is_none() {
            self.remove(digest);
        }
        own.map(|left| left.answer)
    }

    fn remove(&self, digest: &str) {
        // A leftover answer has no effect: each counts for one question that is open.
        if let Some(file) = self.file(digest) {
            let _ = fs::remove_file(file);
        }
    }

    /// Removes all answers after the run has ended.
    pub fn close(&self) {
        let _ = fs::remove_dir_all(&self.directory);
    }

    fn file(&self, digest: &str) -> Option<PathBuf> {
        let plain = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then(|| self.directory.join(format!("{digest}.json")))
    }

    /// The text that the code is made over.
    fn covered(&self, answer: &QuestionAnswer) -> Vec<u8> {
        let value = serde_json::json!({ "run_id": self.run_id, "answer": answer });
        json::canonical(&value).into_bytes()
    }
}

impl Answers for AnswerBox {
    fn answer(&self, digest: &str) -> Option<QuestionAnswer> {
        self.read(digest)
    }

    fn forget(&self, digest: &str) {
        self.remove(digest);
    }
}

#[cfg(test)]
mod tests {
    use provost_core::question::AnswerMeans;

    use super::*;

    fn answer(allow: bool) -> QuestionAnswer {
        QuestionAnswer {
            digest: "ab".repeat(32),
            allow,
            how: AnswerMeans::Terminal,
            by: None,
            until: "2030-01-01T00:00:00Z".to_owned(),
            reason: String::new(),
            signature: None,
        }
    }

    #[test]
    fn the_first_answer_counts_and_only_if_this_user_made_it() {
        let root = tempfile::tempdir().unwrap();
        let answers = AnswerBox::of(root.path(), "run-1", Secret::of([1; 32]));
        let digest = answer(true).digest;
        assert!(answers.leave(&answer(true)).unwrap());
        assert!(!answers.leave(&answer(false)).unwrap());
        assert_eq!(answers.read(&digest), Some(answer(true)));
        let file = answers.file(&digest).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("\"allow\":true", "\"allow\":false")).unwrap();
        assert_eq!(answers.read(&digest), None);
        assert!(!file.exists(), "a later answer has a place");

        // Another user, and another run.
        let other = AnswerBox::of(root.path(), "run-1", Secret::of([2; 32]));
        other.leave(&answer(true)).unwrap();
        assert_eq!(answers.read(&digest), None);
        answers.leave(&answer(true)).unwrap();
        let twin = root.path().join("answers/run-2");
        fs::create_dir_all(&twin).unwrap();
        fs::copy(&file, twin.join(file.file_name().unwrap())).unwrap();
        let twin = AnswerBox::of(root.path(), "run-2", Secret::of([1; 32]));
        assert_eq!(twin.read(&digest), None);
        assert_eq!(twin.read("../run-1/x"), None);
    }
}
