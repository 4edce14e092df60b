//! Checks interpreter, runner, kernels, settings and directories.

mod environment;
mod gateway;
mod host;
mod jupyter;

use std::path::{Path, PathBuf};
use std::time::Instant;

use cellwright_diagnostics::failure::{Failure, Hint};
use cellwright_engine::engine::{Engine, SettingsFiles};
use cellwright_engine::kernels;
use cellwright_engine::project_interpreter::ProjectInterpreter;
use cellwright_engine::servers::ServerChoice;
use cellwright_engine::settings::{Origin, Settings, SettingsError};
use cellwright_kernel::backend::runner::{Runner, RunnerSpec};
use cellwright_kernel::python::{self, Interpreter};
use cellwright_kernel::{Kernel, KernelError, LaunchContext, Request, StopSignal};
use cellwright_output::{ArtifactKind, Artifacts, ByteSize, Capture, Limits};
use cellwright_stdext::private::safe_dir;
use schemars::JsonSchema;
use serde::Serialize;

use crate::finding::{Finding, Severity};
use crate::table::count;

/// A request to check the installation.
#[derive(Debug)]
pub struct DoctorRequest {
    /// The directory in which code would run; the current directory if `None`.
    pub cwd: Option<PathBuf>,
    /// The interpreter to check instead of the selected one.
    pub python: Option<PathBuf>,
    /// The server to check instead of the installation.
    pub gateway: Option<ServerChoice>,
}

/// The result of all checks.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorReport {
    /// Whether code can run.
    pub healthy: bool,
    /// One finding for each check.
    pub findings: Vec<Finding>,
}

/// Carries out all checks.
pub fn check_installation(
    request: &DoctorRequest,
    engine: &Engine,
) -> Result<DoctorReport, Failure> {
    let mut findings = Vec::new();
    let cwd = kernels::working_directory(request.cwd.as_deref())?;
    let python = request.python.as_deref();
    let result = engine.settings(&cwd);
    // Invalid settings are one finding; the other checks use the defaults.
    let settings = result.clone().unwrap_or_default();
    if let Some(choice) = &request.gateway {
        check_settings(result, &engine.settings_files(&cwd), &mut findings);
        gateway::check(choice, &cwd, engine, &settings, &mut findings)?;
    } else {
        check_python(python, &cwd, engine, &settings, &mut findings)?;
        jupyter::check(python, &cwd, engine, &settings, &mut findings)?;
        check_settings(result, &engine.settings_files(&cwd), &mut findings);
        environment::check(&settings, &mut findings);
        check_artifacts(engine.artifacts.as_ref(), &mut findings);
        check_staging(engine, &mut findings);
        host::check(&mut findings)?;
    }
    let is_error = |finding: &Finding| finding.severity == Severity::Error;
    Ok(DoctorReport {
        healthy: !findings.iter().any(is_error),
        findings,
    })
}

/// The message and the causes of a failure, one line each.
fn message_with_causes(failure: &Failure) -> String {
    let mut text = failure.message.clone();
    for cause in &failure.causes {
        text.push_str(&format!("\n  {cause}"));
    }
    text
}

