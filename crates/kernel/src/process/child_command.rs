//! [`ChildCommand`]: what a supervisor starts, and its form on the socket between owner and supervisor.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use cellwright_stdext::Directory;

/// A command to start as a child.
#[derive(Clone, Debug)]
pub struct ChildCommand {
    /// Program and arguments. An argument `{channel}` becomes the number of the descriptor that
    /// the child's end of the channel has.
    pub arguments: Vec<OsString>,
    /// The complete environment of the child, except `PWD`, which is `cwd`.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub cwd: Directory,
}

/// The path of a held directory, for which its descriptor stands. It leads nowhere.
const HELD_PATH: &str = "/proc/self/fd/-1";

/// Size of the number in front of an encoded command: the bytes that follow it.
pub(super) const LENGTH_SIZE: usize = 8;

impl ChildCommand {
    /// Encodes the command: the length, then directory, number of arguments, arguments, and names and values of variables,
    /// each followed by a zero byte. A held directory is sent as a descriptor.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; LENGTH_SIZE];
        let count = OsString::from(self.arguments.len().to_string());
        let env = self
            .env
            .iter()
            .filter(|(name, _)| name != "PWD")
            .flat_map(|(name, value)| [name.as_os_str(), value]);
        let cwd = if self.cwd.is_held() {
            Path::new(HELD_PATH)
        } else {
            self.cwd.path()
        };
        let fields = [cwd.as_os_str(), &count]
            .into_iter()
            .chain(self.arguments.iter().map(OsString::as_os_str))
            .chain(env)
            .chain([OsStr::new("PWD"), self.cwd.path().as_os_str()]);
        for field in fields {
            if field.as_bytes().contains(&0) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            bytes.extend_from_slice(field.as_bytes());
            bytes.push(0);
        }
        let length = (bytes.len() - LENGTH_SIZE) as u64;
        bytes[..LENGTH_SIZE].copy_from_slice(&length.to_le_bytes());
        Ok(bytes)
    }
}

/// A command as its supervisor receives it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReceivedCommand {
    pub(super) arguments: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    /// The path of the working directory; that of a held one leads nowhere.
    pub(super) cwd: PathBuf,
}

impl ReceivedCommand {
    /// Decodes the bytes after the length.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = bytes
            .strip_suffix(&[0])?
            .split(|&byte| byte == 0)
            .map(|field| OsString::from_vec(field.to_vec()));
        let cwd = fields.next()?.into();
        let count = fields.next()?.to_str()?.parse().ok()?;
        let arguments: Vec<OsString> = fields.by_ref().take(count).collect();
        if arguments.len() < count {
            return None;
        }
        let mut env = Vec::new();
        while let Some(name) = fields.next() {
            env.push((name, fields.next()?));
        }
        Some(Self {
            arguments,
            env,
            cwd,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_decoded_as_they_were_encoded() {
        let command = ChildCommand {
            arguments: ["sh", "", "-c", "echo 'ä\n'"].map(Into::into).into(),
            env: vec![
                ("EMPTY".into(), "".into()),
                ("PWD".into(), "/elsewhere".into()),
                ("BYTES".into(), OsString::from_vec(vec![0xff, b'='])),
            ],
            cwd: "/tmp/a b".into(),
        };
        let bytes = command.encode().unwrap();
        let (length, rest) = bytes.split_at(LENGTH_SIZE);
        assert_eq!(
            u64::from_le_bytes(length.try_into().unwrap()),
            rest.len() as u64
        );
        let decoded = ReceivedCommand::decode(rest).unwrap();
        assert_eq!(decoded.arguments, command.arguments);
        assert_eq!(decoded.cwd, PathBuf::from("/tmp/a b"));
        let env = [
            command.env[0].clone(),
            command.env[2].clone(),
            ("PWD".into(), "/tmp/a b".into()),
        ];
        assert_eq!(decoded.env, env);
        for end in 0..rest.len() {
            // Incomplete commands are incomplete, or lack variables.
            if let Some(part) = ReceivedCommand::decode(&rest[..end]) {
                assert!(part.env.len() < env.len(), "{end}");
            }
        }
    }

    #[test]
    fn a_zero_byte_cannot_be_encoded() {
        let command = ChildCommand {
            arguments: vec!["a\0b".into()],
            env: Vec::new(),
            cwd: "/".into(),
        };
        let error = command.encode().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
