//! The requests to a server: sessions, the hash of a file, and the rooms of jupyter-collaboration.

use std::io;
use std::time::Instant;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::endpoint::Stream;
use crate::http::{Connection, Reply, Request};
use crate::record::ServerRecord;

/// Why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it replied with status {0}")]
    Status(u16),
    #[error("its reply to `{0}` is not understood")]
    Reply(&'static str),
    #[error("its record is not valid")]
    Record,
}

/// A session: a document with its kernel.
#[derive(Debug, Deserialize)]
pub(crate) struct Session {
    /// The path below the server's directory.
    #[serde(default)]
    pub(crate) path: String,
    pub(crate) kernel: Option<Kernel>,
}

/// The kernel of a session.
#[derive(Debug, Deserialize)]
pub(crate) struct Kernel {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) execution_state: Option<String>,
    /// The number of connected pages.
    #[serde(default)]
    pub(crate) connections: u64,
}

/// The hash of a file of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileHash {
    /// In hexadecimal.
    Sha256(String),
    /// The server has no such file.
    NotFound,
    /// The server computes no hashes, as before version 2.11.
    Unsupported,
}

/// How the server shares documents between pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// A room has the document.
    Live,
    /// No room has the document.
    None,
    /// The server has rooms, but does not report which documents they have.
    Unknown,
    /// The server has no rooms.
    Unsupported,
}

/// A client of one server.
pub(crate) struct Client {
    connection: Connection,
    base: String,
}

impl Client {
    pub(crate) fn new(
        record: &ServerRecord,
        stream: Stream,
        deadline: Instant,
    ) -> Result<Self, RestError> {
        let is_header_text = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_header_text(&record.token) || !record.base_url.starts_with('/') {
            return Err(RestError::Record);
        }
        // The XSRF token counts on servers without authentication.
        let mut headers = format!(
            "Host: localhost:{}\r\nUser-Agent: cellwright\r\nAccept: application/json\r\n\
             Cookie: _xsrf=cellwright\r\nX-XSRFToken: cellwright\r\n",
            record.port
        );
        if !record.token.is_empty() {
            headers += &format!("Authorization: token {}\r\n", record.token);
        }
        Ok(Self {
            connection: Connection::new(stream, headers, deadline)?,
            base: quote(record.base_url.trim_end_matches('/')),
        })
    }

    /// The sessions of the server.
    pub(crate) fn sessions(&mut self) -> Result<Vec<Session>, RestError> {
        let reply = self.request("GET", "/api/sessions", None)?;
        parse(&reply, "sessions")
    }

    /// The hash of a file.
    pub(crate) fn file_hash(&mut self, path: &str) -> Result<FileHash, RestError> {
        #[derive(Deserialize)]
        struct Model {
            hash: Option<String>,
            hash_algorithm: Option<String>,
        }
        let target = format!("/api/contents/{}?content=0&hash=1", quote(path));
        let reply = self.request("GET", &target, None)?;
        if reply.status == 404 {
            return Ok(FileHash::NotFound);
        }
        let model: Model = parse(&reply, "contents")?;
        let is_sha256 = model.hash_algorithm.as_deref() == Some("sha256");
        let hash = model.hash.filter(|_| is_sha256);
        Ok(hash.map_or(FileHash::Unsupported, FileHash::Sha256))
    }

    /// Whether a room of jupyter-collaboration has a file.
    ///
    /// No request reports the rooms. A fork of a room is a copy without pages: the server creates it only if the room
    /// lives, and it is removed at once. Neither creates a room nor touches the file.
    pub(crate) fn room(&mut self, path: &str) -> Result<Room, RestError> {
        #[derive(Deserialize)]
        struct DocumentSession {
            #[serde(rename = "fileId")]
            file_id: String,
        }
        let target = format!("/api/collaboration/session/{}", quote(path));
        let body = r#"{"format":"json","type":"notebook"}"#;
        let reply = self.request("PUT", &target, Some(body))?;
        if [404, 405].contains(&reply.status) {
            return Ok(Room::Unsupported);
        }
        let session: DocumentSession = parse(&reply, "session")?;
        let mut room = Room::None;
        // As a notebook, and as a text in the editor.
        for format in ["json:notebook", "text:file"] {
            match self.fork(&format!("{format}:{}", session.file_id))? {
                Room::None => {}
                other => room = other,
            }
            if room != Room::None {
                break;
            }
        }
        Ok(room)
    }

    fn fork(&mut self, room: &str) -> Result<Room, RestError> {
        #[derive(Deserialize)]
        struct Fork {
            fork_roomid: String,
        }
        let fork_target = |id: &str| format!("/api/collaboration/fork/{}", quote(id));
        let body = r#"{"synchronize":false,"title":"","description":""}"#;
        let reply = self.request("PUT", &fork_target(room), Some(body))?;
        if reply.status == 404 {
            // Without the handler, the reply is a page or has other members.
            let error: Option<serde_json::Value> = serde_json::from_slice(&reply.body).ok();
            let is_known = error.is_some_and(|error| error["error"].is_string());
            return Ok(if is_known { Room::None } else { Room::Unknown });
        }
        let fork: Fork = parse(&reply, "fork")?;
        let target = format!("{}?merge=false", fork_target(&fork.fork_roomid));
        // The room lives, whether the copy can be removed or not.
        self.request("DELETE", &target, None).ok();
        Ok(Room::Live)
    }

    /// Whether the server has the rooms of `jupyter_server_documents`, which cannot be listed.
    pub(crate) fn has_server_documents(&mut self) -> Result<bool, RestError> {
        let reply = self.request("GET", "/api/fileid/index", None)?;
        Ok(reply.status != 404)
    }

    fn request(
        &mut self,
        method: &str,
        target: &str,
        body: Option<&str>,
    ) -> Result<Reply, RestError> {
        let reply = self.connection.send(&Request {
            method,
            target: &format!("{}{target}", self.base),
            body,
        })?;
        if [401, 403].contains(&reply.status) || (300..400).contains(&reply.status) {
            return Err(RestError::Status(reply.status));
        }
        Ok(reply)
    }
}

fn parse<T: DeserializeOwned>(reply: &Reply, request: &'static str) -> Result<T, RestError> {
    if !(200..300).contains(&reply.status) {
        return Err(RestError::Status(reply.status));
    }
    serde_json::from_slice(&reply.body).map_err(|_| RestError::Reply(request))
}

/// Percent-encodes a path; `/` stays.
fn quote(path: &str) -> String {
    let mut quoted = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                quoted.push(char::from(byte));
            }
            _ => quoted += &format!("%{byte:02X}"),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_cannot_end_the_request_line() {
        assert_eq!(quote("a b/é:1.ipynb"), "a%20b/%C3%A9:1.ipynb");
        assert_eq!(quote("x\r\nHost: y?#%"), "x%0D%0AHost:%20y%3F%23%25");
    }
}
