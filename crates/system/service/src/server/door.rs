//! Connections to the service, at most so many at a time. Who says nothing is shown out, so that nobody fills the service by silence.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{self, Body};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::answer::Refused;

/// Serves whoever connects, for ever. With an `acceptor` all that is said is encrypted.
pub(crate) async fn welcome(listener: TcpListener, acceptor: Option<TlsAcceptor>, router: Router) {
    welcome_at_most(CONNECTIONS_MAX, listener, acceptor, router).await;
}

/// The same, so many at a time.
pub(crate) async fn welcome_at_most(most: usize, listener: TcpListener, acceptor: Option<TlsAcceptor>, router: Router) {
    let places = Arc::new(Semaphore::new(most));
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("nobody closes it");
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptor is free, or the peer is gone already.
            sleep(PAUSE).await;
            continue;
        };
        let (acceptor, router) = (acceptor.clone(), router.clone());
        tokio::spawn(async move {
            // Why a connection ends is its peer's affair.
            let _ = talk(stream, acceptor, router).await;
            drop(place);
        });
    }
}

async fn talk(stream: TcpStream, acceptor: Option<TlsAcceptor>, router: Router) -> io::Result<()> {
    stream.set_nodelay(true)?;
    set_tcp_user_timeout(&stream, SILENCE_MAX.as_millis() as u32)?;
    match acceptor {
        Some(acceptor) => answer(in_time(acceptor.accept(stream)).await??, router).await,
        None => answer(stream, router).await,
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) -> io::Result<()> {
    let mut builder = http1::Builder::new();
    // It counts between two requests too.
    builder.timer(TokioTimer::new()).header_read_timeout(SILENCE_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    connection.await.map_err(io::Error::other)
}

/// Takes in what a request carries before anybody looks at it.
pub(super) async fn take_in(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let expected = || format!("a body of at most {BODY_MAX} bytes within {} s", SILENCE_MAX.as_secs());
    match in_time(body::to_bytes(body, BODY_MAX)).await {
        Ok(Ok(bytes)) if str::from_utf8(&bytes).is_ok() => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Ok(Ok(_)) => Refused::Request { expected: "UTF-8".into(), found: "other bytes".into() }.into_response(),
        Ok(Err(error)) => Refused::Request { expected: expected(), found: error.to_string() }.into_response(),
        Err(error) => Refused::Request { expected: expected(), found: error.to_string() }.into_response(),
    }
}

async fn in_time<T>(what: impl Future<Output = T>) -> io::Result<T> {
    timeout(SILENCE_MAX, what).await.map_err(|_| io::ErrorKind::TimedOut.into())
}

const CONNECTIONS_MAX: usize = 512;
/// For a handshake, the head of a request, its body, and what a peer has to take.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// As many histograms of a task, with as many bins, as are kept. All else has closer limits.
pub(super) const BODY_MAX: usize = 16 << 20;
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use axum::middleware;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::identity::Identity;

    const PLACES: usize = 3;

    /// A door behind which bodies are said back.
    async fn door(acceptor: Option<TlsAcceptor>) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", post(async |body: String| body)).layer(middleware::from_fn(take_in));
        tokio::spawn(welcome_at_most(PLACES, listener, acceptor, router));
        address
    }

    async fn say(address: SocketAddr, words: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(words).await.unwrap();
        stream
    }

    /// All that somebody is told until the connection ends.
    async fn told(mut stream: TcpStream) -> String {
        let mut told = Vec::new();
        // A reset ends it as well.
        let _ = stream.read_to_end(&mut told).await;
        String::from_utf8_lossy(&told).into_owned()
    }

    fn head(length: usize) -> String {
        format!("POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_more_is_shown_out() {
        let address = door(None).await;
        for words in ["", "POST / HTTP/1.1\r\nHos"] {
            told(say(address, words.as_bytes()).await).await;
        }
        let answer = told(say(address, (head(9) + "123").as_bytes()).await).await;
        assert!(answer.starts_with("HTTP/1.1 422 ") && answer.contains("within 30 s"), "{answer}");
        let identity = Identity::draw(Ipv4Addr::LOCALHOST.into(), "daq-1").unwrap();
        let encrypted = door(Some(identity.acceptor())).await;
        for words in [&b""[..], b"\x16\x03\x01", head(0).as_bytes()] {
            let answer = told(say(encrypted, words).await).await;
            assert!(!answer.contains("HTTP"), "{answer}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_are_too_many_wait_for_a_place() {
        let address = door(None).await;
        let mut silent = Vec::new();
        for _ in 0..PLACES {
            silent.push(say(address, b"").await);
        }
        let answer = told(say(address, (head(5) + "12345").as_bytes()).await).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("12345"), "{answer}");
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_are_refused() {
        let address = door(None).await;
        let answer = told(say(address, &[head(2).as_bytes(), &[0xff, 0xfe]].concat()).await).await;
        assert!(answer.starts_with("HTTP/1.1 422 ") && answer.contains("UTF-8"), "{answer}");
    }
}
