//! Runs a copy of a notebook and compares its outputs with the stored ones.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Hint, Kind, flag, hint};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_engine::environment::EnvironmentRequest;
use cellwright_engine::kernel_setup::{KernelSetup, SharedBridge};
use cellwright_engine::kernels::{KernelRequest, select_for_notebook, working_directory};
use cellwright_engine::settings::Settings;
use cellwright_execution::compare::{
    self, Difference, OrderProblem, Rule, Rules, StoredCount, Tolerance,
};
use cellwright_execution::{
    CellReport, ExecutionReport, ExecutionRequest, ExecutionStatus, KernelReport,
};
use cellwright_execution::{
    Listing, OnError, PlannedCells, RAISES_EXCEPTION_TAG, RunSpec, SKIP_EXECUTION_TAG,
};
use cellwright_kernel::session::KernelLauncher;
use cellwright_notebook::file::{self, Survey};
use cellwright_notebook::{CellKind, Cells};
use cellwright_stdext::private::temporary;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::eval::{absolute_file, cell_timeout};
use crate::environment;
use crate::file_path::FilePath;

/// Tags of cells whose outputs are not compared.
const IGNORED: [&str; 2] = ["ignore-output", "nbval-ignore-output"];

/// The session name that the kernel sees.
const SESSION: &str = "check";

/// A request of `check`.
#[derive(Debug, Default)]
pub struct CheckRequest {
    pub path: FilePath,
    /// Names of the rules that are switched off, so that what they ignore counts as a difference.
    pub exact: Vec<String>,
    /// Relative difference up to which numbers are equal; `None`: the setting `check.tolerance`.
    pub tolerance: Option<f64>,
    /// Whether cells may raise exceptions without a tag.
    pub allow_errors: bool,
    /// Time limit of each cell; `None`: the setting `run.timeout`. Zero: no limit.
    pub timeout: Option<Duration>,
    /// Time limit of the whole run.
    pub total_timeout: Option<Duration>,
    /// Working directory; `None`: the directory of the notebook.
    pub cwd: Option<PathBuf>,
    pub kernel: KernelRequest,
    pub environment: EnvironmentRequest,
}

/// What `check` found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckReport {
    /// Path of the notebook.
    pub path: String,
    /// Revision of the notebook.
    revision: String,
    /// Whether every cell ran in order and produced the stored outputs.
    pub same: bool,
    /// Whether the check succeeded: the outputs are the same, and no cell raised an exception that is not allowed.
    pub passed: bool,
    /// Number of cells that raised an exception.
    pub raised: usize,
    /// How the run ended.
    status: ExecutionStatus,
    /// The kernel that ran the copy; `null` if no cell ran.
    pub kernel: Option<KernelReport>,
    /// The cells that ran.
    pub cells: Vec<CellCheck>,
    /// Cells that never ran, or ran out of order, according to the stored execution counts.
    pub order: Vec<OrderProblem>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// What `check` found in one cell.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CellCheck {
    /// Index in the notebook, from 0.
    pub index: usize,
    /// Cell id.
    pub id: Option<String>,
    /// Result of the comparison.
    pub status: CellResult,
    /// The exception that the cell raised.
    pub error: Option<Box<RaisedError>>,
    /// Differences between the stored and the new outputs.
    pub differences: Vec<Difference>,
}

/// An exception that a cell raised.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RaisedError {
    /// Name of the exception.
    pub ename: String,
    /// Message of the exception.
    pub evalue: String,
    /// Whether a tag or the caller allows it.
    pub allowed: bool,
}

impl fmt::Display for RaisedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&cellwright_execution::describe_exception(
            &self.ename,
            &self.evalue,
        ))
    }
}

/// The result for one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellResult {
    /// The outputs are the same.
    Same,
    /// The outputs differ.
    Different,
    /// A tag excludes its outputs from the comparison.
    Ignored,
    /// The cell did not finish, or did not run.
    Unfinished,
}

