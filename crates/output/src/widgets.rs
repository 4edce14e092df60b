//! [`WidgetModels`]: the models of the widgets of a kernel, from its comm messages. A notebook stores their state in
//! `metadata.widgets`, so that a page can show them without the kernel; progress bars among them are shown as text.

mod progress;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::bundle::{Bundle, Data, json_memory_size, map_memory_size};
use progress::ShownBars;

pub use progress::{Progress, ProgressState};

/// The MIME type of a display that shows a widget.
pub(crate) const WIDGET_VIEW: &str = "application/vnd.jupyter.widget-view+json";

/// The MIME type under which a notebook stores the models.
const WIDGET_STATE: &str = "application/vnd.jupyter.widget-state+json";

/// Size in bytes of all models together. Models beyond it are not stored.
const MODELS_SIZE_MAX: u64 = 64 * 1024 * 1024;

/// How many models are held.
const MODELS_MAX: usize = 10_000;

/// The models of the widgets of one kernel.
#[derive(Debug, Default)]
pub struct WidgetModels {
    /// By comm id, which is the model id.
    models: BTreeMap<String, Model>,
    size: u64,
    changed: bool,
    bars: ShownBars,
}

#[derive(Debug, Default)]
struct Model {
    state: Map<String, Value>,
    /// Binary parts of the state, by their JSON paths.
    buffers: BTreeMap<String, (Value, Vec<u8>)>,
    size: u64,
}

/// A comm message.
#[derive(Debug)]
pub struct CommMessage<'a> {
    /// `comm_open`, `comm_msg` or `comm_close`.
    pub msg_type: &'a str,
    /// The content.
    pub content: &'a Value,
    /// The binary buffers.
    pub buffers: Vec<&'a [u8]>,
}

impl WidgetModels {
    /// Applies a comm message.
    pub fn handle_comm(&mut self, message: &CommMessage<'_>) {
        let content = message.content;
        let Some(id) = content["comm_id"].as_str() else {
            return;
        };
        if message.msg_type == "comm_close" {
            self.remove(id);
            return;
        }
        let data = &content["data"];
        // Other messages are for the code of a widget.
        let Some(state) = data["state"].as_object() else {
            return;
        };
        let is_new = !self.models.contains_key(id);
        if is_new && self.models.len() == MODELS_MAX {
            return;
        }
        let model = self.models.entry(id.to_owned()).or_default();
        for (name, value) in state {
            model.state.insert(name.clone(), value.clone());
        }
        let paths = data["buffer_paths"].as_array().into_iter().flatten();
        for (path, buffer) in paths.zip(&message.buffers) {
            let entry = (path.clone(), buffer.to_vec());
            model.buffers.insert(path.to_string(), entry);
        }
        self.update_size(id);
        self.bars.mark_changed(id);
    }

    /// Sets a member of the state of a model, if it exists.
    pub fn set_state(&mut self, id: &str, name: &str, value: Value) {
        if let Some(model) = self.models.get_mut(id) {
            model.state.insert(name.to_owned(), value);
            self.update_size(id);
        }
    }

    /// Removes a model that is closed, or whose state is unknown.
    pub fn remove(&mut self, id: &str) {
        if let Some(model) = self.models.remove(id) {
            self.size -= model.size;
            self.changed = true;
            self.bars.mark_changed(id);
        }
    }

    /// Adds a display to the ones whose progress bars are shown. Returns its bar, if it has one.
    pub fn show(&mut self, bundle: &Bundle) -> Option<Progress> {
        let id = view_id(bundle)?;
        self.bars.show(id, &self.models)
    }

    /// The progress bars that have changed since the last call. Unless `all` is set, a bar that changed a moment ago waits.
    pub fn take_progress(&mut self, all: bool) -> Vec<Progress> {
        self.bars.take_changed(&self.models, all)
    }

