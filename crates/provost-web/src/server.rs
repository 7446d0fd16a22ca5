//! Binds the socket or the port, and serves.

use std::fs::{self, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{get, post};
use provost_core::code::Code;
use provost_engine::ports::PortError;
use tokio::net::{TcpListener, UnixListener};

use crate::door::Door;
use crate::drafts::Drafts;
use crate::live::Changes;
use crate::room::ControlRoom;
use crate::{api, commands, guard, live, pages};

/// Where requests come in.
#[derive(Debug, Clone)]
pub enum Listen {
    /// A unix socket, for its owner alone.
    Socket(PathBuf),
    /// A free port of 127.0.0.1.
    Loopback,
}

/// What the user has to know once requests are answered.
#[derive(Debug)]
pub struct Announced {
    /// The socket, or the address with its port.
    pub place: String,
    /// The one value of `Host` that is answered.
    pub host: String,
    /// Opens one session, within a minute.
    pub link: String,
}

/// What every handler has.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) door: Arc<Door>,
    pub(crate) room: Arc<dyn ControlRoom>,
    pub(crate) changes: Changes,
    pub(crate) drafts: Drafts,
}

impl App {
    pub(crate) fn new(room: Arc<dyn ControlRoom>, port: Option<u16>) -> Result<Self, PortError> {
        Ok(Self {
            door: Arc::new(Door::new(port)?),
            room,
            changes: Changes::default(),
            drafts: Drafts::default(),
        })
    }

    /// Asks the room in a thread that may block.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn ControlRoom) -> Result<T, PortError> + Send + 'static,
    ) -> Result<T, PortError> {
        let room = Arc::clone(&self.room);
        let asked = tokio::task::spawn_blocking(move || question(room.as_ref())).await;
        asked.unwrap_or_else(|error| Err(PortError::new(Code::HostFailed, error.to_string())))
    }
}

/// Serves until the process ends. `announce` is called once requests are answered.
pub fn serve(
    room: Arc<dyn ControlRoom>,
    listen: &Listen,
    announce: impl FnOnce(&Announced),
) -> Result<(), PortError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_io()
        .enable_time()
        .build();
    let runtime = runtime.map_err(|error| failed("the server cannot start", &error))?;
    runtime.block_on(listen_and_serve(room, listen, announce))
}

async fn listen_and_serve(
    room: Arc<dyn ControlRoom>,
    listen: &Listen,
    announce: impl FnOnce(&Announced),
) -> Result<(), PortError> {
    let ended = |error: io::Error| failed("the server ended", &error);
    match listen {
        Listen::Socket(path) => {
            let listener = bind_socket(path)?;
            let app = App::new(room, None)?;
            let place = path.display().to_string();
            announce(&announced(&app, place)?);
            axum::serve(listener, router(app)).await.map_err(ended)
        }
        Listen::Loopback => {
            let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listener = TcpListener::bind(free).await;
            let listener = listener.map_err(|error| failed("127.0.0.1", &error))?;
            let bound = listener.local_addr().map_err(ended)?;
            let app = App::new(room, Some(bound.port()))?;
            announce(&announced(&app, bound.to_string())?);
            axum::serve(listener, router(app)).await.map_err(ended)
        }
    }
}

fn announced(app: &App, place: String) -> Result<Announced, PortError> {
    app.changes.watch(Arc::clone(&app.room));
    let link = app.door.link()?;
    let host = app.door.host().to_owned();
    Ok(Announced { place, host, link })
}

/// The socket at `path`; one that no process answers at is replaced.
fn bind_socket(path: &Path) -> Result<UnixListener, PortError> {
    let shown = path.display().to_string();
    if UnixStream::connect(path).is_ok() {
        let reason = format!("`{shown}`: another `provost serve` answers there");
        let error = PortError::new(Code::RunBusy, reason);
        return Err(error.hint("end it, or use `provost serve --tcp` beside it"));
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed(&shown, &error));
        }
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(|error| failed(&shown, &error))?;
    // The directory is for its owner alone already.
    fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(|error| failed(&shown, &error))?;
    Ok(listener)
}

fn failed(what: &str, error: &io::Error) -> PortError {
    PortError::new(Code::HostFailed, format!("{what}: {error}"))
}

/// All routes, behind the guard; so is a path that has none.
pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/", get(pages::inbox::show))
        .route("/runs", get(pages::runs::show))
        .route("/r/{repository}/{run}", get(pages::run::show))
        .route(
            "/r/{repository}/{run}/transcript",
            get(pages::transcript::show),
        )
        .route("/r/{repository}/{run}/change", get(pages::change::show))
        .route("/r/{repository}/{run}/evidence", get(pages::evidence::show))
        .route("/r/{repository}/{run}/file", get(pages::evidence::file))
        .route("/r/{repository}/{run}/compare", get(pages::compare::show))
        .route(
            "/r/{repository}/{run}/evidence.html",
            get(pages::evidence::whole),
        )
        .route("/r/{repository}/{run}/words", post(commands::keep_words))
        .route("/r/{repository}/{run}/{command}", post(commands::carry_out))
        .route("/c/{repository}/{case}", get(pages::case::show))
        .route("/ground", get(pages::ground::show))
        .route("/live", get(live::stream))
        .route("/assets/app.css", get(pages::assets::style))
        .route("/assets/app.js", get(pages::assets::script))
        .route("/assets/icon.svg", get(pages::assets::icon))
        .merge(api_routes())
        .fallback(pages::missing)
        .layer(middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

fn api_routes() -> Router<App> {
    let run = "/api/v1/runs/{repository}/{run}";
    let case = "/api/v1/cases/{repository}/{case}";
    Router::new()
        .route("/api/v1/openapi.json", get(api::openapi))
        .route("/api/v1/repositories", get(api::repositories))
        .route("/api/v1/inbox", get(api::inbox))
        .route("/api/v1/events", get(live::events))
        .route("/api/v1/runs/{repository}", get(api::runs))
        .route(run, get(api::run))
        .route(&format!("{run}/transcript"), get(api::transcript))
        .route(&format!("{run}/change"), get(api::change))
        .route(&format!("{run}/evidence"), get(api::evidence))
        .route(&format!("{run}/{{command}}"), post(api::command))
        .route("/api/v1/cases/{repository}", get(api::cases))
        .route(case, get(api::case))
        .route(&format!("{case}/{{command}}"), post(api::command))
        .route("/api/v1/ground/{repository}", get(api::ground))
        .layer(DefaultBodyLimit::max(64 * 1024))
}
