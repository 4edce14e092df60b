//! `eval`: code on a kernel that stays.

use std::time::Duration;

use rmcp::model::{CallToolResponse, JsonObject};
use serde::Deserialize;

use super::super::arguments::{self, Seconds, Words};
use super::super::conversation::{Conversation, Said};
use super::super::input::{self, Parked, Way};
use super::super::progress::Progress;
use super::super::server::Server;
use super::{Call, Effect, Told, report};
use crate::evaluation::Verdict;
use crate::failure::{Failure, Kind};
use crate::host::wanted::{Attach, EvalWanted, Talk};
use crate::kernels::Backend;
use crate::notice;
use crate::startup::Startup;
use crate::verbs::eval::{self, EvalArgs};

pub(super) const TOLD: Told = Told {
    name: "eval",
    title: "Run code",
    description: "\
Run code on a kernel that stays: variables are there for the next call with the same `session` (default `main`). \
Python that needs no packages unless `kernel` names another (see `kernels` specs). The value of the last expression \
is shown; figures come as images. A notebook's own kernel is the session named like its file: \
{\"code\": \"df.shape\", \"session\": \"a.ipynb\"}. `timeout` is in seconds per cell (default 30, 0 for none). A call \
that takes long goes on as a run (see `runs`). Use it to explore; to fill a notebook use `run`. \
Example: {\"code\": \"x = 1\\nx + 1\"}",
    arguments: r#"{"code": {"type": "string"}, "cells": {"type": "array", "items": {"type": "object"}, "description": "instead of code: [{code, title?, timeout?, reset?}]; the first that fails ends it"}, "session": {"type": "string"}, "per_call": {"type": "boolean", "description": "a kernel of its own that ends with the call"}, "kernel": {"type": "string"}, "backend": {"enum": ["runner", "jupyter"]}, "python": {"type": "string", "description": "interpreter or environment"}, "cwd": {"type": "string"}, "timeout": {"type": "number"}, "reset": {"type": "boolean", "description": "begin with a fresh kernel"}, "answer": {"type": "array", "items": {"type": "string"}, "description": "what input() gets"}, "background": {"type": "boolean", "description": "do not wait"}, "wait": {"type": "number", "description": "seconds to wait before it goes on as a run"}}"#,
    required: &[],
    answer: report::ANSWER,
    effect: Effect::Runs,
};

/// The session of those who name none.
const MAIN: &str = "main";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
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
    answer: Words,
    #[serde(default)]
    background: bool,
    wait: Option<Seconds>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CellArguments {
    code: String,
    title: Option<String>,
    timeout: Option<Seconds>,
    #[serde(default)]
    reset: bool,
}

pub(super) async fn eval(call: &Call<'_>, given: JsonObject) -> Result<CallToolResponse, Failure> {
    let given: Arguments = arguments::read("eval", given)?;
    let (server, way) = (call.server.clone(), Way::of(call.context));
    let planned = tokio::task::spawn_blocking(move || plan(&server, given, way)).await;
    let plan = planned.map_err(std::io::Error::other)??;
    call.carry_out(plan).await
}

/// What is to be run, and what is known before.
pub(super) struct Plan {
    pub(super) wanted: EvalWanted,
    pub(super) notices: Vec<notice::Told>,
    pub(super) idle_exit: Option<Duration>,
}

