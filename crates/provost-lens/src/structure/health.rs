//! Turns sums into a number between 0 and 100.
//!
//! The standard formula has one curve: `100 · half / (half + rate)`, where the rate is debt per
//! hundred functions, classes or files, and `half` the rate at which half of the points are lost.
//! It has no floor, so one more defect is visible however many there are. Points are counted in
//! millionths, so it is visible in a million lines too. A dimension that a tree does not have, such
//! as classes, is left out of the mean instead of counting as perfect.
//!
//! Two trees are also compared on the size of the first one ([`pair`]): only debt moves that
//! number, never code that was added or removed without any.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::metrics::{Debt, Debts, PythonSums};

/// Points in millionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Points(i64);

const ONE: i64 = 1_000_000;

const ALL: i64 = 100 * ONE;

impl Points {
    pub fn whole(points: i32) -> Self {
        Self(i64::from(points) * ONE)
    }

    pub fn millionths(self) -> i64 {
        self.0
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }

    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The points as in JSON: an integer where they are whole.
    pub fn number(self) -> serde_json::Number {
        if self.0 % ONE == 0 {
            return (self.0 / ONE).into();
        }
        let decimal = self.to_string().parse().unwrap_or_default();
        serde_json::Number::from_f64(decimal).unwrap_or_else(|| 0.into())
    }
}

impl fmt::Display for Points {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, part) = (
            self.0.unsigned_abs() / 1_000_000,
            self.0.unsigned_abs() % 1_000_000,
        );
        if part == 0 {
            return write!(formatter, "{sign}{whole}");
        }
        let digits = format!("{part:06}");
        write!(formatter, "{sign}{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl Serialize for Points {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.number().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Points {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        // Through text, because formatting rounds and no cast does.
        let text = format!("{value:.6}").replace('.', "");
        let millionths = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self(millionths))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub points: Points,
    pub grade: Grade,
    /// The dimensions it is the mean of.
    pub dimensions: Vec<Share>,
}

/// The contribution of one dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    pub dimension: Dimension,
    /// Out of 100.
    pub weight: u8,
    pub points: Points,
    /// What the points were computed from.
    #[serde(flatten)]
    pub debt: Debt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    Clones,
    Complexity,
    /// Methods that have nothing to do with each other.
    Cohesion,
    /// Classes that use many others.
    Coupling,
    /// Unused code.
    DeadCode,
    /// Import cycles.
    Dependencies,
    /// The share of files that could be read.
    Coverage,
}

impl Dimension {
    pub const ALL: [Self; 7] = [
        Self::Clones,
        Self::Complexity,
        Self::Cohesion,
        Self::Coupling,
        Self::DeadCode,
        Self::Dependencies,
        Self::Coverage,
    ];

    /// Out of 100.
    fn weight(self) -> u8 {
        match self {
            Self::Clones => 25,
            Self::Complexity => 20,
            Self::Cohesion => 15,
            Self::Coupling | Self::DeadCode | Self::Dependencies | Self::Coverage => 10,
        }
    }

    /// The debt per hundred at which half of the points are lost.
    fn half(self) -> u64 {
        match self {
            Self::Clones => 40,
            Self::Complexity | Self::Cohesion => 100,
            Self::Coupling => 200,
            Self::DeadCode => 10,
            Self::Dependencies => 20,
            Self::Coverage => 50,
        }
    }

