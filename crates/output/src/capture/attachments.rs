//! Values listed next to the text: images, whose originals are stored, and JSON.

use std::ops::Range;
use std::sync::Arc;

use crate::artifact::{Artifacts, StoreFailure};
use crate::bounded_json::BoundedJson;
use crate::bundle::Data;
use crate::cell_text::BoundedText;
use crate::image::{self, Image, ImageSource};
use crate::limits::Limits;
use crate::notice::Notice;
use crate::outputs::{Outputs, Payload};

/// Lists the images of a cell, and stores the originals that are not stored yet as artifacts.
pub(super) fn collect_images(
    outputs: &mut Outputs,
    limits: &Limits,
    artifacts: Option<&Artifacts>,
    text: &BoundedText,
    notices: &mut Vec<Notice>,
) -> Vec<Image> {
    let mut images = Vec::new();
    let mut omitted = 0;
    let mut lost = 0;
    let mut failure = None;
    let parts = outputs.numbered_displays();
    let parts = parts.flat_map(|(at, display)| {
        let parts = display
            .parts
            .iter()
            .filter(|(mime, _)| image::is_listed(mime));
        parts.map(move |part| (at, display, part))
    });
    for (at, display, (mime, payload)) in parts {
        if images.len() == limits.images {
            omitted += 1;
            continue;
        }
        let source = image_source(payload, artifacts);
        let mut image = match display.figure(mime) {
            Some(figure) => Image::from_figure(figure, source),
            None => Image::new(mime, payload.bytes(), source),
        };
        image.text_range = figure_range(text, at, &image);
        if let Some(artifacts) = artifacts
            && let Err(error) = image.store_original(artifacts)
        {
            lost += image.bytes;
            failure = Some(StoreFailure::from(&error));
        }
        images.push(image);
    }
    if omitted > 0 {
        notices.push(Notice::ImagesOmitted { count: omitted });
    }
    notices.extend(failure.map(|failure| Notice::NotStored {
        failure,
        artifact: None,
        kept: 0,
        lost,
    }));
    images
}

/// Returns where the line of an image is in the text: in the text of output `at`.
fn figure_range(text: &BoundedText, at: usize, image: &Image) -> Option<Range<usize>> {
    let (_, block) = text.displays.iter().find(|(output, _)| *output == at)?;
    let line = format!("{}\n", image.figure());
    let found = text.text.get(block.clone())?.rfind(&line);
    // The line is missing if the text is cut there.
    let start = found.map_or(block.end, |found| block.start + found);
    Some(start..start + found.map_or(0, |_| line.len()))
}

/// Returns where the bytes of a representation are.
fn image_source(payload: &Payload, artifacts: Option<&Artifacts>) -> ImageSource {
    match payload {
        Payload::Inline(data) => ImageSource::Data(Arc::clone(data)),
        Payload::Moved(moved) => match (moved.artifact(), artifacts, &moved.verbatim) {
            (Some(id), Some(artifacts), _) => ImageSource::Artifact(artifacts.clone(), id),
            (_, _, Some(data)) => ImageSource::Data(Arc::new(data.clone())),
            (_, _, None) => ImageSource::Lost,
        },
    }
}

/// Lists the JSON values of a cell.
pub(super) fn collect_json(
    outputs: &mut Outputs,
    limits: &Limits,
    notices: &mut Vec<Notice>,
) -> Vec<BoundedJson> {
    let mut values = Vec::new();
    let mut omitted = 0;
    let parts = outputs.displays_mut().flat_map(|display| &display.parts);
    for (_, payload) in parts.filter(|(mime, _)| mime == "application/json") {
        let parsed;
        let value = match payload {
            Payload::Inline(data) => match data.as_ref() {
                Data::Json(value) => value,
                Data::Text(text) => {
                    parsed = serde_json::from_str(text).unwrap_or_else(|_| text.clone().into());
                    &parsed
                }
                Data::Bytes(_) | Data::Stored(_) => continue,
            },
            Payload::Moved(_) => continue,
        };
        if values.len() == limits.json_values {
            omitted += 1;
            continue;
        }
        values.push(BoundedJson::new(value, limits.json_characters));
    }
    if omitted > 0 {
        notices.push(Notice::JsonOmitted { count: omitted });
    }
    values
}
