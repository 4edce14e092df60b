//! What comes in on a line: looked at before the SDK, which drops what it cannot read. Whoever sent it would
//! wait for ever.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

/// Longest line that is read, in bytes: a large notebook's text fits.
pub(super) const LINE_LIMIT: usize = 64 << 20;

/// How much of a line is looked at for the number of a request.
const ID_SEARCH_LIMIT: usize = 64 * 1024;

/// Passes on lines that are JSON, and answers the others.
pub(super) async fn filter_input(
    input: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    answers: mpsc::UnboundedSender<Vec<u8>>,
) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    loop {
        line.clear();
        let most = LINE_LIMIT as u64 + 1;
        let count = (&mut input).take(most).read_until(b'\n', &mut line).await?;
        if count == 0 {
            return Ok(());
        }
        let answer = if line.len() > LINE_LIMIT {
            let answer = error_line(&line, -32600, "the message is longer than 64 MiB");
            skip_line(&mut input, line.ends_with(b"\n")).await?;
            Some(answer)
        } else if line.trim_ascii().is_empty() {
            None
        } else {
            match serde_json::from_slice::<Value>(&line) {
                Ok(_) => {
                    to.write_all(&line).await?;
                    if !line.ends_with(b"\n") {
                        to.write_all(b"\n").await?;
                    }
                    to.flush().await?;
                    None
                }
                Err(error) => Some(error_line(&line, -32700, &format!("not JSON: {error}"))),
            }
        };
        if let Some(answer) = answer {
            // Without anybody to write it everything is over.
            answers.send(answer).ok();
        }
    }
}

/// Passes over the rest of a line.
async fn skip_line(input: &mut (impl AsyncBufReadExt + Unpin), mut done: bool) -> io::Result<()> {
    while !done {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = memchr::memchr(b'\n', buffer);
        let taken = end.map_or(buffer.len(), |end| end + 1);
        done = end.is_some();
        input.consume(taken);
    }
    Ok(())
}

fn error_line(line: &[u8], code: i64, words: &str) -> Vec<u8> {
    let error = json!({"code": code, "message": words});
    let answer = json!({"jsonrpc": "2.0", "id": request_id(line), "error": error});
    format!("{answer}\n").into_bytes()
}

/// The number of a request that cannot be read as a whole.
fn request_id(line: &[u8]) -> Value {
    let start = String::from_utf8_lossy(&line[..line.len().min(ID_SEARCH_LIMIT)]).into_owned();
    let Some(at) = start.find("\"id\"") else {
        return Value::Null;
    };
    let rest = start[at + 4..].trim_start();
    let Some(rest) = rest.strip_prefix(':').map(str::trim_start) else {
        return Value::Null;
    };
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) if value.is_number() || value.is_string() => value,
        _ => Value::Null,
    }
}

/// Writes what the SDK says and what was answered for it, a line at a time.
pub(super) async fn merge_output(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut answers: mpsc::UnboundedReceiver<Vec<u8>>,
) -> io::Result<()> {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    let mut line = Vec::new();
    loop {
        tokio::select! {
            read = from.read_until(b'\n', &mut line) => {
                if read? == 0 {
                    return Ok(());
                }
                to.write_all(&line).await?;
                line.clear();
            }
            Some(answer) = answers.recv(), if line.is_empty() => to.write_all(&answer).await?,
        }
        to.flush().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_answered_by_its_number() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let said = [
            "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"x\"}",
            "garbage",
            "{\"id\": \"a\", \"code\": \"\\ud800\"}",
            "{\"id\": 3, \"x\": [[[",
            "",
        ];
        let mut passed = Vec::new();
        let (sender, mut answers) = mpsc::unbounded_channel();
        runtime
            .block_on(filter_input(
                said.join("\n").as_bytes(),
                &mut passed,
                sender,
            ))
            .unwrap();
        assert_eq!(String::from_utf8(passed).unwrap(), format!("{}\n", said[0]));
        let mut ids = Vec::new();
        while let Ok(answer) = answers.try_recv() {
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert_eq!(answer["error"]["code"], -32700);
            ids.push(answer["id"].clone());
        }
        assert_eq!(ids, [Value::Null, json!("a"), json!(3)]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut said = b"{\"id\": 9, \"x\": \"".to_vec();
        said.resize(LINE_LIMIT + 100_000, b'x');
        said.extend(b"\"}\n{\"id\": 10}\n");
        let mut passed = Vec::new();
        let (sender, mut answers) = mpsc::unbounded_channel();
        runtime
            .block_on(filter_input(&said[..], &mut passed, sender))
            .unwrap();
        assert_eq!(passed, b"{\"id\": 10}\n");
        let answer: Value = serde_json::from_slice(&answers.try_recv().unwrap()).unwrap();
        assert_eq!(answer["id"], 9);
    }
}
