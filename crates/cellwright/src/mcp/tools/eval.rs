//! `eval`: code on a kernel that stays.

use std::time::Duration;

use rmcp::model::{CallToolResponse, JsonObject};
use serde::Deserialize;

use super::super::arguments::{self, LenientStrings, Seconds};
use super::super::conversation::{Conversation, Said};
use super::super::input::{self, ElicitationMode, SuspendedCall};
use super::super::progress::ProgressViewer;
use super::super::server::Server;
use super::{Effect, ToolCall, ToolSpec, report};
use crate::execution::ExecutionSummary;
use crate::failure::{Failure, Kind};
use crate::host::protocol::{ExecuteParams, Interaction, WaitMode};
use crate::kernels::KernelRequest;
use crate::notice;
use crate::operations::eval::{EvalCell, EvalRequest, SessionRequest, prepare};
use crate::settings::Backend;
use crate::startup::StartupTimer;

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "eval",
    title: "Run code",
    description: "\
Run code on a kernel that stays: variables are there for the next call with the same `session` (default `main`). \
Python that needs no packages unless `kernel` names another (see `kernels` specs). The value of the last expression \
is shown; figures come as images. A notebook's own kernel is the session named like its file: \
{\"code\": \"df.shape\", \"session\": \"a.ipynb\"}. `timeout` is in seconds per cell (default 30, 0 for none). A call \
that takes long goes on as a run (see `runs`). Use it to explore; to fill a notebook use `run`. \
Example: {\"code\": \"x = 1\\nx + 1\"}",
    input_properties: r#"{"code": {"type": "string"}, "cells": {"type": "array", "items": {"type": "object", "properties": {"code": {"type": "string"}, "title": {"type": "string"}, "timeout": {"type": "number"}, "reset": {"type": "boolean"}}, "required": ["code"]}, "description": "instead of code; the first that fails ends it"}, "session": {"type": "string"}, "per_call": {"type": "boolean", "description": "a kernel of its own that ends with the call"}, "kernel": {"type": "string"}, "backend": {"enum": []}, "python": {"type": "string", "description": "interpreter or environment"}, "cwd": {"type": "string"}, "timeout": {"type": "number"}, "reset": {"type": "boolean", "description": "begin with a fresh kernel"}, "answer": {"type": "array", "items": {"type": "string"}, "description": "what input() gets"}, "background": {"type": "boolean", "description": "do not wait"}, "wait": {"type": "number", "description": "seconds to wait before it goes on as a run"}}"#,
    required: &[],
    output_properties: report::OUTPUT_PROPERTIES,
    effect: Effect::RunsCode,
};

/// The session of those who name none.
const MAIN: &str = "main";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    code: Option<String>,
    #[serde(default)]
    cells: Vec<CellArguments>,
    session: Option<String>,
    #[serde(default)]
    per_call: bool,
    kernel: Option<String>,
    backend: Option<String>,
    python: Option<String>,
    cwd: Option<String>,
    timeout: Option<Seconds>,
    #[serde(default)]
    reset: bool,
    #[serde(default)]
    answer: LenientStrings,
    #[serde(default)]
    background: bool,
    wait: Option<Seconds>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
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
    let given: Arguments = arguments::parse("eval", given)?;
    let (server, way) = (
        call.server.clone(),
        ElicitationMode::from_context(call.context),
    );
    let planned = tokio::task::spawn_blocking(move || plan(&server, given, way)).await;
    let plan = planned.map_err(std::io::Error::other)??;
    call.carry_out(plan).await
}

/// What is to be run, and what is known before.
pub(super) struct Plan {
    pub(super) wanted: ExecuteParams,
    pub(super) notices: Vec<notice::UserNotice>,
    pub(super) idle_exit: Option<Duration>,
}

