//! The kernel contract: what every kernel that runs Python must do, one behaviour after the other, on
//! every backend and every interpreter there is.

mod questions;

use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::{
    Begun, Ending, Kernel, KernelError, Outcome, Request, Retry, State, Stdin, Stop, StopReason,
};
use cellwright_output::Data;

use crate::support::{Heard, Told, eventually, run, run_until, runs};

use questions::{questions_run_no_code_of_the_user, what_ran_is_remembered};

/// A kernel in a folder of its own.
pub(crate) struct Place {
    pub(crate) kernel: Box<dyn Kernel>,
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    async fn heard(&mut self, code: &str) -> String {
        let (heard, outcome) = run(self.kernel.as_mut(), code).await;
        outcome.unwrap();
        heard.line()
    }

    async fn ended(&mut self, code: &str) -> (Heard, Ending) {
        let (heard, outcome) = run(self.kernel.as_mut(), code).await;
        (heard, outcome.unwrap().ending)
    }

    /// Runs until `mark` has been printed, then stops it.
    async fn stopped(&mut self, code: &str) -> (Heard, Result<Outcome, KernelError>) {
        let (stopper, stop) = Stop::new();
        let mark = self.folder.path().join("begun");
        let request = Request::new(format!("open('begun', 'w').close()\n{code}"));
        let watch = async {
            assert!(eventually(Duration::from_secs(20), || mark.exists()).await);
            // Into the middle of it.
            tokio::time::sleep(Duration::from_millis(50)).await;
            stopper.stop(StopReason::Cancelled);
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = run_until(self.kernel.as_mut(), &request, &stop) => result,
            () = watch => unreachable!(),
        };
        std::fs::remove_file(&mark).unwrap();
        result
    }
}

const KEPT: Ending = Ending::Stopped {
    reason: StopReason::Cancelled,
    state: State::Kept,
};

macro_rules! contract {
    (everywhere: $($name:ident),* ; runner: $($own:ident),* $(,)?) => {
        /// The contract on the built-in runner.
        mod runner {
            $( contract!(@runner $name); )*
            $( contract!(@runner $own); )*
        }

        /// The contract on ipykernel.
        mod ipykernel {
            $(
                #[tokio::test]
                async fn $name() {
                    let (kernel, folder) = crate::jupyter::ipykernel().await;
                    let kernel = Box::new(kernel);
                    super::$name(super::Place { kernel, folder }).await;
                }
            )*
        }
    };
    (@runner $name:ident) => {
        #[tokio::test]
        async fn $name() {
            for python in crate::support::interpreters() {
                println!("on {}", python.display());
                let (runner, folder) = crate::support::runner(&python).await;
                let kernel = Box::new(runner);
                super::$name(super::Place { kernel, folder }).await;
            }
        }
    };
}

contract![
    everywhere:
        state_is_kept_between_cells,
        the_last_expression_is_shown_and_counted,
        a_semicolon_silences,
        streams_and_displays_keep_their_order,
        displays_are_updated_and_cleared,
        binary_data_arrives_as_bytes,
        an_exception_is_told_with_its_source,
        a_syntax_error_names_the_line,
        input_is_refused_at_once,
        input_is_answered,
        threads_and_children_are_heard,
        late_text_is_kept,
        an_interrupt_keeps_the_state,
        a_cell_that_ignores_interrupts_loses_the_kernel,
        a_cell_out_of_reach_loses_the_kernel,
        a_timeout_is_told_as_such,
        a_stop_before_the_start_runs_nothing,
        death_is_told_with_what_was_printed,
        a_dead_kernel_refuses_the_next_cell_unbegun,
        fifty_megabytes_arrive_whole,
        the_folder_and_the_environment_can_be_set,
        exiting_ends_only_the_cell,
        odd_code_is_no_trouble,
        children_of_a_kernel_go_with_it,
        questions_run_no_code_of_the_user,
        what_ran_is_remembered
    ;
    // What happens inside ipykernel before anything reaches us: it collects each stream on its own, hands
    // text of threads to the cell that runs, decodes bytes piece by piece, and loses what it has not sent
    // when it is killed.
    runner:
        streams_are_interleaved_as_they_were_written,
        late_text_is_not_the_next_cells,
        a_character_may_be_written_in_two_halves,
        what_is_not_utf8_arrives_as_it_is,
        the_last_words_of_a_killed_kernel_arrive,
];

