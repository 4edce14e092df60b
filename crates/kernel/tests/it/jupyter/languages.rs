//! What of the kernel contract applies to every language, on kernels of other people.

use std::time::{Duration, Instant};

use cellwright_kernel::backend::jupyter::Jupyter;
use cellwright_kernel::{
    Begun, Ending, Kernel, KernelError, Outcome, Question, Request, Retry, State, Stdin, Stop,
    StopReason,
};
use serde_json::Value;
use tokio::time::timeout;

use super::Room;
use super::snippets::{Language, UNICODE};
use crate::support::{Heard, Told, eventually, run, run_until, runs};

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
                    // Every language that there is here.
                    for language in super::super::snippets::$language() {
                        super::$name(super::Place::new(language).await).await;
                    }
                }
            )*
        }
    };
}

contract![
    cells_do_what_they_say,
    an_interrupt_keeps_the_state_or_is_told_to_lose_it,
    a_deaf_cell_loses_the_kernel,
    death_is_told_and_the_next_cell_is_refused,
    megabytes_arrive_whole,
    questions_are_answered_as_far_as_the_kernel_can,
    code_can_ask_where_the_kernel_lets_it,
    shutdown_leaves_nothing,
];

/// A kernel that runs some language.
struct Place {
    language: Language,
    kernel: Jupyter,
    room: Room,
}

impl Place {
    async fn new(language: Language) -> Self {
        let room = Room::new();
        let mut spec = room.spec(language.kernelspec.clone());
        spec.env.push(("PROBE".into(), "é 1".into()));
        let kernel = Jupyter::start(&spec, &Stop::never()).await.unwrap();
        assert_eq!(
            kernel.description().language.as_deref(),
            Some(language.name)
        );
        Self {
            language,
            kernel,
            room,
        }
    }

    /// Runs code that must print just this.
    async fn says(&mut self, code: &str, expected: &str) {
        let (heard, outcome) = run(&mut self.kernel, code).await;
        let ending = outcome.unwrap().ending;
        assert_eq!(ending, Ending::Completed, "{code}: {}", heard.line());
        let mut said = heard.out();
        let until = Instant::now() + Duration::from_secs(20);
        while self.language.hasty && said.len() < expected.len() && Instant::now() < until {
            let moment = Duration::from_millis(20);
            if let Ok(error) = timeout(moment, self.kernel.attend()).await {
                panic!("{error}")
            }
            said.extend(
                self.kernel
                    .take_late()
                    .into_iter()
                    .flat_map(|late| late.bytes),
            );
        }
        let same = said == expected.as_bytes();
        assert!(
            same,
            "{code}: {:?}",
            String::from_utf8_lossy(&said[..said.len().min(3000)])
        );
    }

    /// Runs code until it has begun, then stops it.
    async fn stopped(&mut self, code: &str) -> (Heard, Result<Outcome, KernelError>) {
        let (stopper, stop) = Stop::new();
        let mark = self.room.path().join("begun");
        let request = Request::new(format!("{}\n{code}", self.language.begin));
        let watch = async {
            assert!(eventually(Duration::from_secs(30), || mark.exists()).await);
            // Into the middle of it.
            tokio::time::sleep(Duration::from_millis(100)).await;
            stopper.stop(StopReason::Cancelled);
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = run_until(&mut self.kernel, &request, &stop) => result,
            () = watch => unreachable!(),
        };
        std::fs::remove_file(&mark).unwrap();
        result
    }
}

async fn cells_do_what_they_say(mut place: Place) {
    let language = place.language.clone();
    place.says(language.set, "").await;
    place.says(language.get, "5\n").await;
    let lines: Vec<String> = (0..200).map(|i| format!("line {i}\n")).collect();
    place.says(language.lines, &lines.concat()).await;
    place.says(language.unicode, &format!("{UNICODE}\n")).await;
    let folder = place.room.path().canonicalize().unwrap();
    let expected = format!("{} é 1\n", folder.display());
    place.says(language.place, &expected).await;
    place.says("", "").await;

    let (heard, outcome) = run(&mut place.kernel, language.fail).await;
    let Ending::Raised(traceback) = outcome.unwrap().ending else {
        panic!("{}", heard.line())
    };
    assert!(heard.events.contains(&Told::Raised(traceback.clone())));
    let everything = format!("{traceback:?} {}", heard.line());
    assert!(everything.contains(language.failure), "{everything}");
    place.says(language.get, "5\n").await;
    let (_, first) = run(&mut place.kernel, language.get).await;
    let (_, second) = run(&mut place.kernel, language.get).await;
    assert_eq!(
        second.unwrap().count,
        first.unwrap().count.map(|count| count + 1)
    );
    assert_eq!(place.kernel.take_remarks(), []);
    if !language.hasty {
        assert_eq!(place.kernel.take_late(), []);
    }
}