fn plan(server: &Server, given: Arguments, way: ElicitationMode) -> Result<Plan, Failure> {
    let engine = server.engine();
    if given.code.is_some() != given.cells.is_empty() {
        let failure = Failure::new(Kind::BadArguments, "Give either `code` or `cells`");
        return Err(failure.hint("nothing was run"));
    }
    if given.per_call && given.session.is_some() {
        let message = "`session` and `per_call` do not go together";
        return Err(Failure::new(Kind::BadArguments, message).hint("nothing was run"));
    }
    let cwd = match &given.cwd {
        Some(cwd) => server.roots().resolve_dir(cwd)?,
        None => server.roots().base()?,
    };
    let mut cells: Vec<EvalCell> = given.cells.into_iter().map(EvalCell::from).collect();
    cells.extend(given.code.map(|code| EvalCell {
        code,
        ..EvalCell::default()
    }));
    let request = EvalRequest {
        cells,
        timeout: given.timeout.map(|time| time.0),
        cwd: Some(cwd),
        kernel: KernelRequest {
            python: interpreter(server, given.python.as_deref())?,
            kernel: given.kernel,
            backend: given.backend.as_deref().map(backend).transpose()?,
            existing: None,
        },
        answers: given.answer.0,
        session: if given.per_call {
            SessionRequest::PerCall
        } else {
            SessionRequest::Named(given.session.unwrap_or_else(|| MAIN.to_owned()))
        },
        owner: None,
        reset: given.reset,
    };
    let mut prepared = prepare(request, engine, &mut StartupTimer::new())?;
    let count = prepared.execution.cells.len();
    prepared.execution.inline_limits = server.inline_limits(count, &prepared.settings);
    let attach = server.attach(given.background, given.wait);
    let (mut wanted, settings, notices) = prepared.into_host_request(engine, attach)?;
    wanted.any_cwd = given.cwd.is_none();
    wanted.interaction = talk(way);
    Ok(Plan {
        wanted,
        notices,
        idle_exit: crate::host::idle_exit(&settings),
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

pub(super) fn talk(way: ElicitationMode) -> Interaction {
    if way == ElicitationMode::Unsupported {
        Interaction::RunId
    } else {
        Interaction::RunIdAndInput
    }
}

/// What runs the code, by its name.
pub(super) fn backend(name: &str) -> Result<Backend, Failure> {
    Backend::from_name(&name.to_lowercase()).ok_or_else(|| {
        let message = format!("There is no backend `{name}`");
        Failure::new(Kind::BadArguments, message)
            .hint(format!("available: {}", Backend::NAMES.join(", ")))
    })
}

/// An interpreter: what is there inside the roots is meant from their first, anything else is the user's
/// own way of naming it.
pub(super) fn interpreter(
    server: &Server,
    given: Option<&str>,
) -> Result<Option<std::path::PathBuf>, Failure> {
    let Some(given) = given else {
        return Ok(None);
    };
    let here = server.roots().base()?.join(given);
    if here.exists() {
        return Ok(Some(here));
    }
    Ok(Some(given.into()))
}

impl Server {
    /// How long a call waits for its code.
    pub(super) fn attach(&self, background: bool, wait: Option<Seconds>) -> WaitMode {
        if background {
            return WaitMode::Detached;
        }
        let wait = match wait {
            Some(Seconds(time)) => Some(time),
            None => self.options().wait,
        };
        WaitMode::Report { wait }
    }
}

impl ToolCall<'_> {
    /// Has code run, and tells what comes of it.
    pub(super) async fn carry_out(&self, plan: Plan) -> Result<CallToolResponse, Failure> {
        let reach = self.server.kernels();
        let session = plan.wanted.session.clone();
        let begun = Conversation::begin(reach, plan.wanted, plan.idle_exit).await?;
        self.follow(begun, session, plan.notices).await
    }

    /// Goes on with code that waited for what its client's user says.
    pub(super) async fn go_on(
        &self,
        parked: SuspendedCall,
        answer: Option<String>,
    ) -> Result<CallToolResponse, Failure> {
        let SuspendedCall {
            mut conversation,
            session,
            notices,
        } = parked;
        conversation.answer(answer).await?;
        self.follow(conversation, session, notices).await
    }

    /// Listens to code until there is something to tell.
    pub(super) async fn follow(
        &self,
        mut conversation: Conversation,
        session: Option<String>,
        mut notices: Vec<notice::UserNotice>,
    ) -> Result<CallToolResponse, Failure> {
        let flights = self.server.in_flight_calls();
        let flight = session
            .as_deref()
            .map(|session| flights.begin(session, &self.context.ct));
        let mut progress = ProgressViewer::of(self.context);
        let way = ElicitationMode::from_context(self.context);
        let mut heard = None;
        let reply = loop {
            let said = match heard.take() {
                Some(said) => said,
                None => conversation.listen(&self.context.ct, &mut progress).await?,
            };
            match said {
                Said::Ended { verdict, document } => {
                    if self.context.ct.is_cancelled() {
                        // Nobody reads this answer: it is told with the next one.
                        if let Some(word) = what_became(&verdict, session.as_deref())
                            && let Some(flight) = &flight
                        {
                            flight.defer_notice(word);
                        }
                    } else if let Some(session) = &session {
                        notices.extend(flights.take_deferred(session).await);
                    }
                    break report::ended(self.server, &verdict, document, notices)?;
                }
                Said::GoesOn(known) => break report::goes_on(&known, &notices)?,
                Said::Asks(question) if way == ElicitationMode::MultiRoundTrip => {
                    let parked = SuspendedCall::new(conversation, session, notices);
                    return Ok(self
                        .server
                        .suspended_calls()
                        .suspend(parked, &question)?
                        .into());
                }
                Said::Asks(question) => {
                    // The code may end meanwhile: its time is up, or somebody stops it.
                    let asked = tokio::select! {
                        answer = input::elicit(self.context, &question) => Ok(answer),
                        said = conversation.listen(&self.context.ct, &mut progress) => Err(said?),
                    };
                    match asked {
                        Ok(answer) => conversation.answer(answer).await?,
                        Err(said) => heard = Some(said),
                    }
                }
            }
        };
        self.server.subscriptions().check_now();
        Ok(reply.into_result().into())
    }
}

/// What became of a call that was cancelled.
fn what_became(verdict: &ExecutionSummary, session: Option<&str>) -> Option<notice::UserNotice> {
    let (session, trouble) = (session?, verdict.trouble()?);
    let variables = if verdict.has_notice(notice::NoticeKind::KernelKilled) {
        "variables are lost"
    } else {
        "variables are there"
    };
    let words = format!(
        "another call on session {session} ended: {}; {variables}",
        trouble.message
    );
    Some(notice::UserNotice::new(
        notice::NoticeKind::CallCancelled,
        words,
    ))
}
