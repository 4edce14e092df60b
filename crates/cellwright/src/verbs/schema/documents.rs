//! The documents of all verbs.

use cellwright_diagnostics::failure::ErrorDocument;
use cellwright_execution::ReportDocument;
use cellwright_host::reply::{CancelResult, EndResult, InterruptResult, ResetResult, RunTail};
use cellwright_operations::artifact::{ArtifactList, ArtifactPath, ArtifactReport, SearchReport};
use cellwright_operations::change::ChangeReport;
use cellwright_operations::check::CheckReport;
use cellwright_operations::declared_parameters::ParametersReport;
use cellwright_operations::diff::DiffReport;
use cellwright_operations::doctor::DoctorReport;
use cellwright_operations::figures::FiguresReport;
use cellwright_operations::gateway::{GatewayReport, StartedGateway, StoppedGateways};
use cellwright_operations::git::check::SetupCheckReport;
use cellwright_operations::git::merge::MergeReport;
use cellwright_operations::git::setup::SetupReport;
use cellwright_operations::helpers::HelpersReport;
use cellwright_operations::history::{ExportReport, HistoryReport};
use cellwright_operations::kernel_specs::KernelSpecList;
use cellwright_operations::kernels::{
    CompletionReport, InspectionReport, RunList, SessionList, VariablesReport,
};
use cellwright_operations::location::LocationReport;
use cellwright_operations::metadata::{MetadataReport, TagsReport};
use cellwright_operations::outline::OutlineReport;
use cellwright_operations::read::TextResult;
use cellwright_operations::server_kernels::{ServerKernelList, ServerKernelResult};
use cellwright_operations::trust::TrustReport;
use cellwright_operations::undo::UndoReport;
use cellwright_operations::upgrade::UpgradeReport;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{Document, SchemaList};
use crate::cli::CompletionScript;
use crate::cli::mcp::{ClientConfigReport, Listening};
use crate::document::{StillRunning, Versioned};
use crate::verbs::config::{SettingDocument, SettingFiles, SettingList};
use crate::verbs::git::TextconvReport;
use crate::verbs::host::{HostLog, HostStatus, StartedHost, StoppedHost};
use crate::verbs::kernels::StoppedSessions;
use crate::viewer::event_documents::{
    Begin, Checked, Continues, Display, Done, End, Failed, KernelReady, Lost, Raised, Stamped, Text,
};

fn document<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = Versioned::<T>::json_schema(generator);
    let content = T::json_schema(generator);
    if let Some(description) = content.get("description") {
        schema.insert("description".to_owned(), description.clone());
    }
    schema
}

fn event<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = document::<Stamped<T>>(generator);
    if let Some(description) = T::json_schema(generator).get("description") {
        schema.insert("description".to_owned(), description.clone());
    }
    schema
}

