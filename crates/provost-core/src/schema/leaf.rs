//! The rules of texts that schemas name: patterns and formats, each with its implementation.

use std::borrow::Cow;

use schemars::JsonSchema;

use crate::bundle::report::{Sha256, Time};
use crate::object::Oid;
use crate::resource::Resource;
use crate::time::{self, Zone};

/// Why a value does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It is missing, a blank text, or an empty list.
    Absent,
    /// The version of the format is unknown, so the meaning of the rest is unknown too.
    Version,
    Wrong,
}

/// A `pattern` of the schemas.
#[derive(Debug)]
pub(super) struct TextPattern {
    pub(super) pattern: &'static str,
    pub(super) fits: fn(&str) -> bool,
    /// What a text that fits is; empty where the pattern says it best.
    pub(super) words: &'static str,
}

const fn pattern(
    pattern: &'static str,
    words: &'static str,
    fits: fn(&str) -> bool,
) -> TextPattern {
    TextPattern {
        pattern,
        fits,
        words,
    }
}

const UUID: &str = "^[0-9a-fA-F-]{36}$";
/// A task id of the operator contracts.
pub const TASK_ID: &str = "^(T-[0-9]+|[0-9a-fA-F-]{36})$";

pub(super) static PATTERNS: [TextPattern; 7] = [
    pattern("^[0-9A-Fa-f]{64}$", "", |text| {
        Sha256::try_from(text.to_owned()).is_ok()
    }),
    pattern("^([0-9a-f]{40}|[0-9a-f]{64})$", "", |text| {
        Oid::try_from(text).is_ok()
    }),
    pattern("^[A-Za-z0-9._-]+$", "", |text| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !text.is_empty() && text.bytes().all(allowed)
    }),
    pattern(r"\S", "", |text| !text.trim().is_empty()),
    pattern(UUID, "a UUID", is_loose_uuid),
    pattern(TASK_ID, "a task id: `T-` and digits, or a UUID", is_task_id),
    pattern(r"^1\.[0-9]+\.[0-9]+$", "like `1.0.0`", is_version),
];

/// Whether `text` is `T-` and digits, or a UUID.
pub fn is_task_id(text: &str) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    text.strip_prefix("T-").is_some_and(is_number) || is_loose_uuid(text)
}

/// Whether `text` is 36 hexadecimal digits and dashes, in any order.
fn is_loose_uuid(text: &str) -> bool {
    text.len() == 36
        && text
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Whether `text` is a random UUID: version 4, with its dashes in their places.
fn is_random_uuid(text: &str) -> bool {
    let dash_at = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    is_loose_uuid(text)
        && text.bytes().enumerate().all(|(at, byte)| match at {
            14 => byte == b'4',
            19 => matches!(byte, b'8' | b'9' | b'a' | b'b' | b'A' | b'B'),
            _ => dash_at(at) == (byte == b'-'),
        })
}

fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let mut parts = text.split('.');
    parts.next() == Some("1") && parts.clone().count() == 2 && parts.all(is_number)
}

/// A `format` of the schemas.
#[derive(Debug)]
pub(super) struct TextFormat {
    pub(super) name: &'static str,
    pub(super) cause: Cause,
    pub(super) check: fn(&str) -> Result<(), Cow<'static, str>>,
}

const fn format(
    name: &'static str,
    check: fn(&str) -> Result<(), Cow<'static, str>>,
) -> TextFormat {
    TextFormat {
        name,
        cause: Cause::Wrong,
        check,
    }
}

