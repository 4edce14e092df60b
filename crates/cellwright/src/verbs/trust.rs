//! `trust`: what a project brings along may be run from now on, as it is.

use std::path::{Path, PathBuf};

use cellwright_kernel::modules;
use cellwright_output::ByteSize;
use clap::Args;
use serde::Serialize;

use crate::console::Console;
use crate::engine::Engine;
use crate::failure::{Failure, Kind};
use crate::notice::{NoticeKind, UserNotice};
use crate::trust::{self, Trust, TrustState};

/// Arguments of `trust`.
#[derive(Debug, Args)]
#[command(after_help = "\
A project may have modules (.cellwright/modules/*.py), which run before the first cell, and settings
(.cellwright/config.toml). Neither is used until somebody has trusted it. What is trusted is the content:
a file that changes must be trusted again. Look at the files first: they run with all your rights.

Examples:
  cellwright trust
  cellwright trust ~/project
  cellwright trust .cellwright/modules/plots.py
  cellwright trust --list
  cellwright trust --remove")]
pub(crate) struct TrustArgs {
    /// The project, or one of its files; the working directory without it
    path: Option<PathBuf>,
    /// List everything that is trusted, and whether it is still the same
    #[arg(long, conflicts_with_all = ["remove", "path"])]
    list: bool,
    /// Trust it no more
    #[arg(long)]
    remove: bool,
}

/// What `trust` answers.
#[derive(Debug, Serialize)]
pub(crate) struct TrustAnswer {
    action: &'static str,
    files: Vec<File>,
    notices: Vec<UserNotice>,
}

#[derive(Debug, Serialize)]
struct File {
    path: String,
    bytes: Option<u64>,
    standing: Known,
}

/// What is known about a file.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Known {
    Trusted,
    Changed,
    Gone,
    Removed,
}

impl TrustAnswer {
    pub(crate) fn show(&self, screen: &Console) -> Result<(), Failure> {
        if screen.json {
            return screen.print_json(self);
        }
        let mut text = String::new();
        for file in &self.files {
            let word = match file.standing {
                Known::Trusted => "trusted",
                Known::Changed => "changed",
                Known::Gone => "gone",
                Known::Removed => "removed",
            };
            let size = file.bytes.map(|bytes| ByteSize(bytes).to_string());
            let size = size.unwrap_or_default();
            text.push_str(&format!("{word:<8}{size:>10}  {}\n", file.path));
        }
        screen.print(&text)?;
        if self.files.is_empty() {
            screen.note(match self.action {
                "remove" => "nothing of it was trusted",
                _ => "nothing is trusted",
            });
        }
        screen.print_notices(&self.notices);
        Ok(())
    }
}

/// Trusts, lists or forgets.
pub(crate) fn trust(args: &TrustArgs, engine: &Engine) -> Result<TrustAnswer, Failure> {
    let Some(state) = engine.state_dir.as_deref() else {
        let message = "There is no folder to remember it in";
        return Err(Failure::new(Kind::BadFile, message).hint("set HOME or CELLWRIGHT_STATE_DIR"));
    };
    if args.list {
        return list(state);
    }
    let path = crate::kernels::working_directory(args.path.as_deref())?;
    if args.remove {
        return remove(state, &path);
    }
    add(state, &path)
}

fn list(state: &Path) -> Result<TrustAnswer, Failure> {
    let trust = Trust::read(Some(state)).map_err(|error| unreadable(state, &error))?;
    let files = trust.entries().map(|(path, entry)| File {
        path: path.display().to_string(),
        bytes: Some(entry.bytes),
        standing: match std::fs::read(path) {
            Err(_) => Known::Gone,
            Ok(content) if trust.state(path, &content) == TrustState::Trusted => Known::Trusted,
            Ok(_) => Known::Changed,
        },
    });
    Ok(TrustAnswer {
        action: "list",
        files: files.collect(),
        notices: Vec::new(),
    })
}

fn add(state: &Path, path: &Path) -> Result<TrustAnswer, Failure> {
    let mut trouble = Vec::new();
    let mut chosen = Vec::new();
    for file in files_of(path, &mut trouble)? {
        match modules::read_source(&file) {
            Ok(content) => chosen.push((trust::canonical_path(&file), content.into_bytes())),
            Err(what) => trouble.push((file, what)),
        }
    }
    if chosen.is_empty() {
        let place = path.display();
        let message = format!("There is nothing to trust in {place}");
        let mut failure = Failure::new(Kind::BadFile, message);
        let causes = trouble
            .iter()
            .map(|(path, what)| format!("{}: {what}", path.display()));
        failure.causes.extend(causes);
        return Err(failure.hint(
            "a project has modules in .cellwright/modules and settings in .cellwright/config.toml",
        ));
    }
    Trust::add(state, &chosen).map_err(|error| unreadable(state, &error))?;
    let files = chosen.iter().map(|(path, content)| File {
        path: path.display().to_string(),
        bytes: Some(content.len() as u64),
        standing: Known::Trusted,
    });
    let notices = trouble.iter().map(|(path, what)| UserNotice {
        kind: NoticeKind::NotTrusted,
        text: format!("{} was passed over: {what}", path.display()),
    });
    Ok(TrustAnswer {
        action: "trust",
        files: files.collect(),
        notices: notices.collect(),
    })
}

fn remove(state: &Path, path: &Path) -> Result<TrustAnswer, Failure> {
    let real = trust::canonical_path(path);
    let folder = trust::find_project_dir(&real).map(|folder| trust::canonical_path(&folder));
    let of_it = |file: &Path| {
        let in_project = folder
            .as_ref()
            .is_some_and(|folder| file.starts_with(folder));
        // A project that is gone can be named all the same.
        in_project || file == real || file.starts_with(&real)
    };
    let removed = Trust::remove(state, &of_it).map_err(|error| unreadable(state, &error))?;
    let files = removed.iter().map(|path| File {
        path: path.display().to_string(),
        bytes: None,
        standing: Known::Removed,
    });
    Ok(TrustAnswer {
        action: "remove",
        files: files.collect(),
        notices: Vec::new(),
    })
}

/// What a project brings along that has to be trusted; or the one file that is named.
fn files_of(path: &Path, trouble: &mut Vec<(PathBuf, String)>) -> Result<Vec<PathBuf>, Failure> {
    let found = path.metadata().map_err(|error| {
        let message = format!("Could not find {}", path.display());
        let mut failure = Failure::new(Kind::BadFile, message);
        failure.causes.push(error.to_string());
        failure
    })?;
    if found.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let Some(folder) = trust::find_project_dir(path) else {
        return Ok(Vec::new());
    };
    let mut failures = Vec::new();
    let mut files = modules::list_files(&folder.join("modules"), &mut failures);
    trouble.extend(failures.into_iter().map(|one| (one.path, one.message)));
    let settings = folder.join("config.toml");
    if settings.exists() {
        files.push(settings);
    }
    Ok(files)
}

fn unreadable(state: &Path, error: &std::io::Error) -> Failure {
    let path = state.join("trust.json");
    let message = format!("Could not read or write {}", path.display());
    let mut failure = Failure::new(Kind::BadFile, message);
    failure.causes.push(error.to_string());
    failure.hint("it must be yours alone; remove it to begin anew with nothing trusted")
}