async fn an_interrupt_keeps_the_state_or_is_told_to_lose_it(mut place: Place) {
    let language = place.language.clone();
    place.says(language.set, "").await;
    let state = if language.interrupts {
        State::Kept
    } else {
        State::Lost
    };
    for code in language.busy {
        let (heard, outcome) = place.stopped(code).await;
        let reason = StopReason::Cancelled;
        let ending = Ending::Stopped { reason, state };
        assert_eq!(outcome.unwrap().ending, ending, "{code}: {}", heard.line());
        if state == State::Lost {
            place = Place::new(language.clone()).await;
        } else {
            place.says(language.get, "5\n").await;
        }
    }
    let time = Duration::from_millis(300);
    let stop = Stop::never().with_timeout(time);
    let request = Request::new(language.busy[0]);
    let (_, outcome) = run_until(&mut place.kernel, &request, &stop).await;
    let reason = StopReason::TimedOut(time);
    assert_eq!(outcome.unwrap().ending, Ending::Stopped { reason, state });
    if state == State::Kept {
        place.says(language.get, "5\n").await;
    }
}

async fn a_deaf_cell_loses_the_kernel(mut place: Place) {
    let (heard, outcome) = place.stopped(place.language.deaf).await;
    let lost = Ending::Stopped {
        reason: StopReason::Cancelled,
        state: State::Lost,
    };
    assert_eq!(outcome.unwrap().ending, lost, "{}", heard.line());
    assert!(!place.kernel.is_alive());
    drop(place.kernel);
    place.room.empties().await;
}

async fn death_is_told_and_the_next_cell_is_refused(mut place: Place) {
    let pid = place.kernel.description().pid.unwrap();
    let (_, outcome) = run(&mut place.kernel, place.language.kill).await;
    let error = outcome.unwrap_err();
    let KernelError::Died { exit, begun, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((exit.signal, *begun), (Some(9), Begun::Maybe));
    assert!(!runs(pid) && !place.kernel.is_alive());
    let (_, outcome) = run(&mut place.kernel, place.language.begin).await;
    assert_eq!(outcome.unwrap_err().retry(), Retry::OnceOnAFreshKernel);
    assert!(!place.room.path().join("begun").exists());
    drop(place.kernel);
    place.room.empties().await;
}

async fn megabytes_arrive_whole(mut place: Place) {
    let (code, lines) = place.language.much;
    let expected = format!("{}\n", "x".repeat(999)).repeat(lines);
    place.says(code, &expected).await;
}

async fn questions_are_answered_as_far_as_the_kernel_can(mut place: Place) {
    let language = place.language.clone();
    place.says(language.set, "").await;
    let stop = Stop::never();
    let mut ask = async |question| place.kernel.ask(&question, &stop).await;
    let code = language.complete.to_owned();
    let cursor = code.chars().count();
    let answer = ask(Question::Complete { code, cursor }).await.unwrap();
    assert!(answer["matches"].to_string().contains("zebra"), "{answer}");
    assert_eq!(
        answer["start"],
        cursor - language.complete.split(' ').next_back().unwrap().len()
    );
    assert_eq!(answer["end"], cursor);
    let code = language.half.unwrap_or("x").to_owned();
    let status = ask(Question::IsComplete { code }).await.unwrap()["status"].clone();
    let expected = language.half.map_or("unknown", |_| "incomplete");
    assert_eq!(status, expected);
    let (code, word) = language.inspect.unwrap_or(("x", ""));
    let cursor = code.chars().count();
    let inspect = Question::Inspect {
        code: code.to_owned(),
        cursor,
        source: false,
    };
    let answer = ask(inspect).await;
    match language.inspect {
        Some(_) => {
            let answer = answer.unwrap();
            assert_eq!(answer["found"], true, "{answer}");
            assert!(answer.to_string().contains(word), "{answer}");
        }
        None => assert_eq!(answer.unwrap()["found"], Value::Bool(false)),
    }
    // What only code of ours inside could tell.
    let error = ask(Question::Variables { limit: 9 }).await.unwrap_err();
    assert!(matches!(error, KernelError::NoAnswer { .. }), "{error:?}");
    let (_, outcome) = run(&mut place.kernel, language.get).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
}

async fn code_can_ask_where_the_kernel_lets_it(mut place: Place) {
    let language = place.language.clone();
    let Some(code) = language.ask else {
        return;
    };
    place.says(language.set, "").await;
    let mut request = Request::new(code);
    request.stdin = Stdin::Answers(["it's me é"].into_iter().collect());
    let (heard, outcome) = run_until(&mut place.kernel, &request, &Stop::never()).await;
    let ending = outcome.unwrap().ending;
    assert_eq!(ending, Ending::Completed, "{}", heard.line());
    let said = String::from_utf8(heard.out()).unwrap();
    assert!(said.ends_with("it's me é\n"), "{said:?}");

    if let Some(said) = language.unanswered {
        place.says(code, said).await;
    } else {
        let (heard, outcome) = run(&mut place.kernel, code).await;
        assert!(
            heard.events.contains(&Told::Refused("Who? ".into())),
            "{}",
            heard.line()
        );
        let Ending::Raised(traceback) = outcome.unwrap().ending else {
            panic!("{}", heard.line())
        };
        assert!(traceback.value.contains("Who? "), "{traceback:?}");
    }
    place.says(language.get, "5\n").await;
}

async fn shutdown_leaves_nothing(mut place: Place) {
    place.says(place.language.set, "").await;
    let patience = Stop::never().with_timeout(Duration::from_secs(2));
    Box::new(place.kernel).shutdown(patience).await;
    assert_eq!(place.room.left(), Vec::<String>::new());
}
