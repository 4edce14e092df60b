//! Lists the parameters that a notebook accepts.

use cellwright_diagnostics::failure::{Failure, Kind, capitalize};
use cellwright_diagnostics::notice::{self, NoticeKind, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_execution::Listing;
use cellwright_execution::parameters::{DeclaredParameter, declared_parameters, plan_injection};
use cellwright_notebook::{Cells, file};
use schemars::JsonSchema;
use serde::Serialize;

use crate::file_path::FilePath;
use crate::run::tagged_cells;
use crate::table::Table;

/// The parameters that a notebook accepts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ParametersReport {
    /// Path of the notebook.
    path: String,
    /// Revision of the notebook.
    pub revision: String,
    /// Language of the notebook.
    language: String,
    /// Index of the cell tagged `parameters`, from 0; `null` if there is none.
    pub index: Option<usize>,
    /// Id of that cell.
    id: Option<String>,
    /// The variables that the cell assigns.
    pub parameters: Vec<ListedParameter>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// A parameter that a notebook accepts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedParameter {
    /// Name of the variable.
    name: String,
    /// Source text of the default value; `null` if it is not known.
    default: Option<String>,
    /// Source text of the type.
    type_hint: Option<String>,
    /// The comment after the assignment.
    help: Option<String>,
}

impl From<DeclaredParameter> for ListedParameter {
    fn from(declared: DeclaredParameter) -> Self {
        Self {
            name: declared.name,
            default: declared.default,
            type_hint: declared.type_hint,
            help: declared.help,
        }
    }
}

/// Lists the parameters of a notebook. No code runs.
pub fn list_parameters(path: &FilePath, engine: &Engine) -> Result<ParametersReport, Failure> {
    let (notebook, notices) = file::load_any_format(path.open_path(), engine.baselines.as_ref())
        .map_err(|error| path.failure(error))?;
    let listing = Listing::from_notebook(&notebook);
    let language = listing.language().unwrap_or("python");
    let cell = plan_injection(&tagged_cells(&listing)).defaults;
    let source = cell.map_or_else(String::new, |index| notebook.source(index).into_owned());
    let found = declared_parameters(language, &source)
        .map_err(|error| Failure::new(Kind::BadArguments, capitalize(&error.to_string())))?;
    let mut notices = notice::describe(&notices);
    if cell.is_none() {
        let text = format!(
            "no cell is tagged `parameters`: `notebook tag {} CELL parameters` tags the cell with the default values",
            path.display_path().display()
        );
        notices.push(UserNotice::new(NoticeKind::NoParametersCell, text));
    }
    Ok(ParametersReport {
        path: path.to_text(),
        revision: notebook.revision().to_string(),
        language: language.to_owned(),
        index: cell,
        id: cell.and_then(|index| Some(notebook.id(index)?.into_owned())),
        parameters: found.into_iter().map(ListedParameter::from).collect(),
        notices,
    })
}

impl ParametersReport {
    /// Columns: name, type, default, help.
    pub fn table(&self) -> Table {
        let mut table = Table::new(["NAME", "TYPE", "DEFAULT", "HELP"])
            .clip("DEFAULT")
            .clip("HELP")
            .hide_first(&["HELP", "TYPE"]);
        let text = |text: &Option<String>| {
            let lines = text.as_deref().unwrap_or("-").lines().map(str::trim);
            lines.collect::<Vec<_>>().join(" ")
        };
        for parameter in &self.parameters {
            table.push([
                parameter.name.clone(),
                text(&parameter.type_hint),
                text(&parameter.default),
                parameter.help.clone().unwrap_or_default(),
            ]);
        }
        table
    }

    /// Which cell has the parameters; `None` without a tagged cell, which a notice reports.
    pub fn remark(&self) -> Option<String> {
        let index = self.index?;
        Some(if self.parameters.is_empty() {
            format!("cell {index} is tagged `parameters` and assigns no variable")
        } else {
            format!("cell {index} sets the defaults")
        })
    }
}
