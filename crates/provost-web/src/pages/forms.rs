//! Forms: each has the token of the session, so that no other page can send one.

use maud::{Markup, html};
use provost_core::foreign_text::neutralise;

use crate::guard::FORM_TOKEN;

/// Whose forms they are: a run, and the session that may send them.
pub(super) struct Forms<'a> {
    pub(super) repository: &'a str,
    pub(super) run: &'a str,
    pub(super) token: &'a str,
}

impl Forms<'_> {
    fn form(&self, command: &str, inside: &Markup) -> Markup {
        let action = format!("/r/{}/{}/{command}", self.repository, self.run);
        html! {
            form method="post" action=(action) {
                input type="hidden" name=(FORM_TOKEN) value=(self.token);
                (inside)
            }
        }
    }

    /// A single button.
    pub(super) fn button(&self, command: &str, words: &str) -> Markup {
        self.form(command, &html! { button type="submit" { (words) } })
    }

    /// A button with a line of text.
    pub(super) fn line(&self, command: &str, words: &str, field: &str, label: &str) -> Markup {
        let inside = html! {
            label { (label) input name=(field) maxlength="2000" autocomplete="off"; }
            button .plain type="submit" { (words) }
        };
        self.form(command, &inside)
    }

    /// Room for the words of the next attempt; they can be kept without being sent.
    pub(super) fn words(&self, words: &str) -> Markup {
        let keep = format!("/r/{}/{}/words", self.repository, self.run);
        let inside = html! {
            label { "What to fix"
                // A browser ignores one line end after the tag.
                textarea name="words" rows="5" maxlength="20000" data-keep=(keep) {
                    "\n" (neutralise(words))
                }
            }
            button type="submit" { "Retry with these words" } " "
            button .plain type="submit" formaction=(keep) { "Keep the words" }
        };
        html! { div #words { (self.form("retry", &inside)) } }
    }

    /// Approve or reject exactly the question with `digest`.
    pub(super) fn answers(&self, digest: &str) -> Markup {
        let seen = html! { input type="hidden" name="digest" value=(digest); };
        let approve = html! { (seen) button type="submit" { "Approve and continue" } };
        let reject = html! {
            (seen)
            label { "Reason" input name="reason" maxlength="2000" autocomplete="off"; }
            button .plain type="submit" { "Reject" }
        };
        html! { (self.form("approve", &approve)) (self.form("reject", &reject)) }
    }
}
