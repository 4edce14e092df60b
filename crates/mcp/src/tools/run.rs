//! `run`: runs cells of a notebook on its kernel and saves their outputs.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::UserNotice;
use cellwright_engine::environment::EnvironmentRequest;
use cellwright_engine::kernels::KernelRequest;
use cellwright_engine::startup::StartupTimer;
use cellwright_execution::ExecutionReport;
use cellwright_execution::parameters::Parameter;
use cellwright_execution::{CellSelection, Edit};
use cellwright_notebook::file;
use cellwright_operations::check::CheckRequest;
use cellwright_operations::parameters::ParameterSet;
use cellwright_operations::run::{self, RunRequest};
use rmcp::model::{CallToolResponse, JsonObject};
use serde::Deserialize;
use serde_json::Value;

use super::super::arguments::{
    self, AFTER, ANSWER, Argument, ArgumentKind, BACKEND, BACKGROUND, BEFORE, CELL, FORCE, GATEWAY,
    INDEX, KERNEL, METADATA, PATH, PYTHON, REVISION, SESSION, SOURCE, START_TIMEOUT, Seconds, TAGS,
    TIMEOUT, TYPE, WAIT,
};
use super::super::input::ElicitationMode;
use super::super::roots::ConfinedPath;
use super::super::server::Server;
use super::super::session_target::SessionTarget;
use super::super::wording;
use super::eval::{PreparedCall, backend, gateway, interaction};
use super::interpreter::interpreter;
use super::{Effect, ToolCall, ToolSpec, check, report};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "run",
    title: "Run a notebook's cells",
    description: "\
Run (execute) cells of a Jupyter notebook (.ipynb) and save their outputs; plots are returned as images. Ends at the first cell that \
fails. The kernel stays as the notebook's session; `reset` starts a fresh one. Runs \
all cells, `cells`, `from`/`to`, or `stale` ones (changed, never run, or after one). `edit_cell` with `source` \
edits a cell and runs it. A long call continues as a run (see `runs`). Example: {\"path\": \"a.ipynb\"}",
    search_hint: "jupyter ipynb execute cells plot figure",
    is_main: true,
    arguments: &[
        PATH,
        Argument::new("cells", ArgumentKind::Cells)
            .or(&["cell", "cell_ids", "cell_indices"])
            .describe("cells such as \"3-5,8,ab12\""),
        Argument::new("from", ArgumentKind::Cell).describe("first cell"),
        Argument::new("to", ArgumentKind::Cell).describe("last cell"),
        Argument::new("stale", ArgumentKind::Boolean),
        Argument::new("changed", ArgumentKind::Boolean).describe("changed since they ran"),
        Argument::new("tag", ArgumentKind::Texts)
            .or(&["tags"])
            .describe("cells with this tag"),
        Argument::new("edit_cell", ArgumentKind::Cell),
        SOURCE,
        Argument::new("and_below", ArgumentKind::Boolean).describe("also run cells below"),
        Argument::new("edits", ArgumentKind::Objects(EDIT_ARGUMENTS)).describe("as in `notebook`"),
        REVISION,
        FORCE,
        SESSION.describe("default: the path"),
        Argument::new("reset", ArgumentKind::Boolean).or(&["restart"]),
        Argument::new("output", ArgumentKind::Text)
            .or(&["output_path"])
            .describe("file to write instead"),
        Argument::new("params", ArgumentKind::Object)
            .or(&["parameters"])
            .describe("values of parameters"),
        KERNEL,
        BACKEND.describe("of the kernel"),
        GATEWAY,
        PYTHON,
        START_TIMEOUT.describe("of the kernel"),
        Argument::new("check", ArgumentKind::Boolean).describe("compare with stored outputs"),
        Argument::new("exact", ArgumentKind::Texts).describe("check: rules to switch off"),
        Argument::new("tolerance", ArgumentKind::Fraction).describe("check: of numbers"),
        TIMEOUT.describe("seconds per cell"),
        Argument::new("total_timeout", ArgumentKind::Seconds).describe("for the run"),
        Argument::new("keep_going", ArgumentKind::Boolean)
            .or(&["allow_errors"])
            .describe("continue after failures; check: exceptions are allowed"),
        ANSWER,
        BACKGROUND,
        WAIT,
    ],
    output_properties: report::OUTPUT_PROPERTIES,
    effect: Effect::RunsCode,
};

