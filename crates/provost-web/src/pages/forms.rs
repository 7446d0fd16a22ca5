//! Forms: each has the token of the session, so that no other page can send one.

use maud::{Markup, html};
use provost_core::foreign_text::{neutralise, one_line};
use provost_core::question::{AgentQuestion, Needs};

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

    /// What an agent asks, with the ways to answer it here.
    pub(super) fn questions(&self, questions: &[AgentQuestion]) -> Markup {
        html! {
            @for question in questions {
                article .card {
                    p {
                        "The agent asks: " (question.kind.words()) " "
                        code { (one_line(&question.content)) } "?"
                    }
                    @if !question.reason.is_empty() {
                        p .faint { "It says: " (one_line(&question.reason)) }
                    }
                    p .faint { "No answer until " (question.until) " counts as no." }
                    (self.answers(&question.digest, question.needs, Some(&question.digest)))
                }
            }
        }
    }

    /// Approve or reject exactly the question with `digest`. One that needs the key of a person is
    /// approved in a terminal; `named` is what the command there has to name.
    pub(super) fn answers(&self, digest: &str, needs: Needs, named: Option<&str>) -> Markup {
        let seen = html! { input type="hidden" name="digest" value=(digest); };
        let approve = html! { (seen) button type="submit" { "Approve and continue" } };
        let reject = html! {
            (seen)
            label { "Reason" input name="reason" maxlength="2000" autocomplete="off"; }
            button .plain type="submit" { "Reject" }
        };
        html! {
            @match needs {
                Needs::Terminal => (self.form("approve", &approve)),
                Needs::PersonKey => p {
                    "A yes needs your person key. In a terminal: "
                    code {
                        "provost approve " (self.run)
                        @if let Some(named) = named { " " (named.get(..12).unwrap_or(named)) }
                    }
                },
            }
            (self.form("reject", &reject))
        }
    }
}
