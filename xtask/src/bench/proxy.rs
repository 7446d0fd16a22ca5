//! Cost of a request through the proxy of a sandbox.

use super::Bench;
use crate::Result;

/// A request through the proxy, in direct requests.
const PROXY: f64 = 2.0;

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
    Ok(())
}
