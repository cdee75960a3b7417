//! The connection to a collector: requests one after the other, on one connection as long as it lasts.

use core::time::Duration;
use std::io::{self, Write as _};

use configuration::OtlpCompression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::rt::{Read, Write};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::Answer;
use super::endpoint::Endpoint;

/// A collector, as it is reached.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    endpoint: &'a Endpoint,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl<'a> Collector<'a> {
    /// Nobody is connected yet.
    pub(super) fn at(endpoint: &'a Endpoint) -> Self {
        Self { endpoint, connection: None }
    }

    /// Gives it a request in JSON.
    pub(super) async fn post(&mut self, signal: &str, body: Vec<u8>) -> Answer {
        let body = match self.endpoint.compression {
            None => Bytes::from(body),
            Some(OtlpCompression::Gzip) => gzip(&body),
        };
        match timeout(PATIENCE, self.posted(signal, body)).await {
            Ok(answer) => answer,
            Err(_) => {
                self.connection = None;
                Answer::Absent(format!("no answer within {PATIENCE:?}"))
            }
        }
    }

    async fn posted(&mut self, signal: &str, body: Bytes) -> Answer {
        if let Some(connection) = self.connection.take()
            && let Ok(answer) = self.over(connection, signal, body.clone()).await
        {
            return answer;
        }
        // It may have ended because nothing was said for long.
        match self.connect().await {
            Ok(connection) => self.over(connection, signal, body).await.unwrap_or_else(Answer::Absent),
            Err(nobody) => nobody,
        }
    }

    async fn over(
        &mut self,
        mut connection: SendRequest<Full<Bytes>>,
        signal: &str,
        body: Bytes,
    ) -> Result<Answer, String> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.endpoint.path(signal))
            .header(HOST, &self.endpoint.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("weir/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        if let Some(OtlpCompression::Gzip) = self.endpoint.compression {
            request.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        request.headers_mut().extend(self.endpoint.headers.clone());
        connection.ready().await.map_err(|error| said(&error))?;
        let response = connection.send_request(request).await.map_err(|error| said(&error))?;
        let answer = read(response).await;
        self.connection = Some(connection);
        Ok(answer)
    }

    /// A connection, or why there is none.
    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Answer> {
        let absent = |error: io::Error| Answer::Absent(error.to_string());
        let Endpoint { host, port, tls, .. } = self.endpoint;
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(absent)?;
        stream.set_nodelay(true).map_err(absent)?;
        let Some((connector, name)) = tls else { return handshake(TokioIo::new(stream)).await };
        let stream = connector.connect(name.clone(), stream).await.map_err(|error| match error.kind() {
            // What it says is no TLS, or its certificate is none for it.
            io::ErrorKind::InvalidData => Answer::Untrusted(error.to_string()),
            _ => absent(error),
        })?;
        handshake(TokioIo::new(stream)).await
    }
}

fn gzip(body: &[u8]) -> Bytes {
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let packed = packed.write_all(body).and_then(|()| packed.finish());
    packed.expect("memory takes what is written").into()
}

async fn handshake(stream: impl Read + Write + Unpin + Send + 'static) -> Result<SendRequest<Full<Bytes>>, Answer> {
    let (sender, connection) = http1::handshake(stream).await.map_err(|error| Answer::Absent(said(&error)))?;
    // It ends when nobody sends any more, and whoever sends is told how it has ended.
    tokio::spawn(async { drop(connection.await) });
    Ok(sender)
}

async fn read(response: Response<hyper::body::Incoming>) -> Answer {
    let status = response.status().as_u16();
    let after = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()).map(str::to_owned);
    // Of an answer that is too long, or is broken off, the status counts.
    let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Answer::of(status, after.as_deref(), &body)
}

/// With what lies behind it.
fn said(error: &hyper::Error) -> String {
    let cause = core::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

/// As long as OpenTelemetry's own exporters wait.
const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER_MAX: usize = 64 << 10;
