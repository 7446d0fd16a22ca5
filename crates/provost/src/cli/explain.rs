//! `provost explain CODE`: prints the page about a code.

use clap::Args;
use provost_core::code::Code;
use provost_core::run::Gate;
use serde::Serialize;

use crate::answer::{Answered, Failure, Outcome};

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
    ("gates", page!("gates")),
    ("containers", page!("containers")),
    ("contract", page!("contract")),
    ("network", page!("network")),
    ("prepare", page!("prepare")),
    ("defaults", page!("defaults")),
    ("agents", page!("agents")),
    ("review", page!("review")),
    ("approvals", page!("approvals")),
    #[cfg(feature = "serve")]
    ("serve", page!("serve")),
    ("case", page!("case")),
    ("plan", page!("plan")),
    ("chain", page!("chain")),
    ("board", page!("board")),
    ("packages", page!("PACKAGES")),
    ("packet", page!("packet")),
    ("judge", page!("judge")),
    ("replay", page!("replay")),
    ("structure", page!("structure")),
    ("change-control", page!("change-control")),
];

// Explain a code and its remedy, or print a page about a topic.
#[derive(Args)]
pub(super) struct Explain {
    /// A code, or the name of a page; without one, all codes and pages are listed. The pages: what
    /// sandboxes are made of, what each gate decides, sandboxes in containers, every field of a contract file, how the
    /// network is granted, how dependencies are prepared, what runs take by default, which agents
    /// are known, how results are reviewed, what needs an approval, what the control room shows, how a request
    /// becomes one result, how contracts are planned and split, how chains of them are run, how a board is kept, what packages are, how work is
    /// judged again, what can be asked of a finished run, how source code is measured, how agents share a checkout.
    #[arg(
        value_name = "CODE|sandbox|gates|containers|contract|network|prepare|defaults|agents|review|\
                      approvals|serve|case|plan|chain|board|packages|packet|judge|replay|structure|\
                      change-control"
    )]
    code: Option<String>,
}

pub(super) fn run(explain: &Explain) -> Outcome {
    let Some(name) = &explain.code else {
        return Ok(CodeList::new().into());
    };
    // The page's name before 0.2.
    let name = if name == "box" { "sandbox" } else { name };
    let named = |name: &str| {
        let mut pages = PAGES.iter();
        pages.find(|(page, _)| name.eq_ignore_ascii_case(page))
    };
    let is_gate = Gate::parse(&name.to_ascii_lowercase()).is_some();
    let page = named(name).or_else(|| named("gates").filter(|_| is_gate));
    if let Some((_, page)) = page {
        return Ok(Page { code: None, page }.into());
    }
    let code = Code::parse(name).ok_or_else(|| {
        Failure::new(Code::NotFound, format!("there is no code `{name}`"))
            .hint("`provost explain` lists all codes and pages")
    })?;
    let page = Page {
        code: Some(CodeFacts::of(code)),
        page: code.page(),
    };
    Ok(page.into())
}

#[derive(Serialize)]
struct CodeFacts {
    code: Code,
    exit: u8,
}

impl CodeFacts {
    fn of(code: Code) -> Self {
        Self {
            code,
            exit: code.exit().into(),
        }
    }
}

#[derive(Serialize)]
struct Page {
    #[serde(flatten)]
    code: Option<CodeFacts>,
    page: &'static str,
}

impl Answered for Page {
    fn text(&self) -> String {
        self.page.to_owned()
    }
}

/// What can be explained.
#[derive(Serialize)]
struct CodeList(Vec<ListedPage>);

#[derive(Serialize)]
struct ListedPage {
    #[serde(flatten)]
    code: Option<CodeFacts>,
    /// The name of a page about a topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
    summary: &'static str,
}

impl CodeList {
    fn new() -> Self {
        let codes = Code::ALL.iter().map(|code| ListedPage {
            code: Some(CodeFacts::of(*code)),
            page: None,
            summary: code.page().lines().nth(2).unwrap_or_default(),
        });
        let pages = PAGES.iter().map(|(name, page)| ListedPage {
            code: None,
            page: Some(name),
            summary: title(page),
        });
        Self(codes.chain(pages).collect())
    }
}

impl Answered for CodeList {
    fn text(&self) -> String {
        let codes = Code::ALL.iter().map(|code| code.name().len());
        let width = codes.max().unwrap_or_default();
        let (mut codes, mut pages) = (String::new(), String::new());
        for ListedPage {
            code,
            page,
            summary,
        } in &self.0
        {
            if let Some(CodeFacts { code, exit }) = code {
                codes += &format!("{:width$}  {exit}  {summary}\n", code.name());
            }
            if let Some(name) = page {
                pages += &format!("{name:width$}     {summary}\n");
            }
        }
        codes + "\nPages about topics, by `provost explain NAME`:\n" + &pages
    }
}

/// The title of a page.
fn title(page: &str) -> &str {
    let first = page.lines().next().unwrap_or_default();
    first.trim_start_matches('#').trim()
}
