//! Reads a request to a model completely, and has it admitted before anything is forwarded.

use std::time::Instant;

use provost_core::json;
use provost_core::net::model_api::{ModelApi, ModelCall};

use super::super::answer::Refusal;
use super::super::decide;
use super::super::http::request::{Form, Request};
use super::super::timeouts::Broken;
use super::super::token_meter::{Admitted, Denied};
use super::Connection;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl<'a> Connection<'a> {
    /// What counts the reply to `request`, if it goes to a model; or why it is refused. It waits
    /// while what is left is reserved for other requests.
    pub(super) fn admit(&mut self, request: &Request) -> Result<Option<Admitted<'a>>, Refusal> {
        let shared = self.shared;
        // At any place: a model is recognised by the form of the request.
        let Some(gauge) = &shared.outlet.gauge else {
            return Ok(None);
        };
        decide::granted(&request.target, &shared.grants)?;
        let call = gauge.call_of(request).map_err(refusal)?;
        let (Form::Plain(path), Some(call)) = (&request.form, call) else {
            return Ok(None);
        };
        let (ModelCall::Work(api) | ModelCall::Count(api)) = call else {
            return Ok(None);
        };
        let body = self.read_body(api, request)?;
        let place = (&request.target, path.as_str());
        let mut granted = gauge.read(place, api, body).map_err(refusal)?;
        if call == ModelCall::Count(api) {
            return Ok(Some(gauge.admit_free(granted)));
        }
        let until = Instant::now() + shared.outlet.patience.turn;
        loop {
            match gauge.admit(&mut granted) {
                Ok(admitted) => return Ok(Some(admitted)),
                Err(Denied::Reserved(api)) => {
                    if Instant::now() >= until || shared.stop.pause().is_err() {
                        return Err(refusal(Denied::Reserved(api)));
                    }
                }
                Err(denied) => return Err(refusal(denied)),
            }
        }
    }

    /// The body of a request to a model, without its chunks.
    pub(super) fn read_body(
        &mut self,
        api: ModelApi,
        request: &Request,
    ) -> Result<Vec<u8>, Refusal> {
        let unreadable = |status, words: &str| Refusal::unreadable(api, status, words);
        if let Some(why) = request.foreign_body() {
            let words = format!("the body of the request to the model {why}, and cannot be read");
            return Err(unreadable(415, &words));
        }
        if request.waits_to_continue() {
            self.client.send(CONTINUE);
        }
        let until = Instant::now() + self.shared.outlet.patience.turn;
        let mut framing = request.body.clone();
        let mut body = Vec::new();
        loop {
            let mut keep = |bytes: &[u8]| body.extend_from_slice(bytes);
            let taken = framing.advance_over(&self.client.inbox, &mut keep);
            let taken = taken.map_err(|error| unreadable(400, &error.to_string()))?;
            if !self.held.take(taken) {
                let words = "the bodies of requests to models have more than 64 MiB together";
                return Err(unreadable(503, words));
            }
            self.client.inbox.drain(..taken);
            let coming = framing.announced().saturating_add(body.len() as u64);
            if coming > json::LARGEST as u64 {
                let words = "the body of the request to the model is larger than 16 MiB";
                return Err(unreadable(413, words));
            }
            if framing.is_over() {
                return Ok(body);
            }
            if self.client.ended {
                return Err(unreadable(400, "the body of the request broke off"));
            }
            let moved = self.client.push().and_then(|_| self.client.pull());
            let Ok(moved) = moved else {
                return Err(unreadable(400, "the body of the request broke off"));
            };
            let wanted = [self.client.interest(true)];
            if moved {
                continue;
            }
            match self.shared.stop.wait(&wanted, Some(until)) {
                Ok(()) => {}
                Err(Broken::Late) => {
                    return Err(unreadable(
                        408,
                        "the body of the request did not come in time",
                    ));
                }
                Err(_) => return Err(unreadable(400, "the body of the request broke off")),
            }
        }
    }
}

fn refusal(denied: Denied) -> Refusal {
    match denied {
        Denied::Reserved(api) => Refusal::reserved(api),
        Denied::Spent(api, reason) => Refusal::overspent(api, reason),
        Denied::NotGranted(api, reason) => Refusal::not_granted_of_model(api, reason),
        Denied::Unreadable(api, reason) => Refusal::unreadable(api, 400, reason),
    }
}
