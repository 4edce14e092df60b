//! Cells that end without a message, and kernels that exit or disconnect.

use std::time::Duration;

use cellwright_kernel::{Kernel as _, KernelError, Request, StopSignal};

use super::{GOOD_CELL, HostileKernel, run_all, within_timeout};
use crate::support::{eventually, is_running, run_code, run_request};

/// What to check after the cell.
#[derive(Clone, Copy)]
enum AfterCell {
    /// The kernel runs the next cell.
    Works,
    /// The kernel is dead.
    Over,
    /// Nothing.
    Unchecked,
}

/// A cell on its own kernel.
struct Case {
    start: &'static str,
    script: &'static str,
    /// When it is stopped, in milliseconds.
    stop_after: Option<u64>,
    expected: &'static str,
    after: AfterCell,
}

const CASE: Case = Case {
    start: "",
    script: "",
    stop_after: None,
    expected: "",
    after: AfterCell::Over,
};

impl Case {
    async fn run_code(self, by_message: bool) {
        let mut kernel = if by_message {
            HostileKernel::start_with_message_interrupts(self.start).await
        } else {
            HostileKernel::start(self.start).await
        };
        let summary = match self.stop_after {
            None => kernel.run(self.script).await,
            Some(millis) => kernel.run_and_stop(self.script, millis).await,
        };
        assert_eq!(summary, self.expected, "{}", self.script);
        match self.after {
            AfterCell::Works => {
                kernel.assert_works().await;
                kernel.assert_shuts_down().await;
            }
            AfterCell::Over => kernel.assert_over().await,
            AfterCell::Unchecked => kernel.assert_shuts_down().await,
        }
    }
}

#[tokio::test]
async fn a_cell_ends_in_time_without_reply_or_idle() {
    let cases = [
        Case {
            script: "begin(); out('a'); reply()",
            expected: "out:\"a\" | done | output_incomplete",
            after: AfterCell::Works,
            ..CASE
        },
        Case {
            script: "begin(); out('a'); reply(); status('idle', key=b'guess')",
            expected: "out:\"a\" | done | output_incomplete | messages_refused",
            after: AfterCell::Works,
            ..CASE
        },
        // Many messages of other clients do not delay the end.
        Case {
            script: "begin(); out('a'); reply()\nfor _ in range(40): time.sleep(0.1); out('no', parent_header={'msg_id': 'x'}); send('shell', 'kernel_info_reply', {}, parent_header={})",
            expected: "out:\"a\" | done | output_incomplete",
            after: AfterCell::Works,
            ..CASE
        },
        Case {
            script: "begin(); out('a'); reply(); junk = encode_message(message('iopub', 'stream', {}, key=b'guess')) * 1000\nwhile True: raw('iopub', junk)",
            expected: "out:\"a\" | done | output_incomplete | messages_refused",
            after: AfterCell::Unchecked,
            ..CASE
        },
        Case {
            script: "begin(); out('a'); status('idle')",
            expected: "out:\"a\" !NoReply | raised \"NoReply\" \"the kernel sent no `execute_reply`\"",
            after: AfterCell::Works,
            ..CASE
        },
        Case {
            script: "begin(); out('a'); reply(key=b'guess'); status('idle')",
            expected: "out:\"a\" !NoReply | raised \"NoReply\" \"the kernel sent no `execute_reply`\" | messages_refused",
            after: AfterCell::Works,
            ..CASE
        },
        // It does not answer the probe either.
        Case {
            script: "begin(); out('a'); status('idle'); time.sleep(60)",
            expected: "out:\"a\" | the kernel violated the protocol: it went idle without sending `execute_reply`",
            ..CASE
        },
    ];
    run_all(cases, |case| case.run_code(false)).await;
}