    /// The value of `metadata.widgets` as JSON text, if it has changed since the last call and there are models.
    pub fn take_state(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let models = self.models.iter();
        let state: Map<String, Value> = models
            .filter(|(_, model)| model.state.contains_key("_model_name"))
            .map(|(id, model)| (id.clone(), model.to_json()))
            .collect();
        let stored = json!({"state": state, "version_major": 2, "version_minor": 0});
        (!state.is_empty()).then(|| json!({WIDGET_STATE: stored}).to_string())
    }

    fn update_size(&mut self, id: &str) {
        self.changed = true;
        let Some(model) = self.models.get_mut(id) else {
            return;
        };
        let buffers = model.buffers.values();
        let buffers: u64 = buffers
            .map(|(path, bytes)| json_memory_size(path) + bytes.len() as u64)
            .sum();
        let size = map_memory_size(&model.state) + buffers;
        self.size = self.size - model.size + size;
        model.size = size;
        if self.size > MODELS_SIZE_MAX {
            self.remove(id);
        }
    }
}

impl Model {
    /// The model as a notebook stores it, with sorted names as Jupyter writes them.
    fn to_json(&self) -> Value {
        let member = |name: &str| self.state.get(name).cloned().unwrap_or_default();
        let mut model = Map::new();
        if !self.buffers.is_empty() {
            let buffers = self.buffers.values().map(|(path, bytes)| {
                json!({"data": STANDARD.encode(bytes), "encoding": "base64", "path": path})
            });
            model.insert("buffers".to_owned(), buffers.collect());
        }
        model.insert("model_module".to_owned(), member("_model_module"));
        let version = "model_module_version";
        model.insert(version.to_owned(), member("_model_module_version"));
        model.insert("model_name".to_owned(), member("_model_name"));
        model.insert(
            "state".to_owned(),
            sorted(&Value::Object(self.state.clone())),
        );
        Value::Object(model)
    }

