//! [`Cellwright`]: the entry for Rust programs. It finds the interpreter and the kernel, runs cells, calls an observer
//! while they run, and returns a report with the outputs.
//!
//! `docs/guide/rust.md` shows a complete program.

use std::path::Path;

use cellwright_diagnostics::failure::Kind;
use cellwright_engine::kernels::{resolve_interpreter, working_directory};
use cellwright_engine::program::{is_supervised, run_supervisor};
use cellwright_engine::startup::StartupTimer;
use cellwright_host::protocol::{ExecuteParams, WaitMode};
use cellwright_host::run_stream::{RunStream, RunUpdate};

pub use cellwright_diagnostics::failure::Failure;
pub use cellwright_diagnostics::notice::UserNotice;
pub use cellwright_engine::engine::Engine;
pub use cellwright_engine::kernels::KernelRequest;
pub use cellwright_engine::settings::Backend;
pub use cellwright_execution::feed::{DisplayItem, FeedItem};
pub use cellwright_execution::parameters::Parameter;
pub use cellwright_execution::{
    CellDetails, CellEvent, CellOutputs, CellReport, CellSelection, Edit, ExecutionReport,
    ExecutionStatus, FilePath,
};
pub use cellwright_host::kernel_host::KernelHost;
pub use cellwright_kernel::python::Interpreter;
pub use cellwright_kernel::{StopHandle, StopReason, StopSignal};
pub use cellwright_stdext::Directory;

pub use crate::eval::{EvalCell, EvalRequest, SessionRequest};
pub use crate::kernel_specs::KernelSpecEntry;
pub use crate::parameters::ParameterSet;
pub use crate::run::RunRequest;
use crate::{eval, kernel_specs, run};

/// Makes this program the supervisor of its kernels. Call it first in `main`, before the program has a second thread, and
/// return from `main` if it returns `true`: the process was a supervisor and has finished its work.
///
/// A kernel has a supervisor process that ends it, with all processes that it started, when the program ends in any way.
/// The supervisor is the same program with another first argument.
#[must_use]
pub fn run_as_supervisor() -> bool {
    run_supervisor().is_some()
}

/// Runs notebooks and code on kernels that end with this program. The sessions that requests name belong to it.
#[derive(Clone)]
pub struct Cellwright {
    engine: Engine,
    host: KernelHost,
}

impl Cellwright {
    /// Uses the settings, environment variables and directories of the user, as the command line does. Must be called
    /// within a tokio runtime, after [`run_as_supervisor`].
    pub fn new() -> Result<Self, Failure> {
        Self::with_engine(Engine::from_env(|verb, _, _| {
            Err(format!("`tool.{verb}` is not available in this program"))
        }))
    }

    /// Uses the directories and stores of `engine`.
    pub fn with_engine(engine: Engine) -> Result<Self, Failure> {
        if !is_supervised() {
            let message =
                "This program has not called `cellwright_operations::api::run_as_supervisor`";
            return Err(Failure::new(Kind::BadArguments, message).hint(
                "call it first in `main`: the program is also the supervisor of its kernels",
            ));
        }
        let host = KernelHost::in_process(engine.clone())?;
        Ok(Self { engine, host })
    }

    /// Finds the interpreter for code in `cwd`, or in the current directory.
    pub async fn find_interpreter(&self, cwd: Option<&Path>) -> Result<Interpreter, Failure> {
        let (engine, cwd) = (self.engine.clone(), cwd.map(Path::to_owned));
        block(move || {
            let cwd = working_directory(cwd.as_deref())?;
            let settings = engine.settings(&cwd)?;
            resolve_interpreter(&engine, &settings, None, &cwd)
        })
        .await
    }

    /// Lists the kernels that can be started in `cwd`, or in the current directory, the built-in runner first.
    pub async fn list_kernels(&self, cwd: Option<&Path>) -> Result<Vec<KernelSpecEntry>, Failure> {
        let (engine, cwd) = (self.engine.clone(), cwd.map(Path::to_owned));
        let listed = move || kernel_specs::list_kernel_specs(cwd.as_deref(), None, &engine);
        Ok(block(listed).await?.specs)
    }

