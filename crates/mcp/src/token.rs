//! The token of the HTTP server, in a file that only the user can read.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind, flag, hint};
use cellwright_engine::engine::Engine;
use cellwright_engine::secret::random_token;

/// Minimum length of a token, in characters.
const TOKEN_LENGTH_MIN: usize = 16;

/// The token file, unless the user names another.
pub fn default_file(engine: &Engine) -> Result<PathBuf, Failure> {
    let state = engine.state_dir.as_deref().ok_or_else(|| {
        let failure = Failure::new(Kind::BadFile, "There is no directory for the token file");
        failure.hint(hint!["name a file with ", flag("token-file")])
    })?;
    Ok(state.join("mcp.token"))
}

/// Reads the token in a file. Creates the file if it is missing.
pub fn read_or_create(path: &Path) -> Result<String, Failure> {
    let failed = |what: &str, error: io::Error| {
        let message = format!("Could not {what} the token file {}", path.display());
        let mut failure = Failure::new(Kind::BadFile, message);
        failure.causes.push(error.to_string());
        failure
    };
    match open(path) {
        Ok(file) => read(path, file, failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(dir) = path.parent() {
                fs::create_dir_all(dir)
                    .map_err(|error| failed("create the directory of", error))?;
            }
            let token = random_token()?;
            let created = File::options()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path);
            match created {
                Ok(mut file) => {
                    let text = format!("{token}\n");
                    file.write_all(text.as_bytes())
                        .map_err(|error| failed("write", error))?;
                    Ok(token)
                }
                // Another process has created it and may still be writing.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    let file = open(path).map_err(|error| failed("read", error))?;
                    read(path, file, failed)
                }
                Err(error) => Err(failed("create", error)),
            }
        }
        Err(error) => Err(failed("read", error)),
    }
}

/// Opens the file for reading. A pipe in its place must not make the server wait.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits().cast_signed());
    options.open(path)
}

fn read(
    path: &Path,
    mut file: File,
    failed: impl Fn(&str, io::Error) -> Failure,
) -> Result<String, Failure> {
    let metadata = file.metadata().map_err(|error| failed("inspect", error))?;
    let unsafe_file = |why: String| {
        let message = format!("The token file {} is not safe to use", path.display());
        let mut failure = Failure::new(Kind::Refused, message);
        failure.causes.push(why);
        failure
    };
    if !metadata.is_file() {
        return Err(unsafe_file("it is not a regular file".to_owned()));
    }
    let user = cellwright_kernel::process::daemon::effective_user();
    if metadata.uid() != user {
        return Err(unsafe_file(format!(
            "it belongs to user {}",
            metadata.uid()
        )));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        let why = format!("other users can read or write it (mode {mode:03o})");
        return Err(unsafe_file(why).hint(format!("`chmod 600 {}`", path.display())));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)
        .map_err(|error| failed("read", error))?;
    let token = text.trim();
    let plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    if token.len() < TOKEN_LENGTH_MIN || !plain {
        let why = format!("a token needs at least {TOKEN_LENGTH_MIN} characters and no spaces");
        return Err(unsafe_file(why).hint("remove the file: the next start creates a new token"));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_created_once_and_only_its_user_can_read_it() {
        let temp_dir = tempfile::tempdir().unwrap();
        let path = temp_dir.path().join("deep/mcp.token");
        let token = read_or_create(&path).unwrap();
        assert_eq!(token.len(), 64);
        assert_eq!(read_or_create(&path).unwrap(), token);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        for open in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            assert_eq!(read_or_create(&path).unwrap_err().kind, Kind::Refused);
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for weak in ["", "short", "sixteen chars and blanks"] {
            fs::write(&path, weak).unwrap();
            assert_eq!(
                read_or_create(&path).unwrap_err().kind,
                Kind::Refused,
                "{weak}"
            );
        }
    }

    #[test]
    fn a_token_file_of_another_user_is_refused() {
        const OTHER_USER: u32 = 65534;
        let temp_dir = tempfile::tempdir().unwrap();
        let path = temp_dir.path().join("mcp.token");
        read_or_create(&path).unwrap();
        if let Err(error) = std::os::unix::fs::chown(&path, Some(OTHER_USER), None) {
            cellwright_test_support::skip("root", &format!("chown failed: {error}"));
            return;
        }
        let failure = read_or_create(&path).unwrap_err();
        assert_eq!(failure.kind, Kind::Refused);
        assert_eq!(failure.causes, ["it belongs to user 65534"]);
    }
}
