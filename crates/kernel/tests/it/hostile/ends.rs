//! Cells that do not end as they should, and kernels that end.

use std::time::Duration;

use cellwright_kernel::{Kernel as _, KernelError, Request, Stop};

use super::{FINE, Odd, bounded, together};
use crate::support::{eventually, run, run_until, runs};

/// What is left of a kernel after a cell.
#[derive(Clone, Copy)]
enum Then {
    /// It runs the next.
    Works,
    /// Nothing that is of use.
    Over,
    /// Something that is not looked at.
    Goes,
}

/// A cell on a kernel of its own.
struct Case {
    start: &'static str,
    script: &'static str,
    /// When it is stopped.
    stopped: Option<u64>,
    told: &'static str,
    then: Then,
}

const CASE: Case = Case {
    start: "",
    script: "",
    stopped: None,
    told: "",
    then: Then::Over,
};

impl Case {
    async fn play(self, messaged: bool) {
        let mut odd = if messaged {
            Odd::messaged(self.start).await
        } else {
            Odd::start(self.start).await
        };
        let told = match self.stopped {
            None => odd.told(self.script).await,
            Some(millis) => odd.stopped(self.script, millis).await,
        };
        assert_eq!(told, self.told, "{}", self.script);
        match self.then {
            Then::Works => {
                odd.works().await;
                odd.goes().await;
            }
            Then::Over => odd.over().await,
            Then::Goes => odd.goes().await,
        }
    }
}

#[tokio::test]
async fn a_cell_ends_in_time_although_a_word_is_missing() {
    let cases = [
        Case {
            script: "begin(); out('a'); reply()",
            told: "out:\"a\" | done | output_incomplete",
            then: Then::Works,
            ..CASE
        },
        Case {
            script: "begin(); out('a'); reply(); status('idle', key=b'guess')",
            told: "out:\"a\" | done | output_incomplete | messages_refused",
            then: Then::Works,
            ..CASE
        },
        // What others say is nothing to this cell, also if it is much.
        Case {
            script: "begin(); out('a'); reply()\nfor _ in range(40): time.sleep(0.1); out('no', cause={'msg_id': 'x'}); send('shell', 'kernel_info_reply', {}, cause={})",
            told: "out:\"a\" | done | output_incomplete",
            then: Then::Works,
            ..CASE
        },
        Case {
            script: "begin(); out('a'); reply(); junk = bundle(message('iopub', 'stream', {}, key=b'guess')) * 1000\nwhile True: raw('iopub', junk)",
            told: "out:\"a\" | done | output_incomplete | messages_refused",
            then: Then::Goes,
            ..CASE
        },
        Case {
            script: "begin(); out('a'); status('idle')",
            told: "out:\"a\" !NoReply | raised \"NoReply\" \"the kernel did not say how the cell ended\"",
            then: Then::Works,
            ..CASE
        },
        Case {
            script: "begin(); out('a'); reply(key=b'guess'); status('idle')",
            told: "out:\"a\" !NoReply | raised \"NoReply\" \"the kernel did not say how the cell ended\" | messages_refused",
            then: Then::Works,
            ..CASE
        },
        // Nor does it answer anything else.
        Case {
            script: "begin(); out('a'); status('idle'); time.sleep(60)",
            told: "out:\"a\" | the kernel broke the protocol: it was idle again and had not replied",
            ..CASE
        },
    ];
    together(cases, |case| case.play(false)).await;
}

#[tokio::test]
async fn a_kernel_that_hangs_up_is_over() {
    let closed = "out:\"a\" | the kernel broke the protocol: it closed its connection";
    let cases = [
        "begin(); out('a'); drop('iopub'); time.sleep(60)",
        "begin(); out('a'); time.sleep(0.1); drop('shell'); time.sleep(60)",
        "begin(); out('a'); time.sleep(0.1); drop('stdin'); time.sleep(60)",
        "begin(); out('a'); time.sleep(0.1); drop('control'); time.sleep(60)",
        "begin(); out('a'); drop('iopub', 'shell', 'stdin', 'control', 'hb'); time.sleep(60)",
    ];
    let hung_up = cases.map(|script| Case {
        script,
        told: closed,
        ..CASE
    });
    let malformed = [
        (
            "begin(); out('a'); raw('iopub', b'\\xff' * 100); time.sleep(60)",
            "out:\"a\" | the kernel broke the protocol: what came is no frame: its flags are unknown",
        ),
        (
            "begin(); out('a'); raw('iopub', b'\\x02' + b'\\x7f' * 8); time.sleep(60)",
            "out:\"a\" | the kernel broke the protocol: a message of more than 2147483648 bytes was announced",
        ),
        (
            "begin(); out('a'); raw('iopub', b'\\x01\\x00' * 70000); time.sleep(60)",
            "out:\"a\" | the kernel broke the protocol: a message has more than 65536 frames",
        ),
        (
            "begin(); out('a'); raw('iopub', b'\\x02' + bytes(7)); drop('iopub'); time.sleep(60)",
            "out:\"a\" | the kernel broke the protocol: the connection failed: unexpected end of file",
        ),
    ];
    let malformed = malformed.map(|(script, told)| Case {
        script,
        told,
        ..CASE
    });
    together(hung_up.into_iter().chain(malformed), |case| {
        case.play(false)
    })
    .await;
}

