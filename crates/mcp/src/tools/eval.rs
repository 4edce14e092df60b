//! `eval`: runs code on a persistent kernel.

use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_engine::environment::EnvironmentRequest;
use cellwright_engine::kernels::KernelRequest;
use cellwright_engine::servers::ServerChoice;
use cellwright_engine::settings::Backend;
use cellwright_engine::startup::StartupTimer;
use cellwright_execution::ExecutionReport;
use cellwright_host::protocol::{ExecuteParams, ReplyDetail, WaitMode};
use cellwright_host::run_stream::RunUpdate;
use cellwright_operations::eval::{self, EvalCell, EvalRequest, SessionRequest};
use rmcp::model::{CallToolResponse, JsonObject};
use serde::Deserialize;

use super::super::arguments::{
    self, ANSWER, Argument, ArgumentKind, BACKEND, BACKGROUND, GATEWAY, KERNEL, PYTHON, SESSION,
    START_TIMEOUT, Seconds, TIMEOUT, WAIT,
};
use super::super::followed_run::FollowedRun;
use super::super::input::{self, ElicitationMode, SuspendedCall};
use super::super::progress::ProgressReporter;
use super::super::server::Server;
use super::super::session_target::SessionTarget;
use super::interpreter::interpreter;
use super::{Effect, ToolCall, ToolSpec, report};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "eval",
    title: "Run code",
    description: "\
Run Python code on the kernel of a Jupyter notebook or another session; variables stay for the next call with the same `session` (default \
`main`; a notebook's path names its kernel). Uses the project's environment (.venv, with its pandas, matplotlib, …) or `python`; `kernel` \
selects another language. Shows the last expression; plots are returned as images. `timeout`: seconds per cell (default 30, 0 none). A \
long call continues as a run. Example: {\"code\": \"df.describe()\", \"session\": \"a.ipynb\"}",
    search_hint: "jupyter python execute code plot figure pandas repl",
    is_main: true,
    arguments: &[
        Argument::new("code", ArgumentKind::Text).or(&["source", "input", "python_code"]),
        Argument::new("cells", ArgumentKind::Objects(CELL_ARGUMENTS))
            .describe("instead of code; the first that fails ends the call"),
        SESSION,
        Argument::new("per_call", ArgumentKind::Boolean)
            .describe("a kernel that ends with the call"),
        KERNEL,
        BACKEND,
        GATEWAY,
        PYTHON,
        START_TIMEOUT,
        Argument::new("cwd", ArgumentKind::Text).or(&["working_directory"]),
        TIMEOUT,
        Argument::new("reset", ArgumentKind::Boolean)
            .or(&["restart"])
            .describe("start with a fresh kernel"),
        ANSWER,
        BACKGROUND,
        WAIT,
    ],
    output_properties: report::OUTPUT_PROPERTIES,
    effect: Effect::RunsCode,
};

/// The members of an item of `cells`.
const CELL_ARGUMENTS: &[Argument] = &[
    Argument::new("code", ArgumentKind::Text)
        .or(&["source"])
        .required(),
    Argument::new("title", ArgumentKind::Text),
    TIMEOUT,
    Argument::new("reset", ArgumentKind::Boolean),
];

/// The session of calls that name none.
const MAIN: &str = "main";

#[derive(Deserialize)]
pub(super) struct Arguments {
    code: Option<String>,
    #[serde(default)]
    cells: Vec<CellArguments>,
    session: Option<String>,
    #[serde(default)]
    per_call: bool,
    kernel: Option<String>,
    backend: Option<String>,
    gateway: Option<String>,
    python: Option<String>,
    start_timeout: Option<Seconds>,
    cwd: Option<String>,
    timeout: Option<Seconds>,
    #[serde(default)]
    reset: bool,
    #[serde(default)]
    answer: Vec<String>,
    #[serde(default)]
    background: bool,
    wait: Option<Seconds>,
}

#[derive(Deserialize)]
pub(super) struct CellArguments {
    code: String,
    title: Option<String>,
    timeout: Option<Seconds>,
    #[serde(default)]
    reset: bool,
}

