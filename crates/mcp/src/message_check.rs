//! Checks that bytes are one JSON-RPC message which the SDK accepts. The SDK answers other messages without their id, or
//! not at all, and their sender would wait.

use rmcp::model::{ClientJsonRpcMessage, RequestId};
use serde_json::{Value, json};

/// JSON-RPC: the bytes are not JSON.
const PARSE_ERROR: i64 = -32700;

/// JSON-RPC: the JSON is not a request.
pub(super) const INVALID_REQUEST: i64 = -32600;

/// JSON-RPC: the request has invalid parameters.
const INVALID_PARAMS: i64 = -32602;

/// Longest id of a request, in bytes: every response repeats it.
const ID_LIMIT: usize = 1024;

/// How many members of a batch get an error.
const BATCH_ERRORS_MAX: usize = 1000;

/// How many bytes of invalid JSON are searched for the id.
const ID_SEARCH_LIMIT: usize = 64 * 1024;

/// Checks one message. The error is the response to its sender: an object, or an array for a batch; `None` if the sender
/// expects no response.
pub(super) fn check(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Option<Value>> {
    if let Ok(message) = serde_json::from_slice::<ClientJsonRpcMessage>(bytes) {
        return check_id(message);
    }
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Array(members)) => Err(Some(batch_errors(&members))),
        Ok(value) => Err(invalid_message_error(&value)),
        Err(error) => {
            let message = super::wording::sanitize(&format!("not JSON: {error}"));
            Err(Some(error_object(&find_id(bytes), PARSE_ERROR, &message)))
        }
    }
}

/// The entry point of the fuzz target: the response to bytes that are not a message, and whether they are one.
#[cfg(feature = "fuzz")]
pub fn message_error(bytes: &[u8]) -> (bool, Option<Value>) {
    match check(bytes) {
        Ok(_) => (true, None),
        Err(response) => (false, response),
    }
}

/// Rejects a request with a long id.
fn check_id(message: ClientJsonRpcMessage) -> Result<ClientJsonRpcMessage, Option<Value>> {
    if let ClientJsonRpcMessage::Request(request) = &message
        && let RequestId::String(id) = &request.id
        && id.len() > ID_LIMIT
    {
        let message = format!("the id is longer than {ID_LIMIT} bytes");
        return Err(Some(error_object(&Value::Null, INVALID_REQUEST, &message)));
    }
    Ok(message)
}

/// The response to a batch: newer protocol revisions have none, and this server supports none in the older ones.
fn batch_errors(members: &[Value]) -> Value {
    let message = "batches are not supported; send each message separately";
    let expects_response = |member: &&Value| !is_notification(member);
    let errors: Vec<Value> = members
        .iter()
        .filter(expects_response)
        .take(BATCH_ERRORS_MAX)
        .map(|member| error_object(&usable_id(&member["id"]), INVALID_REQUEST, message))
        .collect();
    if errors.is_empty() {
        return error_object(&Value::Null, INVALID_REQUEST, message);
    }
    Value::Array(errors)
}

/// The response to JSON that is not a message; none for a notification.
fn invalid_message_error(value: &Value) -> Option<Value> {
    if is_notification(value) {
        return None;
    }
    let (code, message) = if !value.is_object() {
        (INVALID_REQUEST, "not a JSON-RPC message: not an object")
    } else if value["jsonrpc"] != "2.0" {
        (
            INVALID_REQUEST,
            "not a JSON-RPC message: `jsonrpc` is not \"2.0\"",
        )
    } else if value["method"].is_string() && !value["id"].is_i64() && !value["id"].is_string() {
        (
            INVALID_REQUEST,
            "not a request: `id` is not a string or an integer",
        )
    } else if value["method"].is_string() {
        (
            INVALID_PARAMS,
            "invalid parameters: `params` is not an object of the method",
        )
    } else {
        (
            INVALID_REQUEST,
            "not a JSON-RPC message: no `method`, `result` or `error`",
        )
    };
    Some(error_object(&usable_id(&value["id"]), code, message))
}

/// Whether the value is an object with a method and without an id.
fn is_notification(value: &Value) -> bool {
    value.get("method").is_some_and(Value::is_string) && value.get("id").is_none()
}