async fn state_is_kept_between_cells(mut place: Place) {
    assert_eq!(place.heard("x = 20").await, "");
    assert_eq!(place.heard("def f(): return x + 1").await, "");
    assert_eq!(place.heard("f()").await, "=[21]");
    place.ended("1/0").await;
    assert_eq!(place.heard("print(f())").await, "out:\"21\\n\"");
}

async fn the_last_expression_is_shown_and_counted(mut place: Place) {
    let (heard, outcome) = run(place.kernel.as_mut(), "1; 2\n'three'").await;
    assert_eq!(heard.line(), "=['three']");
    let first = outcome.unwrap().count.unwrap();
    let (heard, outcome) = run(place.kernel.as_mut(), "_ + '!'").await;
    assert_eq!(heard.line(), "=['three!']");
    assert_eq!(outcome.unwrap().count, Some(first + 1));
    let Told::Display { result, .. } = &heard.events[0] else {
        panic!("{:?}", heard.events)
    };
    assert_eq!(*result, Some(first + 1));
}

async fn a_semicolon_silences(mut place: Place) {
    assert_eq!(place.heard("5;").await, "");
    assert_eq!(place.heard("5 # ;").await, "=[5]");
    assert_eq!(place.heard("None").await, "");
}

/// `o 1\no 2\n…` as a string is written.
fn numbered(name: char, numbers: std::ops::Range<u32>) -> String {
    let lines: Vec<String> = numbers
        .map(|number| format!("{name} {number}\\n"))
        .collect();
    lines.concat()
}

async fn streams_and_displays_keep_their_order(mut place: Place) {
    let code =
        "import sys\nfor i in range(200):\n    print('o', i)\n    if i % 50 == 0: display(i)\n1";
    let (heard, _) = place.ended(code).await;
    let mut expected = String::new();
    for i in (0..200).step_by(50) {
        let lines = numbered('o', i..i + 50);
        let (before, after) = lines.split_once("\\n").unwrap();
        let gap = if i == 0 { "out:\"" } else { "" };
        expected.push_str(&format!("{gap}{before}\\n\" [{i}] out:\"{after}"));
    }
    assert_eq!(heard.line(), expected + "\" =[1]");
    let code = "import sys\nfor i in range(50): print('e', i, file=sys.stderr)\ndisplay(1)\nprint('e', 50, file=sys.stderr)";
    let (heard, _) = place.ended(code).await;
    let lines = numbered('e', 0..50);
    assert_eq!(heard.line(), format!("err:\"{lines}\" [1] err:\"e 50\\n\""));
}

async fn streams_are_interleaved_as_they_were_written(mut place: Place) {
    let code = "import sys\nfor i in range(200):\n    print('o', i)\n    print('e', i, file=sys.stderr)\n    if i % 50 == 0: display(i)\n1";
    let (heard, _) = place.ended(code).await;
    let mut expected = String::new();
    for i in 0..200 {
        expected.push_str(&format!("out:\"o {i}\\n\" err:\"e {i}\\n\" "));
        if i % 50 == 0 {
            expected.push_str(&format!("[{i}] "));
        }
    }
    assert_eq!(heard.line(), expected + "=[1]");
    // What children write stands between what was printed before and after.
    let code = "import os, subprocess\nfor i in range(20):\n    print('a', i)\n    os.system(f'echo b {i}')\n    subprocess.run(['echo', 'c', str(i)])";
    let (heard, _) = place.ended(code).await;
    let mut expected = String::new();
    for i in 0..20 {
        expected.push_str(&format!("a {i}\nb {i}\nc {i}\n"));
    }
    assert_eq!(String::from_utf8(heard.out()).unwrap(), expected);
}

