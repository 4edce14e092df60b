//! The order of text and frames, with borders cut in any way.

use std::io::Write;
use std::os::fd::OwnedFd;

use super::*;

const NONCE: [u8; NONCE_BYTES] = *b"\xff0123456789abcd\xff";

/// The runner's ends.
struct Far {
    channel: std::os::unix::net::UnixStream,
    pipes: [std::fs::File; 2],
}

fn wire() -> (Wire, Far) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let pipe = || rustix::pipe::pipe().unwrap();
    let ((stdout, out), (stderr, err)) = (pipe(), pipe());
    let ends = Ends {
        channel: OwnedFd::from(ours),
        stdout,
        stderr,
    };
    let mut wire = Wire::new(ends, Trace::default()).unwrap();
    let hex = format!("{:032x}", u128::from_be_bytes(NONCE));
    wire.set_nonce(&hex).unwrap();
    let far = Far {
        channel: theirs,
        pipes: [out.into(), err.into()],
    };
    (wire, far)
}

fn border(number: u64) -> Vec<u8> {
    [&NONCE[..], &number.to_le_bytes()].concat()
}

impl Far {
    fn text(&mut self, lane: usize, bytes: &[u8]) {
        self.pipes[lane].write_all(bytes).unwrap();
    }

    fn frame(&mut self, name: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.text(0, &border(number));
            self.text(1, &border(number));
        }
        let number = number.map_or(String::new(), |number| format!(",\"n\":{number}"));
        writeln!(self.channel, "{{\"t\":\"{name}\"{number}}}").unwrap();
    }
}

/// What is told until `frames` frames have come and, with `text`, everything that is there.
async fn told(wire: &mut Wire, frames: usize) -> String {
    let mut told = String::new();
    for _ in 0..frames {
        let mut heard = String::new();
        let frame = wire
            .next(&mut |stream, bytes: &[u8]| {
                heard.push_str(&format!("{stream}:{} ", String::from_utf8_lossy(bytes)));
            })
            .await
            .unwrap()
            .unwrap();
        told.push_str(&heard);
        told.push_str(&format!("<{}> ", frame.t));
    }
    let mut heard = String::new();
    wire.rest(&mut |stream, bytes: &[u8]| {
        heard.push_str(&format!("{stream}:{} ", String::from_utf8_lossy(bytes)));
    });
    (told + &heard).trim_end().to_owned()
}

#[tokio::test]
async fn text_stands_on_its_side_of_a_border() {
    let (mut wire, mut far) = wire();
    far.text(0, b"a");
    far.frame("one", Some(1));
    far.text(0, b"b");
    far.text(1, b"c");
    far.frame("two", Some(2));
    far.text(1, b"d");
    assert_eq!(
        told(&mut wire, 2).await,
        "stdout:a <one> stdout:b stderr:c <two> stderr:d"
    );
}

#[tokio::test]
async fn a_frame_without_border_comes_before_the_text_that_is_there() {
    for _ in 0..100 {
        let (mut wire, mut far) = wire();
        far.frame("one", None);
        far.text(0, b"a");
        far.text(1, b"b");
        let told = told(&mut wire, 1).await;
        assert!(told.starts_with("<one> "), "{told}");
    }
}

#[tokio::test]
async fn a_border_may_be_cut_anywhere() {
    for cut in 1..BORDER_BYTES {
        let (mut wire, mut far) = wire();
        let mark = border(1);
        far.text(0, b"a");
        far.text(0, &mark[..cut]);
        let mut heard = Vec::new();
        // Nothing of the mark is told, and nothing of the text is held back.
        let waiting = tokio::time::timeout(
            std::time::Duration::from_millis(2),
            wire.next(&mut |_, bytes: &[u8]| heard.extend_from_slice(bytes)),
        )
        .await;
        assert!(waiting.is_err());
        assert_eq!(heard, b"a");
        far.text(0, &mark[cut..]);
        far.text(1, &mark);
        far.text(0, b"b");
        writeln!(far.channel, "{{\"t\":\"x\",\"n\":1}}").unwrap();
        assert_eq!(told(&mut wire, 1).await, "<x> stdout:b", "cut at {cut}");
    }
}

#[tokio::test]
async fn what_only_looks_like_a_border_is_text() {
    let (mut wire, mut far) = wire();
    far.text(0, &NONCE[..7]);
    far.text(0, b"!");
    far.text(1, &NONCE[..3]);
    far.frame("x", None);
    let told = told(&mut wire, 1).await;
    assert!(told.contains("12345!"), "{told}");
    assert!(told.ends_with("01"), "{told}");
}

