//! Widgets that capture output (`ipywidgets.Output`, and `interact`, which uses it). A front end shows captured
//! output in the widget and not below the cell. There is no front end here, but captured output is marked for the
//! notebook, and the kernel receives the state of its widgets.

use std::collections::BTreeMap;

use bytes::Bytes;
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::Message;
use serde_json::{Value, json};

/// The largest comm message about such a widget, in bytes; larger ones carry images.
const COMM_MESSAGE_LIMIT: usize = 64 * 1024;

/// Bytes of output of one widget. Beyond that, its state is not sent to the kernel.
const WIDGET_OUTPUT_LIMIT: usize = 1024 * 1024;

/// Bytes of output of all widgets together.
const TOTAL_OUTPUT_LIMIT: usize = 16 * WIDGET_OUTPUT_LIMIT;

/// How many widgets are tracked.
const WIDGETS_MAX: usize = 1000;

/// The widgets of one kernel that capture output.
#[derive(Debug, Default)]
pub(super) struct OutputWidgets {
    /// By comm id.
    widgets: BTreeMap<String, OutputWidget>,
}

#[derive(Debug, Default)]
struct OutputWidget {
    /// The `msg_id` of the request whose output it captures.
    captured_request: Option<String>,
    /// Its outputs, as in a notebook.
    outputs: Vec<Value>,
    bytes: usize,
    clear_pending: bool,
    /// Whether the kernel has not received its current outputs.
    changed: bool,
}

impl OutputWidgets {
    /// Handles a comm message.
    pub(super) fn handle_comm(&mut self, message: &Message) {
        let Frame::InMemory(content) = &message.content else {
            return;
        };
        match message.header.msg_type.as_str() {
            "comm_open" if mentions_output(content) => {
                let content = message.value();
                let state = &content["data"]["state"];
                if state["_model_module"] == "@jupyter-widgets/output"
                    && self.widgets.len() < WIDGETS_MAX
                    && let Some(comm) = content["comm_id"].as_str()
                {
                    let mut widget = OutputWidget::default();
                    widget.apply_state(state);
                    self.widgets.insert(comm.to_owned(), widget);
                }
            }
            "comm_msg" if !self.widgets.is_empty() && content.len() < COMM_MESSAGE_LIMIT => {
                let content = message.value();
                if let Some(widget) = content["comm_id"]
                    .as_str()
                    .and_then(|comm| self.widgets.get_mut(comm))
                {
                    widget.apply_state(&content["data"]["state"]);
                }
            }
            "comm_close" if !self.widgets.is_empty() => {
                if let Some(comm) = message.value()["comm_id"].as_str() {
                    self.widgets.remove(comm);
                }
            }
            _ => {}
        }
    }

    /// Whether a widget captures the output of this request.
    pub(super) fn captures(&self, request: &str) -> bool {
        let mut known = self.widgets.values();
        known.any(|widget| widget.captured_request.as_deref() == Some(request))
    }

    /// Adds a message to the widget that captures it.
    pub(super) fn push_output(&mut self, request: &str, message: &Message) {
        let others: usize = self.widgets.values().map(|widget| widget.bytes).sum();
        let mut known = self.widgets.values_mut();
        let captures =
            |widget: &&mut OutputWidget| widget.captured_request.as_deref() == Some(request);
        if let Some(widget) = known.find(captures) {
            widget.push_output(message, TOTAL_OUTPUT_LIMIT.saturating_sub(others));
        }
    }

    /// The contents of the `comm_msg`s that update the kernel's state of widgets that have finished capturing.
    pub(super) fn take_updates(&mut self) -> Vec<Value> {
        let done = self.widgets.iter_mut();
        done.filter(|(_, widget)| widget.changed && widget.captured_request.is_none())
            .map(|(comm, widget)| {
                widget.changed = false;
                let state = json!({"outputs": widget.outputs});
                let data = json!({"method": "update", "state": state, "buffer_paths": []});
                json!({"comm_id": comm, "data": data})
            })
            .collect()
    }
}

impl OutputWidget {
    fn apply_state(&mut self, state: &Value) {
        if let Some(request) = state.get("msg_id") {
            let request = request.as_str().filter(|request| !request.is_empty());
            self.captured_request = request.map(str::to_owned);
        }
        if let Some(outputs) = state.get("outputs").and_then(Value::as_array) {
            self.outputs.clone_from(outputs);
            self.bytes = outputs.iter().map(|output| output.to_string().len()).sum();
        }
    }

