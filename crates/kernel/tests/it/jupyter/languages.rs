//! The part of the kernel contract that applies to every language, on third-party kernels.

use std::time::{Duration, Instant};

use cellwright_kernel::backend::jupyter::{Jupyter, Transport};
use cellwright_kernel::{
    Begun, Ending, Kernel, KernelError, KernelQuery, KernelState, Outcome, Request, Retry, Stdin,
    StopReason, StopSignal, TimeLimit,
};
use serde_json::Value;
use tokio::time::timeout;

use super::KernelSandbox;
use super::language_snippets::{Language, UNICODE};
use crate::support::{RecordedEvent, RecordingSink, eventually, is_running, run_code, run_request};

macro_rules! contract {
    ($($name:ident),* $(,)?) => {
        contract!(@on bash $($name)*);
        contract!(@on deno $($name)*);
        contract!(@on r $($name)*);
    };
    (@on $language:ident $($name:ident)*) => {
        mod $language {
            $(
                #[tokio::test]
                async fn $name() {
                    for language in super::super::language_snippets::$language() {
                        super::$name(super::LanguageFixture::new(language).await).await;
                    }
                }
            )*
        }
    };
}

contract![
    cells_run_and_print,
    an_interrupt_preserves_the_state_or_reports_its_loss,
    a_cell_that_ignores_interrupts_loses_the_kernel,
    a_death_is_reported_and_the_next_cell_is_rejected,
    megabytes_arrive_completely,
    queries_are_answered_as_far_as_the_kernel_supports_them,
    input_works_where_the_kernel_supports_it,
    shutdown_leaves_no_process_or_files,
];

/// A kernel for one language.
struct LanguageFixture {
    language: Language,
    kernel: Jupyter,
    sandbox: KernelSandbox,
}

impl LanguageFixture {
    async fn new(language: Language) -> Self {
        let sandbox = KernelSandbox::new();
        let mut spec = sandbox.spec(language.kernelspec.clone());
        spec.env.push(("PROBE".into(), "é 1".into()));
        // Deno does not support Unix sockets.
        if language.name == "typescript" {
            spec.transport = Transport::Tcp;
        }
        let kernel = Jupyter::start(&spec, &sandbox.context(), &StopSignal::never())
            .await
            .unwrap();
        assert_eq!(
            kernel.description().language.as_deref(),
            Some(language.name)
        );
        Self {
            language,
            kernel,
            sandbox,
        }
    }

    /// Runs code and checks its output.
    async fn assert_prints(&mut self, code: &str, expected: &str) {
        let (recorded, outcome) = run_code(&mut self.kernel, code).await;
        let ending = outcome.unwrap().ending;
        assert_eq!(ending, Ending::Completed, "{code}: {}", recorded.summary());
        let mut printed = recorded.stdout();
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.language.idle_before_output
            && printed.len() < expected.len()
            && Instant::now() < deadline
        {
            let wait = Duration::from_millis(20);
            if let Ok(error) = timeout(wait, self.kernel.drain_while_idle()).await {
                panic!("{error}")
            }
            printed.extend(
                self.kernel
                    .take_late_text()
                    .into_iter()
                    .flat_map(|late| late.bytes),
            );
        }
        let same = printed == expected.as_bytes();
        assert!(
            same,
            "{code}: {:?}",
            String::from_utf8_lossy(&printed[..printed.len().min(3000)])
        );
    }

    /// Runs code, and stops it after it has begun.
    async fn run_and_stop(&mut self, code: &str) -> (RecordingSink, Result<Outcome, KernelError>) {
        let (stopper, stop) = StopSignal::new();
        let mark = self.sandbox.path().join("begun");
        let request = Request::new(format!("{}\n{code}", self.language.begin));
        let watch = async {
            assert!(eventually(Duration::from_secs(30), || mark.exists()).await);
            // Stops it in the middle.
            tokio::time::sleep(Duration::from_millis(100)).await;
            stopper.stop(StopReason::Cancelled);
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = run_request(&mut self.kernel, &request, &stop) => result,
            () = watch => unreachable!(),
        };
        std::fs::remove_file(&mark).unwrap();
        result
    }
}

