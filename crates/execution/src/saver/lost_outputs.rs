//! Stores outputs that could not be written to the notebook.

use cellwright_output::ArtifactId;

use super::Saver;
use super::cell_record::join_arrays;

impl Saver {
    /// Stores the outputs of cells that could not be written to the notebook in an artifact.
    pub(super) fn store_lost_outputs(&self, cells: &[usize]) -> Option<ArtifactId> {
        let style = &self.target.as_ref()?.style;
        self.store_artifact(|write| {
            write(b"{\"path\":")?;
            write(&serde_json::to_vec(&self.spec.written_file().to_text())?)?;
            write(b",\"cells\":[")?;
            for (at, &cell) in cells.iter().enumerate() {
                let planned = self.spec.cells.get(cell).unwrap_or_default();
                let record = &self.cells[cell];
                let about = serde_json::json!({
                    "index": planned.index,
                    "id": planned.id,
                    "source": planned.source,
                    "execution_count": record.execution_count,
                });
                let about = about.to_string();
                if at > 0 {
                    write(b",")?;
                }
                write(&about.as_bytes()[..about.len() - 1])?;
                write(b",\"outputs\":")?;
                let outputs = join_arrays(&self.output_arrays(cell), style);
                if outputs.is_empty() {
                    write(b"[]")?;
                }
                for piece in outputs {
                    piece.for_each_chunk(write)?;
                }
                write(b"}")?;
            }
            write(b"]}\n")
        })
    }
}
