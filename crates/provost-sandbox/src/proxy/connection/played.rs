//! Answers requests to models from a record, when a run is replayed.
//!
//! # Invariants
//!
//! - Nothing is resolved or dialled. A request that is no call of a model is refused.
//! - The content of an answer is the recorded one, byte by byte. One that broke off breaks off.

use provost_core::net::model_api::{ModelApi, ModelCall};
use provost_model_record::playback::{Playback, PlayedAnswer};

use super::super::answer::Refusal;
use super::super::http::request::{Form, Request};
use super::Connection;

impl Connection<'_> {
    /// Sends the recorded answer to `request`, or refuses it; the connection ends with it.
    pub(super) fn play(&mut self, playback: &Playback, request: &Request) {
        let what = request.target.to_string();
        let answer = self.recorded_answer(playback, request);
        self.held.release();
        let reply = match &answer {
            Ok(answer) => render(answer),
            Err(refusal) => refusal.render(),
        };
        self.note((&what, &request.method), answer.as_ref().err(), [0; 2]);
        self.say_last(&reply, self.shared.outlet.patience.idle);
    }

    fn recorded_answer(
        &mut self,
        playback: &Playback,
        request: &Request,
    ) -> Result<PlayedAnswer, Refusal> {
        let Form::Plain(path) = &request.form else {
            return Err(Refusal::offline(&request.target));
        };
        let api = api_of(&request.method, path).ok_or_else(|| Refusal::offline(&request.target))?;
        let body = self.read_body(api, request)?;
        let answer = playback.answer(&request.method, path, &body);
        answer.ok_or_else(|| Refusal::not_recorded(api))
    }
}

fn api_of(method: &str, path: &str) -> Option<ModelApi> {
    match ModelCall::anywhere(method, path) {
        ModelCall::Work(api) | ModelCall::Count(api) => Some(api),
        ModelCall::Free | ModelCall::Unknown => None,
    }
}

fn render(answer: &PlayedAnswer) -> Vec<u8> {
    let PlayedAnswer {
        status,
        fields,
        complete,
        body,
    } = answer;
    let mut reply = format!("HTTP/1.1 {status} Recorded\r\n");
    for (name, value) in fields {
        reply += &format!("{name}: {value}\r\n");
    }
    // A client notices that a reply broke off if it was announced to be longer.
    let length = body.len() as u64 + u64::from(!complete);
    reply += &format!("Content-Length: {length}\r\nConnection: close\r\n\r\n");
    let mut reply = reply.into_bytes();
    reply.extend_from_slice(body);
    reply
}