fn check_python(
    explicit: Option<&Path>,
    cwd: &Path,
    engine: &Engine,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let named = kernels::named_interpreter(explicit, settings);
    let rejected = match python::resolve(&kernels::interpreter_search(engine, named.python, cwd)) {
        Ok(interpreter) => {
            let reason = describe_origin(&interpreter.origin, &named.origin);
            if settings.python.skip_check {
                findings.push(
                    Finding::new(
                        Severity::Note,
                        "python-unchecked",
                        format!("{} ({reason})", interpreter.program.display()),
                    )
                    .next("`python.skip_check` is set, so it was not started"),
                );
            } else if let Some(unknown) = ProjectInterpreter::unknown(engine, Some(&interpreter)) {
                let text = format!("{} ({reason})", unknown.describe_unknown());
                findings.push(
                    Finding::new(Severity::Note, "python-untrusted", text)
                        .next(unknown.hint().for_command_line()),
                );
            } else {
                let resolved = kernels::resolve_interpreter(engine, settings, explicit, cwd)?;
                let spec = kernels::runner_spec(engine, settings, resolved);
                let launch = kernels::launch_context(engine, cwd.to_owned());
                check_runner(&interpreter, &reason, (&spec, &launch), findings)?;
            }
            interpreter.rejected
        }
        Err(rejected) => {
            let named = match named.origin {
                Origin::Default | Origin::Flag(_) => String::new(),
                origin => format!("; `python.interpreter` comes from {origin}"),
            };
            findings.push(
                Finding::new(
                    Severity::Error,
                    "no-python",
                    format!("no Python was found{named}"),
                )
                .next("install Python 3.8 or newer, or name one with `--python`"),
            );
            rejected
        }
    };
    for rejected in rejected {
        findings.push(Finding::new(
            Severity::Note,
            "python-not-used",
            format!("{}: {}", rejected.path.display(), rejected.reason),
        ));
    }
    Ok(())
}

/// Starts the runner and runs a cell.
fn check_runner(
    interpreter: &Interpreter,
    reason: &str,
    (spec, launch): (&RunnerSpec, &LaunchContext),
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let start = Instant::now();
    let result: Result<_, KernelError> = runtime.block_on(async {
        let mut kernel = Runner::start(spec, launch, &StopSignal::never()).await?;
        let mut capture = Capture::new(Limits::default(), None);
        let request = Request::new("6 * 7");
        kernel
            .execute(&request, &mut capture, &StopSignal::never())
            .await?;
        let time = start.elapsed();
        let version = kernel.description().version.clone();
        let timeout = StopSignal::never().with_timeout(std::time::Duration::from_secs(1));
        Box::new(kernel).shutdown(timeout).await;
        Ok((version.unwrap_or_default(), time, capture.finish().text))
    });
    let program = interpreter.program.display();
    match result {
        Ok((version, time, text)) if text.trim() == "42" => {
            findings.push(Finding::new(
                Severity::Ok,
                "python",
                format!("Python {version}, {program} ({reason})"),
            ));
            findings.push(Finding::new(
                Severity::Ok,
                "runner",
                format!("first result after {} ms", time.as_millis()),
            ));
        }
        Ok((_, _, text)) => findings.push(
            Finding::new(
                Severity::Error,
                "runner-wrong",
                format!("{program} ({reason}) prints `{}` for 6 * 7", text.trim()),
            )
            .next("look for a sitecustomize module or a .pth file that changes Python"),
        ),
        Err(error) => {
            let failure = Failure::from(error);
            let text = format!("{program} ({reason}): {}", message_with_causes(&failure));
            findings.push(Finding::new(Severity::Error, "python-fails", text).next(
                match failure.hints.first() {
                    Some(hint) if !hint.names_command("doctor") => hint.for_command_line(),
                    _ => "repair it, or name another one with `--python`".to_owned(),
                },
            ));
        }
    }
    Ok(())
}

/// Describes why an interpreter was selected.
fn describe_origin(found: &python::Origin, named: &Origin) -> String {
    match found {
        python::Origin::Explicit => match named {
            Origin::Flag(flag) => format!("named with {flag}"),
            Origin::Variable(variable) => format!("{variable} is set"),
            place => format!("named in {place}"),
        },
        python::Origin::VirtualEnv => "VIRTUAL_ENV is set".to_owned(),
        python::Origin::Conda => "CONDA_PREFIX is set".to_owned(),
        python::Origin::Project { dir } => format!("in {}", dir.display()),
        python::Origin::Managed => "Cellwright's own environment".to_owned(),
        python::Origin::Path => "on PATH".to_owned(),
    }
}