    fn name(&self) -> &str {
        self.state
            .get("_model_name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

/// The value with the members of all objects in alphabetical order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, Value> = members
                .iter()
                .map(|(name, value)| (name, sorted(value)))
                .collect();
            let members = members.into_iter();
            Value::Object(members.map(|(name, value)| (name.clone(), value)).collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// The id of the model that a display shows.
pub fn view_id(bundle: &Bundle) -> Option<&str> {
    match bundle.get(WIDGET_VIEW)? {
        Data::Json(view) => view["model_id"].as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(models: &mut WidgetModels, msg_type: &str, content: &Value, buffers: &[&[u8]]) {
        models.handle_comm(&CommMessage {
            msg_type,
            content,
            buffers: buffers.to_vec(),
        });
    }

    fn open(models: &mut WidgetModels, id: &str, state: &Value) {
        let content = json!({"comm_id": id, "data": {"state": state, "buffer_paths": []}});
        send(models, "comm_open", &content, &[]);
    }

    fn update(models: &mut WidgetModels, id: &str, state: &Value) {
        let content = json!({"comm_id": id, "data": {"method": "update", "state": state}});
        send(models, "comm_msg", &content, &[]);
    }

    fn stored(models: &mut WidgetModels) -> Value {
        let text = models.take_state().unwrap();
        let mut value: Value = serde_json::from_str(&text).unwrap();
        value[WIDGET_STATE].take()
    }

    #[test]
    fn models_are_stored_as_nbclient_stores_them() {
        let mut models = WidgetModels::default();
        assert_eq!(models.take_state(), None);
        let state = json!({"_model_name": "M", "_model_module": "m", "_model_module_version": "1", "b": 1, "a": {"z": 0, "y": 1}});
        open(&mut models, "one", &state);
        open(&mut models, "no-model", &json!({"x": 1}));
        update(&mut models, "one", &json!({"b": 2}));
        let content =
            json!({"comm_id": "one", "data": {"state": {}, "buffer_paths": [["img"], ["x", 0]]}});
        send(&mut models, "comm_msg", &content, &[b"ab", b"c"]);
        let expected = json!({
            "state": {"one": {
                "buffers": [
                    {"data": "YWI=", "encoding": "base64", "path": ["img"]},
                    {"data": "Yw==", "encoding": "base64", "path": ["x", 0]},
                ],
                "model_module": "m", "model_module_version": "1", "model_name": "M",
                "state": {"_model_module": "m", "_model_module_version": "1", "_model_name": "M",
                          "a": {"y": 1, "z": 0}, "b": 2},
            }},
            "version_major": 2, "version_minor": 0,
        });
        assert_eq!(stored(&mut models), expected);
        // Unchanged, and then without any model.
        assert_eq!(models.take_state(), None);
        send(&mut models, "comm_close", &json!({"comm_id": "one"}), &[]);
        assert_eq!(models.take_state(), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut models = WidgetModels::default();
        let large = "x".repeat(20 << 20);
        for id in ["a", "b", "c", "d", "e"] {
            open(&mut models, id, &json!({"_model_name": "M", "data": large}));
        }
        assert!(models.size <= MODELS_SIZE_MAX);
        let stored = stored(&mut models);
        assert_eq!(stored["state"].as_object().unwrap().len(), 3);
    }

    /// The models of a bar of tqdm.notebook.
    fn bar(models: &mut WidgetModels, value: f64, max: f64) -> Bundle {
        let children = ["IPY_MODEL_l", "IPY_MODEL_p", "IPY_MODEL_r"];
        open(
            models,
            "l",
            &json!({"_model_name": "HTMLModel", "value": "epochs:  45%"}),
        );
        open(
            models,
            "p",
            &json!({"_model_name": "FloatProgressModel", "value": value, "max": max, "min": 0.0}),
        );
        let right = " 9/20 [00:01&lt;00:01,  8.5it/s]";
        open(
            models,
            "r",
            &json!({"_model_name": "HTMLModel", "value": right}),
        );
        open(
            models,
            "box",
            &json!({"_model_name": "HBoxModel", "children": children}),
        );
        Bundle::text("text/plain", "repr").with(WIDGET_VIEW, Data::Json(json!({"model_id": "box"})))
    }

    #[test]
    fn a_bar_of_tqdm_is_one_line() {
        let mut models = WidgetModels::default();
        let display = bar(&mut models, 9.0, 20.0);
        let shown = models.show(&display).unwrap();
        let line = "epochs:  45%|████▌     | 9/20 [00:01<00:01,  8.5it/s]";
        assert_eq!(
            (&shown.text[..], shown.state),
            (line, ProgressState::Active)
        );
        assert!(models.take_progress(true).is_empty());
        update(
            &mut models,
            "p",
            &json!({"value": 20.0, "bar_style": "success"}),
        );
        update(&mut models, "l", &json!({"value": "epochs: 100%"}));
        let [done] = &models.take_progress(true)[..] else {
            panic!("one bar");
        };
        assert!(
            done.text.starts_with("epochs: 100%|██████████|"),
            "{done:?}"
        );
        assert_eq!((&done.id[..], done.state), ("box", ProgressState::Finished));
        send(&mut models, "comm_close", &json!({"comm_id": "box"}), &[]);
        assert_eq!(models.take_progress(true)[0].state, ProgressState::Removed);
        assert!(models.take_progress(true).is_empty());
    }

    #[test]
    fn other_widgets_are_no_progress_bars() {
        let mut models = WidgetModels::default();
        open(
            &mut models,
            "s",
            &json!({"_model_name": "IntSliderModel", "value": 3}),
        );
        let view = |id: &str| {
            Bundle::text("text/plain", "x").with(WIDGET_VIEW, Data::Json(json!({"model_id": id})))
        };
        assert_eq!(models.show(&view("s")), None);
        assert_eq!(models.show(&view("unknown")), None);
        // A box that contains itself.
        open(
            &mut models,
            "loop",
            &json!({"_model_name": "HBoxModel", "children": ["IPY_MODEL_loop"]}),
        );
        assert_eq!(models.show(&view("loop")), None);
        open(
            &mut models,
            "p",
            &json!({"_model_name": "IntProgressModel", "description": "load", "value": 1, "max": 4}),
        );
        assert_eq!(models.show(&view("p")).unwrap().text, "load|██▌       |");
    }
}
