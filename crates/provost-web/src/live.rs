//! Tells open pages that something changed, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use tokio::sync::watch;

use crate::room::ControlRoom;
use crate::server::App;

/// How often the room is asked whether something changed, while a page listens.
const PERIOD: Duration = Duration::from_millis(400);

/// The last known stamp of the room.
#[derive(Clone)]
pub(crate) struct Changes(Arc<watch::Sender<u64>>);

impl Default for Changes {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Changes {
    /// Watches the room; nothing is read while no page listens.
    pub(crate) fn watch(&self, room: Arc<dyn ControlRoom>) {
        let changes = Arc::clone(&self.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PERIOD).await;
                if changes.receiver_count() == 0 {
                    continue;
                }
                let room = Arc::clone(&room);
                let stamp = tokio::task::spawn_blocking(move || room.stamp()).await;
                let Ok(stamp) = stamp else { return };
                changes.send_if_modified(|known| {
                    let differs = *known != stamp;
                    *known = stamp;
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
        let stamp = *changes.borrow_and_update();
        let event = Event::default().event("changed").data(format!("{stamp:x}"));
        Some((Ok(event), changes))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}
