//! Widgets that capture output (`ipywidgets.Output`, and `interact`, which uses it). A page would show what
//! they capture in the widget and not below the cell. There is no page here; but whoever runs a notebook is
//! told which is which, and the kernel is told what its widgets show.

use std::collections::BTreeMap;

use bytes::Bytes;
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::Message;
use serde_json::{Value, json};

/// Bytes of a message that may be about such a widget; others carry images.
const MOST_TALK: usize = 64 * 1024;

/// Bytes that one may show, and all of them together. Of what is more the kernel is not told.
const MOST_SHOWN: usize = 1024 * 1024;
const MOST_IN_ALL: usize = 16 * MOST_SHOWN;

/// How many are followed.
const MOST_WIDGETS: usize = 1000;

/// The widgets of one kernel that capture output.
#[derive(Debug, Default)]
pub(super) struct Widgets {
    /// By the number of their comm.
    known: BTreeMap<String, Widget>,
}

#[derive(Debug, Default)]
struct Widget {
    /// The request whose output it captures.
    request: Option<String>,
    /// What it shows, as a notebook has it.
    shown: Vec<Value>,
    bytes: usize,
    clears: bool,
    /// Whether the kernel is to be told.
    changed: bool,
}

impl Widgets {
    /// Takes what a kernel says to a widget in a page.
    pub(super) fn hear(&mut self, message: &Message) {
        let Frame::Held(content) = &message.content else {
            return;
        };
        match message.header.msg_type.as_str() {
            "comm_open" if mentions_output(content) => {
                let said = message.value();
                let state = &said["data"]["state"];
                if state["_model_module"] == "@jupyter-widgets/output"
                    && self.known.len() < MOST_WIDGETS
                    && let Some(comm) = said["comm_id"].as_str()
                {
                    let mut widget = Widget::default();
                    widget.learn(state);
                    self.known.insert(comm.to_owned(), widget);
                }
            }
            "comm_msg" if !self.known.is_empty() && content.len() < MOST_TALK => {
                let said = message.value();
                if let Some(widget) = said["comm_id"]
                    .as_str()
                    .and_then(|comm| self.known.get_mut(comm))
                {
                    widget.learn(&said["data"]["state"]);
                }
            }
            "comm_close" if !self.known.is_empty() => {
                if let Some(comm) = message.value()["comm_id"].as_str() {
                    self.known.remove(comm);
                }
            }
            _ => {}
        }
    }

    /// Whether one of them captures what a request puts out.
    pub(super) fn capture(&self, request: &str) -> bool {
        let mut known = self.known.values();
        known.any(|widget| widget.request.as_deref() == Some(request))
    }

    /// Takes what one of them captures.
    pub(super) fn show(&mut self, request: &str, message: &Message) {
        let others: usize = self.known.values().map(|widget| widget.bytes).sum();
        let mut known = self.known.values_mut();
        let captures = |widget: &&mut Widget| widget.request.as_deref() == Some(request);
        if let Some(widget) = known.find(captures) {
            widget.show(message, MOST_IN_ALL.saturating_sub(others));
        }
    }

    /// The contents of the messages that tell the kernel what those widgets show that have captured something
    /// and are done with it.
    pub(super) fn news(&mut self) -> Vec<Value> {
        let done = self.known.iter_mut();
        done.filter(|(_, widget)| widget.changed && widget.request.is_none())
            .map(|(comm, widget)| {
                widget.changed = false;
                let state = json!({"outputs": widget.shown});
                let data = json!({"method": "update", "state": state, "buffer_paths": []});
                json!({"comm_id": comm, "data": data})
            })
            .collect()
    }
}

impl Widget {
    fn learn(&mut self, state: &Value) {
        if let Some(request) = state.get("msg_id") {
            let request = request.as_str().filter(|request| !request.is_empty());
            self.request = request.map(str::to_owned);
        }
        if let Some(shown) = state.get("outputs").and_then(Value::as_array) {
            self.shown.clone_from(shown);
            self.bytes = shown.iter().map(|output| output.to_string().len()).sum();
        }
    }

