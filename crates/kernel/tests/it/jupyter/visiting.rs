//! We use a kernel that somebody else has started, and leave it to them.

use std::time::Duration;

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::backend::jupyter::{Jupyter, JupyterSpec, Source};
use cellwright_kernel::{
    Ending, Kernel, KernelError, Outcome, Question, Request, State, Stdin, Stop, StopReason,
};
use serde_json::json;

use super::Room;
use super::other::Other;
use crate::support::{Heard, Told, eventually, python, run, run_until, runs};

/// A kernel of Jupyter's own client.
struct Visit {
    room: Room,
    other: Other,
    spec: JupyterSpec,
    pid: u32,
}

impl Visit {
    fn new(transport: &str) -> Self {
        let room = Room::new();
        std::fs::create_dir(room.runtime()).unwrap();
        let mut other = Other::new(&room.runtime());
        let started = other.ask(&json!({"do": "start", "transport": transport}));
        let mut spec = room.spec(Kernelspec::ipykernel(&python()));
        spec.source = Source::Existing {
            connection_file: started["file"].as_str().unwrap().into(),
        };
        let pid = started["pid"].as_u64().unwrap();
        let pid = u32::try_from(pid).unwrap();
        Self {
            room,
            other,
            spec,
            pid,
        }
    }

    async fn enter(&self) -> Jupyter {
        Jupyter::start(&self.spec, &Stop::never()).await.unwrap()
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

async fn leave(kernel: Jupyter) {
    let patience = Stop::never().with_timeout(Duration::from_secs(1));
    let farewell = Box::new(kernel).shutdown(patience).await;
    assert!(farewell.in_peace && farewell.exit.is_none());
}

/// Runs code until the file `begun` is there, then stops it.
async fn stopped(kernel: &mut Jupyter, visit: &Visit, code: &str) -> (Heard, Outcome) {
    let (stopper, stop) = Stop::new();
    let mark = visit.room.runtime().join("begun");
    let request = Request::new(format!("open('{}', 'w').close()\n{code}", mark.display()));
    let watch = async {
        assert!(eventually(Duration::from_secs(20), || mark.exists()).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
        stopper.stop(StopReason::Cancelled);
        std::future::pending::<()>().await;
    };
    let (heard, outcome) = tokio::select! {
        result = run_until(kernel, &request, &stop) => result,
        () = watch => unreachable!(),
    };
    std::fs::remove_file(&mark).unwrap();
    (heard, outcome.unwrap())
}

#[tokio::test]
async fn we_work_on_a_kernel_of_others_over_tcp_and_leave_it() {
    visit("tcp").await;
}

#[tokio::test]
async fn we_work_on_a_kernel_of_others_over_ipc_and_leave_it() {
    visit("ipc").await;
}

async fn visit(transport: &str) {
    let mut visit = Visit::new(transport);
    visit.other.run("theirs = 41");
    let before = visit.other.run("print(sorted(globals()))");
    let mut kernel = visit.enter().await;
    let (heard, _) = run(&mut kernel, "print('é'); theirs + 1").await;
    assert_eq!(heard.line(), "out:\"é\\n\" =[42]");
    let (_, outcome) = run(&mut kernel, "1 / 0").await;
    assert!(matches!(outcome.unwrap().ending, Ending::Raised(_)));

    let (_, outcome) = stopped(&mut kernel, &visit, "import time; time.sleep(60)").await;
    let kept = Ending::Stopped {
        reason: StopReason::Cancelled,
        state: State::Kept,
    };
    assert_eq!(outcome.ending, kept);

    let mut request = Request::new("ours = input('Who? ')");
    request.stdin = Stdin::Answers(["we"].into_iter().collect());
    let (_, outcome) = run_until(&mut kernel, &request, &Stop::never()).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    let (heard, outcome) = run(&mut kernel, "input('And? ')").await;
    assert!(matches!(outcome.unwrap().ending, Ending::Raised(_)));
    assert!(heard.events.contains(&Told::Refused("And? ".into())));
    let question = Question::Variables { limit: 50 };
    let answer = kernel.ask(&question, &Stop::never()).await.unwrap();
    assert!(answer.to_string().contains("\"ours\""), "{answer}");

    leave(kernel).await;
    assert!(runs(visit.pid));
    let said = visit.other.run("print(theirs, ours)");
    assert_eq!(said, ("ok".to_owned(), "41 we\n".to_owned()));
    // Nothing else is there that was not there before us.
    visit.other.run("del ours, time");
    let after = visit
        .other
        .run("print(sorted(n for n in globals() if not n.startswith('_')))");
    let names = |(_, said): &(String, String)| -> Vec<String> {
        let names = said.trim().trim_matches(['[', ']']).split(", ");
        names
            .filter(|name| !name.starts_with("'_"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(names(&after), names(&before));

    // Who comes again finds it as it was left.
    let mut kernel = visit.enter().await;
    let (heard, _) = run(&mut kernel, "theirs").await;
    assert_eq!(heard.line(), "=[41]");
    let dying = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        visit.signal(rustix::process::Signal::KILL);
    };
    let ((_, outcome), ()) = tokio::join!(run(&mut kernel, "import time; time.sleep(60)"), dying);
    let error = outcome.unwrap_err();
    assert!(matches!(error, KernelError::Died { .. }), "{error:?}");
    assert!(!kernel.is_alive());
    let (_, outcome) = run(&mut kernel, "1").await;
    assert!(matches!(outcome.unwrap_err(), KernelError::Died { .. }));
}

#[tokio::test]
async fn a_kernel_of_others_whose_heart_stops_is_told() {
    let visit = Visit::new("tcp");
    let mut kernel = visit.enter().await;
    visit.signal(rustix::process::Signal::STOP);
    let (_, outcome) = run(&mut kernel, "1").await;
    visit.signal(rustix::process::Signal::CONT);
    let error = outcome.unwrap_err();
    let KernelError::Died { exit, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((exit.code, exit.signal), (None, None));
    assert!(!kernel.is_alive());
}

#[tokio::test]
async fn a_kernel_of_others_that_has_gone_is_told() {
    let visit = Visit::new("tcp");
    visit.signal(rustix::process::Signal::KILL);
    let gone = eventually(Duration::from_secs(10), || !runs(visit.pid)).await;
    assert!(gone);
    let Err(error) = Jupyter::start(&visit.spec, &Stop::never()).await else {
        panic!("it is there")
    };
    assert!(
        matches!(error, KernelError::Unreachable { .. }),
        "{error:?}"
    );
}
