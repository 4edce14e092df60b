//! Prompts: what people ask agents to do with notebooks, in words that go well with the tools.

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};

/// A prompt.
struct PromptSpec {
    name: &'static str,
    title: &'static str,
    what: &'static str,
    arguments: &'static [(&'static str, &'static str, bool)],
    /// With `{name}` where an argument goes.
    text: &'static str,
}

const PROMPTS: [PromptSpec; 3] = [
    PromptSpec {
        name: "fix-notebook",
        title: "Make a notebook run",
        what: "Run a notebook from a fresh kernel and correct what fails",
        arguments: &[("path", "The notebook", true)],
        text: "\
Make the notebook {path} run from top to bottom.
1. `read` {path}:outline, then the cells you need.
2. `run` {path} with \"restart\": true.
3. If a cell fails, find the cause (look at variables with `kernels` variables), change as little as possible with \
`edit` or `notebook`, and `run` with \"stale\": true. Repeat.
4. At the end `run` once more with \"restart\": true to prove it.
Keep what the notebook means; do not delete cells or hide errors. Tell me what was wrong and show the diffs.",
    },
    PromptSpec {
        name: "explore-data",
        title: "Explore a file of data in a notebook",
        what: "Make a notebook that looks into a file of data",
        arguments: &[
            ("data", "The file of data", true),
            ("path", "The notebook to make", true),
            ("question", "What you want to know", false),
        ],
        text: "\
Explore the data in {data} in a new notebook {path}. {question}
1. Look at the data with `eval` first: size, columns, types, missing values.
2. Make the notebook with `write` (\"create\": true): a markdown cell with the question, then small code cells, each \
with one step, and a figure where it says more than a table.
3. `run` it, look at the outputs and images, correct it with `edit` and `run` with \"stale\": true.
4. Add markdown cells that say what the outputs show, and a summary at the top. `run` with \"restart\": true at the end.",
    },
    PromptSpec {
        name: "review-notebook",
        title: "Review a notebook",
        what: "Check whether a notebook's results can be trusted",
        arguments: &[("path", "The notebook", true)],
        text: "\
Review the notebook {path}; do not change it.
1. `read` {path}:outline, then the cells with :outputs.
2. `run` {path} with \"restart\": true and \"output\" naming another file, and compare its outputs with those stored.
3. Look for cells that depend on an order they are not in, hidden state, wrong joins or filters, leaking test data, \
numbers in the text that the outputs do not show.
Tell me the findings by importance, each with the cell it is in.",
    },
];

/// All prompts.
pub(super) fn list() -> Vec<Prompt> {
    let argument = |&(name, what, required): &(&str, &str, bool)| {
        PromptArgument::new(name)
            .with_description(what)
            .with_required(required)
    };
    PROMPTS
        .iter()
        .map(|spec| {
            let arguments = spec.arguments.iter().map(argument).collect();
            Prompt::new(spec.name, Some(spec.what), Some(arguments)).with_title(spec.title)
        })
        .collect()
}

/// A prompt with its arguments in place.
pub(super) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let Some(spec) = PROMPTS.iter().find(|spec| spec.name == request.name) else {
        let names: Vec<&str> = PROMPTS.iter().map(|spec| spec.name).collect();
        let words = format!(
            "there is no prompt `{}`; there are {}",
            request.name,
            names.join(", ")
        );
        return Err(ErrorData::invalid_params(words, None));
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
            let words = format!("the prompt `{}` needs `{name}`", spec.name);
            return Err(ErrorData::invalid_params(words, None));
        }
        text = text.replace(&format!("{{{name}}}"), given.as_deref().unwrap_or_default());
    }
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(spec.what))
}