    /// Takes what it captures, for which there is so much room.
    fn show(&mut self, message: &Message, room: usize) {
        let size = match &message.content {
            Frame::Held(content) => content.len(),
            Frame::Stored(_) => MOST_SHOWN,
        };
        let kind = message.header.msg_type.as_str();
        if kind == "clear_output" {
            if message.value()["wait"] == true {
                self.clears = true;
            } else {
                self.clear();
            }
            return;
        }
        if !["stream", "display_data", "execute_result", "error"].contains(&kind) {
            return;
        }
        if std::mem::take(&mut self.clears) {
            self.clear();
        }
        // Once it is too much it stays so until it is cleared: half of it would be wrong.
        self.bytes = if size < room {
            self.bytes + size
        } else {
            MOST_SHOWN
        };
        self.changed = self.bytes < MOST_SHOWN;
        if !self.changed {
            self.shown.clear();
            return;
        }
        // In the order in which other clients have them, which shows in what the kernel makes of it.
        let said = message.value();
        let mut output = json!({"output_type": kind});
        let members = ["name", "text", "metadata", "data", "execution_count"];
        for member in members.into_iter().chain(["ename", "evalue", "traceback"]) {
            if let Some(value) = said.get(member) {
                output[member] = value.clone();
            }
        }
        if kind == "stream"
            && let Some(last) = self.shown.last_mut()
            && last["output_type"] == "stream"
            && last["name"] == output["name"]
            && let Some(Value::String(before)) = last.get_mut("text")
            && let Some(text) = output["text"].as_str()
        {
            before.push_str(text);
            return;
        }
        self.shown.push(output);
    }

    fn clear(&mut self) {
        self.shown.clear();
        self.bytes = 0;
        self.changed = true;
    }
}

/// A quick look, since other widgets are many.
fn mentions_output(content: &Bytes) -> bool {
    content.len() < MOST_TALK
        && content
            .windows(NAME.len())
            .any(|window| window == NAME.as_bytes())
}

const NAME: &str = "OutputModel";

#[cfg(test)]
mod tests {
    use super::*;

    fn message(msg_type: &str, content: &Value) -> Message {
        Message::new(msg_type, "session", content)
    }

    /// Some widgets, of which the first captures what request `r` puts out.
    fn capturing() -> Widgets {
        let mut widgets = Widgets::default();
        for comm in ["a", "b"] {
            let state = json!({"_model_module": "@jupyter-widgets/output", "_model_name": NAME, "outputs": []});
            let content = json!({"comm_id": comm, "data": {"state": state}});
            widgets.hear(&message("comm_open", &content));
        }
        widgets.hear(&update("a", "r"));
        assert!(widgets.capture("r") && !widgets.capture("other"));
        widgets
    }

    fn update(comm: &str, request: &str) -> Message {
        let data = json!({"method": "update", "state": {"msg_id": request}});
        message("comm_msg", &json!({"comm_id": comm, "data": data}))
    }

    fn print(widgets: &mut Widgets, text: &str) {
        let content = json!({"name": "stdout", "text": text});
        widgets.show("r", &message("stream", &content));
    }

    /// What the kernel is told once nothing is captured any more.
    fn told(widgets: &mut Widgets) -> Vec<Value> {
        assert_eq!(widgets.news(), [json!(null); 0]);
        widgets.hear(&update("a", ""));
        assert!(!widgets.capture("r"));
        let news = widgets.news();
        assert_eq!(widgets.news(), [json!(null); 0]);
        let outputs = |one: &Value| one["data"]["state"]["outputs"].clone();
        news.iter().map(outputs).collect()
    }

    #[test]
    fn the_kernel_is_told_what_its_widget_shows() {
        let mut widgets = capturing();
        print(&mut widgets, "gone");
        widgets.show("r", &message("clear_output", &json!({"wait": true})));
        print(&mut widgets, "a\n");
        print(&mut widgets, "b\n");
        let content = json!({"data": {"text/plain": "1"}, "metadata": {}, "transient": {}});
        widgets.show("r", &message("display_data", &content));
        widgets.show("r", &message("status", &json!({"execution_state": "busy"})));
        assert_eq!(
            told(&mut widgets),
            [json!([
                {"output_type": "stream", "name": "stdout", "text": "a\nb\n"},
                {"output_type": "display_data", "metadata": {}, "data": {"text/plain": "1"}},
            ])]
        );
    }

    #[test]
    fn of_what_is_too_much_nothing_is_told_until_it_is_cleared() {
        let mut widgets = capturing();
        let kilobyte = "x".repeat(1024);
        for _ in 0..2000 {
            print(&mut widgets, &kilobyte);
        }
        assert!(told(&mut widgets).is_empty());
        widgets.hear(&update("a", "r"));
        widgets.show("r", &message("clear_output", &json!({})));
        print(&mut widgets, "new");
        let shown = json!([{"output_type": "stream", "name": "stdout", "text": "new"}]);
        assert_eq!(told(&mut widgets), [shown]);
    }
}