/// `problem`, unless `holds`.
fn require(holds: bool, problem: &'static str) -> Result<(), Cow<'static, str>> {
    if holds { Ok(()) } else { Err(problem.into()) }
}

pub(super) static FORMATS: [TextFormat; 10] = [
    format("date-time", |text| {
        let problem = "is not a time as RFC 3339 writes it";
        require(Time::try_from(text).is_ok(), problem)
    }),
    format("filled", |text| {
        require(!text.trim().is_empty(), "is blank")
    }),
    format("time", |text| {
        let problem = "is not a time like 2026-01-31T12:00:00Z";
        require(time::read(text).is_some(), problem)
    }),
    format("utc-time", |text| {
        let written = time::read(text).filter(|written| written.zone == Zone::Utc);
        let problem = "is not a time in UTC like 2026-01-31T12:00:00Z";
        require(written.is_some(), problem)
    }),
    format("uuid-v4", |text| {
        require(is_random_uuid(text), "is not a UUID of version 4")
    }),
    format("resource", |text| match Resource::parse(text) {
        Ok(_) => Ok(()),
        Err(why) => Err(why.to_string().into()),
    }),
    format("exact-resource", |text| {
        let resource = Resource::parse(text).map_err(|why| why.to_string())?;
        let problem = "looks like a pattern, but is read by the letter and would lock nothing";
        require(!resource.looks_like_pattern(), problem)?;
        let problem = "is not in the composed spelling of Unicode (NFC)";
        require(!resource.has_other_spelling(), problem)
    }),
    format("inner-path", |text| {
        let climbs = text.split(['/', '\\']).any(|part| part == "..");
        let is_inner = Resource::parse(text).is_ok_and(|place| !place.is_absolute());
        require(is_inner && !climbs, "leads outside, or is no path")
    }),
    TextFormat {
        name: "version-1",
        cause: Cause::Version,
        check: |text| {
            let is_known = text.split('.').next() == Some("1");
            require(is_known, "is not a version that begins with `1.`")
        },
    },
    TextFormat {
        name: "whole-version-1",
        cause: Cause::Version,
        check: |text| require(is_version(text), "is not a version like `1.0.0`"),
    },
];

/// Declares the schema of a type whose values are texts.
#[macro_export]
macro_rules! text_schema {
    ($type:ident, $schema:tt) => {
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

text_schema!(Resource, {
    "type": "string", "minLength": 1, "format": "resource",
    "x-strict": { "format": "exact-resource" }
});

/// The schema of a text that is not blank.
#[derive(Debug)]
pub enum Filled {}

text_schema!(Filled, { "type": "string", "pattern": r"\S" });

/// The schema of a text in a list where a blank one is wrong, and not missing.
#[derive(Debug)]
pub enum Note {}

text_schema!(Note, { "type": "string", "minLength": 1, "format": "filled" });

/// The schema of a text that only strict mode wants not to be blank.
#[derive(Debug)]
pub enum FilledStrictly {}

text_schema!(FilledStrictly, { "type": "string", "x-strict": { "pattern": r"\S" } });

/// The schema of the id of a run of the operator contracts.
#[derive(Debug)]
pub enum RunUuid {}

text_schema!(RunUuid, { "type": "string", "pattern": UUID, "x-strict": { "format": "uuid-v4" } });

/// The schema of a time in UTC.
#[derive(Debug)]
pub enum UtcTime {}

text_schema!(UtcTime, { "type": "string", "format": "utc-time" });

/// The schema of a time in UTC that must be given.
#[derive(Debug)]
pub enum GivenUtcTime {}

text_schema!(GivenUtcTime, { "type": "string", "pattern": r"\S", "format": "utc-time" });

/// The schema of a time in any zone; strict mode wants UTC.
#[derive(Debug)]
pub enum AnyTime {}

text_schema!(AnyTime, {
    "type": "string", "pattern": r"\S", "format": "time", "x-strict": { "format": "utc-time" }
});

/// The schema of the version of a payload; strict mode wants all of its three numbers.
#[derive(Debug)]
pub enum Version1 {}

text_schema!(Version1, {
    "type": "string", "format": "version-1", "x-strict": { "format": "whole-version-1" }
});

/// The schema of a version that may be left out.
#[derive(Debug)]
pub enum OptionalVersion1 {}

text_schema!(OptionalVersion1, {
    "format": "version-1", "x-strict": { "format": "whole-version-1" }
});

/// The schema of a path to a file of the run; strict mode wants one that stays in its directory.
#[derive(Debug)]
pub enum InnerPath {}

text_schema!(InnerPath, {
    "type": "string", "pattern": r"\S", "maxLength": 1000, "x-strict": { "format": "inner-path" }
});

/// The schema of a value that only strict mode judges, as `T`.
#[derive(Debug)]
pub struct Strictly<T>(std::marker::PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Strictly<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Strictly{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = T::json_schema(generator).to_value();
        super::settle(&mut schema, super::Strictness::Strict);
        schemars::json_schema!({ "x-strict": schema })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_uuid_has_its_version_and_its_dashes() {
        let cases = [
            ("0f9e8d7c-6b5a-4c3d-9e2f-1a0b9c8d7e6f", true),
            ("0F9E8D7C-6B5A-4C3D-BE2F-1A0B9C8D7E6F", true),
            ("0f9e8d7c-6b5a-1c3d-9e2f-1a0b9c8d7e6f", false),
            ("0f9e8d7c-6b5a-4c3d-1e2f-1a0b9c8d7e6f", false),
            ("00000000-0000-0000-0000-000000000000", false),
            ("------------------------------------", false),
            ("0f9e8d7c06b5a-4c3d-9e2f-1a0b9c8d7e6f", false),
        ];
        for (text, want) in cases {
            assert_eq!(is_random_uuid(text), want, "{text}");
        }
    }
}
