//! Cost of a request through the proxy of a sandbox.

use super::{BenchError, Ground, Length, Programs, Report};

/// A request through the proxy, in direct requests.
const PROXY: f64 = 2.0;

pub(super) fn measure(
    programs: &Programs,
    ground: &Ground,
    length: Length,
    report: &mut Report,
) -> Result<(), BenchError> {
    let turns = length.pick("500", "3000");
    let times = programs.example("proxy_bench", &[turns], ground)?;
    let (ours, direct) = (times.of("proxied"), times.of("direct"));
    report.judge("request by proxy : direct", ours, direct, PROXY);
    let (ours, direct) = (times.of("proxied-new"), times.of("direct-new"));
    report.tell("the same with its connection", ours, direct);
    Ok(())
}
