//! The forms of secrets as their services document them, with made-up values.

use crate::secret::{evident, find};

/// A service, the beginning of a secret or what stands before it, and the rest of the secret. They
/// are apart, so that no file here holds a secret.
fn secrets() -> impl Iterator<Item = [&'static str; 3]> {
    let rows = include_str!("secrets.tsv").lines();
    rows.map(|row| {
        let columns: Vec<&str> = row.split('\t').collect();
        columns.try_into().expect("three columns")
    })
}

/// Texts that begin like a secret and hold none.
const HARMLESS: &[&str] = &[
    "key-value-store-with-128-partitions-and-2-replicas",
    "key-0123456789abcdefghij",
    "API-2 and API-compatibility-version-2024-01-with-more-words",
    "secret_name_of_the_first_kubernetes_secret_in_the_list",
    "re_export_of_the_module_with_2_names_and_10_types",
    "fw_printenv and fw_setenv",
    "ico-folder-open-16-by-16-pixels",
    "SKIP_THE_SECOND_PART_OF_THE_LIST_1",
    "ciosomething",
    "napi_create_reference_with_finalizer_v2",
    "napi_get_value_bigint_words",
    "dapiVersion",
    "re_1",
    "squ_are roots",
    "password reset link for machine login",
    "machine learning login form password field2name",
    "machine h login l password <token>",
    "\"auth\": \"none\"",
    "\"auth\": \"required-since-v2-or-v3\"",
    "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "https://hooks.slack.com/services/$TEAM/$BOT/$SECRET",
    "//registry.npmjs.org/:_authToken=${NPM_TOKEN}",
    "//registry.npmjs.org/:_authToken=[redacted]",
    "AccountKey=<your key>;EndpointSuffix=core.windows.net",
    "12:34:56 12345678:AA",
    "org.junit.platform.commons.logging",
    "com.example.SomeVeryLongClassName1.method2.OtherVeryLongName3",
];

#[test]
fn documented_forms_of_secrets_are_evident() {
    assert!(secrets().count() > 81);
    let mut missed = Vec::new();
    for [service, before, rest] in secrets() {
        for text in [
            format!("{before}{rest}"),
            format!("x = 1\nvalue: \"{before}{rest}\"\n"),
        ] {
            if evident(&text).is_empty() {
                missed.push(service);
            }
        }
    }
    assert_eq!(missed, [""; 0]);
}

#[test]
fn what_only_begins_like_a_secret_is_left_alone() {
    for text in HARMLESS {
        assert_eq!(evident(text), [], "{text}");
    }
}

#[test]
fn a_redacted_form_holds_no_secret() {
    for [service, before, rest] in secrets() {
        let clean = crate::secret::redact(&format!("{before}{rest}")).into_owned();
        assert_eq!(find(&clean), [], "{service}: {clean}");
    }
}
