//! `provost explain CODE`: prints the page about a code.

use clap::Args;
use provost_core::code::Code;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};

/// A page of the documentation, inside the program.
macro_rules! page {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/",
            $name,
            ".md"
        ))
    };
}

/// Pages that are about more than one code.
const PAGES: &[(&str, &str)] = &[
    ("sandbox", page!("sandbox")),
    ("containers", page!("containers")),
    ("contract", page!("contract")),
    ("network", page!("network")),
    ("prepare", page!("prepare")),
    ("agents", page!("agents")),
    ("review", page!("review")),
    ("approvals", page!("approvals")),
    ("plan", page!("plan")),
    ("chain", page!("chain")),
    ("board", page!("board")),
    ("packages", page!("PACKAGES")),
    ("packet", page!("packet")),
    ("replay", page!("replay")),
    ("structure", page!("structure")),
    ("change-control", page!("change-control")),
];

// Explain a code and its remedy, or print a page about a topic.
#[derive(Args)]
pub(super) struct Explain {
    /// A code, or the name of a page; without one, all codes and pages are listed. The pages: what
    /// sandboxes are made of, sandboxes in containers, every field of a contract file, how the
    /// network is granted, how dependencies are prepared, which agents are known, how results are
    /// reviewed, what needs an approval, how contracts are planned and split, how chains of them
    /// are run, how a board is kept, what packages are, what can be asked of a finished run, how
    /// source code is measured, how agents share a checkout.
    #[arg(
        value_name = "CODE|sandbox|containers|contract|network|prepare|agents|review|approvals|plan|\
                      chain|board|packages|packet|replay|structure|change-control"
    )]
    code: Option<String>,
}

pub(super) fn run(explain: &Explain) -> Outcome {
    let Some(name) = &explain.code else {
        return Ok(list());
    };
    // The page's name before 0.2.
    let name = if name == "box" { "sandbox" } else { name };
    let page = PAGES
        .iter()
        .find(|(page, _)| name.eq_ignore_ascii_case(page));
    if let Some((_, page)) = page {
        return Ok(Answer::data(json!({ "page": page }), *page));
    }
    let code = Code::parse(name).ok_or_else(|| {
        Failure::new(Code::NotFound, format!("there is no code `{name}`"))
            .hint("`provost explain` lists all codes and pages")
    })?;
    let json = json!({ "code": code, "exit": u8::from(code.exit()), "page": code.page() });
    Ok(Answer::data(json, code.page()))
}

fn list() -> Answer {
    let summary = |code: Code| code.page().lines().nth(2).unwrap_or_default();
    let width = Code::ALL
        .iter()
        .map(|code| code.name().len())
        .max()
        .unwrap_or_default();
    let row = |code: &Code| {
        format!(
            "{:width$}  {}  {}\n",
            code.name(),
            u8::from(code.exit()),
            summary(*code)
        )
    };
    let entry = |code: &Code| json!({ "code": code, "exit": u8::from(code.exit()), "summary": summary(*code) });
    let mut text: String = Code::ALL.iter().map(row).collect();
    text += "\nPages about topics, by `provost explain NAME`:\n";
    for (name, page) in PAGES {
        text += &format!("{name:width$}     {}\n", title(page));
    }
    let pages = PAGES
        .iter()
        .map(|(name, page)| json!({ "page": name, "summary": title(page) }));
    let entries = Code::ALL.iter().map(entry).chain(pages);
    Answer::data(entries.collect(), text)
}

/// The title of a page.
fn title(page: &str) -> &str {
    let first = page.lines().next().unwrap_or_default();
    first.trim_start_matches('#').trim()
}