#[tokio::test]
async fn a_kernel_that_dies_in_a_cell_is_told_with_what_it_said() {
    let died = [
        "begin(); out('a'); os._exit(0)",
        "begin(); out('a'); os._exit(1)",
        "begin(); out('a'); os.kill(os.getpid(), signal.SIGKILL)",
        // Before the last word.
        "begin(); out('a'); status('idle'); os._exit(0)",
    ];
    let died = died.map(|script| Case {
        script,
        told: "out:\"a\" | died",
        ..CASE
    });
    let done = Case {
        script: "begin(); out('a'); reply(); os._exit(0)",
        told: "out:\"a\" | done",
        ..CASE
    };
    together(died.into_iter().chain([done]), |case| case.play(false)).await;
}

#[tokio::test]
async fn a_kernel_that_died_between_two_cells_has_not_begun_the_second() {
    for script in [
        "begin(); end(); os._exit(1)",
        "begin(); end(); os.kill(os.getpid(), signal.SIGKILL)",
    ] {
        let mut odd = Odd::start("").await;
        let pid = odd.kernel.description().pid.unwrap();
        assert_eq!(odd.told(script).await, "done");
        assert!(eventually(Duration::from_secs(5), || !runs(pid)).await);
        // The supervisor has to say so.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (_, outcome) = bounded(run(&mut odd.kernel, FINE)).await;
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
        odd.over().await;
    }
    // One that has hung up, too.
    let mut odd = Odd::start("").await;
    let script = "begin(); end(); time.sleep(0.1); drop('shell'); time.sleep(60)";
    assert_eq!(odd.told(script).await, "done");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let told = odd.told(FINE).await;
    assert_eq!(
        told,
        "the kernel broke the protocol: it closed its connection"
    );
    odd.over().await;
    // Whoever attends to it hears so at once.
    let mut odd = Odd::start("").await;
    assert_eq!(
        odd.told("begin(); end(); time.sleep(0.1); os._exit(3)")
            .await,
        "done"
    );
    let error = bounded(odd.kernel.attend()).await;
    assert_eq!(error.to_string(), "the kernel died (exit code 3)");
    odd.over().await;
}

#[tokio::test]
async fn interrupts_are_heeded_or_end_the_kernel() {
    const SLEEP: &str = "begin(); out('a'); time.sleep(60)";
    const DEAF: &str = "signal.signal(signal.SIGINT, signal.SIG_IGN)";
    let by_signal = [
        Case {
            script: SLEEP,
            told: "out:\"a\" !KeyboardInterrupt | kept",
            then: Then::Works,
            ..CASE
        },
        Case {
            start: DEAF,
            script: SLEEP,
            told: "out:\"a\" | lost",
            ..CASE
        },
        // Late, but in time.
        Case {
            script: "begin(); out('a')\nfor _ in range(3):\n    try: time.sleep(60)\n    except KeyboardInterrupt: interruptible = True\nend()",
            told: "out:\"a\" | kept",
            then: Then::Works,
            ..CASE
        },
        Case {
            script: "begin(); out('a')\ntry: time.sleep(60)\nexcept KeyboardInterrupt: os._exit(0)",
            told: "out:\"a\" | lost",
            ..CASE
        },
        // It says that it has given up what ran, and what comes next, too.
        Case {
            script: "status('busy')\ntry: time.sleep(60)\nexcept KeyboardInterrupt: end({'status': 'aborted'})",
            told: "kept",
            then: Then::Works,
            ..CASE
        },
        // It is never busy with anything else.
        Case {
            start: DEAF,
            script: "begin(); junk = bundle(message('iopub', 'stream', {'name': 'stdout', 'text': ''})) * 1000\nwhile True: raw('iopub', junk)",
            told: "lost | messages_refused",
            ..CASE
        },
    ];
    let by_message = [
        Case {
            script: SLEEP,
            told: "out:\"a\" !KeyboardInterrupt | kept",
            then: Then::Works,
            ..CASE
        },
        Case {
            start: "def on_interrupt(): pass",
            script: SLEEP,
            told: "out:\"a\" | lost",
            ..CASE
        },
        Case {
            start: "def on_interrupt(): send('control', 'interrupt_reply', {'status': 'error', 'ename': 'E'})",
            script: SLEEP,
            told: "out:\"a\" | lost",
            ..CASE
        },
        Case {
            start: "def on_interrupt(): send('control', 'interrupt_reply', b'junk'); os._exit(2)",
            script: SLEEP,
            told: "out:\"a\" | lost",
            ..CASE
        },
        Case {
            start: "def on_interrupt(): time.sleep(0.4); os.kill(os.getpid(), signal.SIGINT)",
            script: SLEEP,
            told: "out:\"a\" !KeyboardInterrupt | kept",
            then: Then::Works,
            ..CASE
        },
    ];
    let stopped = |case: Case| Case {
        stopped: Some(300),
        ..case
    };
    let by_signal = by_signal.map(|case| (stopped(case), false));
    let by_message = by_message.map(|case| (stopped(case), true));
    together(
        by_signal.into_iter().chain(by_message),
        |(case, messaged)| case.play(messaged),
    )
    .await;
}

