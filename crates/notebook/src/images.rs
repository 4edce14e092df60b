//! The images in a notebook: among the outputs of code cells, and attached to other cells.

use crate::cell::CellKind;
use crate::document::{Cells, Notebook};
use crate::json::object;
use crate::outputs::{self, StoredData, StoredOutput};
use crate::source;

/// An image in a notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredImage {
    /// Index of the cell.
    pub cell: usize,
    /// Where in the cell the image is.
    pub place: ImagePlace,
    /// A MIME type such as `image/png`.
    pub mime: String,
    /// The image as text: base64, or XML for SVG.
    pub text: String,
}

/// Where in its cell an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImagePlace {
    /// Index of the output.
    Output(usize),
    /// Name of the attachment.
    Attachment(String),
}

/// The images of cell `index`.
pub fn images(notebook: &Notebook, index: usize) -> Vec<StoredImage> {
    if notebook.kind(index) != CellKind::Code {
        return attachments(notebook, index);
    }
    let mut images = Vec::new();
    let outputs = outputs::stored_outputs(notebook, index).into_iter();
    for (number, output) in outputs.enumerate() {
        let StoredOutput::Display { data } = output else {
            continue;
        };
        for (mime, data) in data {
            if let (true, StoredData::Text(text)) = (mime.starts_with("image/"), data) {
                images.push(StoredImage {
                    cell: index,
                    place: ImagePlace::Output(number),
                    mime,
                    text,
                });
            }
        }
    }
    images
}

fn attachments(notebook: &Notebook, index: usize) -> Vec<StoredImage> {
    let members = notebook.members(index);
    let Some(attachments) = object::find_member(&members, "attachments") else {
        return Vec::new();
    };
    let mut images = Vec::new();
    for attachment in object::members(notebook.bytes(), attachments.value) {
        for data in object::members(notebook.bytes(), attachment.value) {
            if data.name.starts_with("image/") {
                images.push(StoredImage {
                    cell: index,
                    place: ImagePlace::Attachment(attachment.name.clone()),
                    text: source::decode_text(notebook.slice(data.value)),
                    mime: data.name,
                });
            }
        }
    }
    images
}