async fn a_character_may_be_written_in_two_halves(mut place: Place) {
    let code =
        "import os, time\nfor b in 'ä€😀'.encode():\n    os.write(1, bytes([b])); time.sleep(0.02)";
    assert_eq!(place.heard(code).await, "out:\"ä€😀\"");
}

async fn what_is_not_utf8_arrives_as_it_is(mut place: Place) {
    let (heard, _) = place
        .ended("import os; os.write(1, bytes(range(256)));")
        .await;
    assert_eq!(heard.out(), (0..=255).collect::<Vec<u8>>());
    let (heard, _) = place.ended("print('\\udcff')").await;
    assert!(heard.line().starts_with("out:"), "{}", heard.line());
}

async fn displays_are_updated_and_cleared(mut place: Place) {
    let code = "h = display('a', display_id=True)\nh.update('b')\nfrom IPython.display import clear_output\nclear_output(wait=True)\ndisplay('c')";
    assert_eq!(
        place.heard(code).await,
        "['a'] update['b'] clear(true) ['c']"
    );
}

async fn binary_data_arrives_as_bytes(mut place: Place) {
    let code = "class P:\n    def _repr_png_(self): return bytes(range(256)) * 40\nP()";
    let (heard, _) = place.ended(code).await;
    let Told::Display { data, .. } = &heard.events[0] else {
        panic!("{:?}", heard.events)
    };
    let png = data.iter().find(|(mime, _)| mime == "image/png").unwrap();
    let expected: Vec<u8> = (0..=255).cycle().take(256 * 40).collect();
    assert_eq!(bytes(&png.1), expected);
}

