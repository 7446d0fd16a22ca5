//! What is known of models and programs: output limits, prices, tools. It is data, in `table.json`.

use std::sync::LazyLock;

use provost_core::json;
use serde::Deserialize;

/// The known models and programs.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct GatewayTable {
    /// When the prices were written down.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the file"))]
    priced_on: String,
    models: Vec<ModelRow>,
    programs: Vec<ProgramRow>,
}

/// Models whose names begin alike.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct ModelRow {
    prefix: String,
    /// The most tokens of an answer.
    pub(in super::super) output: u64,
    #[serde(rename = "nano_usd_a_token")]
    prices: Prices,
    /// The prices of long requests.
    beyond: Option<LongPrices>,
    /// What the prices were compared with on that day; with nothing if it is absent.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the file"))]
    compared: Option<Compared>,
}

/// The prices of requests with more than `input` tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongPrices {
    input: u64,
    #[serde(rename = "nano_usd_a_token")]
    prices: Prices,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Compared {
    /// A page of the vendor.
    Vendor,
    /// What others published about it.
    Elsewhere,
}

impl ModelRow {
    /// The prices of a request with this many tokens, with or without a cache of an hour.
    pub(in super::super) fn prices(&self, input: u64, long_cache: bool) -> Prices {
        let long = self.beyond.as_ref().filter(|long| input > long.input);
        let prices = long.map_or(self.prices, |long| long.prices);
        if long_cache {
            prices.with_long_cache()
        } else {
            prices
        }
    }
}

/// Prices in billionths of a US dollar for one token, which are tenths of a cent for a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    pub input: u64,
    pub cache_write: u64,
    pub cache_read: u64,
    pub output: u64,
}

/// The tools of a program, as seen with its versions from `tested_from` to `tested_to`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramRow {
    adapter: String,
    tested_from: String,
    tested_to: String,
    tools: Vec<String>,
}

/// The most tokens of an answer of a model that is not in the table.
pub(in super::super) const UNKNOWN_OUTPUT: u64 = 128_000;

/// Parts of the names of models whose tokens have other prices than those of the family.
const OTHER_KINDS: [&str; 5] = ["image", "tts", "audio", "research", "realtime"];

static TABLE: LazyLock<GatewayTable> = LazyLock::new(|| {
    // A test reads it; an empty table knows no model and no tool.
    json::parse_as(include_bytes!("table.json")).unwrap_or_default()
});

pub(in super::super) fn table() -> &'static GatewayTable {
    &TABLE
}

impl GatewayTable {
    /// The row with the longest prefix of `model`.
    pub(in super::super) fn model(&self, model: &str) -> Option<&ModelRow> {
        let name = model.rsplit('/').next().unwrap_or(model);
        if OTHER_KINDS.iter().any(|kind| name.contains(kind)) {
            return None;
        }
        let begins = |row: &&ModelRow| {
            // `gpt-5` says nothing of `gpt-5.5`.
            let rest = name.strip_prefix(&row.prefix);
            let whole = |rest: &str| rest.is_empty() || rest.starts_with('-');
            rest.is_some_and(|rest| row.prefix.ends_with('-') || whole(rest))
        };
        let known = self.models.iter().filter(begins);
        known.max_by_key(|row| row.prefix.len())
    }

    /// The tools of the program with this adapter.
    pub(in super::super) fn tools(&self, adapter: &str) -> &[String] {
        let program = self.programs.iter().find(|row| row.adapter == adapter);
        program.map_or(&[], |row| row.tools.as_slice())
    }
}

/// How an installed version relates to those that the table was tested with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestedVersions {
    /// It is one of them, or the program is not in the table.
    Within,
    /// It is older or newer; with the versions, for people.
    Beyond(String),
    /// The version cannot be read.
    Unknown,
}

/// Compares what the program of `adapter` says is its version with the tested range.
pub fn tested(adapter: &str, version: &str) -> TestedVersions {
    let Some(row) = table().programs.iter().find(|row| row.adapter == adapter) else {
        return TestedVersions::Within;
    };
    let bounds = (numbers(&row.tested_from), numbers(&row.tested_to));
    let (Some(found), (Some(from), Some(to))) = (numbers(version), bounds) else {
        return TestedVersions::Unknown;
    };
    if (from..=to).contains(&found) {
        return TestedVersions::Within;
    }
    let ProgramRow {
        tested_from,
        tested_to,
        ..
    } = row;
    let range = if tested_from == tested_to {
        tested_to.clone()
    } else {
        format!("{tested_from} to {tested_to}")
    };
    TestedVersions::Beyond(range)
}

