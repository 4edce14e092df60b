//! Arbitrary bytes as a message of an MCP client. No message may cause a panic; the response to an invalid request has its
//! id and is not much larger than the request.

#![no_main]

use cellwright_mcp::message_error;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let (is_message, response) = message_error(data);
    let value = serde_json::from_slice::<Value>(data);
    assert!(value.is_ok() || !is_message, "a message that is not JSON");
    let Some(response) = response else {
        return;
    };
    assert!(!is_message);
    let size = response.to_string().len();
    assert!(size < 2000 + 100 * data.len(), "{size} bytes");
    match value {
        Ok(Value::Object(request)) => {
            let id = &request.get("id").cloned().unwrap_or_default();
            if id.is_i64() || id.as_str().is_some_and(|id| id.len() < 1000) {
                assert_eq!(response["id"], *id);
            }
        }
        Ok(Value::Array(_)) => assert!(response.is_array() || response["id"].is_null()),
        _ => assert!(response["error"]["code"].is_i64()),
    }
});
