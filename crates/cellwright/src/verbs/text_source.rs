//! Text for a command, from a file or from stdin.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use cellwright_diagnostics::failure::{Failure, Kind};

/// Reads a whole file, or stdin for `-`. Rejects text that is not UTF-8, which a notebook cannot store.
pub(crate) fn read(source: &str) -> Result<String, Failure> {
    let (bytes, name) = if source == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        (bytes, "Standard input")
    } else {
        let bytes = fs::read(Path::new(source)).map_err(|error| {
            let mut failure = Failure::new(Kind::BadFile, format!("Could not read {source}"));
            failure.causes.push(error.to_string());
            failure
        })?;
        (bytes, source)
    };
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + String::from_utf8_lossy(&error.as_bytes()[..at])
            .matches('\n')
            .count();
        let mut failure = Failure::new(Kind::BadArguments, format!("{name} is not UTF-8 text"));
        failure.causes.push(format!("line {line}, byte {at}"));
        failure.hint("nothing was written")
    })
}