pub(super) async fn eval(
    call: &ToolCall<'_>,
    given: JsonObject,
) -> Result<CallToolResponse, Failure> {
    let given: Arguments = arguments::parse("eval", SPEC.arguments, given)?;
    let target = match (&given.session, given.per_call) {
        (Some(session), false) => Some(SessionTarget::resolve(call.server, session).await?),
        _ => None,
    };
    let (server, mode) = (
        call.server.clone(),
        ElicitationMode::from_context(call.context),
    );
    let prepared = tokio::task::spawn_blocking(move || prepare(&server, given, target, mode)).await;
    call.execute(prepared.map_err(std::io::Error::other)??)
        .await
}

/// An execution that is ready to start.
pub(super) struct PreparedCall {
    pub(super) params: ExecuteParams,
    pub(super) notices: Vec<UserNotice>,
    pub(super) idle_exit: Option<Duration>,
}

fn prepare(
    server: &Server,
    given: Arguments,
    target: Option<SessionTarget>,
    mode: ElicitationMode,
) -> Result<PreparedCall, Failure> {
    let engine = server.engine();
    if given.code.is_some() != given.cells.is_empty() {
        let failure = Failure::new(Kind::BadArguments, "Give either `code` or `cells`");
        return Err(failure.hint("nothing was run"));
    }
    if given.per_call && given.session.is_some() {
        let message = "`session` and `per_call` cannot be combined";
        return Err(Failure::new(Kind::BadArguments, message).hint("nothing was run"));
    }
    let session_cwd = target.as_ref().and_then(|target| target.cwd.clone());
    // The shared host also has sessions of other projects with the same names.
    let is_own_host = server.kernels().is_in_process();
    let is_any_cwd = is_own_host && given.cwd.is_none() && session_cwd.is_none();
    let cwd = match (&given.cwd, session_cwd) {
        (Some(cwd), _) => server.roots().resolve_dir(cwd)?,
        (None, Some(cwd)) => server.roots().session_directory(&cwd)?,
        (None, None) => server.roots().base_directory()?,
    };
    let mut cells: Vec<EvalCell> = given.cells.into_iter().map(EvalCell::from).collect();
    cells.extend(given.code.map(|code| EvalCell {
        code,
        ..EvalCell::default()
    }));
    let request = EvalRequest {
        cells,
        timeout: given.timeout.map(|time| time.0),
        session_dir: Some(cwd.path().to_owned()),
        cwd: Some(cwd),
        project_dir: Some(server.project_dir()),
        kernel: KernelRequest {
            python: interpreter(server, given.python.as_deref())?,
            kernel: given.kernel,
            backend: given.backend.as_deref().map(backend).transpose()?,
            existing: None,
            gateway: given.gateway.as_deref().map(gateway).transpose()?,
            start_timeout: given.start_timeout.map(|time| time.0),
        },
        answers: given.answer,
        session: if given.per_call {
            SessionRequest::PerCall
        } else {
            let name = target.map_or_else(|| MAIN.to_owned(), |target| target.name);
            SessionRequest::Named(name)
        },
        owner: None,
        environment: EnvironmentRequest::default(),
        reset: given.reset,
    };
    let mut prepared = eval::prepare(request, engine, &mut StartupTimer::new())?;
    let count = prepared.execution.cells.len();
    prepared.execution.inline_limits = server.inline_limits(count, &prepared.settings);
    let wait_mode = server.wait_mode(given.background, given.wait);
    let (mut params, settings, notices) = prepared.into_host_request(engine, wait_mode)?;
    params.any_cwd = is_any_cwd;
    params.interaction = interaction(mode);
    Ok(PreparedCall {
        params,
        notices,
        idle_exit: cellwright_host::idle_exit(&settings),
    })
}

impl From<CellArguments> for EvalCell {
    fn from(cell: CellArguments) -> Self {
        Self {
            code: cell.code,
            title: cell.title,
            timeout: cell.timeout.map(|time| time.0),
            reset: cell.reset,
            file: None,
        }
    }
}

/// The replies that a call needs: clients that can ask their user answer input requests.
pub(super) fn interaction(mode: ElicitationMode) -> ReplyDetail {
    if mode == ElicitationMode::Unsupported {
        ReplyDetail::RunId
    } else {
        ReplyDetail::RunIdAndInput
    }
}

/// The backend with this name.
pub(super) fn backend(name: &str) -> Result<Backend, Failure> {
    Backend::from_name(&name.to_lowercase()).ok_or_else(|| {
        let message = format!("There is no backend `{name}`");
        Failure::new(Kind::BadArguments, message)
            .hint(format!("available: {}", Backend::NAMES.join(", ")))
    })
}

