//! The parts of a SARIF 2.1.0 log that this program writes.

use serde::Serialize;

/// A SARIF log of one run of this program; the properties are what it adds to a run, a rule and a
/// result.
#[derive(Debug, Serialize)]
pub struct SarifLog<P, Q, R> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [SarifRun<P, Q, R>; 1],
}

impl<P, Q, R> SarifLog<P, Q, R> {
    pub fn of(run: SarifRun<P, Q, R>) -> Self {
        Self {
            schema: "https://json.schemastore.org/sarif-2.1.0.json",
            version: "2.1.0",
            runs: [run],
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SarifRun<P, Q, R> {
    pub tool: SarifTool<Q>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automation_details: Option<SarifAutomation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invocations: Option<[SarifInvocation; 1]>,
    pub column_kind: ColumnKind,
    pub results: Vec<SarifResult<R>>,
    pub properties: P,
}

#[derive(Debug, Serialize)]
pub struct SarifTool<Q> {
    driver: SarifDriver<Q>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifDriver<Q> {
    name: &'static str,
    version: String,
    semantic_version: String,
    rules: Vec<SarifRule<Q>>,
}

impl<Q> SarifTool<Q> {
    /// This program, with the rules that its results break.
    pub fn new(version: &str, rules: Vec<SarifRule<Q>>) -> Self {
        let driver = SarifDriver {
            name: "provost",
            version: version.to_owned(),
            semantic_version: version.to_owned(),
            rules,
        };
        Self { driver }
    }
}

#[derive(Debug, Serialize)]
pub struct SarifAutomation {
    pub id: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SarifInvocation {
    pub execution_successful: bool,
    pub start_time_utc: String,
    pub end_time_utc: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ColumnKind {
    UnicodeCodePoints,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SarifRule<Q> {
    pub id: String,
    pub name: String,
    pub short_description: SarifText,
    #[serde(flatten)]
    pub more: Q,
}

#[derive(Debug, Serialize)]
pub struct SarifText {
    pub text: String,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    Note,
    Warning,
    Error,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SarifResult<R> {
    pub rule_id: String,
    pub rule_index: usize,
    pub level: Level,
    pub message: SarifText,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<SarifLocation>>,
    #[serde(flatten)]
    pub more: R,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SarifLocation {
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocation {
    uri: String,
    uri_base_id: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Region {
    pub start_line: u32,
    pub end_line: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: String,
}

impl SarifLocation {
    /// A file of the repository.
    pub fn file(path: &str) -> Self {
        let artifact_location = ArtifactLocation {
            uri: uri(path),
            uri_base_id: "%SRCROOT%",
        };
        Self {
            physical_location: PhysicalLocation {
                artifact_location,
                region: None,
            },
            logical_locations: Vec::new(),
        }
    }

    /// The same file, at the lines of `symbol`.
    #[must_use]
    pub fn at(mut self, region: Region, symbol: &str) -> Self {
        self.physical_location.region = Some(region);
        self.logical_locations = vec![LogicalLocation {
            fully_qualified_name: symbol.to_owned(),
        }];
        self
    }
}

/// A path as a relative reference.
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let mut text = String::new();
    for byte in path.bytes() {
        if plain(byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_uri_that_leads_nowhere_else() {
        assert_eq!(uri("src/größe 1.txt"), "src/gr%C3%B6%C3%9Fe%201.txt");
        assert_eq!(uri("a:b?c#d"), "a%3Ab%3Fc%23d");
    }
}
