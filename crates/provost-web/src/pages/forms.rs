//! Forms: each has the token of the session, so that no other page can send one.

use maud::{Markup, html};

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

    /// A button with room for many lines.
    pub(super) fn lines(&self, command: &str, words: &str, field: &str, label: &str) -> Markup {
        let inside = html! {
            label { (label) textarea name=(field) rows="5" maxlength="20000" {} }
            button type="submit" { (words) }
        };
        html! { div #words { (self.form(command, &inside)) } }
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