/// The members of an item of `edits`.
const EDIT_ARGUMENTS: &[Argument] = &[
    Argument::new(
        "action",
        ArgumentKind::OneOf(&[
            "edit", "insert", "delete", "move", "type", "clear", "tag", "meta",
        ]),
    )
    .or(&["edit_mode"])
    .required(),
    CELL,
    SOURCE,
    TYPE,
    AFTER,
    BEFORE,
    INDEX,
    TAGS,
    METADATA,
];

#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "arguments of a tool")]
pub(super) struct Arguments {
    path: String,
    cells: Option<String>,
    from: Option<String>,
    to: Option<String>,
    #[serde(default)]
    stale: bool,
    #[serde(default)]
    changed: bool,
    #[serde(default)]
    tag: Vec<String>,
    edit_cell: Option<String>,
    source: Option<String>,
    #[serde(default)]
    and_below: bool,
    #[serde(default)]
    edits: Vec<Edit>,
    revision: Option<String>,
    #[serde(default)]
    force: bool,
    session: Option<String>,
    #[serde(default)]
    reset: bool,
    output: Option<String>,
    #[serde(default)]
    params: serde_json::Map<String, Value>,
    kernel: Option<String>,
    backend: Option<String>,
    gateway: Option<String>,
    python: Option<String>,
    start_timeout: Option<Seconds>,
    #[serde(default)]
    check: bool,
    #[serde(default)]
    exact: Vec<String>,
    tolerance: Option<f64>,
    timeout: Option<Seconds>,
    total_timeout: Option<Seconds>,
    #[serde(default)]
    keep_going: bool,
    #[serde(default)]
    answer: Vec<String>,
    #[serde(default)]
    background: bool,
    wait: Option<Seconds>,
}

/// What a call does.
enum RunCall {
    Execute(Box<PreparedCall>),
    /// No cell runs.
    Finished(Box<ExecutionReport>, Vec<UserNotice>),
}

pub(super) async fn run(
    call: &ToolCall<'_>,
    given: JsonObject,
) -> Result<CallToolResponse, Failure> {
    let given: Arguments = arguments::parse("run", SPEC.arguments, given)?;
    if given.check {
        let place = call.server.roots().resolve_file(&given.path)?;
        let request = CheckRequest {
            path: place.file().clone(),
            exact: given.exact,
            tolerance: given.tolerance,
            allow_errors: given.keep_going,
            timeout: given.timeout.map(|time| time.0),
            total_timeout: given.total_timeout.map(|time| time.0),
            cwd: None,
            kernel: KernelRequest {
                python: interpreter(call.server, given.python.as_deref())?,
                kernel: given.kernel,
                backend: given.backend.as_deref().map(backend).transpose()?,
                existing: None,
                gateway: given.gateway.as_deref().map(gateway).transpose()?,
                start_timeout: given.start_timeout.map(|time| time.0),
            },
            environment: EnvironmentRequest::default(),
        };
        return check::check(call, place, request).await;
    }
    let target = match &given.session {
        Some(session) => Some(SessionTarget::resolve(call.server, session).await?),
        None => None,
    };
    let (server, mode) = (
        call.server.clone(),
        ElicitationMode::from_context(call.context),
    );
    let prepared = tokio::task::spawn_blocking(move || prepare(&server, given, target, mode)).await;
    match prepared.map_err(std::io::Error::other)?? {
        RunCall::Execute(prepared) => call.execute(*prepared).await,
        RunCall::Finished(report, notices) => {
            let reply = report::finished(call.server, &report, notices).await?;
            Ok(call.respond(reply))
        }
    }
}