/// The documents by name. A verb that prints one of several documents has all of them.
pub(super) const DOCUMENTS: &[Document] = &[
    Document {
        name: "artifact list",
        forms: &[document::<ArtifactList>],
    },
    Document {
        name: "artifact path",
        forms: &[document::<ArtifactPath>],
    },
    Document {
        name: "artifact show",
        forms: &[document::<ArtifactReport>, document::<SearchReport>],
    },
    Document {
        name: "check",
        forms: &[document::<CheckReport>],
    },
    Document {
        name: "completions",
        forms: &[document::<CompletionScript>],
    },
    Document {
        name: "config get",
        forms: &[document::<SettingDocument>],
    },
    Document {
        name: "config list",
        forms: &[document::<SettingList>],
    },
    Document {
        name: "config path",
        forms: &[document::<SettingFiles>],
    },
    Document {
        name: "diff",
        forms: &[document::<DiffReport>],
    },
    Document {
        name: "doctor",
        forms: &[document::<DoctorReport>],
    },
    Document {
        name: "edit",
        forms: &[document::<ChangeReport>],
    },
    Document {
        name: "error",
        forms: &[document::<ErrorDocument>],
    },
    Document {
        name: "eval",
        forms: &[
            document::<ReportDocument<'static>>,
            document::<StillRunning<'static>>,
        ],
    },
    Document {
        name: "events",
        forms: &[
            event::<KernelReady<'static>>,
            event::<Begin<'static>>,
            event::<Text>,
            event::<Display>,
            event::<Raised>,
            event::<Lost>,
            event::<End<'static>>,
            event::<Done<'static>>,
            event::<Checked<'static>>,
            event::<Continues<'static>>,
            event::<Failed>,
        ],
    },
    Document {
        name: "gateway start",
        forms: &[document::<StartedGateway>],
    },
    Document {
        name: "gateway status",
        forms: &[document::<GatewayReport>],
    },
    Document {
        name: "gateway stop",
        forms: &[document::<StoppedGateways>],
    },
    Document {
        name: "git merge",
        forms: &[document::<MergeReport>],
    },
    Document {
        name: "git setup",
        forms: &[document::<SetupReport>, document::<SetupCheckReport>],
    },
    Document {
        name: "git textconv",
        forms: &[document::<TextconvReport>],
    },
    Document {
        name: "helpers",
        forms: &[document::<HelpersReport>],
    },
    Document {
        name: "host log",
        forms: &[document::<HostLog>],
    },
    Document {
        name: "host start",
        forms: &[document::<StartedHost>],
    },
    Document {
        name: "host status",
        forms: &[document::<HostStatus>],
    },
    Document {
        name: "host stop",
        forms: &[document::<StoppedHost>],
    },
    Document {
        name: "kernels complete",
        forms: &[document::<CompletionReport>],
    },
    Document {
        name: "kernels export",
        forms: &[document::<ExportReport>],
    },
    Document {
        name: "kernels history",
        forms: &[document::<HistoryReport>],
    },
    Document {
        name: "kernels inspect",
        forms: &[document::<InspectionReport>],
    },
    Document {
        name: "kernels interrupt",
        forms: &[document::<InterruptResult>, document::<ServerKernelResult>],
    },
    Document {
        name: "kernels list",
        forms: &[document::<SessionList>, document::<ServerKernelList>],
    },
    Document {
        name: "kernels reset",
        forms: &[document::<ResetResult>, document::<ServerKernelResult>],
    },
    Document {
        name: "kernels specs",
        forms: &[document::<KernelSpecList>],
    },
    Document {
        name: "kernels stop",
        forms: &[
            document::<EndResult>,
            document::<StoppedSessions>,
            document::<ServerKernelResult>,
        ],
    },
    Document {
        name: "kernels variables",
        forms: &[document::<VariablesReport>],
    },
    Document {
        name: "mcp",
        forms: &[document::<Listening>, document::<ClientConfigReport>],
    },
    Document {
        name: "notebook clear",
        forms: &[document::<ChangeReport>],
    },
    Document {
        name: "notebook delete",
        forms: &[document::<ChangeReport>],
    },
    Document {
        name: "notebook edit",
        forms: &[document::<ChangeReport>],
    },
    Document {
        name: "notebook figures",
        forms: &[document::<FiguresReport>],
    },
    Document {
        name: "notebook insert",
        forms: &[document::<ChangeReport>],
    },
    Document {
        name: "notebook meta",
        forms: &[document::<MetadataReport>, document::<ChangeReport>],
    },
    Document {
        name: "notebook move",
        forms: &[document::<ChangeReport>],
    },
    Document {
        name: "notebook outline",
        forms: &[document::<OutlineReport>],
    },
    Document {
        name: "notebook parameters",
        forms: &[document::<ParametersReport>],
    },
    Document {
        name: "notebook redo",
        forms: &[document::<UndoReport>],
    },
    Document {
        name: "notebook tag",
        forms: &[document::<TagsReport>, document::<ChangeReport>],
    },
    Document {
        name: "notebook type",
        forms: &[document::<ChangeReport>],
    },
    Document {
        name: "notebook undo",
        forms: &[document::<UndoReport>],
    },
    Document {
        name: "notebook upgrade",
        forms: &[document::<UpgradeReport>],
    },
    Document {
        name: "notebook where",
        forms: &[document::<LocationReport>],
    },
    Document {
        name: "read",
        forms: &[
            document::<TextResult>,
            document::<OutlineReport>,
            document::<FiguresReport>,
            document::<ArtifactReport>,
        ],
    },
    Document {
        name: "run",
        forms: &[
            document::<ReportDocument<'static>>,
            document::<StillRunning<'static>>,
        ],
    },
    Document {
        name: "runs cancel",
        forms: &[document::<CancelResult>],
    },
    Document {
        name: "runs list",
        forms: &[document::<RunList>],
    },
    Document {
        name: "runs tail",
        forms: &[document::<RunTail>],
    },
    Document {
        name: "runs wait",
        forms: &[
            document::<ReportDocument<'static>>,
            document::<StillRunning<'static>>,
        ],
    },
    Document {
        name: "schema",
        forms: &[document::<SchemaList>],
    },
    Document {
        name: "trust",
        forms: &[document::<TrustReport>],
    },
    Document {
        name: "write",
        forms: &[document::<ChangeReport>],
    },
];
