//! Registries of earlier versions are brought up to date.

use super::*;

/// The tables of intents in version 2.
const VERSION_2: &str = "
    DROP TABLE intent_event; DROP TABLE intent_index; DROP TABLE intent_digest;
    CREATE TABLE intent (
        intent_id   TEXT PRIMARY KEY NOT NULL,
        record      TEXT NOT NULL,
        digest      TEXT NOT NULL,
        open        INTEGER NOT NULL,
        declared_at INTEGER NOT NULL,
        expires_at  INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX intent_open ON intent (open, declared_at, intent_id);
    CREATE TABLE intent_event (
        seq       INTEGER PRIMARY KEY AUTOINCREMENT,
        intent_id TEXT NOT NULL,
        at        INTEGER NOT NULL,
        what      TEXT NOT NULL,
        record    TEXT NOT NULL
    ) STRICT;
    CREATE INDEX intent_event_of ON intent_event (intent_id, seq);
    CREATE TRIGGER intent_event_stays BEFORE UPDATE ON intent_event
    BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
    CREATE TABLE intent_digest (
        digest    TEXT PRIMARY KEY NOT NULL,
        intent_id TEXT NOT NULL
    ) STRICT;
    INSERT INTO intent_digest VALUES ('d', 'open');
    PRAGMA user_version = 2;
";

#[test]
fn a_registry_of_the_second_version_keeps_its_intents() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let connection = Connection::open(&scratch.path).unwrap();
    connection.execute_batch(VERSION_2).unwrap();
    let record = |intent: &Intent| {
        let value = serde_json::to_value(intent).unwrap();
        json::canonical(&value)
    };
    let open = Intent {
        lease_renewed_at: 77,
        was_violated: true,
        ..intent("open", 1, &["a"], 1)
    };
    let over = Intent {
        state: State::Clean,
        ..intent("over", 1, &["a"], 0)
    };
    let later = r#"{"version":99}"#.to_owned();
    let rows = [
        ("open", record(&open), true, 1),
        ("over", record(&over), false, 0),
        ("later", later, true, 2),
        ("damaged", "{".to_owned(), true, 3),
    ];
    for (id, record, is_open, at) in rows {
        let digest = match id {
            "damaged" => String::new(),
            _ => provost_core::object::sha256(record.as_bytes()),
        };
        connection
            .execute(
                "INSERT INTO intent VALUES (?1, ?2, ?3, ?4, ?5, 1001)",
                params![id, record, digest, is_open, at],
            )
            .unwrap();
        connection
            .execute(
                "INSERT INTO intent_event (intent_id, at, what, record) VALUES (?1, 0, 'x', ?2)",
                params![id, record],
            )
            .unwrap();
    }
    drop(connection);
    let mut registry = scratch.open();
    let known = registry.look(Some("over")).unwrap();
    assert_eq!(known.intents, [over, open.clone()]);
    let names: Vec<&str> = unread(&known).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["later", "damaged"]);
    assert_eq!(registry.intent_of("d").unwrap().as_deref(), Some("open"));
    change(&mut registry, "open", &closed(State::Clean));
    drop(registry);
    let known = scratch.open().look(Some("open")).unwrap();
    assert_eq!(known.intents, [open.after(&closed(State::Clean))]);
    let connection = Connection::open(&scratch.path).unwrap();
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('intent', 'intent_open')";
    let left: i64 = connection.query_row(tables, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_registry_of_the_first_version_is_brought_up_to_date() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let connection = Connection::open(&scratch.path).unwrap();
    connection
        .execute_batch(
            "DROP TABLE intent_event; DROP TABLE intent_index; DROP TABLE intent_digest;
             PRAGMA user_version = 1;",
        )
        .unwrap();
    drop(connection);
    let mut registry = scratch.open();
    put(&mut registry, &intent("one", 1, &["a"], 0));
    registry.keep_digest("d", "one").unwrap();
    assert_eq!(registry.intent_of("d").unwrap().as_deref(), Some("one"));
}