/// The server with this name. A URL is rejected: the caller of a tool must not choose where code and credentials go.
pub(super) fn gateway(name: &str) -> Result<ServerChoice, Failure> {
    let name = name.trim();
    if name.contains(['/', ':']) || name.is_empty() {
        let message = "`gateway` takes the name of a server in the settings, not a URL";
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure
            .hint("the user defines servers as tables `[server.NAME]` with a `url` in the settings file")
            .hint("nothing was run"));
    }
    Ok(ServerChoice::new(name))
}

impl Server {
    /// How a call waits for its code.
    pub(super) fn wait_mode(&self, background: bool, wait: Option<Seconds>) -> WaitMode {
        if background {
            return WaitMode::Detached;
        }
        let wait = match wait {
            Some(Seconds(time)) => Some(time),
            None => self.options().wait,
        };
        WaitMode::Report {
            wait,
            outputs: false,
        }
    }
}

impl ToolCall<'_> {
    /// Runs code and returns its result.
    pub(super) async fn execute(
        &self,
        prepared: PreparedCall,
    ) -> Result<CallToolResponse, Failure> {
        let session = prepared.params.session.clone();
        let host = self.server.kernels();
        let run = FollowedRun::start(host, prepared.params, prepared.idle_exit).await?;
        self.follow(run, session, prepared.notices).await
    }

    /// Continues a run that waited for input.
    pub(super) async fn resume(
        &self,
        suspended: SuspendedCall,
        answer: Option<String>,
    ) -> Result<CallToolResponse, Failure> {
        let SuspendedCall {
            mut run,
            session,
            notices,
        } = suspended;
        run.send_input(answer).await?;
        self.follow(run, session, notices).await
    }

    /// Follows a run until the call can answer.
    async fn follow(
        &self,
        mut run: FollowedRun,
        session: Option<String>,
        mut notices: Vec<UserNotice>,
    ) -> Result<CallToolResponse, Failure> {
        let calls = self.server.in_flight_calls();
        let call = session
            .as_deref()
            .map(|session| calls.begin(session, &self.context.ct));
        let mut progress = ProgressReporter::from_context(self.context);
        let mode = ElicitationMode::from_context(self.context);
        let mut pending = None;
        let reply = loop {
            let update = match pending.take() {
                Some(update) => update,
                None => run.next(&self.context.ct, &mut progress).await?,
            };
            match update {
                RunUpdate::Finished(report) => {
                    if self.context.ct.is_cancelled() {
                        // The client ignores this reply: the next call on the session has the notice.
                        if let Some(call) = &call
                            && let Some(notice) = cancelled_notice(&report)
                        {
                            call.defer_notice(notice);
                        }
                    } else if let Some(session) = &session {
                        notices.extend(calls.take_deferred(session).await);
                    }
                    break report::finished(self.server, &report, notices).await?;
                }
                RunUpdate::StillRunning(state) => {
                    break report::still_running(self.server, &state, &notices).await?;
                }
                RunUpdate::InputRequested(prompt) if mode == ElicitationMode::MultiRoundTrip => {
                    let suspended = SuspendedCall::new(run, session, notices);
                    let calls = self.server.suspended_calls();
                    return Ok(calls.suspend(suspended, &prompt)?.into());
                }
                RunUpdate::InputRequested(prompt) => {
                    // The code may end before the user answers.
                    tokio::select! {
                        answer = input::elicit(self.context, &prompt) => {
                            run.send_input(answer).await?;
                        }
                        update = run.next(&self.context.ct, &mut progress) => {
                            pending = Some(update?);
                        }
                    }
                }
                RunUpdate::Item(_)
                | RunUpdate::Tail(_)
                | RunUpdate::Notices(_)
                | RunUpdate::Tick => {}
            }
        };
        self.server.subscriptions().check_now();
        Ok(self.respond(reply))
    }
}

/// The notice about a cancelled call for the next call on its session.
fn cancelled_notice(report: &ExecutionReport) -> Option<UserNotice> {
    let (session, failure) = (report.session.as_ref()?, report.failure.as_ref()?);
    let variables = if report.has_notice(NoticeKind::KernelKilled) {
        "variables are lost"
    } else {
        "variables are kept"
    };
    let text = format!(
        "another call on session {session} ended: {}; {variables}",
        failure.message
    );
    Some(UserNotice::new(NoticeKind::CallCancelled, text))
}