#[tokio::test]
async fn text_that_ends_like_a_border_begins_is_told_before_the_next_frame() {
    let (mut wire, mut far) = wire();
    far.text(0, b"a\xff");
    let mut heard = Vec::new();
    let mut hear = |_: Stream, bytes: &[u8]| heard.extend_from_slice(bytes);
    let waiting = tokio::time::timeout(std::time::Duration::from_millis(5), wire.next(&mut hear));
    assert!(waiting.await.is_err());
    far.frame("done", None);
    wire.next(&mut hear).await.unwrap().unwrap();
    assert_eq!(heard, b"a\xff");
}

#[tokio::test]
async fn a_frame_that_never_came_is_overtaken_by_the_next() {
    let (mut wire, mut far) = wire();
    far.text(0, b"a");
    far.text(0, &border(1));
    far.text(1, &border(1));
    far.text(0, b"b");
    far.frame("two", Some(2));
    far.text(0, b"c");
    assert_eq!(told(&mut wire, 1).await, "stdout:a <two> stdout:b stdout:c");
}

#[tokio::test]
async fn a_forged_border_cannot_stop_the_text() {
    let (mut wire, mut far) = wire();
    far.text(0, &border(u64::MAX));
    let mut far_out = far.pipes[0].try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        for _ in 0..64 {
            far_out.write_all(&vec![b'x'; 65536]).unwrap();
        }
    });
    let mut heard = 0;
    while heard < 2 << 20 {
        let _waited = tokio::time::timeout(
            std::time::Duration::from_millis(50),
            wire.next(&mut |_, bytes: &[u8]| heard += bytes.len()),
        )
        .await;
    }
    writeln!(far.channel, "{{\"t\":\"done\",\"n\":18446744073709551614}}").unwrap();
    let mut rest = 0;
    wire.next(&mut |_, bytes: &[u8]| rest += bytes.len())
        .await
        .unwrap();
    writer.join().unwrap();
    wire.rest(&mut |_, bytes: &[u8]| rest += bytes.len());
    assert_eq!(heard + rest, 64 * 65536);
}

/// What a runner may do.
#[derive(Clone, Debug)]
enum Act {
    Text(usize, Vec<u8>),
    Frame,
    /// The host looks now.
    Look,
}

fn acts() -> impl proptest::strategy::Strategy<Value = Vec<Act>> {
    use proptest::prelude::*;
    // Bytes of the nonce among the text make half borders.
    let byte = prop_oneof![any::<u8>(), proptest::sample::select(NONCE.to_vec())];
    let text = (0..2_usize, proptest::collection::vec(byte, 1..40));
    proptest::collection::vec(
        prop_oneof![
            3 => text.prop_map(|(lane, bytes)| Act::Text(lane, bytes)),
            2 => Just(Act::Frame),
            1 => Just(Act::Look),
        ],
        1..30,
    )
}

proptest::proptest! {
    #[test]
    fn every_byte_is_told_once_on_its_side_of_every_frame(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut wire, mut far) = wire();
            // Text between frames, by stream: what was written and what was told.
            let mut written = vec![[Vec::new(), Vec::new()]];
            let mut told = vec![[Vec::new(), Vec::new()]];
            let mut frames = 0;
            for act in acts {
                match act {
                    Act::Text(lane, bytes) => {
                        far.text(lane, &bytes);
                        written.last_mut().unwrap()[lane].extend(bytes);
                    }
                    Act::Frame => {
                        frames += 1;
                        far.frame("x", Some(frames));
                        written.push([Vec::new(), Vec::new()]);
                    }
                    Act::Look => look(&mut wire, &mut told).await,
                }
            }
            look(&mut wire, &mut told).await;
            let last = told.last_mut().unwrap();
            wire.rest(&mut |stream, bytes: &[u8]| {
                last[usize::from(stream == Stream::Stderr)].extend_from_slice(bytes);
            });
            assert_eq!(told, written);
        });
    }
}

/// Takes everything that is there.
async fn look(wire: &mut Wire, told: &mut Vec<[Vec<u8>; 2]>) {
    loop {
        let last = told.last_mut().unwrap();
        let next = tokio::time::timeout(
            std::time::Duration::from_millis(1),
            wire.next(&mut |stream, bytes: &[u8]| {
                last[usize::from(stream == Stream::Stderr)].extend_from_slice(bytes);
            }),
        )
        .await;
        match next {
            Ok(frame) => {
                frame.unwrap().unwrap();
                told.push([Vec::new(), Vec::new()]);
            }
            Err(_) => return,
        }
    }
}