/// Bytes come as they are, or as base64.
fn bytes(data: &Data) -> Vec<u8> {
    use base64::Engine as _;
    match data {
        Data::Bytes(bytes) => bytes.clone(),
        Data::Text(text) => {
            let text: String = text.split_whitespace().collect();
            base64::prelude::BASE64_STANDARD.decode(text).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

/// Without colours.
fn colourless(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str(piece.split_once('m').map_or(piece, |(_, rest)| rest));
    }
    plain
}

async fn an_exception_is_told_with_its_source(mut place: Place) {
    let code = "def inner():\n    raise ValueError('bad é')\ninner()";
    let (heard, ending) = place.ended(code).await;
    let Ending::Raised(traceback) = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(
        (traceback.name.as_str(), traceback.value.as_str()),
        ("ValueError", "bad é")
    );
    let text = colourless(&traceback.lines.join("\n"));
    for piece in ["raise ValueError('bad é')", "inner()", "ValueError: bad é"] {
        assert!(text.contains(piece), "{piece} in {text}");
    }
    assert!(!text.contains("cellwright_runner"), "{text}");
    assert_eq!(heard.events, [Told::Raised(traceback)]);
}

async fn a_syntax_error_names_the_line(mut place: Place) {
    let (_, ending) = place.ended("a = 1\nb = 2\nc = = 3\n").await;
    let Ending::Raised(traceback) = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(traceback.name, "SyntaxError");
    let text = colourless(&traceback.lines.join("\n"));
    assert!(
        text.contains("line 3") && text.contains("c = = 3"),
        "{text}"
    );
    assert!(
        matches!(place.ended("a").await.1, Ending::Raised(_)),
        "nothing of it ran"
    );
}

async fn input_is_refused_at_once(mut place: Place) {
    let (heard, ending) = place.ended("name = input('Who? ')").await;
    let Ending::Raised(traceback) = ending else {
        panic!("{ending:?}")
    };
    assert!(traceback.value.contains("Who? "), "{traceback:?}");
    assert!(
        heard.events.contains(&Told::Refused("Who? ".into())),
        "{}",
        heard.line()
    );
    assert_eq!(place.heard("1 + 1").await, "=[2]");
}

async fn input_is_answered(mut place: Place) {
    let mut request =
        Request::new("a = input('A? ')\nb = input('B? ')\nprint(a + b)\ninput('C? ')");
    request.stdin = Stdin::Answers(["x", "y"].into_iter().collect());
    let (heard, outcome) = run_until(place.kernel.as_mut(), &request, &Stop::never()).await;
    assert!(
        String::from_utf8(heard.out()).unwrap().contains("xy\n"),
        "{}",
        heard.line()
    );
    assert!(
        heard.events.contains(&Told::Refused("C? ".into())),
        "{}",
        heard.line()
    );
    assert!(matches!(outcome.unwrap().ending, Ending::Raised(_)));
}

async fn threads_and_children_are_heard(mut place: Place) {
    let code = "import threading, os, subprocess, sys\nt = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\nos.system('echo child; echo moan >&2')\nsubprocess.run([sys.executable, '-c', 'print(\"grandchild\")']);";
    let (heard, _) = place.ended(code).await;
    let out = String::from_utf8(heard.out()).unwrap();
    assert_eq!(out, "thread\nchild\ngrandchild\n");
    assert!(heard.line().contains("err:\"moan\\n\""), "{}", heard.line());
}

async fn late_text_is_kept(mut place: Place) {
    let code = "import threading, time, os\ndef work():\n    while not os.path.exists('go'): time.sleep(0.005)\n    print('late'); open('went', 'w')\nt = threading.Thread(target=work); t.start()";
    assert_eq!(place.heard(code).await, "");
    std::fs::write(place.folder.path().join("go"), "").unwrap();
    let went = place.folder.path().join("went");
    // Whoever has a kernel attends to it.
    let mut late = Vec::new();
    let said = async {
        assert!(eventually(Duration::from_secs(20), || went.exists()).await);
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    tokio::select! {
        error = place.kernel.attend() => panic!("{error}"),
        () = said => {}
    }
    for text in place.kernel.take_late() {
        assert_eq!(text.request, 1);
        late.extend(text.bytes);
    }
    assert_eq!(String::from_utf8(late).unwrap(), "late\n");
}

async fn late_text_is_not_the_next_cells(mut place: Place) {
    let code = "import threading, time\ndef work():\n    while not go.is_set(): time.sleep(0.005)\n    for i in range(3): print('late', i)\ngo = threading.Event()\nt = threading.Thread(target=work); t.start()";
    assert_eq!(place.heard(code).await, "");
    let (heard, _) = place
        .ended("print('mine'); go.set(); t.join(); print('also mine')")
        .await;
    assert_eq!(String::from_utf8(heard.out()).unwrap(), "mine\nalso mine\n");
    let late = place.kernel.take_late();
    let text: Vec<u8> = late.iter().flat_map(|late| late.bytes.clone()).collect();
    assert_eq!(String::from_utf8(text).unwrap(), "late 0\nlate 1\nlate 2\n");
    assert!(late.iter().all(|late| late.request == 1), "{late:?}");
    assert_eq!(place.kernel.take_late(), []);
}

async fn an_interrupt_keeps_the_state(mut place: Place) {
    place.heard("x = 5").await;
    let busy = [
        "while True: pass",
        "import time; time.sleep(60)",
        "import os; os.system('sleep 60')",
        "import subprocess; subprocess.run(['sleep', '60'])",
        "!sleep 60",
        "import asyncio; await asyncio.sleep(60)",
        "async def f():\n    while True: await asyncio.sleep(0)\nawait f()",
        "async def f():\n    while True: pass\nawait f()",
        "import threading; threading.Event().wait()",
        "print('x' * 100, flush=True)\nwhile True: print('x' * 1000)",
    ];
    for code in busy {
        let (_, outcome) = place.stopped(code).await;
        assert_eq!(outcome.unwrap().ending, KEPT, "{code}");
        assert_eq!(place.heard("x").await, "=[5]", "{code}");
    }
    assert_eq!(place.heard("await asyncio.sleep(0); x").await, "=[5]");
}

async fn a_cell_that_ignores_interrupts_loses_the_kernel(mut place: Place) {
    let code = "import time\nprint('begun')\nwhile True:\n    try:\n        while True: time.sleep(0.01)\n    except BaseException: pass";
    let (heard, outcome) = place.stopped(code).await;
    let lost = Ending::Stopped {
        reason: StopReason::Cancelled,
        state: State::Lost,
    };
    assert_eq!(outcome.unwrap().ending, lost, "{:?}", heard.events);
    assert_eq!(heard.line(), "out:\"begun\\n\"");
    assert!(!place.kernel.is_alive());
}

async fn a_cell_out_of_reach_loses_the_kernel(mut place: Place) {
    // One long call into C that never looks for signals.
    let (_, outcome) = place.stopped("sum(range(10**14))").await;
    assert!(matches!(
        outcome.unwrap().ending,
        Ending::Stopped {
            state: State::Lost,
            ..
        }
    ));
}

async fn a_timeout_is_told_as_such(mut place: Place) {
    let time = Duration::from_millis(200);
    let stop = Stop::never().with_timeout(time);
    let request = Request::new("print('before')\nimport time\ntime.sleep(60)");
    let (heard, outcome) = run_until(place.kernel.as_mut(), &request, &stop).await;
    let ending = Ending::Stopped {
        reason: StopReason::TimedOut(time),
        state: State::Kept,
    };
    assert_eq!(outcome.unwrap().ending, ending);
    assert!(
        heard.line().starts_with("out:\"before\\n\""),
        "{}",
        heard.line()
    );
}

async fn a_stop_before_the_start_runs_nothing(mut place: Place) {
    let (stopper, stop) = Stop::new();
    stopper.stop(StopReason::Cancelled);
    let request = Request::new("x = 1");
    let (_, outcome) = run_until(place.kernel.as_mut(), &request, &stop).await;
    let error = outcome.unwrap_err();
    assert!(
        matches!(error, KernelError::StoppedEarly { .. }),
        "{error:?}"
    );
    assert!(matches!(place.ended("x").await.1, Ending::Raised(_)));
}

async fn the_last_words_of_a_killed_kernel_arrive(mut place: Place) {
    let code = "print('last words')\nimport os, sys\nprint('moan', file=sys.stderr)\nos.kill(os.getpid(), 9)";
    let (heard, outcome) = run(place.kernel.as_mut(), code).await;
    assert_eq!(heard.line(), "out:\"last words\\n\" err:\"moan\\n\"");
    assert!(matches!(outcome.unwrap_err(), KernelError::Died { .. }));
}

async fn death_is_told_with_what_was_printed(mut place: Place) {
    let pid = place.kernel.description().pid;
    let code = "print('last words', flush=True)\nimport os, sys, time\nprint('moan', file=sys.stderr, flush=True)\ntime.sleep(0.2)\nos.kill(os.getpid(), 9)";
    let (heard, outcome) = run(place.kernel.as_mut(), code).await;
    assert_eq!(heard.line(), "out:\"last words\\n\" err:\"moan\\n\"");
    match outcome.unwrap_err() {
        KernelError::Died {
            exit,
            stderr,
            begun,
        } => {
            assert_eq!(exit.signal, Some(9));
            assert!(stderr.contains("moan"), "{stderr}");
            assert_eq!(begun, Begun::Maybe);
        }
        other => panic!("{other:?}"),
    }
    assert!(pid.is_none_or(|pid| !runs(pid)));
    assert!(!place.kernel.is_alive());
}

async fn a_dead_kernel_refuses_the_next_cell_unbegun(mut place: Place) {
    let (_, outcome) = run(place.kernel.as_mut(), "import os; os._exit(3)").await;
    let error = outcome.unwrap_err();
    assert!(
        matches!(&error, KernelError::Died { exit, .. } if exit.code == Some(3)),
        "{error:?}"
    );
    assert_eq!(error.retry(), Retry::Never, "it may have done something");
    let (heard, outcome) = run(place.kernel.as_mut(), "open('ran', 'w')").await;
    assert_eq!(outcome.unwrap_err().retry(), Retry::OnceOnAFreshKernel);
    assert_eq!(heard.line(), "");
    assert!(!place.folder.path().join("ran").exists());
}

async fn fifty_megabytes_arrive_whole(mut place: Place) {
    let code =
        "line = 'é' * 499 + '\\n'\nfor i in range(50_000): print(line, end='')\nsum(range(10))";
    let (heard, outcome) = run(place.kernel.as_mut(), code).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    let expected = format!("{}\n", "é".repeat(499)).repeat(50_000);
    assert!(heard.out() == expected.as_bytes());
}

async fn the_folder_and_the_environment_can_be_set(mut place: Place) {
    let sub: PathBuf = place.folder.path().canonicalize().unwrap().join("sub");
    std::fs::create_dir(&sub).unwrap();
    std::fs::write(sub.join("neighbour.py"), "value = 7").unwrap();
    let mut request = Request::new(
        "import os, sys, neighbour\nprint(os.getcwd(), os.environ['A'], os.environ.get('B'), neighbour.value)",
    );
    request.cwd = Some(sub.clone());
    request.env = vec![
        ("A".into(), Some("1".into())),
        ("B".into(), Some("2".into())),
    ];
    let mut gone = request.clone();
    gone.env[1].1 = None;
    let (heard, _) = run_until(place.kernel.as_mut(), &request, &Stop::never()).await;
    assert_eq!(heard.line(), format!("out:\"{} 1 2 7\\n\"", sub.display()));
    let (heard, _) = run_until(place.kernel.as_mut(), &gone, &Stop::never()).await;
    assert_eq!(
        heard.line(),
        format!("out:\"{} 1 None 7\\n\"", sub.display())
    );
}

async fn exiting_ends_only_the_cell(mut place: Place) {
    place.heard("x = 1").await;
    let (_, ending) = place.ended("import sys\nsys.exit(4)\nx = 2").await;
    assert_eq!(ending, Ending::Exited { code: 4 });
    assert_eq!(place.heard("x").await, "=[1]");
}

async fn odd_code_is_no_trouble(mut place: Place) {
    assert_eq!(place.heard("").await, "");
    assert_eq!(place.heard("# only this").await, "");
    assert_eq!(place.heard("1 +\\\n 1").await, "=[2]");
    assert_eq!(place.heard("'a'\r\n'b'\r\n").await, "=['b']");
    assert!(matches!(place.ended("x = '\0'").await.1, Ending::Raised(_)));
    let long = format!("x = '{}'\nlen(x)", "a".repeat(3_000_000));
    assert_eq!(place.heard(&long).await, "=[3000000]");
}

async fn children_of_a_kernel_go_with_it(mut place: Place) {
    let code = "import subprocess\np = subprocess.Popen(['setsid', 'sleep', '60'])\nprint(p.pid)";
    let (heard, _) = place.ended(code).await;
    let pid: u32 = String::from_utf8(heard.out())
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(runs(pid));
    let farewell = place
        .kernel
        .shutdown(Stop::never().with_timeout(Duration::from_secs(10)))
        .await;
    assert_eq!(farewell.exit.unwrap().code, Some(0));
    assert!(!runs(pid), "it is over when the shutdown is");
}