async fn cells_run_and_print(mut fixture: LanguageFixture) {
    let language = fixture.language.clone();
    fixture.assert_prints(language.set, "").await;
    fixture.assert_prints(language.get, "5\n").await;
    let lines: Vec<String> = (0..200).map(|i| format!("line {i}\n")).collect();
    fixture.assert_prints(language.lines, &lines.concat()).await;
    fixture
        .assert_prints(language.unicode, &format!("{UNICODE}\n"))
        .await;
    let dir = fixture.sandbox.path().canonicalize().unwrap();
    let expected = format!("{} é 1\n", dir.display());
    fixture.assert_prints(language.context, &expected).await;
    fixture.assert_prints("", "").await;

    let (recorded, outcome) = run_code(&mut fixture.kernel, language.fail).await;
    let Ending::Raised(traceback) = outcome.unwrap().ending else {
        panic!("{}", recorded.summary())
    };
    assert!(
        recorded
            .events
            .contains(&RecordedEvent::Raised(traceback.clone()))
    );
    let everything = format!("{traceback:?} {}", recorded.summary());
    assert!(everything.contains(language.failure), "{everything}");
    fixture.assert_prints(language.get, "5\n").await;
    let (_, first) = run_code(&mut fixture.kernel, language.get).await;
    let (_, second) = run_code(&mut fixture.kernel, language.get).await;
    assert_eq!(
        second.unwrap().execution_count,
        first.unwrap().execution_count.map(|count| count + 1)
    );
    assert_eq!(fixture.kernel.take_notices(), []);
    if !language.idle_before_output {
        assert_eq!(fixture.kernel.take_late_text(), []);
    }
}

async fn an_interrupt_preserves_the_state_or_reports_its_loss(mut fixture: LanguageFixture) {
    let language = fixture.language.clone();
    fixture.assert_prints(language.set, "").await;
    let state = if language.interrupts {
        KernelState::Preserved
    } else {
        KernelState::Lost
    };
    for code in language.busy {
        let (recorded, outcome) = fixture.run_and_stop(code).await;
        let reason = StopReason::Cancelled;
        let ending = Ending::Stopped { reason, state };
        assert_eq!(
            outcome.unwrap().ending,
            ending,
            "{code}: {}",
            recorded.summary()
        );
        if state == KernelState::Lost {
            fixture = LanguageFixture::new(language.clone()).await;
        } else {
            fixture.assert_prints(language.get, "5\n").await;
        }
    }
    let time = Duration::from_millis(300);
    let stop = StopSignal::never().with_timeout(time);
    let request = Request::new(language.busy[0]);
    let (_, outcome) = run_request(&mut fixture.kernel, &request, &stop).await;
    let reason = StopReason::TimedOut {
        limit: TimeLimit::Cell,
        after: time,
    };
    assert_eq!(outcome.unwrap().ending, Ending::Stopped { reason, state });
    if state == KernelState::Preserved {
        fixture.assert_prints(language.get, "5\n").await;
    }
}

async fn a_cell_that_ignores_interrupts_loses_the_kernel(mut fixture: LanguageFixture) {
    let (recorded, outcome) = fixture
        .run_and_stop(fixture.language.ignores_interrupts)
        .await;
    let lost = Ending::Stopped {
        reason: StopReason::Cancelled,
        state: KernelState::Lost,
    };
    assert_eq!(outcome.unwrap().ending, lost, "{}", recorded.summary());
    assert!(!fixture.kernel.is_alive());
    drop(fixture.kernel);
    fixture.sandbox.assert_empty().await;
}

