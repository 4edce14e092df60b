//! [`Offer`]: a kernel that is installed, and whether it could be started.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use cellwright_jupyter::kernelspec::{self, Fault, Kernelspec, Listed};
use cellwright_jupyter::places::Places;

use super::ipykernel::{self, Ipykernel};
use super::jupyter::search_path;

/// A kernel that is installed.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) name: String,
    /// Where it is installed.
    pub(crate) folder: PathBuf,
    /// What it says; `None` if that makes no sense.
    pub(crate) kernelspec: Option<Kernelspec>,
    /// The program that would be started.
    pub(crate) program: Option<PathBuf>,
    /// Why it cannot be started.
    pub(crate) trouble: Option<Trouble>,
}

/// Why a kernel cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Fault(Fault),
    NoIpykernel {
        python: PathBuf,
    },
    /// Its interpreter could not even be asked.
    Python {
        python: PathBuf,
        why: String,
    },
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::NoIpykernel { python } => write!(f, "{} has no ipykernel", python.display()),
            Self::Python { python, why } => write!(f, "{}: {why}", python.display()),
        }
    }
}

/// Every kernel that is installed. Interpreters that would have to have ipykernel are asked, unless they
/// are to be taken as they are.
pub(crate) fn offers(
    places: &Places,
    env: &[(OsString, OsString)],
    python: Option<&Path>,
    trusting: bool,
) -> io::Result<Vec<Offer>> {
    let path = search_path(env);
    let listed = kernelspec::list(places).into_iter();
    let mut offers: Vec<Offer> = listed.map(|listed| offer(listed, &path, python)).collect();
    if trusting {
        return Ok(offers);
    }
    let mut pythons: Vec<PathBuf> = offers.iter().filter_map(Offer::interpreter).collect();
    pythons.sort();
    pythons.dedup();
    let answers = ipykernel::look(&pythons, env)?;
    for offer in &mut offers {
        let Some(python) = offer.interpreter() else {
            continue;
        };
        let at = pythons.iter().position(|asked| *asked == python);
        offer.trouble = match at.and_then(|at| answers.get(at)) {
            Some(Ipykernel::Missing) => Some(Trouble::NoIpykernel { python }),
            Some(Ipykernel::Unknown { why }) => Some(Trouble::Python {
                python,
                why: why.clone(),
            }),
            _ => None,
        };
    }
    Ok(offers)
}

fn offer(listed: Listed, path: &[PathBuf], python: Option<&Path>) -> Offer {
    let mut offer = Offer {
        name: listed.name,
        folder: listed.folder,
        kernelspec: None,
        program: None,
        trouble: None,
    };
    match listed.spec {
        Ok(kernelspec) => {
            match kernelspec.check(path, python) {
                Ok(program) => offer.program = Some(program),
                Err(fault) => offer.trouble = Some(Trouble::Fault(fault)),
            }
            offer.kernelspec = Some(kernelspec);
        }
        Err(fault) => offer.trouble = Some(Trouble::Fault(fault)),
    }
    offer
}

impl Offer {
    /// The interpreter that must have ipykernel for it.
    fn interpreter(&self) -> Option<PathBuf> {
        let kernelspec = self.kernelspec.as_ref()?;
        self.program.clone().filter(|_| kernelspec.is_ipykernel())
    }

    /// What starts it, in a few words: without what every kernel gets.
    pub(crate) fn starts(&self) -> String {
        let Some(kernelspec) = &self.kernelspec else {
            return "-".to_owned();
        };
        let mut words: Vec<String> = Vec::new();
        for argument in &kernelspec.argv {
            if argument.contains("{connection_file}") {
                // The flag before it is no news either.
                if words.len() > 1 && words.last().is_some_and(|word| word.starts_with('-')) {
                    words.pop();
                }
                continue;
            }
            words.push(argument.replace(char::is_control, " "));
        }
        if let (Some(first), Some(program)) = (words.first_mut(), &self.program) {
            *first = program.display().to_string();
        }
        shortened(&words.join(" "))
    }
}

/// The beginning and the end of a text that is too long for a table.
fn shortened(text: &str) -> String {
    const MOST: usize = 72;
    let count = text.chars().count();
    if count <= MOST {
        return text.to_owned();
    }
    let head: String = text.chars().take(MOST / 2 - 1).collect();
    let tail: String = text.chars().skip(count - MOST / 2).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starting(argv: &[&str]) -> Offer {
        let mut kernelspec = Kernelspec::ipykernel(Path::new("python"));
        kernelspec.argv = argv.iter().map(|&word| word.to_owned()).collect();
        Offer {
            name: "x".to_owned(),
            folder: PathBuf::new(),
            program: Some("/bin/it".into()),
            kernelspec: Some(kernelspec),
            trouble: None,
        }
    }

    #[test]
    fn what_starts_a_kernel_is_told_without_what_every_kernel_gets() {
        let cases: [(&[&str], &str); 4] = [
            (
                &["it", "-m", "thing", "-f", "{connection_file}"],
                "/bin/it -m thing",
            ),
            (
                &["it", "kernel", "--conn={connection_file}"],
                "/bin/it kernel",
            ),
            (&["it", "{connection_file}"], "/bin/it"),
            (&["it", "a\nb"], "/bin/it a b"),
        ];
        for (argv, expected) in cases {
            assert_eq!(starting(argv).starts(), expected, "{argv:?}");
        }
        let long = "x".repeat(500);
        let shown = starting(&["it", &long, "end"]).starts();
        assert!(
            shown.starts_with("/bin/it x") && shown.ends_with("x end"),
            "{shown}"
        );
        assert_eq!(shown.chars().count(), 72);
    }

    #[test]
    fn only_ipykernel_needs_ipykernel() {
        let needs = |argv: &[&str]| starting(argv).interpreter().is_some();
        assert!(needs(&[
            "python",
            "-m",
            "ipykernel_launcher",
            "-f",
            "{connection_file}"
        ]));
        assert!(needs(&[
            "python",
            "-Xfrozen_modules=off",
            "-m",
            "ipykernel"
        ]));
        assert!(!needs(&["python", "-m", "bash_kernel"]));
        assert!(!needs(&["deno", "jupyter"]));
    }
}
