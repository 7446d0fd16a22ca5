//! A cached analysis equals a fresh one.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use provost_lens::structure::{Settings, Summary};
use provost_lens::{Listed, TreeSitterLens};

use crate::scene::Scene;

const FILES: &[(&str, &str)] = &[
    (
        "a.py",
        "from b import two\n\n\ndef one():\n    return two()\n",
    ),
    ("b.py", "def two():\n    return 2\n"),
    ("c.rs", "fn main() { helper(); }\nfn helper() {}\n"),
    ("config.toml", "name = 'one'\n"),
    ("data.bin", "\0\0\0"),
];

/// Waits until every file is old enough to be trusted at the next analysis. The change time of a
/// file cannot be set, so there is no other way.
fn settle() {
    std::thread::sleep(Duration::from_millis(2_100));
}

#[test]
fn a_second_look_sees_the_same() {
    let scene = Scene::new(FILES);
    settle();
    let fresh = scene.report();
    assert_eq!(scene.remembered(), fresh);
    assert_eq!(scene.remembered(), fresh);
    let kept: Vec<_> = fs::read_dir(scene.cache().join("lens/2"))
        .unwrap()
        .collect();
    assert!(kept.len() > 2, "{kept:?}");
}

#[test]
fn an_edit_is_seen_whatever_is_remembered() {
    let scene = Scene::new(FILES);
    settle();
    scene.remembered();
    scene.write("b.py", b"def two():\n    return 3\n");
    scene.write("new.py", b"import a\na.one()\n");
    scene.remove("c.rs");
    assert_eq!(scene.remembered(), scene.report());
    // The same length, at once, and then with the old times.
    scene.write("b.py", b"def two():\n    return 4\n");
    assert_eq!(scene.remembered(), scene.report());
}

/// A module that copies others, imports others, and uses some of their names.
fn module(number: usize, version: usize) -> String {
    let (next, kind) = ((number + version) % 12, (number + version) % 3);
    let mut text = format!("from m{next} import f{next}\n\n\ndef f{number}(values, limit):\n");
    text += &format!("    total = {version}\n    for value in values:\n");
    for step in 0..8 {
        let sign = ["+", "-", "*"][(kind + step / 7) % 3];
        text += &format!("        if value > {step} and limit:\n");
        text += &format!(
            "            total = total {sign} value{}\n",
            step % (kind + 1)
        );
    }
    text += "    total = total + limit\n    total = total * limit\n    print(total)\n";
    text + &format!("    return f{next}(total, limit)\n")
}

#[test]
fn after_each_of_many_edits_memory_sees_what_is_found_anew() {
    let scene = Scene::new(&[]);
    for number in 0..12 {
        scene.write(&format!("m{number}.py"), module(number, 0).as_bytes());
    }
    scene.write("shared.h", b"int shared(void);\n");
    scene.write("one.c", b"int shared(void) { return 1; }\n");
    settle();
    assert_eq!(scene.remembered(), scene.report());
    let mut seen = Vec::new();
    for step in 1..16 {
        match step % 5 {
            0 => scene.remove(&format!("m{}.py", step / 5)),
            1 => scene.write(&format!("new{step}.py"), module(step % 12, 1).as_bytes()),
            // The header changes to another language, and then back to the first.
            2 => scene.write("two.cpp", b"int other() { return shared(); }\n"),
            3 if step == 8 => scene.remove("one.c"),
            _ => scene.write(
                &format!("m{}.py", step % 12),
                module(step % 12, step).as_bytes(),
            ),
        }
        let (remembered, fresh) = (scene.remembered(), scene.report());
        assert_eq!(remembered, fresh, "step {step}");
        assert_eq!(scene.summary(), Summary::from(&fresh), "step {step}");
        seen.push(fresh.findings.len());
    }
    seen.dedup();
    assert!(seen.len() > 3, "the edits change what is found: {seen:?}");
}