/// The first three numbers with dots between them in `text`.
fn numbers(text: &str) -> Option<[u64; 3]> {
    let of = |word: &str| {
        let word = word.trim_start_matches('v');
        let mut parts = word.splitn(3, '.');
        let whole = |part: &str| part.parse().ok();
        let (one, two) = (whole(parts.next()?)?, whole(parts.next()?)?);
        let last = parts.next()?;
        let digits = last.bytes().take_while(u8::is_ascii_digit).count();
        Some([one, two, whole(&last[..digits])?])
    };
    text.split_whitespace().find_map(of)
}

impl Prices {
    /// The prices of a request with a cache of an hour: to write it costs twice the input.
    #[must_use]
    fn with_long_cache(self) -> Self {
        Self {
            cache_write: self.cache_write.max(self.input.saturating_mul(2)),
            ..self
        }
    }

    /// In millionths of a US dollar, rounded up.
    pub fn of(&self, [read, cached, created, written]: [u64; 4]) -> u64 {
        let parts = [
            (read, self.input),
            (cached, self.cache_read),
            (created, self.cache_write),
            (written, self.output),
        ];
        let sum = parts
            .iter()
            .map(|(tokens, price)| tokens.saturating_mul(*price));
        sum.fold(0, u64::saturating_add).div_ceil(1000)
    }

    /// The most that these tokens can cost.
    pub fn most(&self, input: u64, output: u64) -> u64 {
        let read = input.saturating_mul(self.input.max(self.cache_write));
        let written = output.saturating_mul(self.output);
        read.saturating_add(written).div_ceil(1000)
    }

    /// The most tokens that can be written for `left`, after `input` tokens are read.
    pub fn output_within(&self, input: u64, left: u64) -> Option<u64> {
        let read = input.saturating_mul(self.input.max(self.cache_write));
        let left = left.saturating_mul(1000).checked_sub(read)?;
        Some(left.checked_div(self.output).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read_and_the_longest_name_counts() {
        let table: GatewayTable = json::parse_as(include_bytes!("table.json")).unwrap();
        assert!(!table.priced_on.is_empty());
        let mut programs = table.programs.iter();
        assert!(programs.all(|row| numbers(&row.tested_from) <= numbers(&row.tested_to)));
        let haiku = table.model("claude-haiku-4-5-20251001").unwrap();
        let plain = table.model("anthropic/claude-sonnet-4-5").unwrap();
        assert!(haiku.prices.output < plain.prices.output);
        assert!(table.model("gpt-5-codex").is_some());
        assert!(table.model("m-1").is_none() && table.model("gpt-5.9").is_none());
        assert!(table.model("claude-opus-9").is_none());
        let long = plain.prices(200_001, true);
        assert_eq!(
            (long.input, long.cache_write, long.output),
            (6000, 12_000, 22_500)
        );
        assert_eq!(plain.prices(200_000, false), plain.prices);
        let vendor = |row: &&ModelRow| matches!(row.compared, Some(Compared::Vendor));
        let elsewhere = |row: &&ModelRow| matches!(row.compared, Some(Compared::Elsewhere));
        assert!(table.models.iter().any(|row| vendor(&row)));
        assert!(table.models.iter().any(|row| elsewhere(&row)));
        assert!(table.tools("claude").contains(&"Bash".to_owned()));
        assert!(table.tools("command").is_empty());
        for row in &table.models {
            assert!(row.output > 0 && row.prices.output > 0, "{}", row.prefix);
            assert!(row.prices.cache_read <= row.prices.input, "{}", row.prefix);
            let long = row.beyond.as_ref().map_or(row.prices, |long| long.prices);
            assert!(long.input >= row.prices.input, "{}", row.prefix);
            assert!(long.output >= row.prices.output, "{}", row.prefix);
        }
    }

    #[test]
    fn an_installed_version_is_compared_with_the_tested_ones() {
        let cases = [
            ("claude", "2.1.325 (Claude Code)", TestedVersions::Within),
            ("claude", "2.1.9", TestedVersions::Within),
            ("codex", "codex-cli 0.166.0", TestedVersions::Within),
            (
                "codex",
                "codex-cli 0.1660.0-alpha",
                TestedVersions::Beyond("0.166.0".to_owned()),
            ),
            (
                "claude",
                "3.0.0",
                TestedVersions::Beyond("2.1.0 to 2.1.325".to_owned()),
            ),
            ("gemini", "none", TestedVersions::Unknown),
            ("command", "1.2.3", TestedVersions::Within),
        ];
        for (adapter, version, want) in cases {
            assert_eq!(tested(adapter, version), want, "{adapter} {version}");
        }
    }

    #[test]
    fn a_price_is_rounded_up_and_what_it_buys_is_rounded_down() {
        let prices = Prices {
            input: 3000,
            cache_write: 3750,
            cache_read: 300,
            output: 15_000,
        };
        assert_eq!(prices.of([1, 1, 1, 1]), 23);
        assert_eq!(prices.output_within(10, 100), Some(4));
        assert_eq!(prices.most(10, 4), 98);
        assert_eq!(prices.output_within(10, 37), None);
    }
}