fn check_settings(
    result: Result<Settings, SettingsError>,
    files: &SettingsFiles,
    findings: &mut Vec<Finding>,
) {
    let settings = match result {
        Ok(settings) => settings,
        Err(error) => {
            let failure = Failure::from(error);
            let text = message_with_causes(&failure);
            findings.push(Finding {
                next: failure.hints.first().map(Hint::for_command_line),
                ..Finding::new(Severity::Error, "settings-broken", text)
            });
            return;
        }
    };
    let files: Vec<String> = files
        .user
        .iter()
        .chain(&files.project)
        .filter(|file| file.exists())
        .map(|file| file.display().to_string())
        .collect();
    findings.push(Finding::new(
        Severity::Ok,
        "settings",
        if files.is_empty() {
            "no settings files".to_owned()
        } else {
            files.join(", ")
        },
    ));
    for notice in settings.notices() {
        findings.push(Finding::new(
            Severity::Note,
            "settings-ignored",
            notice.text,
        ));
    }
    if !settings.eval.enabled {
        findings.push(
            Finding::new(
                Severity::Warning,
                "eval-disabled",
                format!(
                    "running code is turned off ({})",
                    settings.origin("eval.enabled")
                ),
            )
            .next("set `eval.enabled` to true there"),
        );
    }
}

fn check_artifacts(artifacts: Option<&Artifacts>, findings: &mut Vec<Finding>) {
    let Some(artifacts) = artifacts else {
        findings.push(
            Finding::new(
                Severity::Warning,
                "artifacts-nowhere",
                "there is no directory for artifacts: omitted output is lost".to_owned(),
            )
            .next("set HOME, or name a directory in CELLWRIGHT_ARTIFACTS_DIR"),
        );
        return;
    };
    let dir = artifacts.dir().display();
    match artifacts.list() {
        Ok(entries) => {
            let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
            let probe = if artifacts.dir().exists() {
                artifacts.store(ArtifactKind::Text, b"").map(Some)
            } else {
                Ok(None)
            };
            match probe {
                Ok(probe) => {
                    if let Some(id) = probe {
                        // The artifact only tests that the directory can be written to.
                        let path = artifacts
                            .open(id)
                            .map(|artifact| artifact.path().to_owned());
                        if let Ok(path) = path {
                            std::fs::remove_file(path).ok();
                        }
                    }
                    findings.push(Finding::new(
                        Severity::Ok,
                        "artifacts",
                        format!(
                            "{}, {} in {dir}",
                            count(entries.len(), "artifact"),
                            ByteSize(bytes)
                        ),
                    ));
                }
                Err(error) => findings.push(artifacts_unwritable(&error.to_string())),
            }
        }
        Err(error) => findings.push(artifacts_unwritable(&error.to_string())),
    }
}

fn artifacts_unwritable(error: &str) -> Finding {
    Finding::new(
        Severity::Warning,
        "artifacts-unwritable",
        format!("artifacts cannot be stored, so omitted output is lost: {error}"),
    )
    .next("repair the directory, or name another one in CELLWRIGHT_ARTIFACTS_DIR")
}

/// Reports the files of runners of other versions.
fn check_staging(engine: &Engine, findings: &mut Vec<Finding>) {
    let current = cellwright_kernel::backend::runner::staged_dir_name();
    let dirs = engine.staging.lasting_dirs().iter();
    // Another user's directory may contain any number of entries.
    for dir in dirs.filter(|dir| safe_dir(dir).is_ok()) {
        let Ok(entries) = std::fs::read_dir(dir) else {
            continue;
        };
        let old: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with("runner-") && *name != current)
            .collect();
        if !old.is_empty() {
            findings.push(
                Finding::new(
                    Severity::Note,
                    "old-runners",
                    format!(
                        "{} directories of runners of other versions in {}",
                        old.len(),
                        dir.display()
                    ),
                )
                .next("remove them if no kernel of that version runs"),
            );
        }
    }
}
