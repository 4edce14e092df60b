//! [`FilePath`]: the path that opens a file, and the path that messages show.

pub use cellwright_execution::FilePath;
