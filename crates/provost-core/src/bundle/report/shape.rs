//! Types that several reports share, and the rules of their fields.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::closed::closed;
use crate::object::{Oid, sha256};
use crate::time;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadShape {
    #[error("`{0}` is not a SHA-256 digest of 64 hexadecimal digits")]
    Sha256(String),
    #[error("`{0}` is not a time as RFC 3339 writes it")]
    Time(String),
}

/// A SHA-256 digest: 64 hexadecimal digits, kept in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256(String);

impl Sha256 {
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha256(bytes))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Sha256 {
    type Error = BadShape;

    fn try_from(text: String) -> Result<Self, BadShape> {
        if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(BadShape::Sha256(text))
        }
    }
}

impl From<Sha256> for String {
    fn from(digest: Sha256) -> Self {
        digest.0
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl JsonSchema for Sha256 {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Sha256".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9A-Fa-f]{64}$" })
    }
}

/// A point in time as RFC 3339 writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(String);

impl Time {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Time {
    type Error = BadShape;

    fn try_from(text: String) -> Result<Self, BadShape> {
        if time::is_date_time(&text) {
            Ok(Self(text))
        } else {
            Err(BadShape::Time(text))
        }
    }
}

impl TryFrom<&str> for Time {
    type Error = BadShape;

    fn try_from(text: &str) -> Result<Self, BadShape> {
        text.to_owned().try_into()
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        time.0
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// The schema of a field that may be `null` but must be present, unless it has a default.
#[derive(Debug)]
pub struct Nullable<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Nullable<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Nullable{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": [generator.subschema_for::<T>(), { "type": "null" }] })
    }
}

closed! {
    /// A file of the bundle, by path and digest.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct ArtifactRef {
        /// The name of the file.
        pub name: String,
        /// Its path from the root of the bundle.
        pub path: String,
        /// The digest of its bytes.
        pub sha256: Sha256,
        /// Its media type.
        pub media_type?: String,
        /// Its size in bytes.
        pub size_bytes?: u64,
    }
}

closed! {
    /// The verdict of one gate.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct GateResult {
        /// Whether it allowed the change; `null` if it did not run.
        #[serde(deserialize_with = "nullable")]
        #[schemars(with = "Nullable<bool>")]
        pub passed: Option<bool>,
        /// The violations that it found.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub violations: Vec<String>,
        /// Why it did not run.
        pub note?: String,
    }
}

impl GateResult {
    /// A gate that did not run, and why.
    pub fn unasked(why: impl Into<String>) -> Self {
        Self {
            passed: None,
            violations: Vec::new(),
            note: Some(why.into()),
        }
    }

    /// Whether the gate ran and allowed the change.
    pub fn lets_through(&self) -> bool {
        self.passed == Some(true)
    }
}

closed! {
    /// Why something failed.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Failure {
        /// What is wrong.
        pub message?: String,
        /// What to do about it.
        pub hint?: String,
    }
}

closed! {
    /// What Provost adds to a report with a verdict: exactly which tree was judged.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Judged {
        /// The tree; absent if the run had none.
        pub tree?: Oid,
        /// Further facts that no gate depends on.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        pub facts: Map<String, Value>,
    }
}

/// A required field that may be `null`; without this, serde reads a missing one as `null`.
pub(crate) fn nullable<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    reader: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(reader)
}

pub(crate) fn not_empty<'de, D: Deserializer<'de>>(reader: D) -> Result<String, D::Error> {
    let text = String::deserialize(reader)?;
    if text.is_empty() {
        return Err(D::Error::custom("is empty"));
    }
    Ok(text)
}

/// An id of at least eight characters.
pub(crate) fn eight_or_more<'de, D: Deserializer<'de>>(reader: D) -> Result<String, D::Error> {
    let text = String::deserialize(reader)?;
    if text.chars().count() < 8 {
        return Err(D::Error::custom("has fewer than 8 characters"));
    }
    Ok(text)
}

pub(crate) fn one_or_more<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    reader: D,
) -> Result<Vec<T>, D::Error> {
    let list = Vec::deserialize(reader)?;
    if list.is_empty() {
        return Err(D::Error::custom("is an empty list"));
    }
    Ok(list)
}

/// A number of seconds, at least 0.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(reader: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(reader)?;
    if number < 0.0 {
        return Err(D::Error::custom("is less than 0"));
    }
    Ok(number)
}

/// A number from 0 to 1.
pub(crate) fn share<'de, D: Deserializer<'de>>(reader: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(reader)?;
    if !(0.0..=1.0).contains(&number) {
        return Err(D::Error::custom("is not between 0 and 1"));
    }
    Ok(number)
}
