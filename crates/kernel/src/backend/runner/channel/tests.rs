//! The order of text and frames, with sync markers split in any way.

use std::io::Write;
use std::os::fd::OwnedFd;

use super::*;

const NONCE: [u8; NONCE_SIZE] = *b"\xff0123456789abcd\xff";

/// The runner's ends of the socket and the pipes.
struct RunnerEnd {
    socket: std::os::unix::net::UnixStream,
    pipes: [std::fs::File; 2],
}

fn connected_channel() -> (RunnerChannel, RunnerEnd) {
    let (host_end, runner_end) = std::os::unix::net::UnixStream::pair().unwrap();
    let pipe = || rustix::pipe::pipe().unwrap();
    let ((stdout, out), (stderr, err)) = (pipe(), pipe());
    let ends = ChildPipes {
        channel: OwnedFd::from(host_end),
        stdout,
        stderr,
    };
    let mut channel = RunnerChannel::new(ends, Trace::default()).unwrap();
    let hex = format!("{:032x}", u128::from_be_bytes(NONCE));
    channel.set_nonce(&hex).unwrap();
    let runner = RunnerEnd {
        socket: runner_end,
        pipes: [out.into(), err.into()],
    };
    (channel, runner)
}

fn marker(number: u64) -> Vec<u8> {
    [&NONCE[..], &number.to_le_bytes()].concat()
}

impl RunnerEnd {
    fn write_text(&mut self, pipe: usize, bytes: &[u8]) {
        self.pipes[pipe].write_all(bytes).unwrap();
    }

    fn send_frame(&mut self, name: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.write_text(0, &marker(number));
            self.write_text(1, &marker(number));
        }
        let number = number.map_or(String::new(), |number| format!(",\"n\":{number}"));
        writeln!(self.socket, "{{\"t\":\"{name}\"{number}}}").unwrap();
    }
}

/// The frames and text in the order of delivery: until `frames` frames have arrived, then the remaining text.
async fn transcript(channel: &mut RunnerChannel, frames: usize) -> String {
    let mut output = String::new();
    for _ in 0..frames {
        let mut text = String::new();
        let frame = channel
            .next_frame(&mut |stream, bytes: &[u8]| {
                text.push_str(&format!("{stream}:{} ", String::from_utf8_lossy(bytes)));
            })
            .await
            .unwrap()
            .unwrap();
        output.push_str(&text);
        output.push_str(&format!("<{}> ", frame.frame_type));
    }
    let mut text = String::new();
    channel.drain_text(&mut |stream, bytes: &[u8]| {
        text.push_str(&format!("{stream}:{} ", String::from_utf8_lossy(bytes)));
    });
    (output + &text).trim_end().to_owned()
}

#[tokio::test]
async fn text_stays_on_its_side_of_a_marker() {
    let (mut channel, mut runner) = connected_channel();
    runner.write_text(0, b"a");
    runner.send_frame("one", Some(1));
    runner.write_text(0, b"b");
    runner.write_text(1, b"c");
    runner.send_frame("two", Some(2));
    runner.write_text(1, b"d");
    assert_eq!(
        transcript(&mut channel, 2).await,
        "stdout:a <one> stdout:b stderr:c <two> stderr:d"
    );
}

#[tokio::test]
async fn a_frame_without_marker_precedes_the_text_in_the_pipes() {
    for _ in 0..100 {
        let (mut channel, mut runner) = connected_channel();
        runner.send_frame("one", None);
        runner.write_text(0, b"a");
        runner.write_text(1, b"b");
        let output = transcript(&mut channel, 1).await;
        assert!(output.starts_with("<one> "), "{output}");
    }
}

#[tokio::test]
async fn a_marker_may_be_split_anywhere() {
    for cut in 1..MARKER_SIZE {
        let (mut channel, mut runner) = connected_channel();
        let marker_bytes = marker(1);
        runner.write_text(0, b"a");
        runner.write_text(0, &marker_bytes[..cut]);
        let mut text = Vec::new();
        // No byte of the marker is delivered, and no text is held back.
        let waiting = tokio::time::timeout(
            std::time::Duration::from_millis(2),
            channel.next_frame(&mut |_, bytes: &[u8]| text.extend_from_slice(bytes)),
        )
        .await;
        assert!(waiting.is_err());
        assert_eq!(text, b"a");
        runner.write_text(0, &marker_bytes[cut..]);
        runner.write_text(1, &marker_bytes);
        runner.write_text(0, b"b");
        writeln!(runner.socket, "{{\"t\":\"x\",\"n\":1}}").unwrap();
        assert_eq!(
            transcript(&mut channel, 1).await,
            "<x> stdout:b",
            "cut at {cut}"
        );
    }
}

#[tokio::test]
async fn bytes_that_only_resemble_a_marker_are_text() {
    let (mut channel, mut runner) = connected_channel();
    runner.write_text(0, &NONCE[..7]);
    runner.write_text(0, b"!");
    runner.write_text(1, &NONCE[..3]);
    runner.send_frame("x", None);
    let output = transcript(&mut channel, 1).await;
    assert!(output.contains("12345!"), "{output}");
    assert!(output.ends_with("01"), "{output}");
}