fn prepare(
    server: &Server,
    mut given: Arguments,
    target: Option<SessionTarget>,
    mode: ElicitationMode,
) -> Result<RunCall, Failure> {
    let engine = server.engine();
    let roots = server.roots();
    // Held until the run has saved its last output.
    let place = roots.resolve_file(&given.path)?;
    let output = match &given.output {
        Some(output) => {
            let place = roots.resolve_file(output)?;
            check_output(&place)?;
            Some(place.file().clone())
        }
        None => None,
    };
    // Sessions and other clients identify the file by its displayed path.
    let target = target.unwrap_or_else(|| SessionTarget::of_notebook(server, place.display_path()));
    let notebook_dir = place.file().directory();
    let cwd = match &target.cwd {
        Some(cwd) if cwd != notebook_dir.path() => Some(roots.session_directory(cwd)?),
        _ => None,
    };
    let mut edits = std::mem::take(&mut given.edits);
    if let Some(cell) = given.edit_cell.take() {
        let Some(source) = given.source.take() else {
            let failure = Failure::new(Kind::BadArguments, "`edit_cell` needs a `source`");
            return Err(failure.hint("nothing was written, nothing ran"));
        };
        if !edits.is_empty() {
            let message = "`edits` and `edit_cell` cannot be combined";
            let failure = Failure::new(Kind::BadArguments, message);
            return Err(failure.hint("nothing was written, nothing ran"));
        }
        edits.push(Edit::source(cell, source));
    }
    if given.source.is_some() {
        let failure = Failure::new(Kind::BadArguments, "`source` needs an `edit_cell`");
        return Err(failure.hint("nothing was written, nothing ran"));
    }
    let request = RunRequest {
        path: place.file().clone(),
        selection: CellSelection {
            cells: given.cells,
            from: given.from,
            to: given.to,
            tags: given.tag,
            ..CellSelection::default()
        },
        stale: given.stale,
        changed: given.changed,
        edits,
        and_below: given.and_below,
        revision: given.revision,
        force: given.force,
        output,
        parameters: ParameterSet {
            parameters: parameters(given.params)?,
            notices: Vec::new(),
        },
        kernel: KernelRequest {
            python: interpreter(server, given.python.as_deref())?,
            kernel: given.kernel,
            backend: given.backend.as_deref().map(backend).transpose()?,
            existing: None,
            gateway: given.gateway.as_deref().map(gateway).transpose()?,
            start_timeout: given.start_timeout.map(|time| time.0),
        },
        session: Some(target.name),
        session_dir: Some(target.cwd.unwrap_or_else(|| notebook_dir.path().to_owned())),
        cwd,
        project_dir: Some(server.project_dir()),
        restart: given.reset,
        timeout: given.timeout.map(|time| time.0),
        total_timeout: given.total_timeout.map(|time| time.0),
        keep_going: given.keep_going,
        answers: given.answer,
        like_jupyter: true,
        ..RunRequest::default()
    };
    let mut prepared = run::prepare(request, engine, server.kernels(), &mut StartupTimer::new())
        .map_err(|failure| place.with_selector_hint(failure))?;
    let Some(chosen) = prepared.chosen.take() else {
        let report = prepared.finish_without_cells(engine)?;
        return Ok(RunCall::Finished(Box::new(report), prepared.notices));
    };
    let count = prepared.execution.cell_count();
    prepared.execution.inline_limits = server.inline_limits(count, &prepared.settings);
    let wait_mode = server.wait_mode(given.background, given.wait);
    let mut params = prepared.host_request(chosen, engine, wait_mode)?;
    params.interaction = interaction(mode);
    Ok(RunCall::Execute(Box::new(PreparedCall {
        params,
        idle_exit: cellwright_host::idle_exit(&prepared.settings),
        notices: prepared.notices,
    })))
}

/// Refuses to replace a file that is not a notebook.
fn check_output(place: &ConfinedPath) -> Result<(), Failure> {
    let is_named = place.display_path().extension() == Some("ipynb".as_ref());
    let exists = place.path().symlink_metadata().is_ok();
    if is_named && (!exists || file::survey(place.path()).is_ok()) {
        return Ok(());
    }
    let path = wording::sanitize(&place.display_path().display().to_string());
    let message = format!("`output` cannot be {path}: it is not a notebook");
    let failure = Failure::new(Kind::BadArguments, message);
    Err(failure.hint("nothing was written, nothing ran; name a new file that ends with .ipynb"))
}

/// The parameters of the notebook.
fn parameters(given: serde_json::Map<String, Value>) -> Result<Vec<Parameter>, Failure> {
    let parameter = |(name, value): (String, Value)| {
        if name.contains('=') {
            let message = format!("`{name}` cannot be the name of a parameter");
            return Err(Failure::new(Kind::BadArguments, message).hint("nothing was run"));
        }
        Ok(Parameter::new(name, value))
    };
    given.into_iter().map(parameter).collect()
}
