//! Counts what a worker or a lander did, as text in the format of Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};

use provost_fs::atomic::{self, Durability};
use provost_ticket::course::{AttemptEnd, AttemptReport, LandingEnd};

use crate::settings::FleetSettings;

#[derive(Debug, Default)]
pub struct Metrics {
    accepted: AtomicU64,
    refused: AtomicU64,
    cancelled: AtomicU64,
    without_result: AtomicU64,
    landed: AtomicU64,
    moved: AtomicU64,
    landing_refused: AtomicU64,
    landing_failed: AtomicU64,
}

impl Metrics {
    pub fn attempt(&self, settings: &FleetSettings, report: Option<&AttemptReport>) {
        let counter = match report.map(|report| &report.end) {
            Some(AttemptEnd::Accepted) => &self.accepted,
            Some(AttemptEnd::Refused(_)) => &self.refused,
            Some(AttemptEnd::Cancelled) => &self.cancelled,
            None => &self.without_result,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.write(settings);
    }

    pub fn landing(&self, settings: &FleetSettings, end: Option<&LandingEnd>) {
        let counter = match end {
            Some(LandingEnd::Landed { .. }) => &self.landed,
            Some(LandingEnd::Moved { .. }) => &self.moved,
            Some(LandingEnd::Refused(_)) => &self.landing_refused,
            None => &self.landing_failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.write(settings);
    }

    /// All counters as text.
    pub fn render(&self) -> String {
        let attempts = [
            ("accepted", &self.accepted),
            ("refused", &self.refused),
            ("cancelled", &self.cancelled),
            ("lost", &self.without_result),
        ];
        let landings = [
            ("landed", &self.landed),
            ("moved", &self.moved),
            ("refused", &self.landing_refused),
            ("failed", &self.landing_failed),
        ];
        let mut text = String::new();
        for (name, rows) in [("attempts", attempts), ("landings", landings)] {
            text += &format!("# TYPE provost_fleet_{name}_total counter\n");
            for (end, counter) in rows {
                let count = counter.load(Ordering::Relaxed);
                text += &format!("provost_fleet_{name}_total{{end=\"{end}\"}} {count}\n");
            }
        }
        text
    }

    fn write(&self, settings: &FleetSettings) {
        if let Some(path) = &settings.metrics {
            // Measurements; the next one writes them again.
            let _ = atomic::replace(path, self.render().as_bytes(), 0o644, Durability::Cache);
        }
    }
}
