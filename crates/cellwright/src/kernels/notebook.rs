//! The kernel that a notebook runs on: the one that was named, else the one that it asks for where that can be
//! started, else the built-in runner if it is in Python.

use std::path::{Path, PathBuf};

use cellwright_kernel::backend::jupyter::{JupyterSpec, Source};
use cellwright_run::Listing;

use super::chosen::{Backend, Chosen, Flags, Spec, Within};
use super::ipykernel::{self, Ipykernel};
use super::jupyter;
use crate::engine::Engine;
use crate::failure::{Failure, Kind};
use crate::notice::Told;
use crate::settings::{Origin, Settings};

/// What a notebook runs on, and what its caller should know about that.
pub(crate) fn for_notebook(
    engine: &Engine,
    settings: &Settings,
    flags: Flags<'_>,
    listing: &Listing,
    cwd: &Path,
) -> Result<(Chosen, Option<Told>), Failure> {
    let asked = listing.kernel();
    let said = flags.existing.is_some() || flags.kernel.is_some();
    let by_setting = *settings.origin("kernel.backend") != Origin::Default;
    let backend = flags
        .backend
        .or_else(|| by_setting.then_some(settings.kernel.backend));
    let named_python = flags.python.is_some();
    match backend {
        _ if said => {}
        Some(Backend::Jupyter) => {
            let own = !(named_python && is_python(listing));
            let flags = Flags {
                backend: Some(Backend::Jupyter),
                kernel: asked.filter(|_| own).or(settings.kernel.name.as_deref()),
                ..flags
            };
            let chosen = Chosen::new(engine, settings, flags, cwd)?;
            // The notebook names a kernel once it has run, which makes it no other one.
            let any = own && is_python(listing);
            let within = if any { Within::Jupyter } else { chosen.within };
            return Ok((Chosen { within, ..chosen }, None));
        }
        Some(Backend::Runner) => check_python(listing)?,
        // Whoever names an interpreter wants that one to run it.
        None if named_python && is_python(listing) => {
            let flags = Flags {
                backend: Some(Backend::Runner),
                ..flags
            };
            return Ok((Chosen::new(engine, settings, flags, cwd)?, None));
        }
        None => return automatic(engine, settings, flags, listing, cwd),
    }
    let flags = Flags { backend, ..flags };
    Ok((Chosen::new(engine, settings, flags, cwd)?, None))
}

fn automatic(
    engine: &Engine,
    settings: &Settings,
    flags: Flags<'_>,
    listing: &Listing,
    cwd: &Path,
) -> Result<(Chosen, Option<Told>), Failure> {
    let runner = || {
        let flags = Flags {
            backend: Some(Backend::Runner),
            ..flags
        };
        let chosen = Chosen::new(engine, settings, flags, cwd)?;
        // Nobody said that it must be this one.
        Ok::<_, Failure>(Chosen {
            within: Within::All,
            ..chosen
        })
    };
    let Some(name) = listing.kernel() else {
        check_python(listing)?;
        return Ok((runner()?, None));
    };
    let started = jupyter::started(engine, settings, Some(name), flags.python, cwd);
    let trouble = match started {
        Ok(chosen) => match lacks_ipykernel(&chosen) {
            // That the notebook asks for it may be our own word, from when it ran before on another.
            None if is_python(listing) => {
                let within = Within::All;
                return Ok((Chosen { within, ..chosen }, None));
            }
            None => return Ok((chosen, None)),
            Some(python) => format!("{} has no ipykernel", python.display()),
        },
        Err(failure) if !is_python(listing) => return Err(failure),
        Err(failure) => failure.message,
    };
    if !is_python(listing) {
        // What it lacks is told when it is started.
        let chosen = jupyter::started(engine, settings, Some(name), flags.python, cwd)?;
        return Ok((chosen, None));
    }
    // Every Python notebook asks for this one, and nobody misses it.
    let usual = jupyter::is_python(name);
    let notice = (!usual).then(|| {
        Told::new(
            "kernel_replaced",
            format!(
                "the notebook asks for the kernel `{name}`, which cannot be started ({trouble}); the \
                 built-in Python runner runs it"
            ),
        )
    });
    Ok((runner()?, notice))
}

/// A notebook that says nothing is in Python: most are.
fn is_python(listing: &Listing) -> bool {
    match listing.language() {
        Some(language) => language.eq_ignore_ascii_case("python"),
        None => listing
            .kernel()
            .is_none_or(|name| name.to_lowercase().contains("python")),
    }
}

fn check_python(listing: &Listing) -> Result<(), Failure> {
    if is_python(listing) {
        return Ok(());
    }
    let language = listing
        .language()
        .or_else(|| listing.kernel())
        .unwrap_or_default();
    let message = format!("The notebook is in {language}, and the built-in runner is Python");
    let failure = Failure::new(Kind::BadArguments, message);
    Err(failure.hint("name a kernel with --kernel (`cellwright kernels specs` lists them)"))
}

/// The interpreter that would have to have ipykernel for this kernel, and has not.
fn lacks_ipykernel(chosen: &Chosen) -> Option<PathBuf> {
    let Spec::Jupyter(JupyterSpec {
        source: Source::Start { kernelspec, python },
        env,
        ..
    }) = &chosen.spec
    else {
        return None;
    };
    if !kernelspec.is_ipykernel() {
        return None;
    }
    let command = kernelspec.command(Path::new(""), python.as_deref());
    let program = PathBuf::from(command.first()?);
    if has_files(&program) {
        return None;
    }
    // Where it is not where it usually is, the interpreter knows.
    let answers = ipykernel::look(std::slice::from_ref(&program), env).ok()?;
    matches!(answers.first(), Some(Ipykernel::Missing)).then_some(program)
}

/// Whether ipykernel is among the packages next to an interpreter, which is quicker to see than to ask.
fn has_files(python: &Path) -> bool {
    let Some(prefix) = python.parent().and_then(Path::parent) else {
        return false;
    };
    ipykernel::libraries(prefix).iter().any(|folder| {
        let packages = folder.join("site-packages");
        packages.join("ipykernel_launcher.py").is_file()
    })
}
