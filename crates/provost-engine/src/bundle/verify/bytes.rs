//! Compares the bytes of files with the sealed digests.

use super::Finding;
use super::read::{Bundle, CHANGED, MANIFEST, PATCH};
use provost_core::bundle::layout::{CHANGED_COPY, PATCH_COPY};
use provost_core::bundle::report::{ArtifactRef, FileRef, Sha256};
use provost_core::object::sha256;

/// Every file named in the manifest has the digest that the manifest names.
pub(super) fn named_files(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(manifest) = &bundle.manifest else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (name, want) in &manifest.evidence_hashes {
        match bundle.file(name) {
            None => findings.push(Finding::incomplete(
                name,
                "is missing; the manifest names it",
            )),
            Some(Err(problem)) => findings.push(Finding::altered(name, problem)),
            Some(Ok(file)) if file.sha256 != want.as_str() => {
                let problem = format!("has the digest {}, was sealed with {want}", file.sha256);
                findings.push(Finding::altered(name, problem));
            }
            Some(Ok(_)) => {}
        }
    }
    findings
}

/// The manifest is the one that was sealed.
pub(super) fn manifest(bundle: &Bundle<'_>) -> Vec<Finding> {
    let (Some(predicate), Some(bytes)) = (bundle.predicate(), bundle.bytes(MANIFEST)) else {
        return Vec::new();
    };
    let found = sha256(bytes);
    if found == predicate.manifest_sha256.as_str() {
        return Vec::new();
    }
    let want = &predicate.manifest_sha256;
    let problem = format!("has the digest {found}, was sealed with {want}");
    vec![Finding::altered(MANIFEST, problem)]
}

/// The further digests of the manifest match as well.
pub(super) fn integrity(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(manifest) = &bundle.manifest else {
        return Vec::new();
    };
    let Some(integrity) = &manifest.integrity else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut wrong = |field: &str, problem: &str| {
        let place = format!("{MANIFEST} integrity.{field}");
        findings.push(Finding::altered(place, problem));
    };
    if integrity.manifest_sha256.is_some() {
        let problem = "must be absent: a manifest cannot hold its own digest; the seal does";
        wrong("manifest_sha256", problem);
    }
    let sealed = bundle
        .predicate()
        .map(|predicate| &predicate.contract_sha256);
    if let (Some(stated), Some(sealed)) = (&integrity.contract_sha256, sealed)
        && stated != sealed
    {
        wrong("contract_sha256", "differs from the digest that was sealed");
    }
    let named = |path: &String| manifest.evidence_hashes.get(path);
    if let Some(path) = &integrity.events_hashchain_path
        && named(path).is_none()
    {
        wrong(
            "events_hashchain_path",
            "names a file the manifest does not list",
        );
    }
    let signature = &integrity.contract_signature_path;
    let listed = signature.as_ref().and_then(named);
    if signature.is_some() && listed.is_none() {
        wrong(
            "contract_signature_path",
            "names a file the manifest does not list",
        );
    }
    if integrity.contract_signature_sha256.is_some()
        && integrity.contract_signature_sha256.as_ref() != listed
    {
        let problem = "differs from the digest the manifest lists";
        wrong("contract_signature_sha256", problem);
    }
    findings
}

/// Every file that a document refers to exists with that digest.
pub(super) fn references(bundle: &Bundle<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for reference in all_references(bundle) {
        let place = format!("{} {}", reference.document, reference.field);
        let path = reference.path;
        let problem = match bundle.file(path) {
            None => format!("refers to `{path}`, which is missing"),
            Some(Err(problem)) => format!("refers to `{path}`, which {problem}"),
            Some(Ok(file)) if file.sha256 != reference.sha256.as_str() => {
                format!("names another digest of `{path}`")
            }
            Some(Ok(file)) if reference.size.is_some_and(|size| size != file.size) => {
                format!("names another size of `{path}`")
            }
            Some(Ok(_)) => continue,
        };
        findings.push(Finding::altered(place, problem));
    }
    findings
}

/// A reference from a document to a file of the bundle.
struct Reference<'b> {
    document: &'static str,
    field: &'static str,
    path: &'b str,
    sha256: &'b Sha256,
    size: Option<u64>,
}

fn all_references<'b>(bundle: &'b Bundle<'_>) -> Vec<Reference<'b>> {
    use super::read::{REVIEW_REPORT, TASK_RESULT, TEST_REPORT, WORK_REPORT};
    let mut list = Vec::new();
    let mut add = |document, field, artifact: &'b ArtifactRef| {
        list.push(Reference {
            document,
            field,
            path: &artifact.path,
            sha256: &artifact.sha256,
            size: artifact.size_bytes,
        });
    };
    if let Some(manifest) = &bundle.manifest {
        for task in &manifest.tasks {
            add(MANIFEST, "tasks[].contract", &task.contract);
            let parts = [&task.result, &task.review_report, &task.test_report];
            for part in parts.into_iter().flatten() {
                add(MANIFEST, "tasks[]", part);
            }
        }
        for artifact in &manifest.artifacts {
            add(MANIFEST, "artifacts[]", artifact);
        }
    }
    if let Some(result) = &bundle.reports.task_result {
        for artifact in &result.artifacts {
            add(TASK_RESULT, "artifacts[]", artifact);
        }
        add(TASK_RESULT, "git.changed_files", &result.git.changed_files);
        add(TASK_RESULT, "git.patch", &result.git.patch);
    }
    if let Some(review) = &bundle.reports.review {
        for artifact in &review.evidence {
            add(REVIEW_REPORT, "evidence[]", artifact);
        }
    }
    if let Some(test) = &bundle.reports.test {
        for command in &test.commands {
            add(TEST_REPORT, "commands[].stdout", &command.stdout);
            add(TEST_REPORT, "commands[].stderr", &command.stderr);
        }
        for artifact in &test.artifacts {
            add(TEST_REPORT, "artifacts[]", artifact);
        }
    }
    let work = bundle.reports.work.iter();
    let files = work.flat_map(|work| {
        [
            ("patch", &work.patch),
            ("changed_files", &work.changed_files),
        ]
    });
    for (field, file) in files {
        list.extend(file.as_ref().map(|file: &FileRef| Reference {
            document: WORK_REPORT,
            field,
            path: &file.path,
            sha256: &file.sha256,
            size: file.bytes,
        }));
    }
    list
}

/// Files that are stored twice are identical.
pub(super) fn copies(bundle: &Bundle<'_>) -> Vec<Finding> {
    let digest = |name: &str| {
        let file = bundle.file(name)?.as_ref().ok()?;
        Some(file.sha256.as_str())
    };
    let pairs = [(PATCH, PATCH_COPY), (CHANGED, CHANGED_COPY)];
    let mut findings = Vec::new();
    for (original, copy) in pairs {
        if let (Some(one), Some(other)) = (digest(original), digest(copy))
            && one != other
        {
            findings.push(Finding::altered(copy, format!("differs from `{original}`")));
        }
    }
    findings
}
