//! What is listed beside the text: images, of which the originals are kept, and JSON.

use crate::artifact::{Artifacts, Failure};
use crate::bundle::Data;
use crate::image::{self, Image};
use crate::json::Json;
use crate::limits::Limits;
use crate::notice::Notice;
use crate::outputs::{Outputs, Payload};

/// Lists the images, and keeps the originals.
pub(super) fn images(
    outputs: &mut Outputs,
    limits: &Limits,
    artifacts: Option<&Artifacts>,
    notices: &mut Vec<Notice>,
) -> Vec<Image> {
    let mut images = Vec::new();
    let mut omitted = 0;
    let mut lost = 0;
    let mut failure = None;
    let parts = outputs.displays_mut().flat_map(|shown| &shown.parts);
    for (mime, payload) in parts.filter(|(mime, _)| image::is_listed(mime)) {
        if images.len() == limits.images {
            omitted += 1;
            continue;
        }
        let mut image = Image::new(mime, payload, artifacts);
        if let Some(artifacts) = artifacts
            && let Err(error) = image.keep(artifacts)
        {
            lost += image.bytes;
            failure = Some(Failure::from(&error));
        }
        images.push(image);
    }
    if omitted > 0 {
        notices.push(Notice::ImagesOmitted { count: omitted });
    }
    notices.extend(failure.map(|failure| Notice::NotKept {
        failure,
        artifact: None,
        kept: 0,
        lost,
    }));
    images
}

/// Lists the JSON values.
pub(super) fn json(outputs: &mut Outputs, limits: &Limits, notices: &mut Vec<Notice>) -> Vec<Json> {
    let mut values = Vec::new();
    let mut omitted = 0;
    let parts = outputs.displays_mut().flat_map(|shown| &shown.parts);
    for (_, payload) in parts.filter(|(mime, _)| mime == "application/json") {
        let parsed;
        let value = match payload {
            Payload::Held(data) => match data.as_ref() {
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
        values.push(Json::bounded(value, limits.json_characters));
    }
    if omitted > 0 {
        notices.push(Notice::JsonOmitted { count: omitted });
    }
    values
}