#[tokio::test]
async fn a_kernel_that_disconnects_is_dead() {
    let closed = "out:\"a\" | the kernel violated the protocol: it closed its connection";
    let cases = [
        "begin(); out('a'); drop('iopub'); time.sleep(60)",
        "begin(); out('a'); time.sleep(0.1); drop('shell'); time.sleep(60)",
        "begin(); out('a'); time.sleep(0.1); drop('stdin'); time.sleep(60)",
        "begin(); out('a'); time.sleep(0.1); drop('control'); time.sleep(60)",
        "begin(); out('a'); drop('iopub', 'shell', 'stdin', 'control', 'hb'); time.sleep(60)",
    ];
    let disconnected = cases.map(|script| Case {
        script,
        expected: closed,
        ..CASE
    });
    let malformed = [
        (
            "begin(); out('a'); raw('iopub', b'\\xff' * 100); time.sleep(60)",
            "out:\"a\" | the kernel violated the protocol: invalid frame: unknown flags",
        ),
        (
            "begin(); out('a'); raw('iopub', b'\\x02' + b'\\x7f' * 8); time.sleep(60)",
            "out:\"a\" | the kernel violated the protocol: a message of more than 2147483648 bytes was announced",
        ),
        (
            "begin(); out('a'); raw('iopub', b'\\x01\\x00' * 70000); time.sleep(60)",
            "out:\"a\" | the kernel violated the protocol: a message has more than 65536 frames",
        ),
        (
            "begin(); out('a'); raw('iopub', b'\\x02' + bytes(7)); drop('iopub'); time.sleep(60)",
            "out:\"a\" | the kernel violated the protocol: the connection failed: unexpected end of file",
        ),
    ];
    let malformed = malformed.map(|(script, expected)| Case {
        script,
        expected,
        ..CASE
    });
    run_all(disconnected.into_iter().chain(malformed), |case| {
        case.run_code(false)
    })
    .await;
}

#[tokio::test]
async fn a_death_in_a_cell_is_reported_with_the_output() {
    let died = [
        "begin(); out('a'); os._exit(0)",
        "begin(); out('a'); os._exit(1)",
        "begin(); out('a'); os.kill(os.getpid(), signal.SIGKILL)",
        // Before the reply.
        "begin(); out('a'); status('idle'); os._exit(0)",
    ];
    let died = died.map(|script| Case {
        script,
        expected: "out:\"a\" | died",
        ..CASE
    });
    let done = Case {
        script: "begin(); out('a'); reply(); os._exit(0)",
        expected: "out:\"a\" | done",
        ..CASE
    };
    run_all(died.into_iter().chain([done]), |case| case.run_code(false)).await;
}

#[tokio::test]
async fn a_kernel_that_died_between_two_cells_has_not_begun_the_second() {
    for script in [
        "begin(); end(); os._exit(1)",
        "begin(); end(); os.kill(os.getpid(), signal.SIGKILL)",
    ] {
        let mut kernel = HostileKernel::start("").await;
        let pid = kernel.jupyter.description().pid.unwrap();
        assert_eq!(kernel.run(script).await, "done");
        assert!(eventually(Duration::from_secs(5), || !is_running(pid)).await);
        // The supervisor reports the exit.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (_, outcome) = within_timeout(run_code(&mut kernel.jupyter, GOOD_CELL)).await;
        let error = outcome.unwrap_err();
        assert!(
            matches!(
                error,
                KernelError::Died {
                    begun: cellwright_kernel::Begun::No,
                    ..
                }
            ),
            "{error:?}"
        );
        kernel.assert_over().await;
    }
    // The same for a kernel that has disconnected.
    let mut kernel = HostileKernel::start("").await;
    let script = "begin(); end(); time.sleep(0.1); drop('shell'); time.sleep(60)";
    assert_eq!(kernel.run(script).await, "done");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let summary = kernel.run(GOOD_CELL).await;
    assert_eq!(
        summary,
        "the kernel violated the protocol: it closed its connection"
    );
    kernel.assert_over().await;
    // An idle session notices the exit at once.
    let mut kernel = HostileKernel::start("").await;
    assert_eq!(
        kernel
            .run("begin(); end(); time.sleep(0.1); os._exit(3)")
            .await,
        "done"
    );
    let error = within_timeout(kernel.jupyter.drain_while_idle()).await;
    assert_eq!(error.to_string(), "the kernel died (exit code 3)");
    kernel.assert_over().await;
}

