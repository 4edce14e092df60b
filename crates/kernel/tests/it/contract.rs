//! The kernel contract: the behaviour that every Python kernel must have, on every backend and every configured
//! interpreter.

mod exits;
mod input;
mod queries;

use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::{
    Begun, BoxFuture, Ending, Kernel, KernelError, KernelState, Outcome, Request, Retry,
    StopReason, StopSignal, TimeLimit,
};
use cellwright_output::Data;
use cellwright_stdext::Directory;

use crate::support::{RecordedEvent, RecordingSink, eventually, is_running, run_code, run_request};

use exits::exiting_is_an_exception_that_ends_only_the_cell;
use input::{input_is_answered, input_without_answers_is_refused};
use queries::{history_contains_the_cells_that_ran, queries_run_no_user_code};

/// A kernel in its own directory.
pub(crate) struct KernelFixture {
    pub(crate) kernel: Box<dyn Kernel>,
    pub(crate) dir: tempfile::TempDir,
    /// Whether an interrupt reaches the processes that the kernel has started.
    pub(crate) interrupts_children: bool,
}

/// A part of the contract.
pub(crate) type ContractTest = fn(KernelFixture) -> BoxFuture<'static, ()>;

impl KernelFixture {
    async fn output_of(&mut self, code: &str) -> String {
        let (recorded, outcome) = run_code(self.kernel.as_mut(), code).await;
        outcome.unwrap();
        recorded.summary()
    }

    async fn ending_of(&mut self, code: &str) -> (RecordingSink, Ending) {
        let (recorded, outcome) = run_code(self.kernel.as_mut(), code).await;
        (recorded, outcome.unwrap().ending)
    }

    /// Runs code, and stops it after it has begun.
    async fn run_and_stop(&mut self, code: &str) -> (RecordingSink, Result<Outcome, KernelError>) {
        let (stopper, stop) = StopSignal::new();
        let mark = self.dir.path().join("begun");
        let request = Request::new(format!("open('begun', 'w').close()\n{code}"));
        let watch = async {
            assert!(eventually(Duration::from_secs(20), || mark.exists()).await);
            // Stops it in the middle.
            tokio::time::sleep(Duration::from_millis(50)).await;
            stopper.stop(StopReason::Cancelled);
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = run_request(self.kernel.as_mut(), &request, &stop) => result,
            () = watch => unreachable!(),
        };
        std::fs::remove_file(&mark).unwrap();
        result
    }
}

const STATE_PRESERVED: Ending = Ending::Stopped {
    reason: StopReason::Cancelled,
    state: KernelState::Preserved,
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
                    let (kernel, dir) = crate::jupyter::ipykernel().await;
                    let kernel = Box::new(kernel);
                    super::$name(super::KernelFixture { kernel, dir, interrupts_children: true }).await;
                }
            )*
        }

        /// The contract on Jupyter servers. Each server runs all of it.
        pub(crate) fn on_servers() -> Vec<(&'static str, ContractTest)> {
            vec![$( (stringify!($name), |fixture| Box::pin($name(fixture))), )*]
        }
    };
    (@runner $name:ident) => {
        #[tokio::test]
        async fn $name() {
            for python in crate::support::interpreters() {
                println!("on {}", python.display());
                let (runner, dir) = crate::support::start_runner(&python).await;
                let kernel = Box::new(runner);
                super::$name(super::KernelFixture { kernel, dir, interrupts_children: true }).await;
            }
        }
    };
}