    /// Adds a captured message, within a limit of `limit` bytes.
    fn push_output(&mut self, message: &Message, limit: usize) {
        let size = match &message.content {
            Frame::InMemory(content) => content.len(),
            Frame::OnDisk(_) => WIDGET_OUTPUT_LIMIT,
        };
        let kind = message.header.msg_type.as_str();
        if kind == "clear_output" {
            if message.value()["wait"] == true {
                self.clear_pending = true;
            } else {
                self.clear();
            }
            return;
        }
        if !["stream", "display_data", "execute_result", "error"].contains(&kind) {
            return;
        }
        if std::mem::take(&mut self.clear_pending) {
            self.clear();
        }
        // Beyond the limit nothing is kept until the output is cleared: a part of it would be wrong.
        self.bytes = if size < limit {
            self.bytes + size
        } else {
            WIDGET_OUTPUT_LIMIT
        };
        self.changed = self.bytes < WIDGET_OUTPUT_LIMIT;
        if !self.changed {
            self.outputs.clear();
            return;
        }
        // In the order that other clients use, because it is visible in the kernel.
        let content = message.value();
        let mut output = json!({"output_type": kind});
        let members = ["name", "text", "metadata", "data", "execution_count"];
        for member in members.into_iter().chain(["ename", "evalue", "traceback"]) {
            if let Some(value) = content.get(member) {
                output[member] = value.clone();
            }
        }
        if kind == "stream"
            && let Some(last) = self.outputs.last_mut()
            && last["output_type"] == "stream"
            && last["name"] == output["name"]
            && let Some(Value::String(before)) = last.get_mut("text")
            && let Some(text) = output["text"].as_str()
        {
            before.push_str(text);
            return;
        }
        self.outputs.push(output);
    }

    fn clear(&mut self) {
        self.outputs.clear();
        self.bytes = 0;
        self.changed = true;
    }
}

/// A fast check, because most widgets are of other types.
fn mentions_output(content: &Bytes) -> bool {
    content.len() < COMM_MESSAGE_LIMIT
        && content
            .windows(MODEL_NAME.len())
            .any(|window| window == MODEL_NAME.as_bytes())
}

const MODEL_NAME: &str = "OutputModel";

#[cfg(test)]
mod tests {
    use super::*;

    fn message(msg_type: &str, content: &Value) -> Message {
        Message::new(msg_type, "session", content)
    }

    /// Two widgets, of which the first captures the output of request `r`.
    fn capturing_widgets() -> OutputWidgets {
        let mut widgets = OutputWidgets::default();
        for comm in ["a", "b"] {
            let state = json!({"_model_module": "@jupyter-widgets/output", "_model_name": MODEL_NAME, "outputs": []});
            let content = json!({"comm_id": comm, "data": {"state": state}});
            widgets.handle_comm(&message("comm_open", &content));
        }
        widgets.handle_comm(&update("a", "r"));
        assert!(widgets.captures("r") && !widgets.captures("other"));
        widgets
    }

    fn update(comm: &str, request: &str) -> Message {
        let data = json!({"method": "update", "state": {"msg_id": request}});
        message("comm_msg", &json!({"comm_id": comm, "data": data}))
    }

    fn print(widgets: &mut OutputWidgets, text: &str) {
        let content = json!({"name": "stdout", "text": text});
        widgets.push_output("r", &message("stream", &content));
    }

    /// The outputs that are sent to the kernel after capturing ends.
    fn sent_outputs(widgets: &mut OutputWidgets) -> Vec<Value> {
        assert_eq!(widgets.take_updates(), [json!(null); 0]);
        widgets.handle_comm(&update("a", ""));
        assert!(!widgets.captures("r"));
        let updates = widgets.take_updates();
        assert_eq!(widgets.take_updates(), [json!(null); 0]);
        let outputs = |one: &Value| one["data"]["state"]["outputs"].clone();
        updates.iter().map(outputs).collect()
    }

    #[test]
    fn captured_output_is_sent_to_the_kernel() {
        let mut widgets = capturing_widgets();
        print(&mut widgets, "gone");
        widgets.push_output("r", &message("clear_output", &json!({"wait": true})));
        print(&mut widgets, "a\n");
        print(&mut widgets, "b\n");
        let content = json!({"data": {"text/plain": "1"}, "metadata": {}, "transient": {}});
        widgets.push_output("r", &message("display_data", &content));
        widgets.push_output("r", &message("status", &json!({"execution_state": "busy"})));
        assert_eq!(
            sent_outputs(&mut widgets),
            [json!([
                {"output_type": "stream", "name": "stdout", "text": "a\nb\n"},
                {"output_type": "display_data", "metadata": {}, "data": {"text/plain": "1"}},
            ])]
        );
    }

    #[test]
    fn output_beyond_the_limit_is_not_sent_until_it_is_cleared() {
        let mut widgets = capturing_widgets();
        let kilobyte = "x".repeat(1024);
        for _ in 0..2000 {
            print(&mut widgets, &kilobyte);
        }
        assert!(sent_outputs(&mut widgets).is_empty());
        widgets.handle_comm(&update("a", "r"));
        widgets.push_output("r", &message("clear_output", &json!({})));
        print(&mut widgets, "new");
        let outputs = json!([{"output_type": "stream", "name": "stdout", "text": "new"}]);
        assert_eq!(sent_outputs(&mut widgets), [outputs]);
    }
}
