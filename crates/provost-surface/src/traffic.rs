//! Formats the network requests of a sandbox.

use provost_core::code::Code;
use provost_core::net::traffic::Traffic;

/// One line for each kind of request, refused ones last.
pub fn lines(traffic: &[Traffic]) -> Vec<String> {
    let (passed, refused): (Vec<_>, Vec<_>) = traffic.iter().partition(|line| line.allow);
    passed.into_iter().chain(refused).map(line).collect()
}

fn line(traffic: &Traffic) -> String {
    let Traffic {
        target,
        method,
        code,
        reason,
        count,
        sent,
        received,
        ..
    } = traffic;
    let times = match count {
        1 => String::new(),
        count => format!(" {count} times"),
    };
    match (code, reason) {
        (Code::Ok, _) => {
            let (sent, received) = (size(*sent), size(*received));
            format!("{method} {target}{times}: {sent} out, {received} in")
        }
        (code, Some(reason)) => format!("{method} {target}{times}: {code}: {reason}"),
        (code, None) => format!("{method} {target}{times}: {code}"),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_is_said_with_what_became_of_it() {
        let of = |method: &str, target: &str, code, count| Traffic {
            target: target.to_owned(),
            method: method.to_owned(),
            allow: code == Code::Ok,
            code,
            reason: (code != Code::Ok).then(|| format!("`{target}` is not granted")),
            count,
            sent: 100,
            received: 5000,
        };
        let lines = lines(&[
            of("GET", "b.example:80", Code::NetworkRefused, 2),
            of("CONNECT", "a.example:443", Code::Ok, 1),
        ]);
        insta::assert_snapshot!(lines.join("\n"), @r"
        CONNECT a.example:443: 100 bytes out, 4 KiB in
        GET b.example:80 2 times: NETWORK_REFUSED: `b.example:80` is not granted
        ");
    }
}
