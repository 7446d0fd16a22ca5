use super::*;

/// The flaws of `page` as the page of the code `name`.
fn flaws(name: &str, page: &str) -> Vec<&'static str> {
    let mut flaws = Vec::new();
    let Some(rest) = page.strip_prefix(&format!("# {name}\n\n")) else {
        return vec!["does not begin with its name"];
    };
    let Some((what, rest)) = rest.split_once("\n\n## Example\n\n") else {
        return vec!["has no example"];
    };
    let Some((example, advice)) = rest.split_once("\n\n## What to do\n\n") else {
        return vec!["does not say what to do"];
    };
    // `provost explain` lists the first line as it is.
    let summary = what.lines().next().unwrap_or_default();
    if !summary.ends_with('.') || summary.contains(['`', '*', '#', '[']) {
        flaws.push("its first line is no plain sentence");
    }
    if what.contains("\n\n") {
        flaws.push("says what it means in more than one paragraph");
    }
    let mut lines = example.lines();
    // The program, that of the fleet, and the program as an agent in a sandbox calls it.
    let ours = [
        "    $ provost ",
        "    $ provost-fleet ",
        "    $ /run/provost/self ",
    ];
    if !lines
        .next()
        .is_some_and(|line| ours.iter().any(|it| line.starts_with(it)))
        || !lines.next().is_some_and(|line| line.starts_with("    "))
    {
        flaws.push("its example is no command with its output");
    }
    if !advice.trim_end().ends_with(['.', ':']) || advice.split_whitespace().count() < 10 {
        flaws.push("its advice is too short");
    }
    if ["/home/", "/tmp/"].iter().any(|place| page.contains(place)) {
        flaws.push("names a place of one machine");
    }
    flaws
}

#[test]
fn every_page_says_what_and_what_to_do() {
    for code in Code::ALL {
        assert_eq!(
            flaws(code.name(), code.page()),
            Vec::<&str>::new(),
            "{code}"
        );
    }
}

#[test]
fn an_empty_part_of_a_page_is_a_flaw() {
    let good = "# A\n\nIt is so.\n\n## Example\n\n    $ provost a\n    no\n\n\
                ## What to do\n\nDo this, and then that, and then look at it once more.\n";
    assert_eq!(flaws("A", good), Vec::<&str>::new());
    let cases = [
        ("# A", "# B"),
        ("It is so.", ""),
        ("It is so.", "It is `so`."),
        ("    $ provost a\n    no\n", ""),
        ("    no\n", ""),
        ("Do this, and then that, and then look at it once more.", ""),
        ("## What to do", "## More"),
    ];
    for (part, instead) in cases {
        let page = good.replacen(part, instead, 1);
        assert_ne!(flaws("A", &page), Vec::<&str>::new(), "{part} → {instead}");
    }
}

#[test]
fn names_are_found_in_any_case() {
    assert_eq!(Code::parse("diff_refused"), Some(Code::DiffRefused));
    assert_eq!(Code::parse("nothing"), None);
}
