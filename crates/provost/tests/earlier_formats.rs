//! Bundles that earlier versions sealed verify with this one, and altered ones do not.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use provost_testkit::stage::{Outcome, Stage};

    fn fixtures() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/bundles/format-1")
    }

    /// The names of all fixtures.
    fn names() -> Vec<String> {
        let files = fs::read_dir(fixtures()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let names = names.filter_map(|name| Some(name.strip_suffix(".tar.gz")?.to_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        assert!(names.len() >= 20, "{names:?}");
        names
    }

    /// Unpacks one fixture and gives its directory.
    fn unpack(stage: &Stage, name: &str) -> PathBuf {
        let mut command = stage.command("tar");
        let file = fixtures().join(format!("{name}.tar.gz"));
        command
            .arg("-xzf")
            .arg(file)
            .arg("-C")
            .arg(stage.path("outside"));
        let outcome = stage.spawn(command).wait();
        assert_eq!(outcome.exit, 0, "{outcome:?}");
        stage.path("outside").join(name)
    }

    fn verify(stage: &Stage, bundle: &Path) -> Outcome {
        let key = fixtures().join("signing.pub").display().to_string();
        let bundle = bundle.display().to_string();
        stage.ask(&["verify", &bundle, "--key", &key, "--json"])
    }

    #[test]
    fn every_bundle_of_format_1_is_intact_complete_and_authentic() {
        let stage = Stage::new();
        for name in names() {
            let verified = verify(&stage, &unpack(&stage, &name));
            assert_eq!(
                (verified.exit, verified.code()),
                (0, "OK"),
                "{name}: {verified:?}"
            );
        }
    }

    #[test]
    fn an_altered_bundle_of_format_1_is_not() {
        let stage = Stage::new();
        for name in names() {
            let bundle = unpack(&stage, &name);
            let files = fs::read_dir(&bundle).unwrap();
            let files = files.map(|file| file.unwrap().path());
            let mut files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
            // No one signs what follows a seal; an empty file has no byte to alter.
            files.retain(|path| !path.ends_with("after.jsonl"));
            files.retain(|path| path.metadata().unwrap().len() > 0);
            assert!(!files.is_empty(), "{name}");
            for file in files {
                let bytes = fs::read(&file).unwrap();
                let mut altered = bytes.clone();
                let middle = altered.len() / 2;
                altered[middle] ^= 1;
                fs::write(&file, altered).unwrap();
                let verified = verify(&stage, &bundle);
                assert_ne!(verified.exit, 0, "{}: {verified:?}", file.display());
                fs::write(&file, bytes).unwrap();
            }
        }
    }
}
