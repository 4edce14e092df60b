//! Measures how fast a capture receives text, how fast its outputs are written, and its peak memory.
//!
//! ```sh
//! cargo run --release -p cellwright-output --example flood -- lines 1000 /dev/shm/artifacts
//! ```
//!
//! Kinds: `lines`, `line`, `noise`, `split`, `bar`, `colours`, `crlf`, `latin`. Without a directory, nothing is
//! stored.
#![allow(clippy::print_stdout)]

use std::io::{self, Write};
use std::time::Instant;

use cellwright_output::{Artifacts, Capture, Event, JsonStyle, Limits, Retention, Sink, Stream};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "lines".to_owned());
    let megabytes: usize = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1000);
    let artifacts = arguments
        .next()
        .map(|dir| Artifacts::new(dir, Retention::default()));
    let block = block(&kind);
    // An odd size, so that characters and sequences are split.
    let chunk_size = if kind == "split" { 4093 } else { 65_536 };
    let before = peak_memory();
    let started = Instant::now();
    let mut capture = Capture::new(Limits::default(), artifacts);
    let mut total = 0;
    while total < megabytes * 1_000_000 {
        for bytes in block.chunks(chunk_size) {
            capture.push(Event::Text {
                stream: Stream::Stdout,
                bytes,
            });
            total += bytes.len();
        }
    }
    let captured = capture.finish();
    let elapsed = started.elapsed();
    let started = Instant::now();
    let mut written = ByteCounter(0);
    let style = JsonStyle::default();
    if let Err(error) = captured.outputs.write(&mut written, &style, 3) {
        println!("{error}");
    }
    let write_time = started.elapsed();
    let speed = u64::try_from(total).unwrap_or_default()
        / 1000
        / u64::try_from(elapsed.as_millis().max(1)).unwrap_or(1);
    println!(
        "{kind}: {total} bytes in {elapsed:.2?}, {speed} MB/s, peak {} KiB more, text {} bytes, {:?}",
        peak_memory().saturating_sub(before),
        captured.text.len(),
        captured.truncation.map(|truncation| truncation.total),
    );
    println!("  for a notebook: {} bytes in {write_time:.2?}", written.0);
    for notice in captured.notices {
        println!("  {}: {notice}", notice.kind());
    }
}

/// Counts written bytes.
struct ByteCounter(u64);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn block(kind: &str) -> Vec<u8> {
    const SIZE: usize = 1 << 20;
    let mut block = Vec::with_capacity(SIZE + 256);
    let mut number = 0_u64;
    while block.len() < SIZE {
        number += 1;
        match kind {
            "line" => block.extend_from_slice(b"a line that never ends, never ends, "),
            "noise" => {
                let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                state ^= state >> 29;
                block.extend_from_slice(&state.wrapping_mul(0xbf58_476d_1ce4_e5b9).to_le_bytes());
            }
            "split" => block.extend_from_slice("日本語のテキスト €uro 🦀 \n".as_bytes()),
            "bar" => block.extend_from_slice(
                format!(
                    "\r{:3}%|████████      | {number}/1000 [00:00<?, ?it/s]",
                    number % 100
                )
                .as_bytes(),
            ),
            "colours" => block.extend_from_slice(
                format!("\x1b[32mINFO\x1b[0m line {number} of a log with colours\n").as_bytes(),
            ),
            "crlf" => block.extend_from_slice(
                format!("line {number} of a log from another system, with text\r\n").as_bytes(),
            ),
            "latin" => {
                block.extend_from_slice(format!("Zeile {number}: 20 °C, 5 £, «ça»\n").as_bytes());
            }
            _ => block.extend_from_slice(
                format!("line {number:09} of a log with plain text, long enough to be useful\n")
                    .as_bytes(),
            ),
        }
    }
    block
}

/// Peak resident memory, in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or_default()
}
