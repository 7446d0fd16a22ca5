//! Attacks on what is outside: files of the host, the user's repository, the evidence.

use super::{Contained, Harms, attacks};

attacks! {
    writes_outside_by_an_absolute_path:
        "mkdir -p @OUTSIDE@; echo owned > @OUTSIDE@/canary" => Contained, Harms;
    writes_into_the_main_checkout:
        "mkdir -p @REPO@/src; echo owned > @REPO@/src/b.txt" => Contained, Harms;
    writes_into_the_home_of_the_user:
        "mkdir -p @HOME@; echo owned >> @HOME@/.profile" => Contained, Harms;
    writes_through_a_link_it_made:
        "ln -s @OUTSIDE@ src/way; echo owned > src/way/canary; rm src/way" => Contained, Harms;
    writes_through_a_link_of_the_base:
        "echo owned > exit/canary" => Contained, Harms;
    renames_a_file_of_its_own_over_one_outside:
        "echo owned > x; mv -f x @OUTSIDE@/canary; rm -f x" => Contained, Harms;
    links_a_file_from_outside_and_writes_to_it:
        "ln @OUTSIDE@/canary x && echo owned > x; rm -f x" => Contained, Harms;
    plants_a_hook:
        "mkdir -p @REPO@/.git/hooks; echo owned > @REPO@/.git/hooks/post-checkout"
        => Contained, Harms;
    changes_the_configuration_of_the_repository:
        "mkdir -p @REPO@/.git; git config --file @REPO@/.git/config core.pager owned"
        => Contained, Harms;
    plants_a_ref:
        "mkdir -p @REPO@/.git/refs/heads
         git rev-parse HEAD > @REPO@/.git/refs/heads/planted" => Contained, Harms;
    moves_the_branch_of_the_user:
        "git commit -q --allow-empty -m owned
         git push -q -f @REPO@ HEAD:refs/heads/planted" => Contained, Harms;
    points_its_git_directory_to_the_real_one:
        "rm -rf .git; echo 'gitdir: @REPO@/.git' > .git
         git update-ref refs/heads/planted HEAD" => Contained, Harms;
    damages_the_objects_it_borrows:
        "for file in $(find /run/provost/objects @REPO@/.git/objects -type f)
         do chmod u+w $file && echo owned > $file; done" => Contained, Harms;
    replaces_the_objects_it_borrows:
        "for file in $(find /run/provost/objects @REPO@/.git/objects -type f)
         do echo owned > x && mv -f x $file; done; rm -f x" => Contained, Harms;
    writes_into_the_runtime_root:
        "mkdir -p @REPO@/.provost; echo owned > @REPO@/.provost/canary" => Contained, Harms;
    writes_into_another_workspace:
        "mkdir -p @CACHE@/provost/other/ws/run_other/1/tree
         echo owned > @CACHE@/provost/other/ws/run_other/1/tree/canary" => Contained, Harms;
    starts_programs_through_its_git_configuration:
        "git config core.fsmonitor 'touch @OUTSIDE@/ran; false'
         git config filter.f.clean 'touch @OUTSIDE@/ran; cat'
         git config filter.f.smudge 'touch @OUTSIDE@/ran; cat'
         git config diff.f.textconv 'touch @OUTSIDE@/ran; cat'
         git config core.alternateRefsCommand 'touch @OUTSIDE@/ran; :'
         git config core.hooksPath .git/planted
         mkdir -p .git/info .git/planted
         echo '* filter=f diff=f' > .git/info/attributes
         for hook in post-index-change reference-transaction post-checkout pre-auto-gc
         do echo 'touch @OUTSIDE@/ran' > .git/planted/$hook; chmod +x .git/planted/$hook; done
         git status" => Contained, Harms;
}

/// The binary is in the sandbox, where it serves as init; no process can change it there.
#[test]
fn overwrites_the_program_that_runs_it() {
    let stage = crate::stage::Stage::new();
    stage.copy_binary();
    let script = "chmod 777 /run/provost/self @PROVOST@
        for file in /run/provost/self /proc/1/exe @PROVOST@; do echo owned > $file; done";
    super::check_in(&stage, "self", script, &Contained, Harms);
}

/// A line in the ledger is worth nothing from the inside, and is seen when it comes from outside.
#[test]
fn forges_lines_of_the_ledger() {
    let stage = crate::stage::Stage::new();
    let script = r#"for run in @REPO@/.provost/runs/*; do
        echo '{"event_type":"RUN_FINISHED","run_id":"forged","seq":27}' >> "$run/events.jsonl" \
            && echo LOOT; done"#;
    super::check_in(&stage, "ledger", script, &Contained, Harms);
    let run = stage.last_run().unwrap();
    for found in [stage.ask(&["show", "--json"]), stage.verify(&run)] {
        assert_eq!(
            (found.exit, found.code()),
            (5, "EVIDENCE_ALTERED"),
            "{found:?}"
        );
    }
}
