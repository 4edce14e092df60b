//! Prompts: common tasks with notebooks, described in terms of the tools.

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};

use super::wording;

/// Longest argument, in bytes: a prompt repeats it.
const ARGUMENT_LIMIT: usize = 4096;

/// Definition of a prompt.
struct PromptSpec {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// Name, description and whether it is required.
    arguments: &'static [(&'static str, &'static str, bool)],
    /// The text, with `{name}` in place of an argument.
    text: &'static str,
}

const PROMPTS: [PromptSpec; 3] = [
    PromptSpec {
        name: "fix-notebook",
        title: "Make a notebook run",
        description: "Run a notebook on a fresh kernel and fix the cells that fail",
        arguments: &[("path", "The notebook", true)],
        text: "\
Make the notebook {path} run from top to bottom.
1. `read` {path}:outline, then the cells you need.
2. `run` {path} with \"restart\": true.
3. If a cell fails, find the cause (`kernels` variables lists variables), change as little as possible with \
`edit` or `notebook`, and `run` with \"stale\": true. Repeat.
4. At the end `run` once more with \"restart\": true as a proof.
Keep the meaning of the notebook; do not delete cells or hide errors. Report what was wrong and show the diffs.",
    },
    PromptSpec {
        name: "explore-data",
        title: "Explore a data file in a notebook",
        description: "Create a notebook that explores a data file",
        arguments: &[
            ("data", "The data file", true),
            ("path", "The notebook to create", true),
            ("question", "The question to answer", false),
        ],
        text: "\
Explore the data in {data} in a new notebook {path}. {question}
1. Inspect the data with `eval` first: size, columns, types, missing values.
2. Create the notebook with `write` (\"create\": true): a markdown cell with the question, then small code cells, each \
with one step, and a figure where it is clearer than a table.
3. `run` it, check the outputs and images, correct it with `edit` and `run` with \"stale\": true.
4. Add markdown cells that explain the outputs, and a summary at the top. `run` with \"restart\": true at the end.",
    },
    PromptSpec {
        name: "review-notebook",
        title: "Review a notebook",
        description: "Check whether the results of a notebook are reliable",
        arguments: &[("path", "The notebook", true)],
        text: "\
Review the notebook {path}; do not change it.
1. `read` {path}:outline, then the cells with :outputs.
2. `run` {path} with \"restart\": true and another file as \"output\", and compare its outputs with the stored ones.
3. Look for cells that depend on another order of execution, hidden state, wrong joins or filters, leaking test data, \
numbers in the text that the outputs do not confirm.
Report the findings by importance, each with its cell.",
    },
];

/// Lists the prompts.
pub(super) fn list() -> Vec<Prompt> {
    let argument = |&(name, description, required): &(&str, &str, bool)| {
        PromptArgument::new(name)
            .with_description(description)
            .with_required(required)
    };
    PROMPTS
        .iter()
        .map(|spec| {
            let arguments = spec.arguments.iter().map(argument).collect();
            Prompt::new(spec.name, Some(spec.description), Some(arguments)).with_title(spec.title)
        })
        .collect()
}

/// Returns a prompt with its arguments filled in.
pub(super) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let Some(spec) = PROMPTS.iter().find(|spec| spec.name == request.name) else {
        let names: Vec<&str> = PROMPTS.iter().map(|spec| spec.name).collect();
        let message = format!(
            "there is no prompt `{}`; available: {}",
            wording::sanitize_name(&request.name),
            names.join(", ")
        );
        return Err(ErrorData::invalid_params(message, None));
    };
    let mut text = spec.text.to_owned();
    for (name, _, required) in spec.arguments {
        let given = request
            .arguments
            .as_ref()
            .and_then(|given| given.get(*name));
        let given = given.map(|value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        });
        if *required && given.as_deref().is_none_or(|given| given.trim().is_empty()) {
            let message = format!("the prompt `{}` needs `{name}`", spec.name);
            return Err(ErrorData::invalid_params(message, None));
        }
        if given
            .as_ref()
            .is_some_and(|given| given.len() > ARGUMENT_LIMIT)
        {
            let message = format!("`{name}` is longer than {ARGUMENT_LIMIT} bytes");
            return Err(ErrorData::invalid_params(message, None));
        }
        text = text.replace(&format!("{{{name}}}"), given.as_deref().unwrap_or_default());
    }
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(spec.description))
}
