//! Plots: SVG that the server draws, with the same facts as text beside it.

use maud::{Markup, html};
use provost_engine::query::StepSpan;

use super::length;

/// How much of `most` is used.
pub(super) fn meter(used: u64, most: u64) -> Markup {
    let share = used
        .saturating_mul(1000)
        .checked_div(most)
        .unwrap_or(1000)
        .min(1000);
    let class = if share >= 900 { "bar full" } else { "bar" };
    html! {
        svg .meter viewBox="0 0 1000 10" preserveAspectRatio="none" role="img"
            aria-label={ (share / 10) " percent" } {
            rect .track width="1000" height="10" {}
            rect class=(class) width=(share) height="10" {}
        }
    }
}

/// The steps of a run below each other, each from its beginning to its end.
pub(super) fn waterfall(steps: &[StepSpan]) -> Markup {
    let end = steps.iter().map(|it| it.from_ms.saturating_add(it.took_ms));
    let end = end.max().unwrap_or(0).max(1);
    let scaled = |millis: u64| millis.saturating_mul(1000) / end;
    html! {
        table .waterfall {
            thead { tr { th { "Step" } th { "When" } th .number { "Took" } } }
            tbody { @for one in steps {
                @let name = serde_json::to_value(one.step).unwrap_or_default();
                @let class = match (one.failed, one.ended) {
                    (true, _) => "bar full",
                    (false, true) => "bar",
                    (false, false) => "bar open",
                };
                tr {
                    th scope="row" {
                        (name.as_str().unwrap_or_default().replace('_', " "))
                        @if one.attempt > 1 { " " span .faint { "×" (one.attempt) } }
                    }
                    td {
                        svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
                            rect .track width="1000" height="10" {}
                            rect class=(class) x=(scaled(one.from_ms).min(996)) height="10"
                                width=(scaled(one.took_ms).max(4)) {}
                        }
                    }
                    td .number {
                        (length(one.took_ms))
                        @if one.failed { " failed" } @else if !one.ended { " so far" }
                    }
                }
            } }
        }
    }
}

/// One bar for each row: its name, its share of the largest, and its words.
pub(super) fn bars(rows: &[(String, u64, String)], limit: Option<u64>) -> Markup {
    let largest = rows.iter().map(|(_, amount, _)| *amount).chain(limit).max();
    let largest = largest.unwrap_or(0).max(1);
    let scaled = |amount: u64| amount.saturating_mul(1000) / largest;
    html! {
        table .waterfall {
            tbody { @for (name, amount, words) in rows {
                @let over = limit.is_some_and(|limit| *amount >= limit);
                tr {
                    th scope="row" { (name) }
                    td {
                        svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
                            rect .track width="1000" height="10" {}
                            rect class=(if over { "bar full" } else { "bar" })
                                width=(scaled(*amount).max(2)) height="10" {}
                            @if let Some(limit) = limit {
                                rect .limit x=(scaled(limit).min(996)) width="4" height="10" {}
                            }
                        }
                    }
                    td .number { (words) }
                }
            } }
        }
    }
}