contract![
    everywhere:
        state_persists_between_cells,
        the_last_expression_is_a_numbered_result,
        a_semicolon_suppresses_the_result,
        streams_and_displays_keep_their_order,
        displays_are_updated_and_cleared,
        binary_data_arrives_as_bytes,
        an_error_includes_the_source_lines,
        a_syntax_error_names_the_line,
        input_without_answers_is_refused,
        input_is_answered,
        output_of_threads_and_children_arrives,
        late_output_is_kept,
        an_interrupt_preserves_the_state,
        a_cell_that_ignores_interrupts_loses_the_kernel,
        a_cell_that_cannot_be_interrupted_loses_the_kernel,
        a_timeout_is_the_stop_reason,
        a_stop_before_the_cell_runs_nothing,
        a_death_is_reported_with_the_output,
        a_dead_kernel_rejects_the_next_cell,
        fifty_megabytes_arrive_completely,
        working_directory_and_environment_can_be_set,
        a_working_directory_that_was_replaced_is_not_entered,
        exiting_is_an_exception_that_ends_only_the_cell,
        unusual_code_runs,
        children_of_a_kernel_end_with_it,
        queries_run_no_user_code,
        history_contains_the_cells_that_ran
    ;
    // ipykernel cannot do these: it buffers each stream separately, assigns the text of threads to the running cell,
    // decodes bytes piece by piece, and loses unsent output when it is killed.
    runner:
        streams_are_interleaved_in_writing_order,
        late_output_does_not_go_to_the_next_cell,
        a_character_may_be_written_in_parts,
        invalid_utf8_arrives_unchanged,
        the_last_output_of_a_killed_kernel_arrives,
];

async fn state_persists_between_cells(mut fixture: KernelFixture) {
    assert_eq!(fixture.output_of("x = 20").await, "");
    assert_eq!(fixture.output_of("def f(): return x + 1").await, "");
    assert_eq!(fixture.output_of("f()").await, "=[21]");
    fixture.ending_of("1/0").await;
    assert_eq!(fixture.output_of("print(f())").await, "out:\"21\\n\"");
}

async fn the_last_expression_is_a_numbered_result(mut fixture: KernelFixture) {
    let (recorded, outcome) = run_code(fixture.kernel.as_mut(), "1; 2\n'three'").await;
    assert_eq!(recorded.summary(), "=['three']");
    let first = outcome.unwrap().execution_count.unwrap();
    let (recorded, outcome) = run_code(fixture.kernel.as_mut(), "_ + '!'").await;
    assert_eq!(recorded.summary(), "=['three!']");
    assert_eq!(outcome.unwrap().execution_count, Some(first + 1));
    let RecordedEvent::Display { result, .. } = &recorded.events[0] else {
        panic!("{:?}", recorded.events)
    };
    assert_eq!(*result, Some(first + 1));
}

async fn a_semicolon_suppresses_the_result(mut fixture: KernelFixture) {
    assert_eq!(fixture.output_of("5;").await, "");
    assert_eq!(fixture.output_of("5 # ;").await, "=[5]");
    assert_eq!(fixture.output_of("None").await, "");
}

/// Numbered lines as in a string literal: `o 1\no 2\n…`.
fn numbered(name: char, numbers: std::ops::Range<u32>) -> String {
    let lines: Vec<String> = numbers
        .map(|number| format!("{name} {number}\\n"))
        .collect();
    lines.concat()
}

async fn streams_and_displays_keep_their_order(mut fixture: KernelFixture) {
    let code =
        "import sys\nfor i in range(200):\n    print('o', i)\n    if i % 50 == 0: display(i)\n1";
    let (recorded, _) = fixture.ending_of(code).await;
    let mut expected = String::new();
    for i in (0..200).step_by(50) {
        let lines = numbered('o', i..i + 50);
        let (before, after) = lines.split_once("\\n").unwrap();
        let gap = if i == 0 { "out:\"" } else { "" };
        expected.push_str(&format!("{gap}{before}\\n\" [{i}] out:\"{after}"));
    }
    assert_eq!(recorded.summary(), expected + "\" =[1]");
    let code = "import sys\nfor i in range(50): print('e', i, file=sys.stderr)\ndisplay(1)\nprint('e', 50, file=sys.stderr)";
    let (recorded, _) = fixture.ending_of(code).await;
    let lines = numbered('e', 0..50);
    assert_eq!(
        recorded.summary(),
        format!("err:\"{lines}\" [1] err:\"e 50\\n\"")
    );
}

