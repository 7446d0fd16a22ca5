//! Says what changed, as server-sent events: to open pages, and to programs that can resume.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use tokio::sync::watch;

use crate::room::{ControlRoom, RoomChange};
use crate::server::App;

/// How often the room is asked whether something changed, while a client listens.
const PERIOD: Duration = Duration::from_millis(50);

/// The number of the last known change of the room.
#[derive(Clone)]
pub(crate) struct Changes(Arc<watch::Sender<u64>>);

impl Default for Changes {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Changes {
    /// Watches the room; nothing is read while no client listens.
    pub(crate) fn watch(&self, room: Arc<dyn ControlRoom>) {
        let changes = Arc::clone(&self.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PERIOD).await;
                if changes.receiver_count() == 0 {
                    continue;
                }
                let room = Arc::clone(&room);
                let last = tokio::task::spawn_blocking(move || room.changes(u64::MAX).last).await;
                let Ok(last) = last else { return };
                changes.send_if_modified(|known| {
                    let differs = *known != last;
                    *known = last;
                    differs
                });
            }
        });
    }
}

/// One event whenever something changed. It has no content: a page loads itself again.
pub(crate) async fn stream(
    State(app): State<App>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changes = app.changes.0.subscribe();
    let events = stream::unfold(changes, |mut changes| async move {
        changes.changed().await.ok()?;
        let last = *changes.borrow_and_update();
        let event = Event::default().event("changed").data(format!("{last}"));
        Some((Ok(event), changes))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// Where a client of the API is in the changes.
struct ChangeReader {
    app: App,
    wakes: watch::Receiver<u64>,
    after: u64,
    /// Changes that were read and not sent.
    unsent: VecDeque<RoomChange>,
    /// Whether the client has to read everything again first.
    reset: bool,
}

impl ChangeReader {
    fn event(&self, number: u64) -> Event {
        Event::default().id(format!("{}-{number}", self.app.door.instance()))
    }

    /// The next event; waits for one if there is none.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if self.reset {
                self.reset = false;
                let event = self.event(self.after).event("reset").data("{}");
                return Some((Ok(event), self));
            }
            if let Some(change) = self.unsent.pop_front() {
                let data = serde_json::to_string(&change).ok()?;
                let event = self.event(change.number).event("change").data(data);
                return Some((Ok(event), self));
            }
            let after = self.after;
            let found = self
                .app
                .ask(move |room| Ok(room.changes(after)))
                .await
                .ok()?;
            self.after = found.last;
            self.reset = found.lost;
            self.unsent = if found.lost {
                VecDeque::new()
            } else {
                found.changes.into()
            };
            if !self.reset && self.unsent.is_empty() {
                self.wakes.changed().await.ok()?;
            }
        }
    }
}

/// The changes after `Last-Event-ID`. A client without one, or with one of another server, gets a
/// `reset` first: it has to read what it shows.
pub(crate) async fn events(
    State(app): State<App>,
    headers: HeaderMap,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let seen = headers.get("last-event-id").and_then(|it| it.to_str().ok());
    let seen = seen.and_then(|it| it.split_once('-'));
    let number = seen
        .filter(|(instance, _)| *instance == app.door.instance())
        .and_then(|(_, number)| number.parse::<u64>().ok());
    let now = app.ask(|room| Ok(room.changes(u64::MAX).last)).await;
    let wakes = app.changes.0.subscribe();
    let reader = ChangeReader {
        after: number.unwrap_or(now.unwrap_or_default()),
        reset: number.is_none(),
        wakes,
        unsent: VecDeque::new(),
        app,
    };
    Sse::new(stream::unfold(reader, ChangeReader::next)).keep_alive(KeepAlive::default())
}