/// The id of a message if it can be repeated, otherwise `null`.
fn usable_id(id: &Value) -> Value {
    let usable = id.is_number() || id.as_str().is_some_and(|id| id.len() <= ID_LIMIT);
    if usable { id.clone() } else { Value::Null }
}

/// Finds the id of a request in bytes that are not valid JSON.
pub(super) fn find_id(bytes: &[u8]) -> Value {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(ID_SEARCH_LIMIT)]).into_owned();
    let Some(at) = start.find("\"id\"") else {
        return Value::Null;
    };
    let rest = start[at + 4..].trim_start();
    let Some(rest) = rest.strip_prefix(':').map(str::trim_start) else {
        return Value::Null;
    };
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => usable_id(&value),
        _ => Value::Null,
    }
}

/// An error response.
pub(super) fn error_object(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The response to an invalid message.
    fn response(text: &str) -> Value {
        check(text.as_bytes()).unwrap_err().unwrap_or_default()
    }

    #[test]
    fn messages_are_accepted() {
        for text in [
            r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#,
            r#"{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "read"}}"#,
            r#"{"jsonrpc": "2.0", "id": "a", "method": "unknown", "params": {}}"#,
            r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}"#,
        ] {
            assert!(check(text.as_bytes()).is_ok(), "{text}");
        }
    }

    #[test]
    fn invalid_messages_get_errors_with_their_ids() {
        for (text, id, code) in [
            (
                r#"{"jsonrpc": "1.0", "id": 7, "method": "ping"}"#,
                json!(7),
                INVALID_REQUEST,
            ),
            (
                r#"{"id": "a", "method": "ping"}"#,
                json!("a"),
                INVALID_REQUEST,
            ),
            (
                r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#,
                json!(1.5),
                INVALID_REQUEST,
            ),
            (
                r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#,
                Value::Null,
                INVALID_REQUEST,
            ),
            (
                r#"{"jsonrpc": "2.0", "id": {}, "method": "ping"}"#,
                Value::Null,
                INVALID_REQUEST,
            ),
            (r#"{"jsonrpc": "2.0", "id": 3}"#, json!(3), INVALID_REQUEST),
            (r#"{"id": 3, "x": [[["#, json!(3), PARSE_ERROR),
            ("garbage", Value::Null, PARSE_ERROR),
            ("1", Value::Null, INVALID_REQUEST),
            ("[]", Value::Null, INVALID_REQUEST),
        ] {
            let response = response(text);
            assert_eq!(
                (&response["id"], &response["error"]["code"]),
                (&id, &json!(code)),
                "{text}"
            );
            assert!(response.as_object().unwrap().contains_key("id"), "{text}");
        }
    }

    #[test]
    fn each_request_of_a_batch_gets_an_error() {
        let response = response(
            r#"[{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "x"},
                {"jsonrpc": "2.0", "id": "b", "method": "ping"}, 5]"#,
        );
        let ids: Vec<&Value> = response
            .as_array()
            .unwrap()
            .iter()
            .map(|error| &error["id"])
            .collect();
        assert_eq!(ids, [&json!(1), &json!("b"), &Value::Null]);
    }

    #[test]
    fn responses_repeat_a_bounded_part_of_the_input() {
        let long = "x".repeat(1 << 20);
        for text in [
            format!(r#"{{"jsonrpc": "2.0", "id": "{long}", "method": "ping"}}"#),
            format!(r#"{{"jsonrpc": "1.0", "id": "{long}", "method": "{long}"}}"#),
            format!(r#"{{"jsonrpc": "{long}", "id": 1, "method": "ping"}}"#),
            format!(r#"{{"{long}": {long}"#),
            format!("[{}1]", "{},".repeat(100_000)),
        ] {
            let length = response(&text).to_string().len();
            assert!(length < 200_000, "{length}");
        }
    }

    #[test]
    fn invalid_notifications_get_no_response() {
        for text in [
            r#"{"jsonrpc": "1.0", "method": "x"}"#,
            r#"{"method": "x", "params": []}"#,
        ] {
            assert_eq!(check(text.as_bytes()).unwrap_err(), None, "{text}");
        }
    }
}