    /// Its name in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Clones => "clones",
            Self::Complexity => "complexity",
            Self::Cohesion => "cohesion",
            Self::Coupling => "coupling",
            Self::DeadCode => "dead_code",
            Self::Dependencies => "dependencies",
            Self::Coverage => "coverage",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Grade {
    F,
    D,
    C,
    B,
    A,
}

impl Grade {
    fn of(points: Points) -> Self {
        match points.0 / ONE {
            90.. => Self::A,
            75.. => Self::B,
            60.. => Self::C,
            40.. => Self::D,
            _ => Self::F,
        }
    }
}

/// The health that follows from `debts` by the standard formula; `None` where there is no code.
pub fn standard(debts: &Debts) -> Option<Health> {
    on(debts, debts)
}

/// The health of two trees, both on the size of the first.
pub fn pair(before: &Debts, after: &Debts) -> Option<(Health, Health)> {
    let mut basis = before.clone();
    for (dimension, debt) in after {
        // A dimension that the first tree does not have is measured on the size of the second.
        let known = basis.entry(*dimension).or_default();
        if known.size == 0 {
            known.size = debt.size;
        }
    }
    Some((on(before, &basis)?, on(after, &basis)?))
}

fn on(debts: &Debts, basis: &Debts) -> Option<Health> {
    let shares: Vec<Share> = Dimension::ALL
        .into_iter()
        .filter_map(|dimension| {
            let size = basis.get(&dimension)?.size;
            let debt = Debt {
                size,
                debt: debts.get(&dimension).map_or(0, |found| found.debt),
            };
            (size > 0).then(|| Share {
                dimension,
                weight: dimension.weight(),
                points: curve(dimension, debt),
                debt,
            })
        })
        .collect();
    mean(shares)
}

fn curve(dimension: Dimension, debt: Debt) -> Points {
    let half = u128::from(dimension.half()) * u128::from(debt.size);
    let rate = 100 * u128::from(debt.debt);
    let points = u128::from(ALL.unsigned_abs()) * half / (half + rate).max(1);
    Points(i64::try_from(points).unwrap_or(ALL))
}

fn mean(shares: Vec<Share>) -> Option<Health> {
    let weights: i64 = shares.iter().map(|share| i64::from(share.weight)).sum();
    if weights == 0 {
        return None;
    }
    let weighted = |share: &Share| i64::from(share.weight) * share.points.0;
    let points = Points(shares.iter().map(weighted).sum::<i64>() / weights);
    Some(Health {
        points,
        grade: Grade::of(points),
        dimensions: shares,
    })
}

/// The health of the Python code by integers and absolute penalties, as other tools compute it;
/// `None` where there is no Python code.
pub fn compat(sums: &PythonSums) -> Option<Health> {
    if sums.files == 0 {
        return None;
    }
    let shares = Dimension::ALL
        .into_iter()
        .map(|dimension| {
            let (thousandths, debt) = penalties(dimension, sums);
            Share {
                dimension,
                weight: dimension.weight(),
                points: Points(rounded(thousandths.clamp(0, 100_000)) * ONE),
                debt,
            }
        })
        .collect();
    let mut health = mean(shares)?;
    health.points = Points(rounded(health.points.0 / (ONE / 1000)) * ONE);
    health.grade = Grade::of(health.points);
    Some(health)
}

/// Thousandths of points in whole points; a half is rounded to even.
fn rounded(thousandths: i64) -> i64 {
    let (whole, rest) = (thousandths.div_euclid(1000), thousandths.rem_euclid(1000));
    let up = rest > 500 || (rest == 500 && whole % 2 != 0);
    whole + i64::from(up)
}

/// The points of a dimension in thousandths, before rounding and clamping.
fn penalties(dimension: Dimension, sums: &PythonSums) -> (i64, Debt) {
    let part = |value: u64, of: u64, unit: i64| match i64::try_from(of.max(1)) {
        Ok(of) => signed(value).saturating_mul(unit) / of,
        Err(_) => 0,
    };
    let debt = |debt: u64, size: u64| Debt { debt, size };
    match dimension {
        Dimension::Clones => {
            let density = part(sums.clone_groups, sums.files, 1_000_000);
            (density_points(density), debt(sums.clone_groups, sums.files))
        }
        Dimension::Complexity => {
            let of = &sums.complexity;
            let points = 100_000
                - part(of.sum, of.count, 2_500)
                - signed(of.max).saturating_mul(1_200)
                - signed(of.high).saturating_mul(8_000);
            (points, debt(of.high, of.count))
        }
        Dimension::Coupling => {
            let of = &sums.coupling;
            let points = 100_000
                - part(of.sum, of.count, 7_000)
                - signed(of.max).saturating_mul(2_000)
                - signed(of.high).saturating_mul(8_000);
            (points, debt(of.high, of.count))
        }
        Dimension::Cohesion => {
            let of = &sums.cohesion;
            let above = of.sum.saturating_sub(of.count);
            let points =
                100_000 - part(above, of.count, 20_000) - signed(of.high).saturating_mul(12_000);
            (points, debt(of.high, of.count))
        }
        Dimension::DeadCode => (
            100_000 - signed(sums.dead).saturating_mul(8_000),
            debt(sums.dead, sums.complexity.count),
        ),
        Dimension::Dependencies => {
            let allowed = sums.depth_twice_mean.max(sums.depth_p95 + 1);
            let deep = signed(sums.depth_max.saturating_sub(allowed));
            let cycles = signed(sums.cycles);
            let points = 100_000 - cycles.saturating_mul(25_000) - deep.saturating_mul(4_000);
            (points, debt(sums.cycles, sums.files))
        }
        Dimension::Coverage => {
            let read = sums.files - sums.unread.min(sums.files);
            let unread = debt(sums.unread, sums.files);
            (part(read, sums.files, 100_000), unread)
        }
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Clone groups per million files, as thousandths of points: linear between the given points.
fn density_points(density: i64) -> i64 {
    const CORNERS: [(i64, i64); 4] = [
        (0, 100_000),
        (50_000, 90_000),
        (200_000, 50_000),
        (500_000, 0),
    ];
    for pair in CORNERS.windows(2) {
        let ((left, high), (right, low)) = (pair[0], pair[1]);
        if density <= right {
            return high - (high - low) * (density - left) / (right - left);
        }
    }
    0
}
