//! Parses a connection file.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Connection, ConnectionError, Ports, SIGNATURE_SCHEME, Transport};
use crate::bounded_read;

/// Reads a connection file.
pub(super) fn read(path: &Path) -> Result<Connection, ConnectionError> {
    let bytes = bounded_read::read(path).map_err(|source| ConnectionError::File {
        path: path.to_owned(),
        source,
    })?;
    parse(&bytes).map_err(|reason| ConnectionError::Malformed {
        path: path.to_owned(),
        reason,
    })
}

fn parse(bytes: &[u8]) -> Result<Connection, String> {
    // Errors of the parser contain positions, not text: a key must not appear in an error message.
    let members = match serde_json::from_slice(bytes) {
        Ok(Value::Object(members)) => members,
        Ok(_) => return Err("it does not hold a JSON object".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    let members = Members(&members);
    if ["curve_publickey", "curve_secretkey"]
        .iter()
        .all(|name| members.get(name).is_some())
    {
        return Err("its sockets are encrypted (CURVE), which is not supported".to_owned());
    }
    let key = members.string("key")?.unwrap_or_default();
    let scheme = members
        .string("signature_scheme")?
        .unwrap_or(SIGNATURE_SCHEME);
    if !key.is_empty() && !scheme.eq_ignore_ascii_case(SIGNATURE_SCHEME) {
        return Err(format!(
            "its messages are signed with `{}`; only {SIGNATURE_SCHEME} is supported",
            scheme.escape_debug()
        ));
    }
    let kernel_name = members.string("kernel_name").unwrap_or_default();
    Ok(Connection {
        transport: transport(&members)?,
        ports: ports(&members)?,
        key: key.to_owned(),
        kernel_name: kernel_name
            .filter(|name| !name.is_empty())
            .map(str::to_owned),
    })
}

/// The members of the file. A `null` member counts as missing.
struct Members<'a>(&'a Map<String, Value>);

impl<'a> Members<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn string(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{name}` is not a string")),
        }
    }
}

fn transport(members: &Members<'_>) -> Result<Transport, String> {
    let transport = members.string("transport")?.unwrap_or("tcp");
    let ip = members.string("ip")?.filter(|ip| !ip.trim().is_empty());
    let ip = ip.ok_or("`ip` is missing")?;
    if ip.contains('\0') {
        return Err("`ip` has a NUL in it".to_owned());
    }
    match transport.to_ascii_lowercase().as_str() {
        "tcp" => {
            let ip = ip.trim();
            let ip = match ip.strip_prefix('[').and_then(|ip| ip.strip_suffix(']')) {
                Some(inner) => inner,
                // All interfaces.
                None if ip == "*" => "0.0.0.0",
                None => ip,
            };
            Ok(Transport::Tcp { ip: ip.to_owned() })
        }
        // Relative to the working directory, as in Jupyter.
        "ipc" => Ok(Transport::Ipc {
            stem: std::path::absolute(ip).unwrap_or_else(|_| PathBuf::from(ip)),
        }),
        _ => Err(format!(
            "the transport `{}` is not supported",
            transport.escape_debug()
        )),
    }
}

fn ports(members: &Members<'_>) -> Result<Ports, String> {
    let mut used: Vec<u16> = Vec::new();
    let mut port = |name: &str| {
        let value = members
            .get(name)
            .ok_or_else(|| format!("`{name}` is missing"))?;
        let port = port_number(value).ok_or_else(|| format!("`{name}` is not a port number"))?;
        if used.contains(&port) {
            return Err(format!("`{name}` is the port of another channel"));
        }
        used.push(port);
        Ok(port)
    };
    Ok(Ports {
        shell: port("shell_port")?,
        iopub: port("iopub_port")?,
        stdin: port("stdin_port")?,
        control: port("control_port")?,
        hb: port("hb_port")?,
    })
}

/// A port number, or a string with one. Zero is invalid.
fn port_number(value: &Value) -> Option<u16> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        _ => value.as_u64()?,
    };
    u16::try_from(number).ok().filter(|&port| port != 0)
}
