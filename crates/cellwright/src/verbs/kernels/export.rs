//! What ran on a session: as a list, and as a notebook.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::demand;
use crate::failure::{Failure, Kind};
use crate::host::wanted::{Wanted, Who};
use crate::screen::Screen;
use crate::table::aligned;

/// One cell, as the host wrote it down.
#[derive(Deserialize)]
struct Cell {
    generation: u32,
    count: Option<u32>,
    status: String,
    #[serde(default)]
    at: u64,
    code: String,
    outputs: Option<Box<RawValue>>,
}

/// The cells that ran on a session, one after the other.
struct Journal {
    lines: Option<std::io::Split<BufReader<File>>>,
    /// The session as the host knows it.
    kernel: Value,
}

impl Journal {
    fn open(who: &Who) -> Result<Self, Failure> {
        let mut answer = demand(&Wanted::Journal {
            session: who.clone(),
        })?;
        let path: PathBuf = answer["journal"].as_str().unwrap_or_default().into();
        let lines = match File::open(&path) {
            Ok(file) => Some(BufReader::new(file).split(b'\n')),
            // Nothing ran so far.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            lines,
            kernel: answer["kernel"].take(),
        })
    }

    fn next(&mut self) -> Result<Option<Cell>, Failure> {
        let Some(line) = self.lines.as_mut().and_then(Iterator::next) else {
            return Ok(None);
        };
        // A last line that is being written just now is no line yet.
        Ok(serde_json::from_slice(&line?).ok())
    }
}

pub(super) fn history(who: &Who, screen: &Screen) -> Result<(), Failure> {
    let mut journal = Journal::open(who)?;
    let head = ["GEN", "CELL", "STATUS", "CODE"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut cells = Vec::new();
    while let Some(cell) = journal.next()? {
        if screen.json {
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
    if screen.json {
        return screen.document(&cells);
    }
    if rows.len() == 1 {
        screen.remark("nothing ran so far");
        return Ok(());
    }
    screen.data(&aligned(&rows))
}

pub(super) fn export(who: &Who, out: &Path, force: bool, screen: &Screen) -> Result<(), Failure> {
    if !force && out.exists() {
        let failure = Failure::new(Kind::BadFile, format!("{} exists", out.display()));
        let hint = "name another file, or replace it with --force; nothing was written";
        return Err(failure.hint(hint));
    }
    let mut journal = Journal::open(who)?;
    let folder = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let trouble = |error: std::io::Error| {
        let mut failure = Failure::new(Kind::BadFile, format!("Could not write {}", out.display()));
        failure.causes.push(error.to_string());
        failure.hint("nothing was written")
    };
    let file = tempfile::Builder::new()
        .prefix(".cellwright-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(trouble)?;
    let count = write(&mut journal, BufWriter::new(file.as_file()), trouble)?;
    file.as_file().sync_all().map_err(trouble)?;
    let kept = if force {
        file.persist(out)
    } else {
        file.persist_noclobber(out)
    };
    kept.map_err(|error| trouble(error.error))?;
    if screen.json {
        return screen.document(&json!({"path": out, "cells": count}));
    }
    screen.remark(&format!("{}: {count} cells", out.display()));
    Ok(())
}

/// Writes a notebook; says how many cells ran.
fn write(
    journal: &mut Journal,
    mut file: impl Write,
    trouble: impl Fn(std::io::Error) -> Failure + Copy,
) -> Result<usize, Failure> {
    file.write_all(b"{\n \"cells\": [").map_err(trouble)?;
    let (mut count, mut written, mut generation) = (0, 0, None);
    let mut cell = |cell: Value, outputs: Option<&str>| -> Result<(), Failure> {
        let between: &[u8] = if written == 0 { b"\n  " } else { b",\n  " };
        file.write_all(between).map_err(trouble)?;
        let mut text = cell.to_string();
        if let Some(outputs) = outputs {
            // They are as they must be already, and may be large.
            text.truncate(text.len() - 1);
            text.push_str(",\"outputs\":");
            text.push_str(outputs);
            text.push('}');
        }
        file.write_all(text.as_bytes()).map_err(trouble)?;
        written += 1;
        Ok(())
    };
    while let Some(ran) = journal.next()? {
        if generation.is_some_and(|before| before != ran.generation) {
            let source =
                "*Here the kernel was replaced by a fresh one: variables from above are gone.*";
            let fresh = json!({
                "cell_type": "markdown",
                "id": format!("fresh-{}", ran.generation),
                "metadata": {},
                "source": lines(source),
            });
            cell(fresh, None)?;
        }
        generation = Some(ran.generation);
        count += 1;
        let code = json!({
            "cell_type": "code",
            "execution_count": ran.count,
            "id": format!("cell-{count}"),
            "metadata": {},
            "source": lines(&ran.code),
        });
        cell(
            code,
            Some(ran.outputs.as_ref().map_or("[]", |outputs| outputs.get())),
        )?;
    }
    let metadata = json!({
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "version": journal.kernel["version"]},
    });
    let end: &[u8] = if written == 0 { b"]" } else { b"\n ]" };
    file.write_all(end).map_err(trouble)?;
    let rest =
        format!(",\n \"metadata\": {metadata},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}}\n");
    file.write_all(rest.as_bytes()).map_err(trouble)?;
    file.flush().map_err(trouble)?;
    Ok(count)
}

/// Lines as notebooks have them.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}
