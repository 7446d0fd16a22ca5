//! Measures streams of a model through the gateway against the same streams through the bare proxy.
//!
//! Prints one line a measure: its name and a number. `bare-paced` and `read-paced` are the medians
//! of 1 MB paced over two seconds, in microseconds; `bare-first` and `read-first` are the 95th
//! percentiles of the time to the first byte of a reply; `memory` is what the process gained for 200
//! streams at once, in kilobytes. The arguments are the turns of the first two measures.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use provost_core::agent::Adapter;
use provost_core::agent::provider::BaseUrl;
use provost_core::net::endpoint::Endpoint;
use provost_core::secret::Known;
use provost_host::proxy::{Outlet, Proxy, TokenMeter};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Streams at once.
const STREAMS: usize = 200;
/// Events of a paced stream, of a kilobyte each.
const EVENTS: u32 = 1000;
const PACED: Duration = Duration::from_secs(2);
/// The least that a program sends: its tools and instructions.
const BODY: usize = 60_000;

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let mut number = |usual: usize| words.next().map_or(Ok(usual), |word| word.parse());
    let (paced, first) = (number(3)?, number(200)?);
    let server = serve()?;
    let bare = start(server, Outlet::default())?;
    let read = start(server, outlet(server)?)?;
    let mut out = std::io::stdout().lock();

    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..paced.max(1) {
        for (times, proxy) in times.iter_mut().zip([&bare, &read]) {
            times.push(ask(proxy.1, server, "paced")?.1);
        }
    }
    let [bare_paced, read_paced] = times.map(|times| part(times, 50));
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..first.max(1) {
        for (times, proxy) in times.iter_mut().zip([&bare, &read]) {
            times.push(ask(proxy.1, server, "short")?.0);
        }
    }
    let [bare_first, read_first] = times.map(|times| part(times, 95));
    for (name, time) in [
        ("bare-paced", bare_paced),
        ("read-paced", read_paced),
        ("bare-first", bare_first),
        ("read-first", read_first),
    ] {
        writeln!(out, "{name} {:.1}", time.as_secs_f64() * 1e6)?;
    }
    writeln!(out, "memory {}", memory(read.1, server)?)?;
    Ok(())
}

/// The time that `percent` of `times` do not exceed.
fn part(mut times: Vec<Duration>, percent: usize) -> Duration {
    times.sort_unstable();
    let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(at).copied().unwrap_or_default()
}

/// What the process gains while 200 streams are open, in kilobytes, with its clients and servers.
fn memory(proxy: SocketAddr, server: SocketAddr) -> Result<u64> {
    let before = resident()?;
    let (all, done) = (Barrier::new(STREAMS + 1), AtomicBool::new(false));
    thread::scope(|scope| {
        let clients: Vec<_> = (0..STREAMS)
            .map(|_| {
                scope.spawn(|| {
                    all.wait();
                    ask(proxy, server, "paced").map(|_| ())
                })
            })
            .collect();
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                most = most.max(resident().unwrap_or(0));
                thread::sleep(Duration::from_millis(20));
            }
            most
        });
        all.wait();
        let ended: Result<Vec<()>> = clients
            .into_iter()
            .map(|client| {
                client
                    .join()
                    .unwrap_or_else(|_| Err("a client failed".into()))
            })
            .collect();
        done.store(true, Ordering::Relaxed);
        let most = watch.join().unwrap_or(u64::MAX);
        ended.map(|_| most.saturating_sub(before))
    })
}

/// The resident memory of this process, in kilobytes.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let line = line.ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse()?)
}

fn outlet(server: SocketAddr) -> Result<Outlet> {
    let agent = Adapter::named("claude").and_then(Adapter::plain);
    let mut agent = agent.ok_or("no adapter")?;
    let provider = agent.provider.as_mut().ok_or("no provider")?;
    provider.base_url = BaseUrl::parse(&format!("http://{server}"))?;
    agent.budget.tokens = Some(u64::MAX / 4);
    let meter = TokenMeter::of(&agent).ok_or("no meter")?;
    let meter = meter.with_log(File::create("rows.jsonl")?, Known::default());
    Ok(Outlet {
        gauge: Some(Arc::new(meter)),
        ..Outlet::default()
    })
}

fn start(server: SocketAddr, outlet: Outlet) -> Result<(Proxy, SocketAddr)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let place = Endpoint::parse(&server.to_string())?;
    Ok((Proxy::start(listener, vec![place], outlet)?, address))
}

/// Starts a model that streams its replies; returns its address.
fn serve() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().map_while(std::result::Result::ok) {
            let thread = thread::Builder::new().stack_size(64 << 10);
            let _ = thread.spawn(move || reply(&stream));
        }
    });
    Ok(address)
}

/// Replies to one request.
fn reply(mut stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let paced = body.windows(7).any(|part| part == b"\"paced\"");
    drop(body);
    stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
    )?;
    let usage =
        r#"{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}"#;
    stream.write_all(format!("data: {usage}\n\n").as_bytes())?;
    let text = "x".repeat(930);
    let event =
        format!("data: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"{text}\"}}}}\n\n");
    let begin = Instant::now();
    for number in 1..=if paced { EVENTS } else { 1 } {
        stream.write_all(event.as_bytes())?;
        let due = PACED * number / EVENTS;
        thread::sleep(due.saturating_sub(begin.elapsed()));
    }
    stream.write_all(b"data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":99}}\n\n")
}

/// The time to the first byte and to the end of a reply, with a new connection.
fn ask(proxy: SocketAddr, server: SocketAddr, kind: &str) -> Result<(Duration, Duration)> {
    let text = "y".repeat(BODY);
    let body = format!(
        r#"{{"model":"m","max_tokens":900,"kind":"{kind}","system":"{text}","messages":[]}}"#
    );
    let head = format!(
        "POST http://{server}/v1/messages HTTP/1.1\r\nHost: {server}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let begin = Instant::now();
    let mut stream = TcpStream::connect(proxy)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_mins(2)))?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    drop((head, body, text));
    let mut chunk = [0; 4096];
    let length = stream.read(&mut chunk)?;
    let first = begin.elapsed();
    if !chunk[..length].starts_with(b"HTTP/1.1 200") {
        let words = String::from_utf8_lossy(&chunk[..length]).into_owned();
        return Err(format!("the request was refused: {words}").into());
    }
    while stream.read(&mut chunk)? > 0 {}
    Ok((first, begin.elapsed()))
}