async fn streams_are_interleaved_in_writing_order(mut fixture: KernelFixture) {
    let code = "import sys\nfor i in range(200):\n    print('o', i)\n    print('e', i, file=sys.stderr)\n    if i % 50 == 0: display(i)\n1";
    let (recorded, _) = fixture.ending_of(code).await;
    let mut expected = String::new();
    for i in 0..200 {
        expected.push_str(&format!("out:\"o {i}\\n\" err:\"e {i}\\n\" "));
        if i % 50 == 0 {
            expected.push_str(&format!("[{i}] "));
        }
    }
    assert_eq!(recorded.summary(), expected + "=[1]");
    // The output of children stands between text that was printed before and after.
    let code = "import os, subprocess\nfor i in range(20):\n    print('a', i)\n    os.system(f'echo b {i}')\n    subprocess.run(['echo', 'c', str(i)])";
    let (recorded, _) = fixture.ending_of(code).await;
    let mut expected = String::new();
    for i in 0..20 {
        expected.push_str(&format!("a {i}\nb {i}\nc {i}\n"));
    }
    assert_eq!(String::from_utf8(recorded.stdout()).unwrap(), expected);
}

async fn a_character_may_be_written_in_parts(mut fixture: KernelFixture) {
    let code =
        "import os, time\nfor b in 'ä€😀'.encode():\n    os.write(1, bytes([b])); time.sleep(0.02)";
    assert_eq!(fixture.output_of(code).await, "out:\"ä€😀\"");
}

async fn invalid_utf8_arrives_unchanged(mut fixture: KernelFixture) {
    let (recorded, _) = fixture
        .ending_of("import os; os.write(1, bytes(range(256)));")
        .await;
    assert_eq!(recorded.stdout(), (0..=255).collect::<Vec<u8>>());
    let (recorded, _) = fixture.ending_of("print('\\udcff')").await;
    assert!(
        recorded.summary().starts_with("out:"),
        "{}",
        recorded.summary()
    );
}

async fn displays_are_updated_and_cleared(mut fixture: KernelFixture) {
    let code = "h = display('a', display_id=True)\nh.update('b')\nfrom IPython.display import clear_output\nclear_output(wait=True)\ndisplay('c')";
    assert_eq!(
        fixture.output_of(code).await,
        "['a'] update['b'] clear(true) ['c']"
    );
}

async fn binary_data_arrives_as_bytes(mut fixture: KernelFixture) {
    let code = "class P:\n    def _repr_png_(self): return bytes(range(256)) * 40\nP()";
    let (recorded, _) = fixture.ending_of(code).await;
    let RecordedEvent::Display { data, .. } = &recorded.events[0] else {
        panic!("{:?}", recorded.events)
    };
    let png = data.iter().find(|(mime, _)| mime == "image/png").unwrap();
    let expected: Vec<u8> = (0..=255).cycle().take(256 * 40).collect();
    assert_eq!(decode_data(&png.1), expected);
}

/// Decodes data that arrived as bytes or as base64.
fn decode_data(data: &Data) -> Vec<u8> {
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

/// Removes colour codes.
fn strip_colours(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str(piece.split_once('m').map_or(piece, |(_, rest)| rest));
    }
    plain
}

async fn an_error_includes_the_source_lines(mut fixture: KernelFixture) {
    let code = "def inner():\n    raise ValueError('bad é')\ninner()";
    let (recorded, ending) = fixture.ending_of(code).await;
    let Ending::Raised(traceback) = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(
        (traceback.name.as_str(), traceback.value.as_str()),
        ("ValueError", "bad é")
    );
    let text = strip_colours(&traceback.lines.join("\n"));
    for piece in ["raise ValueError('bad é')", "inner()", "ValueError: bad é"] {
        assert!(text.contains(piece), "{piece} in {text}");
    }
    assert!(!text.contains("cellwright_runner"), "{text}");
    assert_eq!(recorded.events, [RecordedEvent::Raised(traceback)]);
}

async fn a_syntax_error_names_the_line(mut fixture: KernelFixture) {
    let (_, ending) = fixture.ending_of("a = 1\nb = 2\nc = = 3\n").await;
    let Ending::Raised(traceback) = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(traceback.name, "SyntaxError");
    let text = strip_colours(&traceback.lines.join("\n"));
    assert!(
        text.contains("line 3") && text.contains("c = = 3"),
        "{text}"
    );
    assert!(
        matches!(fixture.ending_of("a").await.1, Ending::Raised(_)),
        "no line of it ran"
    );
}

