//! No output is lost: many lines, large displays, slow sinks, and messages for widgets.

use std::time::Duration;

use cellwright_kernel::{Ending, Kernel, Request, StopSignal};
use cellwright_output::{Data, Event, Sink};

use super::ipykernel;
use crate::support::{RecordedEvent, RecordingSink, run_code};

/// The numbers below `count`, one per line.
fn numbers(count: u32) -> Vec<u8> {
    let lines = (0..count).map(|number| format!("{number}\n"));
    lines.collect::<String>().into_bytes()
}

/// The first difference of two texts, with the following bytes of each, and their lengths.
fn difference(recorded: &[u8], expected: &[u8]) -> Option<String> {
    if recorded == expected {
        return None;
    }
    let mut both = recorded.iter().zip(expected);
    let at = both.position(|(one, other)| one != other);
    let at = at.unwrap_or(recorded.len().min(expected.len()));
    let from =
        |text: &[u8]| String::from_utf8_lossy(&text[at..text.len().min(at + 40)]).into_owned();
    let lengths = (recorded.len(), expected.len());
    Some(format!(
        "{at} of {lengths:?}: {:?} and {:?}",
        from(recorded),
        from(expected)
    ))
}

#[tokio::test]
async fn a_million_lines_and_a_large_display_arrive_completely() {
    let (mut kernel, _folder) = ipykernel().await;
    let code = "import sys\nwrite = sys.stdout.write\nfor i in range(1_000_000): write(f'{i}\\n')";
    let (recorded, outcome) = run_code(&mut kernel, code).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    assert_eq!(difference(&recorded.stdout(), &numbers(1_000_000)), None);

    let code =
        "display({'text/plain': 'tiny', 'text/html': 'abcdé\\\\\\n\\x1b\"' * 5_000_000}, raw=True)";
    let (recorded, outcome) = run_code(&mut kernel, code).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    let [RecordedEvent::Display { data, .. }] = &recorded.events[..] else {
        panic!("{} events", recorded.events.len())
    };
    let html = data.iter().find(|(mime, _)| mime == "text/html").unwrap();
    let expected = "abcdé\\\n\x1b\"".repeat(5_000_000);
    let Data::Stored(html) = &html.1 else {
        panic!("the display is in memory");
    };
    assert!(expected.len() >= 50_000_000 && html.text().unwrap() == expected);
    assert_eq!(kernel.take_notices(), []);
}

/// In a cell that awaits, IPython does not replace `write` itself.
#[tokio::test]
async fn prints_use_the_fast_write_from_the_first_cell() {
    let (mut kernel, _folder) = ipykernel().await;
    let code = "import asyncio, sys\nawait asyncio.sleep(0)\n\
        [getattr(s.write, 'cellwright', False) for s in (sys.stdout, sys.stderr)]";
    for _ in 0..2 {
        let (recorded, _) = run_code(&mut kernel, code).await;
        assert_eq!(recorded.summary(), "=[[True, True]]");
        run_code(&mut kernel, "print('something')").await.1.unwrap();
    }
}

/// Records all events, but blocks its thread three times.
#[derive(Default)]
struct SlowSink {
    recorded: RecordingSink,
    bytes: usize,
    sleeps: u32,
}

impl Sink for SlowSink {
    fn push(&mut self, event: Event<'_>) {
        if let Event::Text { bytes, .. } = &event {
            self.bytes += bytes.len();
            if self.sleeps < 3 && self.bytes > 100_000 * self.sleeps as usize {
                self.sleeps += 1;
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        self.recorded.push(event);
    }
}

/// One thread drives both kernels, and one of the sinks blocks it.
#[tokio::test]
async fn a_slow_sink_loses_no_output_of_its_own_or_other_kernels() {
    let ((mut slow, _one), (mut quick, _other)) = tokio::join!(ipykernel(), ipykernel());
    // With a send limit, a busy machine is enough to lose messages.
    let (recorded, _) =
        run_code(&mut slow, "get_ipython().kernel.iopub_thread.socket.sndhwm").await;
    assert_eq!(recorded.summary(), "=[0]");
    let request = Request::new("for i in range(200_000): print(i, flush=i % 20 == 0)");
    let (mut slow_sink, mut fast_sink) = (SlowSink::default(), RecordingSink::default());
    let stop = StopSignal::never();
    let (first, second) = tokio::join!(
        slow.execute(&request, &mut slow_sink, &stop),
        quick.execute(&request, &mut fast_sink, &stop),
    );
    assert_eq!(first.unwrap().ending, Ending::Completed);
    assert_eq!(second.unwrap().ending, Ending::Completed);
    let expected = numbers(200_000);
    assert_eq!(slow_sink.sleeps, 3);
    assert_eq!(difference(&slow_sink.recorded.stdout(), &expected), None);
    assert_eq!(difference(&fast_sink.stdout(), &expected), None);
}

#[tokio::test]
async fn widgets_do_not_break_a_run() {
    let (mut kernel, _folder) = ipykernel().await;
    let code = "import time\nfrom tqdm.notebook import tqdm\ntotal = 0\nfor i in tqdm(range(20)): total += i\ntotal";
    let (recorded, outcome) = run_code(&mut kernel, code).await;
    assert_eq!(
        outcome.unwrap().ending,
        Ending::Completed,
        "{}",
        recorded.summary()
    );
    assert!(
        recorded.summary().ends_with("=[190]"),
        "{}",
        recorded.summary()
    );

    let code = "from ipywidgets import FloatProgress, Output, interact\nbar = FloatProgress(max=10)\ndisplay(bar)\nfor i in range(10): bar.value = i\n@interact(x=(0, 5))\ndef f(x=3): print('f of', x)\nout = Output()\ndisplay(out)\nwith out:\n    print('inside')\nprint('outside')";
    let (recorded, outcome) = run_code(&mut kernel, code).await;
    assert_eq!(
        outcome.unwrap().ending,
        Ending::Completed,
        "{}",
        recorded.summary()
    );
    let output = String::from_utf8(recorded.stdout()).unwrap();
    assert!(output.ends_with("outside\n"), "{}", recorded.summary());
    assert!(
        recorded.summary().contains("FloatProgress"),
        "{}",
        recorded.summary()
    );
    let (recorded, outcome) = run_code(&mut kernel, "bar.value").await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    assert_eq!(recorded.summary(), "=[9.0]");
}
