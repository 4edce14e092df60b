//! [`EarlierDisplays`]: the displays of finished cells, which later cells may update by their ids.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use cellwright_output::{Bundle, Capture, Captured, UpdatableText};

/// How many ids are known. Displays with other ids are not updated by later cells.
const IDS_MAX: usize = 100_000;

/// How many texts are held.
const TEXTS_MAX: usize = 1000;

/// The ids of the displays of finished cells, and the texts that contain them.
#[derive(Debug, Default)]
pub(super) struct EarlierDisplays {
    ids: Arc<HashSet<String>>,
    /// By position of the cell; the flag states whether an update has changed the text.
    texts: BTreeMap<usize, (UpdatableText, bool)>,
}

impl EarlierDisplays {
    pub(super) fn ids(&self) -> Arc<HashSet<String>> {
        Arc::clone(&self.ids)
    }

    /// Adds the ids of the displays of a cell that has ended.
    pub(super) fn add_ids(&mut self, capture: &Capture) {
        for id in capture.display_ids() {
            if self.ids.len() < IDS_MAX && !self.ids.contains(id) {
                Arc::make_mut(&mut self.ids).insert(id.to_owned());
            }
        }
    }

    /// Adds the text of a finished cell. The position of an image refers to the text, so a text with images is final.
    pub(super) fn add_text(&mut self, cell: usize, captured: &mut Captured) {
        if let Some(text) = captured.updatable_text.take()
            && captured.images.is_empty()
            && self.texts.len() < TEXTS_MAX
        {
            self.texts.insert(cell, (text, false));
        }
    }

    /// Updates the displays with an id: those in the texts, and those of `captures`.
    pub(super) fn update<'c>(
        &mut self,
        bundle: &Bundle,
        id: &str,
        captures: impl Iterator<Item = &'c mut Capture>,
    ) {
        use cellwright_output::{Event, Sink};
        if !self.ids.contains(id) {
            return;
        }
        for (text, changed) in self.texts.values_mut() {
            *changed |= text.update_display(bundle, id);
        }
        for capture in captures {
            if capture.has_display(id) {
                let bundle = bundle.clone();
                let id = id.to_owned();
                capture.push(Event::Update { bundle, id });
            }
        }
    }

    /// Removes and returns the texts that have changed.
    pub(super) fn take_changed_texts(&mut self) -> impl Iterator<Item = (usize, String)> {
        let texts = std::mem::take(&mut self.texts).into_iter();
        texts
            .filter(|(_, (_, changed))| *changed)
            .map(|(cell, (text, _))| (cell, text.into_text()))
    }
}