#[tokio::test]
async fn an_interrupt_ends_the_cell_or_the_kernel_is_killed() {
    const SLEEP: &str = "begin(); out('a'); time.sleep(60)";
    const IGNORE_SIGINT: &str = "signal.signal(signal.SIGINT, signal.SIG_IGN)";
    let by_signal = [
        Case {
            script: SLEEP,
            expected: "out:\"a\" !KeyboardInterrupt | kept",
            after: AfterCell::Works,
            ..CASE
        },
        Case {
            start: IGNORE_SIGINT,
            script: SLEEP,
            expected: "out:\"a\" | lost",
            ..CASE
        },
        // After several interrupts, within the grace.
        Case {
            script: "begin(); out('a')\nfor _ in range(3):\n    try: time.sleep(60)\n    except KeyboardInterrupt: interruptible = True\nend()",
            expected: "out:\"a\" | kept",
            after: AfterCell::Works,
            ..CASE
        },
        Case {
            script: "begin(); out('a')\ntry: time.sleep(60)\nexcept KeyboardInterrupt: os._exit(0)",
            expected: "out:\"a\" | lost",
            ..CASE
        },
        // It replies `aborted` for the interrupted cell.
        Case {
            script: "status('busy')\ntry: time.sleep(60)\nexcept KeyboardInterrupt: end({'status': 'aborted'})",
            expected: "kept",
            after: AfterCell::Works,
            ..CASE
        },
        // It sends without pause.
        Case {
            start: IGNORE_SIGINT,
            script: "begin(); junk = encode_message(message('iopub', 'stream', {'name': 'stdout', 'text': ''})) * 1000\nwhile True: raw('iopub', junk)",
            expected: "lost | messages_refused",
            ..CASE
        },
    ];
    let by_message = [
        Case {
            script: SLEEP,
            expected: "out:\"a\" !KeyboardInterrupt | kept",
            after: AfterCell::Works,
            ..CASE
        },
        Case {
            start: "def on_interrupt(): pass",
            script: SLEEP,
            expected: "out:\"a\" | lost",
            ..CASE
        },
        Case {
            start: "def on_interrupt(): send('control', 'interrupt_reply', {'status': 'error', 'ename': 'E'})",
            script: SLEEP,
            expected: "out:\"a\" | lost",
            ..CASE
        },
        Case {
            start: "def on_interrupt(): send('control', 'interrupt_reply', b'junk'); os._exit(2)",
            script: SLEEP,
            expected: "out:\"a\" | lost",
            ..CASE
        },
        Case {
            start: "def on_interrupt(): time.sleep(0.4); os.kill(os.getpid(), signal.SIGINT)",
            script: SLEEP,
            expected: "out:\"a\" !KeyboardInterrupt | kept",
            after: AfterCell::Works,
            ..CASE
        },
    ];
    let stopped = |case: Case| Case {
        stop_after: Some(300),
        ..case
    };
    let by_signal = by_signal.map(|case| (stopped(case), false));
    let by_message = by_message.map(|case| (stopped(case), true));
    run_all(
        by_signal.into_iter().chain(by_message),
        |(case, by_message)| case.run_code(by_message),
    )
    .await;
}

#[tokio::test]
async fn a_refused_input_request_does_not_wait_forever() {
    let case = Case {
        start: "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        script: "begin(); request_input('?'); answers.get()",
        expected: "refused:\"?\" | the kernel violated the protocol: it waits for input that was refused, and ignores interrupts",
        ..CASE
    };
    case.run_code(false).await;
}

#[tokio::test]
async fn a_kernel_that_does_not_read_can_be_stopped() {
    let mut kernel = HostileKernel::start("").await;
    assert_eq!(kernel.run("begin(); end(); reading.clear()").await, "done");
    let request = Request::new(format!("#{}", "x".repeat(100_000_000)));
    let stop = StopSignal::never().with_timeout(Duration::from_millis(300));
    assert_eq!(kernel.run_request(&request, &stop).await, "lost");
    kernel.assert_over().await;
}

