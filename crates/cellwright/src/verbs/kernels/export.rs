//! `kernels history` and `kernels export`: the cells that ran in a session, as a list and as a notebook.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cellwright_diagnostics::failure::{Failure, Kind, flag, hint};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::protocol::SessionSelector;
use cellwright_host::reply::SessionInfo;
use cellwright_operations::table::align_columns;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::console::Console;

/// A line of the journal.
#[derive(Deserialize)]
struct Cell {
    generation: u32,
    count: Option<u32>,
    status: String,
    #[serde(default)]
    at: u64,
    code: String,
    outputs: Option<Value>,
}

/// Reads the cells that ran in a session, in order.
struct Journal {
    lines: Option<std::io::Split<BufReader<File>>>,
    session: SessionInfo,
    /// Number of runs that could not be written or read.
    lost: u64,
}

impl Journal {
    fn open(session: &SessionSelector) -> Result<Self, Failure> {
        let host = KernelHost::Shared;
        let info = host.block_on(host.journal(session.clone()))?;
        let info = info.ok_or_else(cellwright_host::host_not_running)?;
        let lines = match File::open(&info.journal) {
            Ok(file) => Some(BufReader::new(file).split(b'\n')),
            // Nothing ran so far.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            lines,
            lost: info.lost,
            session: info.kernel,
        })
    }

    fn next(&mut self) -> Result<Option<Cell>, Failure> {
        while let Some(line) = self.lines.as_mut().and_then(Iterator::next) {
            match serde_json::from_slice(&line?) {
                Ok(cell) => return Ok(Some(cell)),
                // Only the host writes there: the line is damaged.
                Err(_) => self.lost += 1,
            }
        }
        Ok(None)
    }

    /// Prints a notice if runs are missing.
    fn print_lost(&self, console: &Console) {
        if self.lost > 0 {
            let text = format!(
                "{} runs are missing: they could not be written to the host's directory",
                self.lost
            );
            console.print_notices(&[UserNotice::new(NoticeKind::HistoryIncomplete, text)]);
        }
    }
}