/// Runs the copy with `execute` and compares. The notebook itself is not written.
pub fn check(
    request: &CheckRequest,
    engine: &Engine,
    execute: impl FnOnce(&ExecutionRequest, Arc<dyn KernelLauncher>) -> Result<ExecutionReport, Failure>,
) -> Result<CheckReport, Failure> {
    let path = absolute_file(&request.path)?;
    let directory = match &request.cwd {
        Some(given) => working_directory(Some(given))?.into(),
        None => path.directory(),
    };
    let cwd = directory.path();
    let mut settings = engine.settings(cwd)?;
    request.kernel.apply_to(&mut settings);
    settings.disable_prelude_unless_set();
    if !settings.eval.enabled {
        return Err(cellwright_engine::settings::eval_disabled(
            settings.origin("eval.enabled"),
        ));
    }
    let tolerance = tolerance(request.tolerance.unwrap_or(settings.check.tolerance))?;
    let rules = rules(&request.exact)?.with_tolerance(tolerance);
    let survey =
        |path: &FilePath| file::survey(path.open_path()).map_err(|error| path.failure(error));
    let stored = survey(&path)?;
    let listing = Listing::from_survey(&stored);
    let dir = temporary::create_dir("cellwright-")?;
    let copy = FilePath::from(dir.path().join("checked.ipynb"));
    let mut notices = settings.notices();
    let usual = settings.run.timeout;
    let limit = cell_timeout(request.timeout, usual, &settings, &mut notices);
    let mut execution =
        execution_request(request, &settings, &listing, &stored, (&path, &copy), limit);
    environment::prepare(
        &request.environment,
        &mut settings,
        &mut execution,
        &mut notices,
    );
    let mut report = CheckReport {
        path: path.to_text(),
        revision: stored.revision().to_string(),
        same: false,
        passed: false,
        raised: 0,
        status: ExecutionStatus::Ok,
        kernel: None,
        cells: Vec::new(),
        order: Vec::new(),
        notices,
    };
    if execution.cell_count() > 0 {
        let (chosen, notice) =
            select_for_notebook(engine, &settings, &request.kernel, &listing, cwd)?;
        report.notices.extend(notice);
        report.notices.extend(chosen.notices().iter().cloned());
        report
            .notices
            .extend(chosen.record_project_interpreter(engine));
        let chosen = chosen.in_directory(directory.clone());
        let launch = chosen.into_launcher(KernelSetup {
            engine: Arc::new(engine.clone()),
            bridge: SharedBridge::default(),
            session: SESSION.to_owned(),
            modules: (&settings).into(),
        });
        let executed = execute(&execution, launch)?;
        drop(execution);
        let fresh = survey(&copy)?;
        report.status = executed.status;
        report.kernel.clone_from(&executed.kernel);
        report.notices.extend(hint_notices(&executed));
        report.notices.extend(executed.notices);
        // The reports are taken apart: a notebook may have very many cells.
        report.cells = compare_cells(executed.cells, &listing, &stored, &fresh, rules)?;
        for error in report
            .cells
            .iter_mut()
            .filter_map(|cell| cell.error.as_mut())
        {
            error.allowed |= request.allow_errors;
        }
        report.raised = report
            .cells
            .iter()
            .filter(|cell| cell.error.is_some())
            .count();
    }
    report.order = order(&listing, &stored);
    let ran = matches!(report.status, ExecutionStatus::Ok | ExecutionStatus::Error);
    report.same = ran && report.order.is_empty() && report.cells.iter().all(CellCheck::is_same);
    report.passed = report.same && report.cells.iter().all(CellCheck::is_fine);
    Ok(report)
}

impl CheckReport {
    pub fn exit_code(&self) -> u8 {
        match self.status {
            _ if self.passed => 0,
            ExecutionStatus::Ok | ExecutionStatus::Error => 1,
            other => other.exit_code(),
        }
    }

    /// The result in one sentence, for every front end.
    pub fn summary(&self) -> String {
        let count = self.cells.len();
        let plural = if count == 1 { "" } else { "s" };
        let mut text = if self.same {
            format!("{count} cell{plural} ran in order and produced the same outputs")
        } else {
            let differ = self.cells.iter().filter(|cell| !cell.is_same()).count();
            format!(
                "{differ} of {count} cell{plural} differ; {} ran out of order or not at all",
                self.order.len()
            )
        };
        if self.raised > 0 {
            let plural = if self.raised == 1 { "" } else { "s" };
            text.push_str(&format!(
                "; {} cell{plural} raised an exception",
                self.raised
            ));
        }
        text
    }
}

impl CellCheck {
    /// Whether nothing has to be reported about the cell.
    pub fn is_fine(&self) -> bool {
        self.is_same() && self.forbidden_error().is_none()
    }

    fn is_same(&self) -> bool {
        matches!(self.status, CellResult::Same | CellResult::Ignored)
    }

    /// The exception of the cell, if it is not allowed.
    pub fn forbidden_error(&self) -> Option<&RaisedError> {
        self.error.as_deref().filter(|error| !error.allowed)
    }
}

