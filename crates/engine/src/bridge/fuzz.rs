//! The entry point of the fuzz target for requests.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::http::Request;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, watch};

use super::http::{authorize, parse_call};
use super::{BridgeCommand, BridgeSession, BridgeSessions, CallContext};

/// Returns the status that a request gets from a bridge with one session, whose token is `token`; 200 if the verb would
/// run. The first line of `bytes` has the method and the target; headers follow up to an empty line, then the body.
pub fn request_status(bytes: &[u8], token: &str) -> u16 {
    let sessions = BridgeSessions::default();
    let session = BridgeSession {
        token: token.to_owned(),
        context: CallContext::new("a", &[], "/".as_ref()),
        build_command: reject,
        running_cell: watch::Sender::new(None),
        cell_count: AtomicU64::new(0),
        call_permits: Semaphore::new(1),
    };
    if let Ok(mut list) = sessions.0.lock() {
        list.push(Arc::new(session));
    }
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let first = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (method, target) = first.split_once(' ').unwrap_or(("POST", &first));
    let mut request = Request::builder().method(method).uri(target);
    let mut read = first.len() + 1;
    for line in lines {
        read += line.len() + 1;
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|&byte| byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        request = request.header(name, value.get(1..).unwrap_or_default().trim_ascii());
    }
    let Ok(request) = request.body(()) else {
        return 400;
    };
    if let Err(rejection) = authorize(&sessions, &request.into_parts().0) {
        return rejection.0.as_u16();
    }
    match parse_call(bytes.get(read..).unwrap_or_default()) {
        Ok(_) => 200,
        Err(rejection) => rejection.0.as_u16(),
    }
}

fn reject(_: &str, _: &Map<String, Value>, _: &[Value]) -> Result<BridgeCommand, String> {
    Err(String::new())
}