#[tokio::test]
async fn a_kernel_that_refuses_to_exit_is_killed() {
    let starts = [
        ("def on_shutdown(): pass", false),
        (
            "def on_shutdown(): send('control', 'shutdown_reply', {'status': 'ok', 'restart': False})",
            false,
        ),
        (
            "def on_shutdown(): pass\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)",
            false,
        ),
        (
            "def on_shutdown(): drop('shell', 'iopub', 'stdin', 'control')",
            false,
        ),
        (
            "def on_shutdown(): send('control', 'shutdown_reply', b'junk', key=b'guess'); os._exit(0)",
            true,
        ),
        ("os.close(1); os.close(2)", true),
        // It keeps sending after the shutdown request.
        (
            "def on_shutdown():\n    junk = encode_message(message('iopub', 'stream', {})) * 1000\n    while True: raw('iopub', junk)",
            false,
        ),
    ];
    run_all(starts, |(start, graceful)| async move {
        let mut kernel = HostileKernel::start(start).await;
        kernel.assert_works().await;
        let pid = kernel.jupyter.description().pid.unwrap();
        let deadline = StopSignal::never().with_timeout(Duration::from_millis(500));
        let report = within_timeout(Box::new(kernel.jupyter).shutdown(deadline)).await;
        assert_eq!(report.graceful, graceful, "{start}");
        assert!(!is_running(pid));
    })
    .await;
}

/// Drops the future of a running cell.
async fn abandon_cell(kernel: &mut HostileKernel, script: &str) {
    let (request, stop) = (Request::new(script), StopSignal::never());
    let cell = run_request(&mut kernel.jupyter, &request, &stop);
    let ended = tokio::time::timeout(Duration::from_millis(150), cell).await;
    assert!(ended.is_err());
}

#[tokio::test]
async fn an_abandoned_cell_does_not_affect_the_next() {
    let mut kernel = HostileKernel::start("").await;
    for script in [
        // The cell ends by itself.
        "begin(); out('a'); time.sleep(0.3); out('b'); end()",
        // The cell does not end by itself.
        "begin(); time.sleep(60)",
        "begin(); time.sleep(0.3); request_input('?'); answers.get()",
        "begin(); time.sleep(0.3); request_input('?', parent_header={}); answers.get()",
    ] {
        abandon_cell(&mut kernel, script).await;
        kernel.assert_works().await;
    }
    kernel.assert_shuts_down().await;
    // The cell cannot be interrupted.
    let mut kernel = HostileKernel::start("signal.signal(signal.SIGINT, signal.SIG_IGN)").await;
    abandon_cell(&mut kernel, "begin(); time.sleep(60)").await;
    assert_eq!(kernel.run(GOOD_CELL).await, "died unbegun");
    kernel.assert_over().await;
    // The next cell is stopped while it waits.
    let mut kernel = HostileKernel::start("signal.signal(signal.SIGINT, signal.SIG_IGN)").await;
    abandon_cell(&mut kernel, "begin(); time.sleep(60)").await;
    assert_eq!(
        kernel.run_and_stop(GOOD_CELL, 100).await,
        "stopped before the code had begun"
    );
    kernel.assert_shuts_down().await;
}

#[tokio::test]
async fn a_failed_context_is_applied_again() {
    let start = "INFO['language_info']['name'] = 'python'; SILENT = []\ndef on_silent(code):\n    SILENT.append(code)\n    end({'status': 'error', 'ename': 'E', 'evalue': 'why'})";
    let mut kernel = HostileKernel::start(start).await;
    let mut request = Request::new("begin(); out(str(len(SILENT))); end()");
    request.env = vec![("A".to_owned(), Some("1".to_owned()))];
    let stop = StopSignal::never();
    let summary = kernel.run_request(&request, &stop).await;
    assert_eq!(summary, "out:\"2\" | done | setup_failed | setup_failed");
    let summary = kernel.run_request(&request, &stop).await;
    assert_eq!(summary, "out:\"3\" | done | setup_failed");
    // A cell does not run in another working directory.
    request.cwd = Some("/".into());
    let summary = kernel.run_request(&request, &stop).await;
    assert_eq!(summary, "the kernel could not answer: why");
    let summary = kernel.run_request(&request, &stop).await;
    assert_eq!(summary, "the kernel could not answer: why");
    request.cwd = None;
    let summary = kernel.run_request(&request, &stop).await;
    assert_eq!(summary, "out:\"6\" | done | setup_failed");
    kernel.assert_shuts_down().await;
}
