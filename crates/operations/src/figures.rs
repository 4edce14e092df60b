//! Lists the images in a notebook, and stores them in files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind, flag, hint};
use cellwright_diagnostics::notice::{self, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_notebook::images::{self, ImagePlace, StoredImage};
use cellwright_notebook::{Cells, Notebook, Notice, file};
use cellwright_output::{Artifacts, ByteSize, Data, Image};
use schemars::JsonSchema;
use serde::Serialize;

use crate::file_path::FilePath;
use crate::table::Table;

/// The images in a notebook.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FiguresReport {
    /// Path of the notebook.
    path: String,
    /// Revision of the notebook.
    pub revision: String,
    /// The images.
    pub figures: Vec<StoredFigure>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// An image in a notebook.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StoredFigure {
    /// Index of the cell in the notebook, from 0.
    pub index: usize,
    /// Cell id.
    pub id: Option<String>,
    /// Position among the images of the cell, from 1.
    pub number: usize,
    /// Index of the output; `null` for an attachment.
    pub output: Option<usize>,
    /// Name of the attachment; `null` for an output.
    pub attachment: Option<String>,
    /// MIME type.
    pub mime: String,
    /// Width in pixels.
    pub width: Option<u32>,
    /// Height in pixels.
    pub height: Option<u32>,
    /// Size in bytes.
    pub bytes: u64,
    /// The artifact in which the image was stored.
    pub artifact: Option<String>,
    /// The file in which the image was stored.
    pub file: Option<String>,
    #[serde(skip)]
    pub image: Image,
}

/// Lists the images of a notebook.
pub fn list_figures(path: &FilePath, engine: &Engine) -> Result<FiguresReport, Failure> {
    let (notebook, notices) = file::load_any_format(path.open_path(), engine.baselines.as_ref())
        .map_err(|error| path.failure(error))?;
    let cells: Vec<usize> = (0..notebook.count()).collect();
    Ok(FiguresReport::new(path, &notebook, &cells, &notices))
}

impl FiguresReport {
    /// The images of some cells.
    pub(crate) fn new(
        path: &FilePath,
        notebook: &Notebook,
        cells: &[usize],
        notices: &[Notice],
    ) -> Self {
        let mut figures = Vec::new();
        for &cell in cells {
            let id = notebook.id(cell).map(std::borrow::Cow::into_owned);
            for (at, image) in images::images(notebook, cell).into_iter().enumerate() {
                figures.push(StoredFigure::new(image, id.clone(), at + 1));
            }
        }
        Self {
            path: path.to_text(),
            revision: notebook.revision().to_string(),
            figures,
            notices: notice::describe(notices),
        }
    }

    /// Stores the images as artifacts.
    pub fn store_as_artifacts(&mut self, store: &Artifacts) -> Result<(), Failure> {
        for figure in &mut self.figures {
            figure.image.store_original(store)?;
            figure.artifact = figure.image.artifact.map(|id| id.to_string());
        }
        Ok(())
    }

    /// Writes the images into a directory as `cell-4-1.png`: cell 4, first image. Replaces files only with `force`; if a
    /// file exists, nothing is written.
    pub fn write_files(&mut self, dir: &Path, force: bool) -> Result<(), Failure> {
        let paths: Vec<PathBuf> = self
            .figures
            .iter()
            .map(|figure| dir.join(figure.file_name()))
            .collect();
        if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok())
            && !force
        {
            let message = format!("{} exists; nothing was written", path.display());
            let failure = Failure::new(Kind::Conflict, message);
            return Err(failure.hint(hint![flag("force"), " replaces files"]));
        }
        let failed = |path: &Path, error: std::io::Error| {
            let message = format!("Could not write {}", path.display());
            let mut failure = Failure::new(Kind::BadFile, message);
            failure.causes.push(error.to_string());
            failure
        };
        fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
        for (figure, path) in self.figures.iter_mut().zip(paths) {
            let bytes = figure.image.original()?;
            let mut options = fs::OpenOptions::new();
            options.write(true);
            // Another process may have created the file in the meantime.
            if force {
                options.create(true).truncate(true);
            } else {
                options.create_new(true);
            }
            let written = options
                .open(&path)
                .and_then(|mut file| file.write_all(&bytes));
            written.map_err(|error| failed(&path, error))?;
            figure.file = Some(path.display().to_string());
        }
        Ok(())
    }

    /// Columns: cell, number, type, pixels, size, and where the image was stored.
    pub fn table(&self) -> Table {
        let is_stored = |figure: &StoredFigure| figure.artifact.is_some() || figure.file.is_some();
        let head = ["CELL", "IMAGE", "TYPE", "PIXELS", "SIZE", "FROM"];
        let location = self.figures.iter().any(is_stored).then_some("STORED");
        let mut table = Table::new(head.into_iter().chain(location))
            .right("SIZE")
            .clip("FROM")
            .clip_path("STORED")
            .hide_first(&["FROM", "TYPE", "SIZE"]);
        for figure in &self.figures {
            let size = figure.width.zip(figure.height);
            let from = match (&figure.attachment, figure.output) {
                (Some(name), _) => format!("attachment {name}"),
                (None, output) => format!("output {}", output.unwrap_or_default()),
            };
            let row = [
                figure.index.to_string(),
                figure.number.to_string(),
                figure.mime.clone(),
                size.map_or_else(
                    || "-".to_owned(),
                    |(width, height)| format!("{width}×{height}"),
                ),
                ByteSize(figure.bytes).to_string(),
                from,
            ];
            let stored = figure.file.clone().or_else(|| figure.artifact.clone());
            table.push(row.into_iter().chain(location.and(stored)));
        }
        table
    }
}

impl StoredFigure {
    fn new(stored: StoredImage, id: Option<String>, number: usize) -> Self {
        let image = Image::from_data(&stored.mime, Data::Text(stored.text));
        let (output, attachment) = match stored.place {
            ImagePlace::Output(index) => (Some(index), None),
            ImagePlace::Attachment(name) => (None, Some(name)),
        };
        Self {
            index: stored.cell,
            id,
            number,
            output,
            attachment,
            mime: stored.mime,
            width: image.width,
            height: image.height,
            bytes: image.bytes,
            artifact: None,
            file: None,
            image,
        }
    }

    fn file_name(&self) -> String {
        let extension = match self.mime.as_str() {
            "image/png" => "png",
            "image/jpeg" => "jpg",
            "image/gif" => "gif",
            "image/svg+xml" => "svg",
            "image/webp" => "webp",
            "image/bmp" => "bmp",
            "image/tiff" => "tiff",
            _ => "img",
        };
        format!("cell-{}-{}.{extension}", self.index, self.number)
    }
}