async fn output_of_threads_and_children_arrives(mut fixture: KernelFixture) {
    let code = "import threading, os, subprocess, sys\nt = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\nos.system('echo child; echo moan >&2')\nsubprocess.run([sys.executable, '-c', 'print(\"grandchild\")']);";
    let (recorded, _) = fixture.ending_of(code).await;
    let out = String::from_utf8(recorded.stdout()).unwrap();
    assert_eq!(out, "thread\nchild\ngrandchild\n");
    assert!(
        recorded.summary().contains("err:\"moan\\n\""),
        "{}",
        recorded.summary()
    );
}

async fn late_output_is_kept(mut fixture: KernelFixture) {
    let code = "import threading, time, os\ndef work():\n    while not os.path.exists('go'): time.sleep(0.005)\n    print('late'); open('went', 'w')\nt = threading.Thread(target=work); t.start()";
    assert_eq!(fixture.output_of(code).await, "");
    std::fs::write(fixture.dir.path().join("go"), "").unwrap();
    let went = fixture.dir.path().join("went");
    let mut late = Vec::new();
    let printed = async {
        assert!(eventually(Duration::from_secs(20), || went.exists()).await);
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    tokio::select! {
        error = fixture.kernel.drain_while_idle() => panic!("{error}"),
        () = printed => {}
    }
    for text in fixture.kernel.take_late_text() {
        assert_eq!(text.request, 1);
        late.extend(text.bytes);
    }
    assert_eq!(String::from_utf8(late).unwrap(), "late\n");
}

async fn late_output_does_not_go_to_the_next_cell(mut fixture: KernelFixture) {
    let code = "import threading, time\ndef work():\n    while not go.is_set(): time.sleep(0.005)\n    for i in range(3): print('late', i)\ngo = threading.Event()\nt = threading.Thread(target=work); t.start()";
    assert_eq!(fixture.output_of(code).await, "");
    let (recorded, _) = fixture
        .ending_of("print('mine'); go.set(); t.join(); print('also mine')")
        .await;
    assert_eq!(
        String::from_utf8(recorded.stdout()).unwrap(),
        "mine\nalso mine\n"
    );
    let late = fixture.kernel.take_late_text();
    let text: Vec<u8> = late.iter().flat_map(|late| late.bytes.clone()).collect();
    assert_eq!(String::from_utf8(text).unwrap(), "late 0\nlate 1\nlate 2\n");
    assert!(late.iter().all(|late| late.request == 1), "{late:?}");
    assert_eq!(fixture.kernel.take_late_text(), []);
}

async fn an_interrupt_preserves_the_state(mut fixture: KernelFixture) {
    fixture.output_of("x = 5").await;
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
        if !fixture.interrupts_children && code.contains("os.system") {
            // Python waits for the child, which does not receive the signal.
            continue;
        }
        let (_, outcome) = fixture.run_and_stop(code).await;
        assert_eq!(outcome.unwrap().ending, STATE_PRESERVED, "{code}");
        assert_eq!(fixture.output_of("x").await, "=[5]", "{code}");
    }
    assert_eq!(fixture.output_of("await asyncio.sleep(0); x").await, "=[5]");
}

async fn a_cell_that_ignores_interrupts_loses_the_kernel(mut fixture: KernelFixture) {
    let code = "import time\nprint('begun')\nwhile True:\n    try:\n        while True: time.sleep(0.01)\n    except BaseException: pass";
    let (recorded, outcome) = fixture.run_and_stop(code).await;
    let lost = Ending::Stopped {
        reason: StopReason::Cancelled,
        state: KernelState::Lost,
    };
    assert_eq!(outcome.unwrap().ending, lost, "{:?}", recorded.events);
    assert_eq!(recorded.summary(), "out:\"begun\\n\"");
    assert!(!fixture.kernel.is_alive());
}

async fn a_cell_that_cannot_be_interrupted_loses_the_kernel(mut fixture: KernelFixture) {
    // One long call into C that never checks for signals.
    let (_, outcome) = fixture.run_and_stop("sum(range(10**14))").await;
    assert!(matches!(
        outcome.unwrap().ending,
        Ending::Stopped {
            state: KernelState::Lost,
            ..
        }
    ));
}