#[tokio::test]
async fn text_that_ends_like_a_marker_begins_precedes_the_next_frame() {
    let (mut channel, mut runner) = connected_channel();
    runner.write_text(0, b"a\xff");
    let mut text = Vec::new();
    let mut on_text = |_: Stream, bytes: &[u8]| text.extend_from_slice(bytes);
    let waiting = tokio::time::timeout(
        std::time::Duration::from_millis(5),
        channel.next_frame(&mut on_text),
    );
    assert!(waiting.await.is_err());
    runner.send_frame("done", None);
    channel.next_frame(&mut on_text).await.unwrap().unwrap();
    assert_eq!(text, b"a\xff");
}

#[tokio::test]
async fn a_frame_that_never_arrives_does_not_block_the_next() {
    let (mut channel, mut runner) = connected_channel();
    runner.write_text(0, b"a");
    runner.write_text(0, &marker(1));
    runner.write_text(1, &marker(1));
    runner.write_text(0, b"b");
    runner.send_frame("two", Some(2));
    runner.write_text(0, b"c");
    assert_eq!(
        transcript(&mut channel, 1).await,
        "stdout:a <two> stdout:b stdout:c"
    );
}

#[tokio::test]
async fn a_forged_marker_cannot_hold_back_text() {
    let (mut channel, mut runner) = connected_channel();
    runner.write_text(0, &marker(u64::MAX));
    let mut stdout = runner.pipes[0].try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        for _ in 0..64 {
            stdout.write_all(&vec![b'x'; 65536]).unwrap();
        }
    });
    let mut received = 0;
    while received < 2 << 20 {
        let _waited = tokio::time::timeout(
            std::time::Duration::from_millis(50),
            channel.next_frame(&mut |_, bytes: &[u8]| received += bytes.len()),
        )
        .await;
    }
    writeln!(
        runner.socket,
        "{{\"t\":\"done\",\"n\":18446744073709551614}}"
    )
    .unwrap();
    let mut rest = 0;
    channel
        .next_frame(&mut |_, bytes: &[u8]| rest += bytes.len())
        .await
        .unwrap();
    writer.join().unwrap();
    channel.drain_text(&mut |_, bytes: &[u8]| rest += bytes.len());
    assert_eq!(received + rest, 64 * 65536);
}

/// An action of the runner or the host.
#[derive(Clone, Debug)]
enum Action {
    Text(usize, Vec<u8>),
    Frame,
    /// The host reads everything that is available.
    Read,
}

fn actions() -> impl proptest::strategy::Strategy<Value = Vec<Action>> {
    use proptest::prelude::*;
    // Bytes of the nonce in the text make partial markers.
    let byte = prop_oneof![any::<u8>(), proptest::sample::select(NONCE.to_vec())];
    let text = (0..2_usize, proptest::collection::vec(byte, 1..40));
    proptest::collection::vec(
        prop_oneof![
            3 => text.prop_map(|(pipe, bytes)| Action::Text(pipe, bytes)),
            2 => Just(Action::Frame),
            1 => Just(Action::Read),
        ],
        1..30,
    )
}

proptest::proptest! {
    #[test]
    fn every_byte_is_delivered_once_on_its_side_of_every_frame(actions in actions()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut channel, mut runner) = connected_channel();
            // Text between frames, by stream: as written and as delivered.
            let mut written = vec![[Vec::new(), Vec::new()]];
            let mut output = vec![[Vec::new(), Vec::new()]];
            let mut frames = 0;
            for action in actions {
                match action {
                    Action::Text(pipe, bytes) => {
                        runner.write_text(pipe, &bytes);
                        written.last_mut().unwrap()[pipe].extend(bytes);
                    }
                    Action::Frame => {
                        frames += 1;
                        runner.send_frame("x", Some(frames));
                        written.push([Vec::new(), Vec::new()]);
                    }
                    Action::Read => read_available(&mut channel, &mut output).await,
                }
            }
            read_available(&mut channel, &mut output).await;
            let last = output.last_mut().unwrap();
            channel.drain_text(&mut |stream, bytes: &[u8]| {
                last[usize::from(stream == Stream::Stderr)].extend_from_slice(bytes);
            });
            assert_eq!(output, written);
        });
    }
}

/// Reads everything that is available.
async fn read_available(channel: &mut RunnerChannel, output: &mut Vec<[Vec<u8>; 2]>) {
    loop {
        let last = output.last_mut().unwrap();
        let next = tokio::time::timeout(
            std::time::Duration::from_millis(1),
            channel.next_frame(&mut |stream, bytes: &[u8]| {
                last[usize::from(stream == Stream::Stderr)].extend_from_slice(bytes);
            }),
        )
        .await;
        match next {
            Ok(frame) => {
                frame.unwrap().unwrap();
                output.push([Vec::new(), Vec::new()]);
            }
            Err(_) => return,
        }
    }
}
