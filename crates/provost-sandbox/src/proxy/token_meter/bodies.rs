//! Keeps what was asked and answered, where bodies are recorded.

use provost_core::net::endpoint::Endpoint;
use provost_model_record::exchange::{Exchange, KeptAnswer, KeptBody};
use provost_model_record::store::BodyStore;

use super::super::gateway::request_log::{BodyHasher, HashedBody, RequestLog};
use super::super::model::Meter;
use super::TokenMeter;

/// What is noted of a request until its answer is complete.
#[derive(Debug)]
pub(super) struct NotedRequest {
    number: u64,
    place: String,
    path: String,
    /// The body as it came, if another one was forwarded.
    original: Option<Vec<u8>>,
}

impl TokenMeter {
    /// Notes a request for `path` at `place`, if bodies are recorded; `original` is its body if
    /// another one is forwarded.
    pub(super) fn noted(
        &self,
        (place, path): &(Endpoint, String),
        original: Option<Vec<u8>>,
    ) -> Option<NotedRequest> {
        let store = self.bodies.as_ref()?;
        Some(NotedRequest {
            number: store.number(),
            place: place.to_string(),
            path: path.clone(),
            original,
        })
    }

    /// What makes the digest of a reply, and keeps it if bodies are recorded.
    pub(super) fn hasher(&self) -> Option<BodyHasher> {
        let log = self.log.as_ref()?;
        Some(match &self.bodies {
            Some(_) => log.capturing(),
            None => log.hasher(),
        })
    }

    /// Keeps the request `noted`, forwarded as `body`, with its answer.
    pub(super) fn keep_bodies(
        &self,
        (noted, reservation): (NotedRequest, Option<u64>),
        body: &[u8],
        meter: &mut Meter,
        answer: HashedBody,
    ) {
        let (Some(store), Some(log)) = (&self.bodies, &self.log) else {
            return;
        };
        let NotedRequest {
            number,
            place,
            path,
            original,
        } = noted;
        let lowered = original.is_some();
        let mut request = log.capturing();
        request.push(original.as_deref().unwrap_or(body));
        let mut answer = kept(store, answer);
        let fields = fields(log, meter.take_fields(), &mut answer.removed);
        store.add(&Exchange {
            number,
            reservation,
            method: "POST".to_owned(),
            place,
            path,
            lowered,
            request: kept(store, request.finish()),
            answer: KeptAnswer {
                status: meter.status(),
                fields,
                complete: meter.is_complete(),
                body: answer,
            },
        });
    }
}

fn kept(store: &BodyStore, body: HashedBody) -> KeptBody {
    let HashedBody {
        digest,
        removed,
        capture,
    } = body;
    store.keep(capture.unwrap_or_default(), digest.sha256, removed)
}

/// The fields without those that hold a secret, which count among the `removed`.
fn fields(
    log: &RequestLog,
    mut fields: Vec<(String, String)>,
    removed: &mut u64,
) -> Vec<(String, String)> {
    fields.retain(|(_, value)| {
        let is_clean = log.clean(value) == *value;
        *removed += u64::from(!is_clean);
        is_clean
    });
    fields
}
