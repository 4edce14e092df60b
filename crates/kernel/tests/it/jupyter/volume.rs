//! Nothing is lost: much output, big output, whoever listens slowly, and messages that are not for us.

use std::time::Duration;

use cellwright_kernel::{Ending, Kernel, Request, Stop};
use cellwright_output::{Data, Event, Sink};

use super::ipykernel;
use crate::support::{Heard, Told, run};

/// The numbers below this, each on its line.
fn numbers(count: u32) -> Vec<u8> {
    let lines = (0..count).map(|number| format!("{number}\n"));
    lines.collect::<String>().into_bytes()
}

/// Where two texts begin to differ, with what follows in each, and how long they are.
fn gap(heard: &[u8], expected: &[u8]) -> Option<String> {
    if heard == expected {
        return None;
    }
    let mut both = heard.iter().zip(expected);
    let at = both.position(|(one, other)| one != other);
    let at = at.unwrap_or(heard.len().min(expected.len()));
    let from =
        |text: &[u8]| String::from_utf8_lossy(&text[at..text.len().min(at + 40)]).into_owned();
    let lengths = (heard.len(), expected.len());
    Some(format!(
        "{at} of {lengths:?}: {:?} and {:?}",
        from(heard),
        from(expected)
    ))
}

#[tokio::test]
async fn a_million_lines_and_a_big_display_arrive_whole() {
    let (mut kernel, _folder) = ipykernel().await;
    let code = "import sys\nwrite = sys.stdout.write\nfor i in range(1_000_000): write(f'{i}\\n')";
    let (heard, outcome) = run(&mut kernel, code).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    assert_eq!(gap(&heard.out(), &numbers(1_000_000)), None);

    let code =
        "display({'text/plain': 'tiny', 'text/html': 'abcdé\\\\\\n\\x1b\"' * 5_000_000}, raw=True)";
    let (heard, outcome) = run(&mut kernel, code).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    let [Told::Display { data, .. }] = &heard.events[..] else {
        panic!("{} events", heard.events.len())
    };
    let html = data.iter().find(|(mime, _)| mime == "text/html").unwrap();
    let expected = "abcdé\\\n\x1b\"".repeat(5_000_000);
    let Data::Stored(html) = &html.1 else {
        panic!("fifty megabytes are in memory");
    };
    assert!(expected.len() >= 50_000_000 && html.text().unwrap() == expected);
    assert_eq!(kernel.take_remarks(), []);
}

/// In a cell that awaits, IPython has nothing of its own in the place of `write`.
#[tokio::test]
async fn prints_go_through_our_own_write_from_the_first_cell_on() {
    let (mut kernel, _folder) = ipykernel().await;
    let code = "import asyncio, sys\nawait asyncio.sleep(0)\n\
        [getattr(s.write, 'cellwright', False) for s in (sys.stdout, sys.stderr)]";
    for _ in 0..2 {
        let (heard, _) = run(&mut kernel, code).await;
        assert_eq!(heard.line(), "=[[True, True]]");
        run(&mut kernel, "print('something')").await.1.unwrap();
    }
}

/// Hears everything, but blocks its thread now and then.
#[derive(Default)]
struct Slow {
    heard: Heard,
    bytes: usize,
    naps: u32,
}

impl Sink for Slow {
    fn push(&mut self, event: Event<'_>) {
        if let Event::Text { bytes, .. } = &event {
            self.bytes += bytes.len();
            if self.naps < 3 && self.bytes > 100_000 * self.naps as usize {
                self.naps += 1;
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        self.heard.push(event);
    }
}

/// Both kernels are driven by one thread, which one of the listeners blocks.
#[tokio::test]
async fn a_slow_listener_loses_nothing_neither_its_own_nor_others() {
    let ((mut slow, _one), (mut quick, _other)) = tokio::join!(ipykernel(), ipykernel());
    // Where nothing may wait, a busy machine is enough to lose something.
    let (heard, _) = run(&mut slow, "get_ipython().kernel.iopub_thread.socket.sndhwm").await;
    assert_eq!(heard.line(), "=[0]");
    let request = Request::new("for i in range(200_000): print(i, flush=i % 20 == 0)");
    let (mut sleepy, mut awake) = (Slow::default(), Heard::default());
    let stop = Stop::never();
    let (first, second) = tokio::join!(
        slow.execute(&request, &mut sleepy, &stop),
        quick.execute(&request, &mut awake, &stop),
    );
    assert_eq!(first.unwrap().ending, Ending::Completed);
    assert_eq!(second.unwrap().ending, Ending::Completed);
    let expected = numbers(200_000);
    assert_eq!(sleepy.naps, 3);
    assert_eq!(gap(&sleepy.heard.out(), &expected), None);
    assert_eq!(gap(&awake.out(), &expected), None);
}

#[tokio::test]
async fn widgets_do_not_break_a_run() {
    let (mut kernel, _folder) = ipykernel().await;
    let code = "import time\nfrom tqdm.notebook import tqdm\ntotal = 0\nfor i in tqdm(range(20)): total += i\ntotal";
    let (heard, outcome) = run(&mut kernel, code).await;
    assert_eq!(
        outcome.unwrap().ending,
        Ending::Completed,
        "{}",
        heard.line()
    );
    assert!(heard.line().ends_with("=[190]"), "{}", heard.line());

    let code = "from ipywidgets import FloatProgress, Output, interact\nbar = FloatProgress(max=10)\ndisplay(bar)\nfor i in range(10): bar.value = i\n@interact(x=(0, 5))\ndef f(x=3): print('f of', x)\nout = Output()\ndisplay(out)\nwith out:\n    print('inside')\nprint('outside')";
    let (heard, outcome) = run(&mut kernel, code).await;
    assert_eq!(
        outcome.unwrap().ending,
        Ending::Completed,
        "{}",
        heard.line()
    );
    let said = String::from_utf8(heard.out()).unwrap();
    assert!(said.ends_with("outside\n"), "{}", heard.line());
    assert!(heard.line().contains("FloatProgress"), "{}", heard.line());
    let (heard, outcome) = run(&mut kernel, "bar.value").await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    assert_eq!(heard.line(), "=[9.0]");
}