/// How exceptions are allowed.
pub fn allowed_errors_hint() -> Hint {
    hint![
        "tag cells that may raise `raises-exception`, or allow all exceptions with ",
        flag("allow-errors"),
    ]
}

fn tolerance(relative: f64) -> Result<Tolerance, Failure> {
    Tolerance::new(relative).ok_or_else(|| {
        let message = format!("The tolerance {relative} is not a number from 0 up to 1");
        Failure::new(Kind::BadArguments, message)
    })
}

fn rules(exact: &[String]) -> Result<Rules, Failure> {
    let mut rules = Rules::default();
    for name in exact {
        rules = match Rule::from_name(name) {
            Some(rule) => rules.without(rule),
            None if name == "all" => Rules::NONE,
            None => {
                let message = format!("There is no rule `{name}`");
                let names: Vec<&str> = Rule::ALL.into_iter().map(Rule::name).collect();
                let failure = Failure::new(Kind::BadArguments, message);
                return Err(failure.hint(format!("available: {} and all", names.join(", "))));
            }
        };
    }
    Ok(rules)
}

fn execution_request(
    request: &CheckRequest,
    settings: &Settings,
    listing: &Listing,
    stored: &Survey,
    (path, copy): (&FilePath, &FilePath),
    timeout: Option<Duration>,
) -> ExecutionRequest {
    let is_code = |index: &usize| listing.kind(*index) == CellKind::Code;
    let spec = RunSpec {
        path: path.clone(),
        output: Some(copy.clone()),
        revision: stored.revision().to_string(),
        cells: PlannedCells::runnable(listing, (0..listing.count()).filter(is_code)),
        timeout,
        // A stored exception may occur again; a new one is a difference.
        on_error: OnError::Continue,
        ..RunSpec::default()
    };
    ExecutionRequest {
        inline_limits: (&settings.output_limits()).into(),
        total_timeout: request.total_timeout.filter(|total| !total.is_zero()),
        ..ExecutionRequest::for_notebook(spec)
    }
}

fn compare_cells(
    executed: Vec<CellReport>,
    listing: &Listing,
    stored: &Survey,
    fresh: &Survey,
    rules: Rules,
) -> Result<Vec<CellCheck>, Failure> {
    let check = |report: CellReport| {
        let index = report.index;
        let ignored = IGNORED.iter().any(|tag| listing.has_tag(index, tag));
        let finished = matches!(report.status, ExecutionStatus::Ok | ExecutionStatus::Error);
        let differences = if finished && !ignored {
            compare::compare(&outputs(stored, index)?, &outputs(fresh, index)?, rules)
        } else {
            Vec::new()
        };
        Ok(CellCheck {
            index,
            id: report.id,
            status: match differences.is_empty() {
                _ if !finished => CellResult::Unfinished,
                _ if ignored => CellResult::Ignored,
                true => CellResult::Same,
                false => CellResult::Different,
            },
            error: report.error.map(|error| {
                Box::new(RaisedError {
                    ename: error.ename,
                    evalue: error.evalue,
                    allowed: listing.has_tag(index, RAISES_EXCEPTION_TAG),
                })
            }),
            differences,
        })
    };
    // In the memory of the reports.
    executed.into_iter().map(check).collect()
}

/// The hints on the exceptions of cells.
fn hint_notices(executed: &ExecutionReport) -> Vec<UserNotice> {
    let mut notices: Vec<UserNotice> = Vec::new();
    for cell in &executed.cells {
        for hint in cell.error.iter().flat_map(|error| &error.hints) {
            let text = format!("cell {}: {hint}", cell.index);
            notices.push(UserNotice::new(NoticeKind::ErrorHint, text));
        }
    }
    notices
}

fn outputs(survey: &Survey, index: usize) -> Result<Vec<Value>, Failure> {
    let bytes = survey.outputs(index)?;
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    Ok(serde_json::from_slice(&bytes).map_err(std::io::Error::from)?)
}

fn order(listing: &Listing, stored: &Survey) -> Vec<OrderProblem> {
    let code = |index: &usize| listing.kind(*index) == CellKind::Code;
    let ran = |index: usize| StoredCount {
        cell: index,
        is_empty: listing.source(index).trim().is_empty()
            || listing.has_tag(index, SKIP_EXECUTION_TAG),
        count: stored.execution_count(index),
    };
    compare::check_order((0..listing.count()).filter(code).map(ran))
}
