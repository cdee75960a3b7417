//! The protocol of NATS by hand, as its documents describe it: another reader than the library that run control publishes with.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    stream: BufReader<TcpStream>,
}

/// What was published.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) subject: String,
    /// With the line of their version, and a status where there is one.
    pub(super) headers: String,
    pub(super) payload: Vec<u8>,
}

impl Client {
    /// Logs in.
    pub(super) fn connect(address: &str, user: &str, password: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
        let mut client = Self { stream: BufReader::new(stream) };
        client.line()?;
        let login = json!({ "user": user, "pass": password, "headers": true, "no_responders": true, "verbose": false });
        client.send(&format!("CONNECT {login}\r\n"));
        client.is_well()?;
        Ok(client)
    }

    /// Whether a server greets.
    pub(super) fn is_greeted(address: &str) -> bool {
        TcpStream::connect(address).is_ok_and(|stream| Self { stream: BufReader::new(stream) }.line().is_ok())
    }

    /// Everything of these subjects from now on.
    pub(super) fn subscribe(&mut self, subject: &str) -> Result<(), String> {
        self.send(&format!("SUB {subject} 1\r\n"));
        self.is_well()
    }

    /// Publishes.
    pub(super) fn publish(&mut self, subject: &str, payload: &str) -> Result<(), String> {
        self.send(&format!("PUB {subject} {}\r\n{payload}\r\n", payload.len()));
        self.is_well()
    }

    /// Asks for something whose answer goes to a subject.
    pub(super) fn ask_for(&mut self, answered: &str, subject: &str, payload: &str) -> Result<(), String> {
        self.publish(&format!("{subject} {answered}"), payload)
    }

    /// Asks for something, and waits for the answer.
    pub(super) fn ask(&mut self, subject: &str, payload: &str) -> Published {
        self.send(&format!(
            "SUB _INBOX.here 2\r\nUNSUB 2 1\r\nPUB {subject} _INBOX.here {}\r\n{payload}\r\n",
            payload.len()
        ));
        self.next().unwrap()
    }

    /// Publications of a kind that the stream of the partition has kept, the oldest first.
    pub(super) fn kept(&mut self, what: &str) -> Vec<Value> {
        let mut kept = Vec::new();
        let mut behind = 0;
        loop {
            let wanted = json!({ "seq": behind + 1, "next_by_subj": format!("weir.quickstart.*.rc.{what}") });
            let found = self.ask("$JS.API.DIRECT.GET.weir-quickstart", &wanted.to_string());
            let sequence = found.headers.lines().find_map(|line| line.strip_prefix("Nats-Sequence: "));
            let Some(sequence) = sequence else { return kept };
            behind = sequence.parse().unwrap();
            kept.push(serde_json::from_slice(&found.payload).unwrap());
        }
    }

    /// The next publication.
    pub(super) fn next(&mut self) -> Result<Published, String> {
        loop {
            if let Some(published) = self.read()? {
                return Ok(published);
            }
        }
    }

    /// Whether the server has objected to what was sent until now.
    fn is_well(&mut self) -> Result<(), String> {
        self.send("PING\r\n");
        let mut well = Ok(());
        loop {
            let line = self.line()?;
            match line.split(' ').next() {
                Some("PONG") => return well,
                Some("-ERR") => well = Err(line),
                _ => {}
            }
        }
    }

    fn read(&mut self) -> Result<Option<Published>, String> {
        let line = self.line()?;
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse::<usize>().map_err(|_| line.clone());
        let (headers, bytes) = match words[..] {
            ["PING"] => {
                self.send("PONG\r\n");
                return Ok(None);
            }
            ["MSG", .., bytes] => (0, number(bytes)?),
            ["HMSG", .., headers, bytes] => (number(headers)?, number(bytes)?),
            ["-ERR", ..] => return Err(line),
            _ => return Ok(None),
        };
        let mut payload = vec![0; bytes + "\r\n".len()];
        self.stream.read_exact(&mut payload).map_err(|error| error.to_string())?;
        payload.truncate(bytes);
        let payload_behind = payload.split_off(headers);
        let headers = String::from_utf8(payload).map_err(|error| error.to_string())?;
        Ok(Some(Published { subject: words[1].to_owned(), headers, payload: payload_behind }))
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => Err("the server has gone".to_owned()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn send(&mut self, text: &str) {
        // Who has gone is noticed by whoever reads.
        let _ = self.stream.get_mut().write_all(text.as_bytes());
    }
}