#[tokio::test]
async fn a_question_that_nobody_answers_does_not_wait_for_ever() {
    let case = Case {
        start: "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        script: "begin(); ask('?'); answers.get()",
        told: "refused:\"?\" | the kernel broke the protocol: it waits for an answer that nobody has, and cannot be interrupted",
        ..CASE
    };
    case.play(false).await;
}

#[tokio::test]
async fn a_kernel_that_does_not_read_keeps_nobody_waiting() {
    let mut odd = Odd::start("").await;
    assert_eq!(odd.told("begin(); end(); reading.clear()").await, "done");
    let request = Request::new(format!("#{}", "x".repeat(100_000_000)));
    let stop = Stop::never().with_timeout(Duration::from_millis(300));
    assert_eq!(odd.told_until(&request, &stop).await, "lost");
    odd.over().await;
}

#[tokio::test]
async fn a_kernel_that_does_not_want_to_go_goes() {
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
        // It says things to the end, and after.
        (
            "def on_shutdown():\n    junk = bundle(message('iopub', 'stream', {})) * 1000\n    while True: raw('iopub', junk)",
            false,
        ),
    ];
    together(starts, |(start, in_peace)| async move {
        let mut odd = Odd::start(start).await;
        odd.works().await;
        let pid = odd.kernel.description().pid.unwrap();
        let patience = Stop::never().with_timeout(Duration::from_millis(500));
        let farewell = bounded(Box::new(odd.kernel).shutdown(patience)).await;
        assert_eq!(farewell.in_peace, in_peace, "{start}");
        assert!(!runs(pid));
    })
    .await;
}

/// Lets a cell go in the middle.
async fn let_go(odd: &mut Odd, script: &str) {
    let (request, stop) = (Request::new(script), Stop::never());
    let cell = run_until(&mut odd.kernel, &request, &stop);
    let ended = tokio::time::timeout(Duration::from_millis(150), cell).await;
    assert!(ended.is_err());
}

#[tokio::test]
async fn a_cell_that_was_let_go_half_way_does_not_harm_the_next() {
    let mut odd = Odd::start("").await;
    for script in [
        // It ends by itself.
        "begin(); out('a'); time.sleep(0.3); out('b'); end()",
        // It does not.
        "begin(); time.sleep(60)",
        "begin(); time.sleep(0.3); ask('?'); answers.get()",
        "begin(); time.sleep(0.3); ask('?', cause={}); answers.get()",
    ] {
        let_go(&mut odd, script).await;
        odd.works().await;
    }
    odd.goes().await;
    // It cannot be interrupted.
    let mut odd = Odd::start("signal.signal(signal.SIGINT, signal.SIG_IGN)").await;
    let_go(&mut odd, "begin(); time.sleep(60)").await;
    assert_eq!(odd.told(FINE).await, "died unbegun");
    odd.over().await;
    // Nobody waits for the next one, either.
    let mut odd = Odd::start("signal.signal(signal.SIGINT, signal.SIG_IGN)").await;
    let_go(&mut odd, "begin(); time.sleep(60)").await;
    assert_eq!(
        odd.stopped(FINE, 100).await,
        "stopped before the code had begun"
    );
    odd.goes().await;
}

#[tokio::test]
async fn what_could_not_be_set_is_set_again() {
    let start = "INFO['language_info']['name'] = 'python'; ASKED = []\ndef on_silent(code):\n    ASKED.append(code)\n    end({'status': 'error', 'ename': 'E', 'evalue': 'why'})";
    let mut odd = Odd::start(start).await;
    let mut request = Request::new("begin(); out(str(len(ASKED))); end()");
    request.env = vec![("A".to_owned(), Some("1".to_owned()))];
    let stop = Stop::never();
    let told = odd.told_until(&request, &stop).await;
    assert_eq!(told, "out:\"2\" | done | inside_failed | inside_failed");
    let told = odd.told_until(&request, &stop).await;
    assert_eq!(told, "out:\"3\" | done | inside_failed");
    // A cell does not run where it was not meant to.
    request.cwd = Some("/".into());
    let told = odd.told_until(&request, &stop).await;
    assert_eq!(told, "the kernel could not answer: why");
    let told = odd.told_until(&request, &stop).await;
    assert_eq!(told, "the kernel could not answer: why");
    request.cwd = None;
    let told = odd.told_until(&request, &stop).await;
    assert_eq!(told, "out:\"6\" | done | inside_failed");
    odd.goes().await;
}
