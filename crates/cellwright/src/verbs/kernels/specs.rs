//! Which kernels could be started.

use std::path::Path;

use cellwright_kernel::KernelError;
use cellwright_kernel::python::{self, Interpreter, Origin, Rejected};
use serde::Serialize;

use crate::engine::Engine;
use crate::failure::Failure;
use crate::kernels::offers::{Offer, offers};
use crate::kernels::{self, Named, jupyter};
use crate::screen::Screen;
use crate::table::aligned;

/// A kernel that could be started, or not.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    name: String,
    backend: &'static str,
    language: Option<String>,
    display_name: Option<String>,
    ok: bool,
    /// Why it cannot be started.
    reason: Option<String>,
    argv: Vec<String>,
    /// The program, as it was found.
    interpreter: Option<String>,
    /// Why that one.
    origin: Option<String>,
    folder: Option<String>,
    interrupt_mode: Option<cellwright_jupyter::kernelspec::Interrupt>,
    #[serde(skip)]
    starts: String,
}

/// The kernels that could be started, the built-in one first.
pub(crate) fn rows(
    cwd: Option<&Path>,
    python: Option<&Path>,
    engine: &Engine,
) -> Result<Vec<Row>, Failure> {
    let cwd = kernels::working_directory(cwd)?;
    let settings = engine.settings(&cwd)?;
    let named = kernels::named(python, &settings);
    let found = python::resolve(&kernels::search(named.python, &cwd));
    let interpreter = found.as_ref().ok();
    let env = kernels::variables(engine, &settings, interpreter);
    let program = interpreter.map(|interpreter| interpreter.program.as_path());
    let places = jupyter::places(interpreter, &env);
    let offers = offers(&places, &env, program, settings.python.skip_check)?;
    let mut rows = vec![runner(&found, &named)];
    rows.extend(offers.iter().map(row));
    Ok(rows)
}

pub(super) fn specs(
    cwd: Option<&Path>,
    python: Option<&Path>,
    engine: &Engine,
    screen: &Screen,
) -> Result<(), Failure> {
    let rows = rows(cwd, python, engine)?;
    if screen.json {
        return screen.document(&rows);
    }
    screen.data(&table(&rows))?;
    let broken = rows.iter().filter(|row| !row.ok).count();
    if broken > 0 {
        screen.remark(&format!(
            "{broken} of {} cannot be started; `cellwright doctor` says what to do",
            rows.len()
        ));
    }
    Ok(())
}

/// Kernels in columns.
pub(crate) fn table(rows: &[Row]) -> String {
    let head = ["NAME", "BACKEND", "LANGUAGE", "STARTS", "FROM"];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        table.push(vec![
            row.name.clone(),
            row.backend.to_owned(),
            row.language.clone().unwrap_or_else(|| "-".to_owned()),
            match &row.reason {
                Some(reason) => format!("broken: {}", reason.replace(char::is_control, " ")),
                None => row.starts.clone(),
            },
            row.folder
                .clone()
                .or_else(|| row.origin.clone())
                .unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    aligned(&table)
}

/// The built-in one.
fn runner(found: &Result<Interpreter, Vec<Rejected>>, named: &Named<'_>) -> Row {
    let origin = |interpreter: &Interpreter| match &interpreter.origin {
        Origin::Explicit => match &named.origin {
            crate::settings::Origin::Flag(flag) => (*flag).to_owned(),
            origin => format!("python.interpreter from {origin}"),
        },
        Origin::VirtualEnv => "VIRTUAL_ENV".to_owned(),
        Origin::Conda => "CONDA_PREFIX".to_owned(),
        Origin::Beside { folder } => format!("environment in {}", folder.display()),
        Origin::Managed => "managed environment".to_owned(),
        Origin::Path => "PATH".to_owned(),
    };
    let program = found.as_ref().ok();
    let program = program.map(|interpreter| interpreter.program.display().to_string());
    let missing = KernelError::NoPython {
        rejected: Vec::new(),
    };
    Row {
        name: "python3".to_owned(),
        backend: "runner",
        language: Some("python".to_owned()),
        display_name: Some("Python 3".to_owned()),
        ok: found.is_ok(),
        reason: found.is_err().then(|| missing.to_string()),
        argv: program.iter().cloned().collect(),
        starts: program.clone().unwrap_or_default(),
        interpreter: program,
        origin: found.as_ref().ok().map(origin),
        folder: None,
        interrupt_mode: None,
    }
}

/// One of Jupyter's.
fn row(offer: &Offer) -> Row {
    let kernelspec = offer.kernelspec.as_ref();
    let path = |path: &Path| path.display().to_string();
    Row {
        name: offer.name.clone(),
        backend: "jupyter",
        language: kernelspec
            .map(|spec| spec.language.clone())
            .filter(|language| !language.is_empty()),
        display_name: kernelspec.map(|spec| spec.display_name.clone()),
        ok: offer.trouble.is_none(),
        reason: offer.trouble.as_ref().map(ToString::to_string),
        argv: kernelspec.map(|spec| spec.argv.clone()).unwrap_or_default(),
        interpreter: offer.program.as_deref().map(path),
        origin: None,
        folder: Some(path(&offer.folder)),
        interrupt_mode: kernelspec.map(|spec| spec.interrupt),
        starts: offer.starts(),
    }
}