async fn a_timeout_is_the_stop_reason(mut fixture: KernelFixture) {
    let time = Duration::from_millis(200);
    let stop = StopSignal::never().with_timeout(time);
    let request = Request::new("print('before')\nimport time\ntime.sleep(60)");
    let (recorded, outcome) = run_request(fixture.kernel.as_mut(), &request, &stop).await;
    let ending = Ending::Stopped {
        reason: StopReason::TimedOut {
            limit: TimeLimit::Cell,
            after: time,
        },
        state: KernelState::Preserved,
    };
    assert_eq!(outcome.unwrap().ending, ending);
    assert!(
        recorded.summary().starts_with("out:\"before\\n\""),
        "{}",
        recorded.summary()
    );
}

async fn a_stop_before_the_cell_runs_nothing(mut fixture: KernelFixture) {
    let (stopper, stop) = StopSignal::new();
    stopper.stop(StopReason::Cancelled);
    let request = Request::new("x = 1");
    let (_, outcome) = run_request(fixture.kernel.as_mut(), &request, &stop).await;
    let error = outcome.unwrap_err();
    assert!(
        matches!(error, KernelError::StoppedEarly { .. }),
        "{error:?}"
    );
    assert!(matches!(fixture.ending_of("x").await.1, Ending::Raised(_)));
}

async fn the_last_output_of_a_killed_kernel_arrives(mut fixture: KernelFixture) {
    let code = "print('final text')\nimport os, sys\nprint('moan', file=sys.stderr)\nos.kill(os.getpid(), 9)";
    let (recorded, outcome) = run_code(fixture.kernel.as_mut(), code).await;
    assert_eq!(recorded.summary(), "out:\"final text\\n\" err:\"moan\\n\"");
    assert!(matches!(outcome.unwrap_err(), KernelError::Died { .. }));
}

async fn a_death_is_reported_with_the_output(mut fixture: KernelFixture) {
    let pid = fixture.kernel.description().pid;
    let code = "print('final text', flush=True)\nimport os, sys, time\nprint('moan', file=sys.stderr, flush=True)\ntime.sleep(0.2)\nos.kill(os.getpid(), 9)";
    let (recorded, outcome) = run_code(fixture.kernel.as_mut(), code).await;
    assert_eq!(recorded.summary(), "out:\"final text\\n\" err:\"moan\\n\"");
    match outcome.unwrap_err() {
        KernelError::Died {
            exit,
            stderr,
            begun,
        } => {
            assert_eq!(exit.signal, pid.map(|_| 9));
            assert!(stderr.contains("moan"), "{stderr}");
            assert_eq!(begun, Begun::Maybe);
        }
        other => panic!("{other:?}"),
    }
    assert!(pid.is_none_or(|pid| !is_running(pid)));
    assert!(!fixture.kernel.is_alive());
}

async fn a_dead_kernel_rejects_the_next_cell(mut fixture: KernelFixture) {
    // A server does not report the exit code.
    let code = fixture.kernel.description().pid.map(|_| 3);
    let (_, outcome) = run_code(fixture.kernel.as_mut(), "import os; os._exit(3)").await;
    let error = outcome.unwrap_err();
    assert!(
        matches!(&error, KernelError::Died { exit, .. } if exit.code == code),
        "{error:?}"
    );
    assert_eq!(
        error.retry(),
        Retry::Never,
        "the code may have had side effects"
    );
    let (recorded, outcome) = run_code(fixture.kernel.as_mut(), "open('ran', 'w')").await;
    assert_eq!(outcome.unwrap_err().retry(), Retry::OnceOnFreshKernel);
    assert_eq!(recorded.summary(), "");
    assert!(!fixture.dir.path().join("ran").exists());
}

async fn fifty_megabytes_arrive_completely(mut fixture: KernelFixture) {
    let code =
        "line = 'é' * 499 + '\\n'\nfor i in range(50_000): print(line, end='')\nsum(range(10))";
    let (recorded, outcome) = run_code(fixture.kernel.as_mut(), code).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    let expected = format!("{}\n", "é".repeat(499)).repeat(50_000);
    assert!(recorded.stdout() == expected.as_bytes());
}

