//! Checks each input line before the SDK reads it, and answers the lines that the SDK would drop.

use std::borrow::Cow;
use std::io;

use cellwright_stdext::terminal_text::escape_json;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use super::message_check;

/// Longest line that is accepted, in bytes: the text of a large notebook fits.
pub(super) const LINE_LIMIT: usize = 64 << 20;

/// Forwards lines that are JSON-RPC messages, and sends an error response for the others.
pub(super) async fn filter_input(
    input: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    responses: mpsc::UnboundedSender<Vec<u8>>,
) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = LINE_LIMIT as u64 + 1;
        let count = (&mut input)
            .take(limit)
            .read_until(b'\n', &mut line)
            .await?;
        if count == 0 {
            return Ok(());
        }
        let response = if line.len() > LINE_LIMIT {
            let response = message_check::error_object(
                &message_check::find_id(&line),
                message_check::INVALID_REQUEST,
                "the message is longer than 64 MiB",
            );
            skip_line(&mut input, line.ends_with(b"\n")).await?;
            Some(response)
        } else if line.trim_ascii().is_empty() {
            None
        } else {
            match message_check::check(&line) {
                Ok(_) => {
                    to.write_all(&line).await?;
                    if !line.ends_with(b"\n") {
                        to.write_all(b"\n").await?;
                    }
                    to.flush().await?;
                    None
                }
                Err(response) => response,
            }
        };
        if let Some(response) = response {
            let line = format!("{response}\n").into_bytes();
            // It fails only after the writer has ended, and then the client is gone.
            responses.send(line).ok();
        }
    }
}

/// Reads and drops the rest of a line.
async fn skip_line(input: &mut (impl AsyncBufReadExt + Unpin), mut done: bool) -> io::Result<()> {
    while !done {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = memchr::memchr(b'\n', buffer);
        let consumed = end.map_or(buffer.len(), |end| end + 1);
        done = end.is_some();
        input.consume(consumed);
    }
    Ok(())
}

/// Writes the lines of the SDK and the error responses, one whole line at a time. Control characters are escaped: a person
/// who tries the server has a terminal there.
pub(super) async fn merge_output(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut responses: mpsc::UnboundedReceiver<Vec<u8>>,
) -> io::Result<()> {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    let mut line = Vec::new();
    loop {
        tokio::select! {
            read = from.read_until(b'\n', &mut line) => {
                if read? == 0 {
                    return Ok(());
                }
                to.write_all(escape_line(&line).as_bytes()).await?;
                line.clear();
            }
            Some(response) = responses.recv(), if line.is_empty() => {
                to.write_all(escape_line(&response).as_bytes()).await?;
            }
        }
        to.flush().await?;
    }
}

fn escape_line(line: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(line) {
        Ok(line) => escape_json(line),
        Err(_) => Cow::Owned(escape_json(&String::from_utf8_lossy(line)).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn invalid_lines_get_error_responses_with_their_ids() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let lines = [
            "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"x\"}",
            "garbage",
            "{\"id\": \"a\", \"code\": \"\\ud800\"}",
            "{\"id\": 3, \"x\": [[[",
            "",
        ];
        let mut forwarded = Vec::new();
        let (sender, mut responses) = mpsc::unbounded_channel();
        runtime
            .block_on(filter_input(
                lines.join("\n").as_bytes(),
                &mut forwarded,
                sender,
            ))
            .unwrap();
        assert_eq!(
            String::from_utf8(forwarded).unwrap(),
            format!("{}\n", lines[0])
        );
        let mut ids = Vec::new();
        while let Ok(response) = responses.try_recv() {
            let response: Value = serde_json::from_slice(&response).unwrap();
            assert_eq!(response["error"]["code"], -32700);
            ids.push(response["id"].clone());
        }
        assert_eq!(ids, [Value::Null, json!("a"), json!(3)]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut input = b"{\"id\": 9, \"x\": \"".to_vec();
        input.resize(LINE_LIMIT + 100_000, b'x');
        input.extend(b"\"}\n");
        let next = b"{\"jsonrpc\": \"2.0\", \"id\": 10, \"method\": \"ping\"}\n";
        input.extend(next);
        let mut forwarded = Vec::new();
        let (sender, mut responses) = mpsc::unbounded_channel();
        runtime
            .block_on(filter_input(&input[..], &mut forwarded, sender))
            .unwrap();
        assert_eq!(forwarded, next);
        let response: Value = serde_json::from_slice(&responses.try_recv().unwrap()).unwrap();
        assert_eq!(response["id"], 9);
    }
}
