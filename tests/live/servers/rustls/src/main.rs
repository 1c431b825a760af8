// SPDX-License-Identifier: Apache-2.0
//! HTTPS by rustls: `serve PORT KEY CERT` (HTTP/1 and 2, hyper), `get PORT COUNT PREFIX` (HTTP/1, hyper: four connections at
//! once), `std PORT COUNT PREFIX` (HTTP/1, threads and rustls::Stream), `turns PORT,PORT COUNT PREFIX` (the same, on a connection each, of one
//! port and the other in turn). GET /big/… is answered with 100,000 bytes. Clients first ask for /warm, on a connection each, as often as a
//! line is read, until the line is "go".
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::io::{BufRead, Read, Write};
use std::sync::Arc;

#[cfg(feature = "ring")]
use rustls::crypto::ring as provider;
#[cfg(not(feature = "ring"))]
use rustls::crypto::aws_lc_rs as provider;

/// Any certificate will do.
#[derive(Debug)]
struct Trusting;
impl ServerCertVerifier for Trusting {
    fn verify_server_cert(&self, _: &CertificateDer<'_>, _: &[CertificateDer<'_>], _: &ServerName<'_>, _: &[u8], _: UnixTime)
        -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(&self, _: &[u8], _: &CertificateDer<'_>, _: &rustls::DigitallySignedStruct)
        -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(&self, _: &[u8], _: &CertificateDer<'_>, _: &rustls::DigitallySignedStruct)
        -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        provider::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

fn client_config() -> Arc<rustls::ClientConfig> {
    Arc::new(rustls::ClientConfig::builder().dangerous().with_custom_certificate_verifier(Arc::new(Trusting)).with_no_client_auth())
}

/// A body in pieces that are all there at once, without a length.
struct Pieces(u32);
impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = hyper::Error;
    fn poll_frame(mut self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>)
        -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>> {
        if self.0 == 0 { return std::task::Poll::Ready(None); }
        self.0 -= 1;
        std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(Bytes::from(vec![b'y'; 100])))))
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<http_body_util::Either<Full<Bytes>, Pieces>>, hyper::Error> {
    if request.uri().path().starts_with("/many/") {
        request.into_body().collect().await?;
        return Ok(Response::new(http_body_util::Either::Right(Pieces(40))));
    }
    let big = request.uri().path().starts_with("/big/");
    request.into_body().collect().await?;
    let body = Full::new(if big { Bytes::from(vec![b'x'; 100_000]) } else { Bytes::from_static(b"hello\n") });
    Ok(Response::new(http_body_util::Either::Left(body)))
}

async fn serve(port: u16, key: &str, cert: &str) {
    let certs = CertificateDer::pem_file_iter(cert).unwrap().map(|c| c.unwrap()).collect();
    let mut config = rustls::ServerConfig::builder().with_no_client_auth()
        .with_single_cert(certs, PrivateKeyDer::from_pem_file(key).unwrap()).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    println!("serves");
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(socket).await {
                let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), hyper::service::service_fn(answer)).await;
            }
        });
    }
}

async fn get(port: u16, paths: Vec<String>) {
    let socket = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let stream = tokio_rustls::TlsConnector::from(client_config())
        .connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for path in paths {
        let request = Request::get(path).header("host", "localhost").body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
        sender.ready().await.unwrap();
    }
}

fn get_std(port: u16, paths: Vec<String>) {
    let mut connection = rustls::ClientConnection::new(client_config(), ServerName::try_from("localhost").unwrap()).unwrap();
    let mut socket = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    for path in paths {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut all = Vec::new();
        let mut piece = [0u8; 4096];
        while !all.ends_with(b"hello\n") {
            let n = stream.read(&mut piece).unwrap();
            assert!(n > 0);
            all.extend_from_slice(&piece[..n]);
        }
    }
}

/// Until the line "go"; for each one before, `ask` asks for /warm.
fn warm(mut ask: impl FnMut(Vec<String>)) {
    println!("starts");
    for line in std::io::stdin().lock().lines() {
        if line.unwrap() == "go" {
            break;
        }
        ask(vec!["/warm".to_string()]);
        println!("warm");
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let ports: Vec<u16> = args[2].split(',').map(|p| p.parse().unwrap()).collect();
    let port = ports[0];
    provider::default_provider().install_default().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    if args[1] == "serve" {
        return runtime.block_on(serve(port, &args[3], &args[4]));
    }
    let paths: Vec<String> = (0..args[3].parse::<usize>().unwrap()).map(|i| format!("/{}{i}", args[4])).collect();
    if args[1] == "std" {
        warm(|p| get_std(port, p));
        return get_std(port, paths);
    }
    if args[1] == "turns" {
        warm(|p| get_std(port, p));
        return paths.into_iter().zip(ports.iter().cycle()).for_each(|(path, port)| get_std(*port, vec![path]));
    }
    warm(|p| runtime.block_on(get(port, p)));
    runtime.block_on(async {
        let all: Vec<_> = (0..4).map(|k| tokio::spawn(get(port, paths.iter().skip(k).step_by(4).cloned().collect()))).collect();
        for one in all {
            one.await.unwrap();
        }
    });
}