async fn a_working_directory_that_was_replaced_is_not_entered(mut fixture: KernelFixture) {
    let dir = fixture.dir.path().canonicalize().unwrap();
    let (sub, other) = (dir.join("sub"), dir.join("other"));
    std::fs::create_dir(&sub).unwrap();
    std::fs::create_dir(&other).unwrap();
    let descriptor = std::fs::File::open(&sub).unwrap().into();
    let mut request = Request::new("import os\nprint(os.getcwd())");
    request.cwd = Some(Directory::hold(descriptor, &sub).unwrap());
    let never = StopSignal::never();
    let (recorded, _) = run_request(fixture.kernel.as_mut(), &request, &never).await;
    assert_eq!(recorded.summary(), format!("out:\"{}\\n\"", sub.display()));
    std::fs::rename(&sub, dir.join("moved")).unwrap();
    std::os::unix::fs::symlink(&other, &sub).unwrap();
    let (recorded, outcome) = run_request(fixture.kernel.as_mut(), &request, &never).await;
    let is_completed = |outcome: &Outcome| outcome.ending == Ending::Completed;
    assert!(!outcome.as_ref().is_ok_and(is_completed), "{outcome:?}");
    assert_eq!(recorded.stdout(), b"");
    // The code has not run, and the kernel is where it was.
    let recorded = fixture.output_of("print(os.getcwd())").await;
    assert_eq!(
        recorded,
        format!("out:\"{}\\n\"", dir.join("moved").display())
    );
}

async fn working_directory_and_environment_can_be_set(mut fixture: KernelFixture) {
    let sub: PathBuf = fixture.dir.path().canonicalize().unwrap().join("sub");
    std::fs::create_dir(&sub).unwrap();
    std::fs::write(sub.join("neighbour.py"), "value = 7").unwrap();
    let mut request = Request::new(
        "import os, sys, neighbour\nprint(os.getcwd(), os.environ['A'], os.environ.get('B'), neighbour.value)",
    );
    request.cwd = Some(sub.clone().into());
    request.env = vec![
        ("A".into(), Some("1".into())),
        ("B".into(), Some("2".into())),
    ];
    let mut gone = request.clone();
    gone.env[1].1 = None;
    let (recorded, _) = run_request(fixture.kernel.as_mut(), &request, &StopSignal::never()).await;
    assert_eq!(
        recorded.summary(),
        format!("out:\"{} 1 2 7\\n\"", sub.display())
    );
    let (recorded, _) = run_request(fixture.kernel.as_mut(), &gone, &StopSignal::never()).await;
    assert_eq!(
        recorded.summary(),
        format!("out:\"{} 1 None 7\\n\"", sub.display())
    );
}

async fn unusual_code_runs(mut fixture: KernelFixture) {
    assert_eq!(fixture.output_of("").await, "");
    assert_eq!(fixture.output_of("# only this").await, "");
    assert_eq!(fixture.output_of("1 +\\\n 1").await, "=[2]");
    assert_eq!(fixture.output_of("'a'\r\n'b'\r\n").await, "=['b']");
    assert!(matches!(
        fixture.ending_of("x = '\0'").await.1,
        Ending::Raised(_)
    ));
    let long = format!("x = '{}'\nlen(x)", "a".repeat(3_000_000));
    assert_eq!(fixture.output_of(&long).await, "=[3000000]");
}

async fn children_of_a_kernel_end_with_it(mut fixture: KernelFixture) {
    let code = "import subprocess\np = subprocess.Popen(['setsid', 'sleep', '60'])\nprint(p.pid)";
    let (recorded, _) = fixture.ending_of(code).await;
    let pid: u32 = String::from_utf8(recorded.stdout())
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(is_running(pid));
    let report = fixture
        .kernel
        .shutdown(StopSignal::never().with_timeout(Duration::from_secs(10)))
        .await;
    assert_eq!(report.exit.unwrap().code, Some(0));
    assert!(!is_running(pid), "the child runs after the shutdown");
}
