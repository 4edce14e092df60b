//! [`CellReport`]: how a cell ended and what it produced.

use std::sync::Arc;

use cellwright_output::Outputs;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{ErrorReport, ExecutionStatus, ImageReport, TruncationReport};
use crate::cell_request::OnError;

/// The result of one cell. A notebook may have very many, most of which have no output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellReport {
    /// Index in the notebook, or in the request.
    pub index: usize,
    /// Cell id.
    pub id: Option<String>,
    /// How the cell ended.
    pub status: ExecutionStatus,
    /// The number that the kernel gave the execution.
    pub execution_count: Option<u32>,
    /// Duration in milliseconds.
    pub duration_ms: f64,
    /// The exception that the cell raised.
    pub error: Option<Box<ErrorReport>>,
    /// What an exception means for the execution.
    pub on_error: OnError,
    /// Generation of the kernel that ran the cell.
    pub generation: u32,
    /// Whether the report contains the outputs.
    has_outputs: bool,
    /// `None` for a cell without output.
    output: Option<Box<CellOutput>>,
}

/// The output of a cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct CellOutput {
    text: String,
    outputs: CellOutputs,
    details: Option<Box<CellDetails>>,
}

/// The parts of a report that few cells of a notebook have.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CellDetails {
    /// Title from the request.
    pub title: Option<String>,
    /// How much of the output is in the text, if not all.
    pub truncated: Option<TruncationReport>,
    /// Displayed images.
    pub images: Vec<ImageReport>,
    /// Displayed JSON values.
    pub json: Vec<Value>,
    /// Status events.
    pub events: Vec<Value>,
}

/// The details of most cells.
static NO_DETAILS: CellDetails = CellDetails {
    title: None,
    truncated: None,
    images: Vec::new(),
    json: Vec::new(),
    events: Vec::new(),
};

impl CellReport {
    /// The report of a cell that has not started.
    pub fn new(index: usize, id: Option<String>, on_error: OnError) -> Self {
        Self {
            index,
            id,
            status: ExecutionStatus::Pending,
            execution_count: None,
            duration_ms: 0.0,
            error: None,
            on_error,
            generation: 0,
            has_outputs: false,
            output: None,
        }
    }

    /// Output as text, bounded.
    pub fn text(&self) -> &str {
        self.output.as_ref().map_or("", |output| &output.text)
    }

    /// Sets the output as text.
    pub fn set_text(&mut self, text: String) {
        if self.output.is_some() || !text.is_empty() {
            self.output.get_or_insert_default().text = text;
        }
    }

    /// The outputs for a notebook. `None` for a cell that did not run, and in a report without outputs.
    pub fn outputs(&self) -> Option<&CellOutputs> {
        let output = self.output.as_ref();
        let outputs = output.map_or(&CellOutputs::Empty, |output| &output.outputs);
        self.has_outputs.then_some(outputs)
    }

    /// Sets the outputs for a notebook.
    pub fn set_outputs(&mut self, outputs: Option<CellOutputs>) {
        self.has_outputs = outputs.is_some();
        let outputs = outputs.unwrap_or_default();
        if self.output.is_some() || !matches!(outputs, CellOutputs::Empty) {
            self.output.get_or_insert_default().outputs = outputs;
        }
    }

    /// The parts that few cells have.
    pub fn details(&self) -> &CellDetails {
        let details = self
            .output
            .as_ref()
            .and_then(|output| output.details.as_deref());
        details.unwrap_or(&NO_DETAILS)
    }

    /// Sets the parts that few cells have.
    pub fn set_details(&mut self, details: CellDetails) {
        let details = (!details.is_empty()).then(|| Box::new(details));
        if self.output.is_some() || details.is_some() {
            self.output.get_or_insert_default().details = details;
        }
    }

    /// Whether the cell ended as intended: also with an exception, if the request expects one.
    pub fn ended_as_expected(&self) -> bool {
        self.status == ExecutionStatus::Ok
            || (self.status == ExecutionStatus::Error && self.on_error == OnError::Expected)
    }

    /// Whether the cell was started.
    pub fn ran(&self) -> bool {
        self.status.is_final()
            && !matches!(
                self.status,
                ExecutionStatus::Skipped | ExecutionStatus::NotStarted
            )
    }
}

impl CellDetails {
    fn is_empty(&self) -> bool {
        self.title.is_none()
            && self.truncated.is_none()
            && self.images.is_empty()
            && self.json.is_empty()
            && self.events.is_empty()
    }
}

/// The nbformat outputs of a cell.
#[derive(Clone, Debug, Default)]
pub enum CellOutputs {
    /// None.
    #[default]
    Empty,
    /// As captured.
    Captured(Arc<Outputs>),
    /// As JSON: read from the saved notebook, or received from the host.
    Json(Box<RawValue>),
}

impl Serialize for CellOutputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Empty => serializer.collect_seq([(); 0]),
            Self::Captured(outputs) => outputs.serialize(serializer),
            Self::Json(outputs) => outputs.serialize(serializer),
        }
    }
}

impl From<Box<RawValue>> for CellOutputs {
    fn from(outputs: Box<RawValue>) -> Self {
        if outputs.get() == "[]" {
            Self::Empty
        } else {
            Self::Json(outputs)
        }
    }
}

impl<'de> Deserialize<'de> for CellOutputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_the_same_after_serialization() {
        let report = |index| CellReport::new(index, None, OnError::Stop);
        let mut reports: Vec<CellReport> = (0..3).map(report).collect();
        reports[1].set_outputs(Some(CellOutputs::Empty));
        reports[2].set_text("x".to_owned());
        let json = RawValue::from_string("[1]".to_owned()).unwrap();
        reports[2].set_outputs(Some(json.into()));
        let details = CellDetails {
            title: Some("title".to_owned()),
            ..CellDetails::default()
        };
        reports[2].set_details(details);
        assert!(reports[1].output.is_none());
        let text = serde_json::to_string(&reports).unwrap();
        let received: Vec<CellReport> = serde_json::from_str(&text).unwrap();
        for reports in [reports, received] {
            let outputs = |at: usize| {
                let outputs: Option<&CellOutputs> = reports[at].outputs();
                outputs.map(|outputs| serde_json::to_string(outputs).unwrap())
            };
            assert_eq!(
                [0, 1, 2].map(outputs),
                [None, Some("[]".to_owned()), Some("[1]".to_owned())]
            );
            assert_eq!([0, 1, 2].map(|at| reports[at].text()), ["", "", "x"]);
            let titles = [0, 1, 2].map(|at| reports[at].details().title.as_deref());
            assert_eq!(titles, [None, None, Some("title")]);
        }
    }
}
