//! The cells that ran in a session, as a list and as a notebook.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use cellwright_diagnostics::failure::{Failure, Kind, flag, hint};
use cellwright_diagnostics::json_schema::Timestamp;
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_execution::ExecutionStatus;
use cellwright_host::reply::{JournalInfo, SessionInfo};
use cellwright_stdext::rfc3339;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::table::Table;
use crate::file_path::FilePath;

/// Reads the cells that ran in a session, in order.
pub struct Journal {
    lines: Option<std::io::Split<BufReader<File>>>,
    session: SessionInfo,
    /// Number of runs that could not be written or read.
    lost: u64,
}

/// A line of the journal.
#[derive(Deserialize)]
struct JournalCell {
    generation: u32,
    count: Option<u32>,
    status: String,
    #[serde(default)]
    at: u64,
    code: String,
    outputs: Option<Value>,
}

/// A cell that ran in a session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistoryCell {
    /// Generation of the kernel that ran the cell.
    generation: u32,
    /// The number that the kernel gave the execution.
    execution_count: Option<u32>,
    /// How the cell ended.
    #[schemars(with = "ExecutionStatus")]
    status: String,
    /// Start of the cell.
    #[schemars(with = "Timestamp")]
    started_at: String,
    /// The code.
    code: String,
}

/// The cells that ran in a session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistoryReport {
    /// Name of the session.
    pub session: String,
    /// The cells, in the order in which they ran.
    pub cells: Vec<HistoryCell>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// A notebook that was written from a session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExportReport {
    /// Path of the notebook.
    pub path: String,
    /// Number of cells of the notebook.
    pub total_cells: usize,
    /// Number of runs that could not be recorded.
    pub lost: u64,
}

impl Journal {
    /// Opens the journal of a session.
    pub fn open(info: Box<JournalInfo>) -> Result<Self, Failure> {
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

    fn next(&mut self) -> Result<Option<JournalCell>, Failure> {
        while let Some(line) = self.lines.as_mut().and_then(Iterator::next) {
            match serde_json::from_slice(&line?) {
                Ok(cell) => return Ok(Some(cell)),
                // Only the host writes there: the line is damaged.
                Err(_) => self.lost += 1,
            }
        }
        Ok(None)
    }

    /// A notice if runs are missing.
    pub fn lost_notice(&self) -> Option<UserNotice> {
        lost_notice(self.lost)
    }

    /// Reads all cells.
    pub fn read_cells(&mut self) -> Result<Vec<HistoryCell>, Failure> {
        let mut cells = Vec::new();
        while let Some(cell) = self.next()? {
            cells.push(HistoryCell {
                generation: cell.generation,
                execution_count: cell.count,
                status: cell.status,
                started_at: rfc3339::format_seconds(UNIX_EPOCH + Duration::from_secs(cell.at)),
                code: cell.code,
            });
        }
        Ok(cells)
    }

    /// Writes the cells as a notebook. Returns the number of cells.
    pub fn write_notebook(&mut self, file: impl Write) -> Result<usize, Failure> {
        write(self, file, Failure::from)
    }

    /// Saves the cells as a notebook. An existing file is replaced only with `force`.
    pub fn export(mut self, file: &FilePath, force: bool) -> Result<ExportReport, Failure> {
        let (out, shown) = (file.open_path(), file.display_path().display());
        let write_failure = |error: std::io::Error| {
            let message = format!("Could not write {shown}");
            let mut failure = Failure::new(Kind::BadFile, message);
            failure.causes.push(error.to_string());
            failure.hint("nothing was written")
        };
        // Follows a link, and keeps the permissions of an existing file. In a held directory, links were followed before.
        let (target, found) = if file.is_held() {
            (out.to_owned(), out.symlink_metadata())
        } else {
            let target = out.canonicalize().unwrap_or_else(|_| out.to_owned());
            let found = target.metadata();
            (target, found)
        };
        let exists = out.symlink_metadata().is_ok();
        let mode = match found {
            Ok(found) if found.is_file() => found.permissions(),
            Ok(_) => return Err(write_failure(std::io::Error::other("it is not a file"))),
            Err(_) => Permissions::from_mode(0o644),
        };
        if exists && !force {
            let failure = Failure::new(Kind::BadFile, format!("{shown} exists"));
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
        let temporary = tempfile::Builder::new()
            .prefix(".cellwright-")
            .permissions(mode)
            .tempfile_in(dir)
            .map_err(write_failure)?;
        let cells = write(
            &mut self,
            BufWriter::new(temporary.as_file()),
            write_failure,
        )?;
        temporary.as_file().sync_all().map_err(write_failure)?;
        let kept = if force {
            temporary.persist(&target)
        } else {
            temporary.persist_noclobber(&target)
        };
        kept.map_err(|error| write_failure(error.error))?;
        Ok(ExportReport {
            path: file.to_text(),
            total_cells: cells,
            lost: self.lost,
        })
    }
}

impl ExportReport {
    /// A notice if runs are missing.
    pub fn lost_notice(&self) -> Option<UserNotice> {
        lost_notice(self.lost)
    }
}

fn lost_notice(lost: u64) -> Option<UserNotice> {
    (lost > 0).then(|| {
        let text =
            format!("{lost} runs are missing: they could not be written to the host's directory");
        UserNotice::new(NoticeKind::HistoryIncomplete, text)
    })
}

/// Formats cells as a table; `None` if there are none.
pub fn history_table(cells: &[HistoryCell]) -> Option<Table> {
    let mut table = Table::new(["GEN", "CELL", "STATUS", "CODE"]).clip("CODE");
    for cell in cells {
        let mut lines = cell.code.trim_end().lines();
        let mut first = lines.next().unwrap_or_default().to_owned();
        if lines.next().is_some() {
            first.push_str(" […]");
        }
        let count = cell.execution_count.map(|count| format!("[{count}]"));
        table.push([
            cell.generation.to_string(),
            count.unwrap_or_else(|| "-".to_owned()),
            cell.status.clone(),
            first,
        ]);
    }
    (!table.is_empty()).then_some(table)
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
