//! Measures a request through the proxy against the same request made directly.
//!
//! Prints one line a measure: its name and the median in microseconds. Both ways take turns, each
//! on a connection that stays, and each on a new one. The argument is the number of turns.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use provost_core::net::endpoint::Endpoint;
use provost_host::proxy::{Outlet, Proxy};

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";

fn main() -> Result<(), Box<dyn Error>> {
    let turns: u32 = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 1000,
    };
    let server = serve()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let place = Endpoint::parse(&server.to_string())?;
    let _proxy = Proxy::start(listener, vec![place], Outlet::default())?;
    let direct = format!("GET / HTTP/1.1\r\nHost: {server}\r\n\r\n");
    let whole = format!("GET http://{server}/ HTTP/1.1\r\nHost: {server}\r\n\r\n");

    let (mut kept_direct, mut kept_proxied) = (connect(server)?, connect(address)?);
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..turns.max(1) {
        times[0].push(ask(&mut kept_direct, &direct)?);
        times[1].push(ask(&mut kept_proxied, &whole)?);
        times[2].push(ask_anew(server, &direct)?);
        times[3].push(ask_anew(address, &whole)?);
    }
    let mut out = std::io::stdout().lock();
    for (name, mut times) in ["direct", "proxied", "direct-new", "proxied-new"]
        .iter()
        .zip(times)
    {
        times.sort_unstable();
        let median = times[times.len() / 2];
        writeln!(out, "{name} {:.1}", median.as_secs_f64() * 1e6)?;
    }
    Ok(())
}

/// Starts a server that replies at once; returns its address.
fn serve() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let _ = stream.set_nodelay(true);
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                while lines.by_ref().any(|line| line.is_empty()) {
                    if (&stream).write_all(REPLY).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(address)
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    Ok(stream)
}

/// How long one request takes on an open connection.
fn ask(stream: &mut TcpStream, request: &str) -> Result<Duration, Box<dyn Error>> {
    let begin = Instant::now();
    stream.write_all(request.as_bytes())?;
    let mut reply = Vec::new();
    let mut chunk = [0; 4096];
    while !reply.ends_with(b"hello\n") {
        match stream.read(&mut chunk)? {
            0 => return Err("the connection ended".into()),
            length => reply.extend_from_slice(&chunk[..length]),
        }
    }
    Ok(begin.elapsed())
}

/// How long one request takes with its connection.
fn ask_anew(address: SocketAddr, request: &str) -> Result<Duration, Box<dyn Error>> {
    let begin = Instant::now();
    ask(&mut connect(address)?, request)?;
    Ok(begin.elapsed())
}
