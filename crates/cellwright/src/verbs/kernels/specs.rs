//! Which kernels could be started.

use std::path::Path;

use cellwright_kernel::python::{self, Origin};
use serde_json::json;

use crate::engine::Engine;
use crate::failure::Failure;
use crate::kernels;
use crate::screen::Screen;
use crate::table::aligned;

pub(super) fn specs(cwd: Option<&Path>, engine: &Engine, screen: &Screen) -> Result<(), Failure> {
    let cwd = kernels::working_directory(cwd)?;
    let settings = engine.settings(&cwd)?;
    let named = kernels::named(None, &settings);
    let found = python::resolve(&kernels::search(named.python, &cwd));
    let interpreter = found
        .map_err(|rejected| Failure::from(cellwright_kernel::KernelError::NoPython { rejected }))?;
    let why = match &interpreter.origin {
        Origin::Explicit => format!("python.interpreter from {}", named.origin),
        Origin::VirtualEnv => "VIRTUAL_ENV".to_owned(),
        Origin::Conda => "CONDA_PREFIX".to_owned(),
        Origin::Beside { folder } => format!("environment in {}", folder.display()),
        Origin::Managed => "managed environment".to_owned(),
        Origin::Path => "PATH".to_owned(),
    };
    let program = interpreter.program.display().to_string();
    if screen.json {
        return screen.document(&json!([{
            "name": "python3",
            "backend": "runner",
            "language": "python",
            "interpreter": program,
            "origin": why,
        }]));
    }
    let row = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
    screen.data(&aligned(&[
        row(["NAME", "BACKEND", "LANGUAGE", "INTERPRETER", "FROM"]),
        row(["python3", "runner", "python", &program, &why]),
    ]))
}