/// An edit of a tree of modules.
#[derive(Debug, Clone)]
enum Deed {
    Write(usize, usize),
    Remove(usize),
    Rename(usize, usize),
    MoveAway(usize),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let (file, version) = (0..10_usize, 0..6_usize);
    let deed = prop_oneof![
        (file.clone(), version).prop_map(|(file, version)| Deed::Write(file, version)),
        file.clone().prop_map(Deed::Remove),
        (file.clone(), file.clone()).prop_map(|(one, other)| Deed::Rename(one, other)),
        file.prop_map(Deed::MoveAway),
    ];
    proptest::collection::vec(deed, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_is_done_to_a_tree_memory_sees_what_is_found_anew(deeds in deeds()) {
        let scene = Scene::new(&[]);
        for number in 0..8 {
            scene.write(&format!("m{number}.py"), module(number, 0).as_bytes());
        }
        prop_assert_eq!(scene.remembered(), scene.report());
        for deed in deeds {
            let place = |number: usize| scene.root().join(format!("m{number}.py"));
            // A missing file cannot be removed or moved, which is no error here.
            match deed {
                Deed::Write(file, version) => {
                    scene.write(&format!("m{file}.py"), module(file, version).as_bytes());
                }
                Deed::Remove(file) => drop(fs::remove_file(place(file))),
                Deed::Rename(one, other) => drop(fs::rename(place(one), place(other))),
                Deed::MoveAway(file) => {
                    let package = scene.root().join("src");
                    fs::create_dir_all(&package).unwrap();
                    drop(fs::rename(place(file), package.join(format!("m{file}.py"))));
                }
            }
            let fresh = scene.report();
            prop_assert_eq!(&scene.remembered(), &fresh);
            prop_assert_eq!(scene.summary(), Summary::from(&fresh));
        }
    }
}

#[test]
fn the_file_list_gets_back_its_last_memory() {
    let scene = Scene::new(FILES);
    let given = Arc::new(Mutex::new(Vec::new()));
    let lens = TreeSitterLens {
        list: {
            let given = Arc::clone(&given);
            Box::new(move |_, memory| {
                let mut given = given.lock().unwrap();
                given.push(memory.to_vec());
                Ok(Listed {
                    paths: Vec::new(),
                    memory: (given.len() < 3).then(|| vec![7; given.len()]),
                })
            })
        },
        cache: Some(scene.cache()),
    };
    for _ in 0..4 {
        lens.analyze(&scene.root(), &Settings::default()).unwrap();
    }
    let given = given.lock().unwrap();
    assert_eq!(*given, [vec![], vec![7], vec![7, 7], vec![7, 7]]);
}

#[test]
fn damaged_memory_is_as_good_as_none() {
    let scene = Scene::new(FILES);
    settle();
    let fresh = scene.report();
    for damage in ["empty", "cut", "flipped", "forged", "junk"] {
        scene.remembered();
        for entry in fs::read_dir(scene.cache().join("lens/2")).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            match damage {
                "empty" => bytes.clear(),
                "cut" => bytes.truncate(bytes.len() / 2),
                "flipped" => {
                    let last = bytes.len() - 1;
                    bytes[last] ^= 1;
                }
                "forged" => bytes.extend_from_slice(b"more"),
                _ => bytes = b"junk".to_vec(),
            }
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(scene.remembered(), fresh, "{damage}");
    }
}

#[test]
fn a_memory_that_cannot_be_kept_changes_nothing() {
    let scene = Scene::new(FILES);
    fs::write(scene.cache(), "a file where a directory should be").unwrap();
    assert_eq!(scene.remembered(), scene.report());
}

#[test]
fn many_at_once_see_the_same() {
    let scene = Scene::new(FILES);
    settle();
    let fresh = scene.report();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(scene.remembered(), fresh);
                }
            });
        }
    });
    let left = fs::read_dir(scene.cache().join("lens/2")).unwrap();
    let unfinished = left.filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.extension().is_some_and(|ending| ending == "new")
    });
    assert_eq!(unfinished.count(), 0);
}