pub(super) fn history(session: &SessionSelector, console: &Console) -> Result<(), Failure> {
    let mut journal = Journal::open(session)?;
    let head = ["GEN", "CELL", "STATUS", "CODE"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut cells = Vec::new();
    while let Some(cell) = journal.next()? {
        if console.json {
            cells.push(json!({
                "generation": cell.generation,
                "execution_count": cell.count,
                "status": cell.status,
                "at": cell.at,
                "code": cell.code,
            }));
            continue;
        }
        let mut lines = cell.code.trim_end().lines();
        let mut first = lines.next().unwrap_or_default().to_owned();
        if lines.next().is_some() {
            first.push_str(" […]");
        }
        let count = cell.count.map(|count| format!("[{count}]"));
        rows.push(vec![
            cell.generation.to_string(),
            count.unwrap_or_else(|| "-".to_owned()),
            cell.status,
            first,
        ]);
    }
    journal.print_lost(console);
    if console.json {
        return console.print_json(&cells);
    }
    if rows.len() == 1 {
        console.note("nothing ran so far");
        return Ok(());
    }
    console.print(&align_columns(&rows))
}

pub(super) fn export(
    session: &SessionSelector,
    out: &Path,
    force: bool,
    console: &Console,
) -> Result<(), Failure> {
    let mut journal = Journal::open(session)?;
    if out == Path::new("-") {
        let mut notebook = Vec::new();
        write(&mut journal, &mut notebook, Failure::from)?;
        journal.print_lost(console);
        return console.write_bytes(&notebook);
    }
    let write_failure = |error: std::io::Error| {
        let mut failure = Failure::new(Kind::BadFile, format!("Could not write {}", out.display()));
        failure.causes.push(error.to_string());
        failure.hint("nothing was written")
    };
    // Follows a link, and keeps the permissions of an existing file.
    let target = out.canonicalize().unwrap_or_else(|_| out.to_owned());
    let there = out.symlink_metadata().is_ok();
    let mode = match target.metadata() {
        Ok(found) if found.is_file() => found.permissions(),
        Ok(_) => return Err(write_failure(std::io::Error::other("it is not a file"))),
        Err(_) => Permissions::from_mode(0o644),
    };
    if there && !force {
        let failure = Failure::new(Kind::BadFile, format!("{} exists", out.display()));
        return Err(failure.hint(hint![
            "name another file, or replace it with ",
            flag("force"),
            "; nothing was written",
        ]));
    }
    let dir = match target.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .prefix(".cellwright-")
        .permissions(mode)
        .tempfile_in(dir)
        .map_err(write_failure)?;
    let count = write(&mut journal, BufWriter::new(file.as_file()), write_failure)?;
    file.as_file().sync_all().map_err(write_failure)?;
    let kept = if force {
        file.persist(&target)
    } else {
        file.persist_noclobber(&target)
    };
    kept.map_err(|error| write_failure(error.error))?;
    journal.print_lost(console);
    if console.json {
        let path = out.display().to_string();
        return console.print_json(&json!({"path": path, "cells": count, "lost": journal.lost}));
    }
    console.note(&format!("{}: {count} cells", out.display()));
    Ok(())
}

/// Writes a notebook in the layout that Jupyter uses. Returns the number of cells. One cell is in memory at a time.
fn write(
    journal: &mut Journal,
    mut file: impl Write,
    write_failure: impl Fn(std::io::Error) -> Failure + Copy,
) -> Result<usize, Failure> {
    let (mut count, mut generation) = (0, None);
    let mut before = "{\n \"cells\": [\n";
    let mut cell = |cell: &Value| -> Result<(), Failure> {
        file.write_all(before.as_bytes()).map_err(write_failure)?;
        before = ",\n";
        file.write_all(indented(cell, "  ").map_err(write_failure)?.as_bytes())
            .map_err(write_failure)
    };
    while let Some(ran) = journal.next()? {
        if generation.is_some_and(|before| before != ran.generation) {
            let source =
                "*Here the kernel was replaced by a fresh one: variables from above are gone.*";
            cell(&json!({
                "cell_type": "markdown",
                "id": format!("fresh-{}", ran.generation),
                "metadata": {},
                "source": [source],
            }))?;
        }
        generation = Some(ran.generation);
        count += 1;
        cell(&json!({
            "cell_type": "code",
            "execution_count": ran.count,
            "id": format!("cell-{count}"),
            "metadata": {},
            "outputs": ran.outputs.unwrap_or_else(|| json!([])),
            "source": lines(&ran.code),
        }))?;
    }
    let metadata = metadata(&journal.session);
    let end = if count == 0 {
        "{\n \"cells\": []"
    } else {
        "\n ]"
    };
    let metadata = indented(&metadata, " ").map_err(write_failure)?;
    let metadata = metadata.trim_start();
    let rest = format!(
        "{end},\n \"metadata\": {metadata},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}}\n"
    );
    file.write_all(rest.as_bytes()).map_err(write_failure)?;
    file.flush().map_err(write_failure)?;
    Ok(count)
}

/// The notebook metadata that describes the kernel.
fn metadata(session: &SessionInfo) -> Value {
    let name = session.name.as_deref().unwrap_or("python3");
    let language = session.language.as_deref().unwrap_or("python");
    // As Jupyter calls it; others are named by their kernelspec, which need not be here.
    let display_name = if name == "python3" { "Python 3" } else { name };
    let mut language_info = json!({"name": language});
    if let Some(version) = &session.version {
        language_info["version"] = version.as_str().into();
    }
    json!({
        "kernelspec": {"display_name": display_name, "language": language, "name": name},
        "language_info": language_info,
    })
}

/// Formats a value with one space of indentation per level, starting at `margin`.
fn indented(value: &Value, margin: &str) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    let layout = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, layout);
    value.serialize(&mut serializer)?;
    let text = String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{margin}"));
    Ok(format!("{margin}{text}"))
}

/// Splits a text into lines, as nbformat stores them.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}
