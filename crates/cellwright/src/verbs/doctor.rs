//! `doctor`: is everything there that running code needs? Each finding has a code and a next step.

mod host;
mod jupyter;

use std::path::{Path, PathBuf};
use std::time::Instant;

use cellwright_kernel::backend::runner::{Runner, RunnerSpec};
use cellwright_kernel::python::{self, Interpreter};
use cellwright_kernel::{Kernel, KernelError, Request, StopSignal};
use cellwright_output::{ArtifactKind, Artifacts, ByteSize, Capture, Limits};
use clap::Args;
use serde::Serialize;

use crate::console::{Console, Severity};
use crate::engine::{Engine, SettingsFiles};
use crate::failure::Failure;
use crate::settings::{Origin, Settings, SettingsError};
use crate::verbs::kernel_args::interpreter;
use crate::{kernels, notice};

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 code can be run; 2 it cannot, and a finding says why and what to do.

Examples:
  cellwright doctor
  cellwright doctor --python .venv --json")]
pub(crate) struct DoctorArgs {
    /// Where the code would run
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Check this interpreter instead of the one that would be chosen
    #[arg(long, value_name = "PYTHON", value_parser = interpreter)]
    python: Option<PathBuf>,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Finding {
    code: &'static str,
    level: Level,
    text: String,
    /// What to do about it.
    next: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    /// For your information.
    Note,
    Warning,
    Error,
}

/// Checks everything and shows what was found; says the exit code.
pub(crate) fn doctor(args: &DoctorArgs, engine: &Engine, screen: &Console) -> Result<u8, Failure> {
    let mut findings = Vec::new();
    let cwd = kernels::working_directory(args.cwd.as_deref())?;
    let read = engine.settings(&cwd);
    // Whatever is wrong with them is one finding; the rest is looked at as if there were none.
    let settings = read.clone().unwrap_or_default();
    check_python(
        args.python.as_deref(),
        &cwd,
        engine,
        &settings,
        &mut findings,
    )?;
    jupyter::check(
        args.python.as_deref(),
        &cwd,
        engine,
        &settings,
        &mut findings,
    )?;
    check_settings(read, &engine.settings_files(&cwd), &mut findings);
    check_artifacts(engine.artifacts.as_ref(), &mut findings);
    check_staging(engine, &mut findings);
    host::check(&mut findings)?;
    let sick = findings.iter().any(|finding| finding.level == Level::Error);
    let code = if sick { 2 } else { 0 };
    if screen.json {
        screen.print_json(&serde_json::json!({"healthy": !sick, "findings": findings}))?;
        return Ok(code);
    }
    for finding in &findings {
        let mark = match finding.level {
            Level::Ok => Severity::Ok,
            Level::Note => Severity::Note,
            Level::Warning => Severity::Warning,
            Level::Error => Severity::Error,
        };
        screen.print_finding(mark, finding.code, &finding.text, finding.next.as_deref())?;
    }
    Ok(code)
}

fn check_python(
    explicit: Option<&Path>,
    cwd: &Path,
    engine: &Engine,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let named = kernels::named_interpreter(explicit, settings);
    let rejected = match python::resolve(&kernels::interpreter_search(named.python, cwd)) {
        Ok(interpreter) => {
            let why = because(&interpreter.origin, &named.origin);
            if settings.python.skip_check {
                findings.push(Finding {
                    code: "python-unchecked",
                    level: Level::Note,
                    text: format!("{} ({why})", interpreter.program.display()),
                    next: Some("`python.skip_check` is set: it was not started".to_owned()),
                });
            } else {
                let spec = kernels::runner_spec(engine, settings, explicit, cwd.to_owned())?;
                check_runner(&interpreter, &why, &spec, findings)?;
            }
            interpreter.rejected
        }
        Err(rejected) => {
            let named = match named.origin {
                Origin::Default | Origin::Flag(_) => String::new(),
                origin => format!("; `python.interpreter` comes from {origin}"),
            };
            findings.push(Finding {
                code: "no-python",
                level: Level::Error,
                text: format!("no Python was found{named}"),
                next: Some("install Python 3.8 or newer, or name one with --python".to_owned()),
            });
            rejected
        }
    };
    for rejected in rejected {
        findings.push(Finding {
            code: "python-not-used",
            level: Level::Note,
            text: format!("{}: {}", rejected.path.display(), rejected.reason),
            next: None,
        });
    }
    Ok(())
}

/// Starts the runner and lets it count, which shows that all of it works.
fn check_runner(
    interpreter: &Interpreter,
    why: &str,
    spec: &RunnerSpec,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let begin = Instant::now();
    let tried: Result<_, KernelError> = runtime.block_on(async {
        let mut kernel = Runner::start(spec, &StopSignal::never()).await?;
        let mut capture = Capture::new(Limits::default(), None);
        let request = Request::new("6 * 7");
        kernel
            .execute(&request, &mut capture, &StopSignal::never())
            .await?;
        let time = begin.elapsed();
        let version = kernel.description().version.clone();
        let patience = StopSignal::never().with_timeout(std::time::Duration::from_secs(1));
        Box::new(kernel).shutdown(patience).await;
        Ok((version.unwrap_or_default(), time, capture.finish().text))
    });
    let program = interpreter.program.display();
    match tried {
        Ok((version, time, text)) if text.trim() == "42" => {
            findings.push(Finding {
                code: "python",
                level: Level::Ok,
                text: format!("Python {version}, {program} ({why})"),
                next: None,
            });
            findings.push(Finding {
                code: "runner",
                level: Level::Ok,
                text: format!("first result after {} ms", time.as_millis()),
                next: None,
            });
        }
        Ok((_, _, text)) => findings.push(Finding {
            code: "runner-wrong",
            level: Level::Error,
            text: format!(
                "{program} ({why}) computes 6 * 7 as `{}`",
                text.escape_debug()
            ),
            next: Some("look for something that changes every Python: sitecustomize, .pth".into()),
        }),
        Err(error) => {
            let failure = Failure::from(error);
            let mut text = format!("{program} ({why}): {}", failure.message);
            for cause in &failure.causes {
                text.push_str(&format!("\n  {cause}"));
            }
            findings.push(Finding {
                code: "python-fails",
                level: Level::Error,
                text,
                next: Some(match failure.hints.first() {
                    // The doctor need not send to the doctor.
                    Some(hint) if !hint.contains("doctor") => hint.clone(),
                    _ => "mend it, or name another with --python".to_owned(),
                }),
            });
        }
    }
    Ok(())
}

fn because(found: &python::Origin, named: &Origin) -> String {
    match found {
        python::Origin::Explicit => match named {
            Origin::Flag(flag) => format!("named with {flag}"),
            Origin::Variable(variable) => format!("{variable} is set"),
            place => format!("named in {place}"),
        },
        python::Origin::VirtualEnv => "VIRTUAL_ENV is set".to_owned(),
        python::Origin::Conda => "CONDA_PREFIX is set".to_owned(),
        python::Origin::Project { folder } => format!("in {}", folder.display()),
        python::Origin::Managed => "Cellwright's own environment".to_owned(),
        python::Origin::Path => "on PATH".to_owned(),
    }
}

fn check_settings(
    read: Result<Settings, SettingsError>,
    files: &SettingsFiles,
    findings: &mut Vec<Finding>,
) {
    let settings = match read {
        Ok(settings) => settings,
        Err(error) => {
            let failure = Failure::from(error);
            let mut text = failure.message;
            for cause in &failure.causes {
                text.push_str(&format!("\n  {cause}"));
            }
            findings.push(Finding {
                code: "settings-broken",
                level: Level::Error,
                text,
                next: failure.hints.into_iter().next(),
            });
            return;
        }
    };
    let there: Vec<String> = files
        .user
        .iter()
        .chain(&files.project)
        .filter(|file| file.exists())
        .map(|file| file.display().to_string())
        .collect();
    findings.push(Finding {
        code: "settings",
        level: Level::Ok,
        text: if there.is_empty() {
            "no files of settings, which is fine".to_owned()
        } else {
            there.join(", ")
        },
        next: None,
    });
    if let Some(told) = notice::describe_ignored_settings(settings.entries()) {
        findings.push(Finding {
            code: "settings-ignored",
            level: Level::Note,
            text: told.text,
            next: None,
        });
    }
    if !settings.eval.enabled {
        findings.push(Finding {
            code: "eval-disabled",
            level: Level::Warning,
            text: format!(
                "running code is turned off ({})",
                settings.origin("eval.enabled")
            ),
            next: Some("set `eval.enabled` to true there".to_owned()),
        });
    }
}

fn check_artifacts(artifacts: Option<&Artifacts>, findings: &mut Vec<Finding>) {
    let Some(artifacts) = artifacts else {
        findings.push(Finding {
            code: "artifacts-nowhere",
            level: Level::Warning,
            text: "there is no folder for full outputs: what is cut is lost".to_owned(),
            next: Some("set HOME, or name a folder in CELLWRIGHT_ARTIFACTS_DIR".to_owned()),
        });
        return;
    };
    let folder = artifacts.dir().display();
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
                        // Only to see that it can be done.
                        let made = artifacts
                            .open(id)
                            .map(|artifact| artifact.path().to_owned());
                        if let Ok(path) = made {
                            std::fs::remove_file(path).ok();
                        }
                    }
                    findings.push(Finding {
                        code: "artifacts",
                        level: Level::Ok,
                        text: format!(
                            "{} full outputs, {} in {folder}",
                            entries.len(),
                            ByteSize(bytes)
                        ),
                        next: None,
                    });
                }
                Err(error) => findings.push(unwritable(&error.to_string())),
            }
        }
        Err(error) => findings.push(unwritable(&error.to_string())),
    }
}

fn unwritable(error: &str) -> Finding {
    Finding {
        code: "artifacts-unwritable",
        level: Level::Warning,
        text: format!("full outputs cannot be kept, so what is cut is lost: {error}"),
        next: Some("mend the folder, or name another in CELLWRIGHT_ARTIFACTS_DIR".to_owned()),
    }
}

/// Files of runners that this version does not use.
fn check_staging(engine: &Engine, findings: &mut Vec<Finding>) {
    let current = cellwright_kernel::backend::runner::staged_folder_name();
    for folder in &engine.staging_dirs {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        let old: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with("runner-") && *name != current)
            .collect();
        if !old.is_empty() {
            findings.push(Finding {
                code: "old-runners",
                level: Level::Note,
                text: format!(
                    "{} folders of other versions' runners in {}",
                    old.len(),
                    folder.display()
                ),
                next: Some("they may be removed when no kernel of that version runs".to_owned()),
            });
        }
    }
}