    /// Runs the cells of a notebook and saves their outputs. `observe` receives each item while the cells run. `stop`
    /// ends the run early, as does dropping the future; the outputs up to then are in the file.
    ///
    /// Returns a failure if no cell was started. The report contains the failure of a cell.
    pub async fn run_notebook(
        &self,
        request: RunRequest,
        stop: &StopSignal,
        observe: impl FnMut(FeedItem),
    ) -> Result<ExecutionReport, Failure> {
        let api = self.clone();
        match block(move || api.prepare_notebook(request)).await? {
            PreparedNotebook::Finished(report) => Ok(*report),
            PreparedNotebook::Ready { params, notices } => {
                self.execute(*params, notices, stop, observe).await
            }
        }
    }

    fn prepare_notebook(&self, request: RunRequest) -> Result<PreparedNotebook, Failure> {
        let engine = &self.engine;
        let mut prepared = run::prepare(request, engine, &self.host, &mut StartupTimer::new())?;
        let Some(chosen) = prepared.chosen.take() else {
            let mut report = prepared.finish_without_cells(engine)?;
            report.notices.splice(0..0, prepared.notices);
            return Ok(PreparedNotebook::Finished(Box::new(report)));
        };
        let params = prepared.host_request(chosen, engine, STREAM)?;
        Ok(PreparedNotebook::Ready {
            params: Box::new(params),
            notices: prepared.notices,
        })
    }

    /// Runs code, as [`run_notebook`](Self::run_notebook) runs the cells of a notebook.
    pub async fn run_code(
        &self,
        request: EvalRequest,
        stop: &StopSignal,
        observe: impl FnMut(FeedItem),
    ) -> Result<ExecutionReport, Failure> {
        let engine = self.engine.clone();
        let (params, _, notices) = block(move || {
            let prepared = eval::prepare(request, &engine, &mut StartupTimer::new())?;
            prepared.into_host_request(&engine, STREAM)
        })
        .await?;
        self.execute(params, notices, stop, observe).await
    }

    async fn execute(
        &self,
        params: ExecuteParams,
        notices: Vec<UserNotice>,
        stop: &StopSignal,
        mut observe: impl FnMut(FeedItem),
    ) -> Result<ExecutionReport, Failure> {
        let mut stream = RunStream::execute(&self.host, params, None).await?;
        loop {
            match stream.next(stop, None).await? {
                RunUpdate::Item(item) => observe(item),
                // The request has all answers.
                RunUpdate::InputRequested(_) => stream.send_input(None).await?,
                RunUpdate::Finished(mut report) => {
                    report.notices.splice(0..0, notices);
                    return match report.start_failure() {
                        Some(failure) => Err(failure.clone()),
                        None => Ok(*report),
                    };
                }
                // The report repeats the notices; the others are for callers with another wait mode.
                RunUpdate::Notices(_)
                | RunUpdate::StillRunning(_)
                | RunUpdate::Tail(_)
                | RunUpdate::Tick => {}
            }
        }
    }

    /// Ends the kernels of all sessions. They also end with the program.
    pub async fn shut_down(&self) {
        self.host.shut_down().await;
    }
}

/// The caller waits for the end and receives the output until then.
const STREAM: WaitMode = WaitMode::Stream {
    wait: None,
    outputs: true,
};

/// Runs an operation that reads files or waits for processes.
async fn block<T: Send + 'static>(
    operation: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let result = tokio::task::spawn_blocking(operation).await;
    result.map_err(std::io::Error::from)?
}

/// A notebook after its preparation.
enum PreparedNotebook {
    /// No cell is to run.
    Finished(Box<ExecutionReport>),
    Ready {
        params: Box<ExecuteParams>,
        notices: Vec<UserNotice>,
    },
}

/// The program of the guide is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
struct GuidePage;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_supervisor_is_rejected() {
        let failure = Cellwright::new().err().unwrap();
        assert!(failure.message.contains("run_as_supervisor"), "{failure}");
    }
}
