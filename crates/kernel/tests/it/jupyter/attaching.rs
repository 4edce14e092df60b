//! Attaching to a kernel that another client has started, and detaching from it.

use std::time::Duration;

use cellwright_kernel::backend::jupyter::{AttachedSpec, Jupyter};
use cellwright_kernel::{
    Ending, Kernel, KernelError, KernelQuery, KernelState, Outcome, Request, Stdin, StopReason,
    StopSignal,
};
use serde_json::json;

use super::KernelSandbox;
use super::jupyter_client::JupyterClient;
use crate::support::{RecordingSink, eventually, is_running, run_code, run_request};

/// A kernel that Jupyter's own client has started.
struct ExternalKernel {
    sandbox: KernelSandbox,
    client: JupyterClient,
    spec: AttachedSpec,
    pid: u32,
}

impl ExternalKernel {
    fn new(transport: &str) -> Self {
        let sandbox = KernelSandbox::new();
        std::fs::create_dir(sandbox.runtime()).unwrap();
        let mut client = JupyterClient::new(&sandbox.runtime());
        let started = client.command(&json!({"do": "start", "transport": transport}));
        let spec = AttachedSpec {
            connection_file: started["file"].as_str().unwrap().into(),
            start_timeout: Duration::from_mins(1),
            interrupt_grace: Duration::from_secs(2),
        };
        let pid = started["pid"].as_u64().unwrap();
        let pid = u32::try_from(pid).unwrap();
        Self {
            sandbox,
            client,
            spec,
            pid,
        }
    }

    async fn attach(&self) -> Jupyter {
        self.try_attach().await.unwrap()
    }

    async fn try_attach(&self) -> Result<Jupyter, KernelError> {
        Jupyter::attach(&self.spec, &self.sandbox.context(), &StopSignal::never()).await
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

async fn detach(kernel: Jupyter) {
    let deadline = StopSignal::never().with_timeout(Duration::from_secs(1));
    let report = Box::new(kernel).shutdown(deadline).await;
    assert!(report.graceful && report.exit.is_none());
}

/// Runs code until the file `begun` is there, then stops it.
async fn stopped(
    kernel: &mut Jupyter,
    external: &ExternalKernel,
    code: &str,
) -> (RecordingSink, Outcome) {
    let (stopper, stop) = StopSignal::new();
    let mark = external.sandbox.runtime().join("begun");
    let request = Request::new(format!("open('{}', 'w').close()\n{code}", mark.display()));
    let watch = async {
        assert!(eventually(Duration::from_secs(20), || mark.exists()).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
        stopper.stop(StopReason::Cancelled);
        std::future::pending::<()>().await;
    };
    let (recorded, outcome) = tokio::select! {
        result = run_request(kernel, &request, &stop) => result,
        () = watch => unreachable!(),
    };
    std::fs::remove_file(&mark).unwrap();
    (recorded, outcome.unwrap())
}

#[tokio::test]
async fn attaching_over_tcp_leaves_the_kernel_unchanged() {
    attach_work_and_detach("tcp").await;
}

#[tokio::test]
async fn attaching_over_ipc_leaves_the_kernel_unchanged() {
    attach_work_and_detach("ipc").await;
}

async fn attach_work_and_detach(transport: &str) {
    let mut external = ExternalKernel::new(transport);
    external.client.run("theirs = 41");
    let before = external.client.run("print(sorted(globals()))");
    let mut kernel = external.attach().await;
    let (recorded, _) = run_code(&mut kernel, "print('é'); theirs + 1").await;
    assert_eq!(recorded.summary(), "out:\"é\\n\" =[42]");
    let (_, outcome) = run_code(&mut kernel, "1 / 0").await;
    assert!(matches!(outcome.unwrap().ending, Ending::Raised(_)));

    let (_, outcome) = stopped(&mut kernel, &external, "import time; time.sleep(60)").await;
    let kept = Ending::Stopped {
        reason: StopReason::Cancelled,
        state: KernelState::Preserved,
    };
    assert_eq!(outcome.ending, kept);

    let mut request = Request::new("ours = input('Who? ')");
    request.stdin = Stdin::Answers(["we"].into_iter().collect());
    let (_, outcome) = run_request(&mut kernel, &request, &StopSignal::never()).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    let (_, outcome) = run_code(&mut kernel, "input('And? ')").await;
    let ending = outcome.unwrap().ending;
    assert!(
        matches!(&ending, Ending::Raised(error) if error.name == "StdinNotImplementedError"),
        "{ending:?}"
    );
    let query = KernelQuery::Variables { limit: 50 };
    let answer = kernel.query(&query, &StopSignal::never()).await.unwrap();
    assert!(answer.to_string().contains("\"ours\""), "{answer}");

    detach(kernel).await;
    assert!(is_running(external.pid));
    let result = external.client.run("print(theirs, ours)");
    assert_eq!(result, ("ok".to_owned(), "41 we\n".to_owned()));
    // No other names are left in the kernel.
    external.client.run("del ours, time");
    let after = external
        .client
        .run("print(sorted(n for n in globals() if not n.startswith('_')))");
    let names = |(_, output): &(String, String)| -> Vec<String> {
        let names = output.trim().trim_matches(['[', ']']).split(", ");
        names
            .filter(|name| !name.starts_with("'_"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(names(&after), names(&before));

    // A second attachment finds the same state.
    let mut kernel = external.attach().await;
    let (recorded, _) = run_code(&mut kernel, "theirs").await;
    assert_eq!(recorded.summary(), "=[41]");
    let kill = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        external.signal(rustix::process::Signal::KILL);
    };
    let ((_, outcome), ()) =
        tokio::join!(run_code(&mut kernel, "import time; time.sleep(60)"), kill);
    let error = outcome.unwrap_err();
    assert!(matches!(error, KernelError::Died { .. }), "{error:?}");
    assert!(!kernel.is_alive());
    let (_, outcome) = run_code(&mut kernel, "1").await;
    assert!(matches!(outcome.unwrap_err(), KernelError::Died { .. }));
}

#[tokio::test]
async fn a_stopped_heartbeat_is_reported_as_death() {
    let external = ExternalKernel::new("tcp");
    let mut kernel = external.attach().await;
    external.signal(rustix::process::Signal::STOP);
    let (_, outcome) = run_code(&mut kernel, "1").await;
    external.signal(rustix::process::Signal::CONT);
    let error = outcome.unwrap_err();
    let KernelError::Died { exit, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((exit.code, exit.signal), (None, None));
    assert!(!kernel.is_alive());
}

#[tokio::test]
async fn attaching_to_a_dead_kernel_fails() {
    let external = ExternalKernel::new("tcp");
    external.signal(rustix::process::Signal::KILL);
    let gone = eventually(Duration::from_secs(10), || !is_running(external.pid)).await;
    assert!(gone);
    let Err(error) = external.try_attach().await else {
        panic!("the kernel is reachable")
    };
    assert!(
        matches!(error, KernelError::Unreachable { .. }),
        "{error:?}"
    );
}