async fn a_death_is_reported_and_the_next_cell_is_rejected(mut fixture: LanguageFixture) {
    let pid = fixture.kernel.description().pid.unwrap();
    let (_, outcome) = run_code(&mut fixture.kernel, fixture.language.kill).await;
    let error = outcome.unwrap_err();
    let KernelError::Died { exit, begun, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((exit.signal, *begun), (Some(9), Begun::Maybe));
    assert!(!is_running(pid) && !fixture.kernel.is_alive());
    let (_, outcome) = run_code(&mut fixture.kernel, fixture.language.begin).await;
    assert_eq!(outcome.unwrap_err().retry(), Retry::OnceOnFreshKernel);
    assert!(!fixture.sandbox.path().join("begun").exists());
    drop(fixture.kernel);
    fixture.sandbox.assert_empty().await;
}

async fn megabytes_arrive_completely(mut fixture: LanguageFixture) {
    let (code, lines) = fixture.language.much;
    let expected = format!("{}\n", "x".repeat(999)).repeat(lines);
    fixture.assert_prints(code, &expected).await;
}

async fn queries_are_answered_as_far_as_the_kernel_supports_them(mut fixture: LanguageFixture) {
    let language = fixture.language.clone();
    fixture.assert_prints(language.set, "").await;
    let stop = StopSignal::never();
    let mut query = async |query| fixture.kernel.query(&query, &stop).await;
    let code = language.complete.to_owned();
    let cursor = code.chars().count();
    let answer = query(KernelQuery::Complete { code, cursor }).await.unwrap();
    assert!(answer["matches"].to_string().contains("zebra"), "{answer}");
    assert_eq!(
        answer["start"],
        cursor - language.complete.split(' ').next_back().unwrap().len()
    );
    assert_eq!(answer["end"], cursor);
    let code = language.half.unwrap_or("x").to_owned();
    let status = query(KernelQuery::IsComplete { code }).await.unwrap()["status"].clone();
    let expected = language.half.map_or("unknown", |_| "incomplete");
    assert_eq!(status, expected);
    let (code, word) = language.inspect.unwrap_or(("x", ""));
    let cursor = code.chars().count();
    let inspect = KernelQuery::Inspect {
        code: code.to_owned(),
        cursor,
        include_source: false,
    };
    let answer = query(inspect).await;
    match language.inspect {
        Some(_) => {
            let answer = answer.unwrap();
            assert_eq!(answer["found"], true, "{answer}");
            assert!(answer.to_string().contains(word), "{answer}");
        }
        None => assert_eq!(answer.unwrap()["found"], Value::Bool(false)),
    }
    // Variables need hooks inside the kernel, which exist only for Python.
    let error = query(KernelQuery::Variables { limit: 9 })
        .await
        .unwrap_err();
    assert!(
        matches!(error, KernelError::QueryFailed { .. }),
        "{error:?}"
    );
    let (_, outcome) = run_code(&mut fixture.kernel, language.get).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
}

async fn input_works_where_the_kernel_supports_it(mut fixture: LanguageFixture) {
    let language = fixture.language.clone();
    let Some(code) = language.input else {
        return;
    };
    fixture.assert_prints(language.set, "").await;
    let mut request = Request::new(code);
    request.stdin = Stdin::Answers(["it's me é"].into_iter().collect());
    let (recorded, outcome) =
        run_request(&mut fixture.kernel, &request, &StopSignal::never()).await;
    let ending = outcome.unwrap().ending;
    assert_eq!(ending, Ending::Completed, "{}", recorded.summary());
    let printed = String::from_utf8(recorded.stdout()).unwrap();
    assert!(printed.ends_with("it's me é\n"), "{printed:?}");

    if let Some(printed) = language.unanswered {
        fixture.assert_prints(code, printed).await;
    } else {
        let (recorded, outcome) = run_code(&mut fixture.kernel, code).await;
        assert!(
            recorded
                .events
                .contains(&RecordedEvent::InputRefused("Who? ".into())),
            "{}",
            recorded.summary()
        );
        let Ending::Raised(traceback) = outcome.unwrap().ending else {
            panic!("{}", recorded.summary())
        };
        assert!(traceback.value.contains("Who? "), "{traceback:?}");
    }
    fixture.assert_prints(language.get, "5\n").await;
}

async fn shutdown_leaves_no_process_or_files(mut fixture: LanguageFixture) {
    fixture.assert_prints(fixture.language.set, "").await;
    let deadline = StopSignal::never().with_timeout(Duration::from_secs(2));
    Box::new(fixture.kernel).shutdown(deadline).await;
    assert_eq!(fixture.sandbox.leftovers(), Vec::<String>::new());
}
