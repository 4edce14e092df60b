//! One WebSocket connection to the channels of a kernel.

use futures_util::{SinkExt, StreamExt};
use hyper::Uri;
use hyper::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::{ProtocolError, SubProtocolError};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message as WebSocketMessage};

use super::encoding::{BINARY_SUBPROTOCOL, Encoding};
use crate::error::ServerError;
use crate::http;
use crate::percent::percent_encode;
use crate::rest::{ServerClient, kernel_path};
use crate::server::Credentials;
use crate::stream::ServerStream;

/// The largest message that is received. An ipykernel sends text in messages of tens of megabytes.
const MESSAGE_SIZE_MAX: usize = 1 << 30;

/// One WebSocket connection to the channels of a kernel.
pub(super) struct SocketConnection {
    stream: WebSocketStream<ServerStream>,
    pub(super) encoding: Encoding,
}

impl SocketConnection {
    /// Opens the channels of the kernel `kernel` for the session `session`.
    pub(super) async fn open(
        client: &ServerClient,
        kernel: &str,
        session: &str,
    ) -> Result<Self, ServerError> {
        client.log_in().await?;
        let limit = client.server().request_timeout;
        let opened = async {
            match Self::open_with(client, kernel, session, Encoding::Binary).await {
                // Older servers know no subprotocol.
                Err(Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(
                    SubProtocolError::NoSubProtocol,
                ))) => Self::open_with(client, kernel, session, Encoding::Json).await,
                opened => opened,
            }
        };
        match timeout(limit, opened).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(to_server_error(client, kernel, error)),
            Err(_) => Err(ServerError::Timeout {
                server: client.server().label(),
                request: "the WebSocket handshake".to_owned(),
                after: limit,
            }),
        }
    }

    async fn open_with(
        client: &ServerClient,
        kernel: &str,
        session: &str,
        encoding: Encoding,
    ) -> Result<Self, Error> {
        let stream = client.http().connector().connect().await?;
        let path = kernel_path(kernel, "/channels");
        let path = format!("{path}?session_id={}", percent_encode(session));
        let uri = client.server().url.uri(&path).unwrap_or_default();
        let mut request = to_web_socket_uri(&uri).into_client_request()?;
        request
            .headers_mut()
            .extend(client.http().request_headers());
        if encoding == Encoding::Binary {
            let protocol = HeaderValue::from_static(BINARY_SUBPROTOCOL);
            request
                .headers_mut()
                .insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_SIZE_MAX))
            .max_frame_size(Some(MESSAGE_SIZE_MAX));
        let (stream, _) =
            tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await?;
        Ok(Self { stream, encoding })
    }

    /// Sends a frame.
    pub(super) async fn send(&mut self, frame: WebSocketMessage) -> Result<(), Error> {
        self.stream.send(frame).await
    }

    /// Waits for the next frame. Cancel-safe. `None`: the server has closed the connection.
    pub(super) async fn next(&mut self) -> Option<Result<WebSocketMessage, Error>> {
        self.stream.next().await
    }

    /// Closes the connection.
    pub(super) async fn close(mut self) {
        self.stream.close(None).await.ok();
    }
}

/// The URI of a WebSocket has its own scheme.
fn to_web_socket_uri(uri: &Uri) -> String {
    // `http` becomes `ws`, `https` becomes `wss`.
    uri.to_string().replacen("http", "ws", 1)
}

fn to_server_error(client: &ServerClient, kernel: &str, error: Error) -> ServerError {
    let server = client.server();
    match error {
        Error::Http(response) => match response.status().as_u16() {
            404 => ServerError::KernelGone {
                server: server.label(),
                kernel: kernel.to_owned(),
            },
            status @ (401 | 403) => ServerError::Unauthorized {
                server: server.label(),
                name: server.name.clone(),
                status,
                has_credentials: !matches!(server.credentials, Credentials::None),
                message: String::new(),
            },
            status => ServerError::Status {
                server: server.label(),
                request: "the WebSocket handshake".to_owned(),
                status,
                message: String::new(),
            },
        },
        Error::Protocol(
            ProtocolError::HandshakeIncomplete | ProtocolError::ResetWithoutClosingHandshake,
        ) => http::unreachable(server, &error),
        Error::Protocol(error) => client
            .http()
            .not_jupyter(format!("the WebSocket handshake failed: {error}")),
        error => http::unreachable(server, &error),
    }
}
