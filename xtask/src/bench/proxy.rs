//! Cost of a request through the proxy of a sandbox.

use super::{Bench, Sample};
use crate::Result;

/// A request through the proxy, in direct requests.
const PROXY: f64 = 2.0;

/// A paced stream that the gateway reads, in streams that it does not read.
const READ_STREAM: f64 = 1.02;
/// How much later the first byte may come where the gateway reads, in microseconds.
const LATER: f64 = 3000.0;
/// What 200 streams at once may take, in kilobytes.
const MEMORY: f64 = 200.0 * 1024.0;

pub(super) fn measure(bench: &mut Bench) -> Result {
    let turns = bench.length.pick("500", "3000");
    let times = bench
        .programs
        .example("proxy_bench", &[turns], &bench.ground)?;
    let (ours, direct) = (times.of("proxied"), times.of("direct"));
    bench
        .report
        .judge("request by proxy : direct", ours, direct, PROXY);
    let (ours, direct) = (times.of("proxied-new"), times.of("direct-new"));
    bench
        .report
        .tell("the same with its connection", ours, direct);
    gateway(bench)
}

/// The cost of reading what a model is asked and replies.
pub(super) fn gateway(bench: &mut Bench) -> Result {
    let turns = [bench.length.pick("3", "9"), "200"];
    let found = bench
        .programs
        .example("gateway_bench", &turns, &bench.ground)?;
    let (ours, bare) = (found.of("read-paced"), found.of("bare-paced"));
    let name = "1 MB paced by gateway : bare proxy";
    bench.report.judge(name, ours, bare, READ_STREAM);
    let (ours, bare) = (found.of("read-first"), found.of("bare-first"));
    let most = Sample::exactly(bare.median + LATER);
    let name = "first byte by gateway : bare + 3 ms";
    bench.report.judge(name, ours, most, 1.0);
    let memory = found.of("memory").median;
    let words = format!("200 streams at once take {:.0} MB", memory / 1024.0);
    bench.report.say(&words);
    if memory > MEMORY || memory.is_nan() {
        return Err(words.into());
    }
    Ok(())
}