fn plan(server: &Server, given: Arguments, way: Way) -> Result<Plan, Failure> {
    let engine = server.engine();
    if given.code.is_some() != given.cells.is_empty() {
        let failure = Failure::new(Kind::BadArguments, "Give either `code` or `cells`");
        return Err(failure.hint("nothing was run"));
    }
    let single = given.code.is_some();
    let codes: Vec<String> = match given.code {
        Some(code) => vec![code],
        None => given.cells.iter().map(|cell| cell.code.clone()).collect(),
    };
    if given.per_call && given.session.is_some() {
        let message = "`session` and `per_call` do not go together";
        return Err(Failure::new(Kind::BadArguments, message).hint("nothing was run"));
    }
    let cwd = match &given.cwd {
        Some(cwd) => server.roots().folder(cwd)?,
        None => server.roots().base()?,
    };
    let args = EvalArgs {
        cells: codes,
        timeout: given.timeout.map(|time| time.0),
        cwd: Some(cwd),
        python: interpreter(server, given.python.as_deref())?,
        kernel: given.kernel,
        backend: given.backend.as_deref().map(backend).transpose()?,
        answers: given.answer.0,
        session: (!given.per_call).then(|| given.session.unwrap_or_else(|| MAIN.to_owned())),
        per_call: given.per_call,
        reset: given.reset,
        ..EvalArgs::default()
    };
    let mut prepared = eval::prepare(&args, engine, &mut Startup::new())?;
    if !single {
        let usual = prepared.settings.eval.timeout;
        for (wish, cell) in prepared.wish.cells.iter_mut().zip(&given.cells) {
            wish.title.clone_from(&cell.title);
            wish.reset = cell.reset;
            if let Some(time) = cell.timeout {
                let notices = &mut prepared.notices;
                wish.timeout = eval::timeout(Some(time.0), usual, &prepared.settings, notices);
            }
        }
    }
    let count = prepared.wish.cells.len();
    prepared.wish.shown = server.shown(count, &prepared.settings);
    let attach = server.attach(given.background, given.wait);
    let (mut wanted, settings, notices) = prepared.wanted(&args, engine, attach)?;
    wanted.anywhere = given.cwd.is_none();
    wanted.talk = talk(way);
    Ok(Plan {
        wanted,
        notices,
        idle_exit: crate::host::idle_exit(&settings),
    })
}

pub(super) fn talk(way: Way) -> Talk {
    if way == Way::None {
        Talk::Name
    } else {
        Talk::Questions
    }
}

/// What runs the code, by its name.
pub(super) fn backend(name: &str) -> Result<Backend, Failure> {
    use clap::ValueEnum;

    Backend::from_str(name, true).map_err(|_| {
        let message = format!("There is no backend `{name}`");
        Failure::new(Kind::BadArguments, message).hint("there are runner and jupyter")
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
    pub(super) fn attach(&self, background: bool, wait: Option<Seconds>) -> Attach {
        if background {
            return Attach::Not;
        }
        let wait = match wait {
            Some(Seconds(time)) => Some(time),
            None => self.options().wait,
        };
        Attach::Document { wait }
    }
}

impl Call<'_> {
    /// Has code run, and tells what comes of it.
    pub(super) async fn carry_out(&self, plan: Plan) -> Result<CallToolResponse, Failure> {
        let reach = &self.server.engine().kernels;
        let session = plan.wanted.session.clone();
        let begun = Conversation::begin(reach, plan.wanted, plan.idle_exit).await?;
        self.follow(begun, session, plan.notices).await
    }

    /// Goes on with code that waited for what its client's user says.
    pub(super) async fn go_on(
        &self,
        parked: Parked,
        answer: Option<String>,
    ) -> Result<CallToolResponse, Failure> {
        let Parked {
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
        mut notices: Vec<notice::Told>,
    ) -> Result<CallToolResponse, Failure> {
        let flights = self.server.flights();
        let flight = session
            .as_deref()
            .map(|session| flights.begin(session, &self.context.ct));
        let mut progress = Progress::of(self.context);
        let way = Way::of(self.context);
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
                            flight.leave_word(word);
                        }
                    } else if let Some(session) = &session {
                        notices.extend(flights.aftermath(session).await);
                    }
                    break report::ended(self.server, &verdict, document, notices)?;
                }
                Said::GoesOn(known) => break report::goes_on(&known, &notices)?,
                Said::Asks(question) if way == Way::Round => {
                    let parked = Parked::new(conversation, session, notices);
                    return Ok(self.server.waiting().park(parked, &question)?.into());
                }
                Said::Asks(question) => {
                    // The code may end meanwhile: its time is up, or somebody stops it.
                    let asked = tokio::select! {
                        answer = input::ask(self.context, &question) => Ok(answer),
                        said = conversation.listen(&self.context.ct, &mut progress) => Err(said?),
                    };
                    match asked {
                        Ok(answer) => conversation.answer(answer).await?,
                        Err(said) => heard = Some(said),
                    }
                }
            }
        };
        self.server.subscriptions().look();
        Ok(reply.into_result().into())
    }
}

/// What became of a call that was cancelled.
fn what_became(verdict: &Verdict, session: Option<&str>) -> Option<notice::Told> {
    let (session, trouble) = (session?, verdict.trouble()?);
    let variables = if verdict.has_notice("kernel_killed") {
        "variables are lost"
    } else {
        "variables are there"
    };
    let words = format!(
        "another call on session {session} ended: {}; {variables}",
        trouble.message
    );
    Some(notice::Told::new("call_cancelled", words))
}
