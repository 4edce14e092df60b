//! `cellwright`: notebooks and live kernels for AI agents and people.
//!
//! This file parses, runs and reports; everything a verb does is in [`verbs`].

mod bridge;
mod cli;
mod engine;
mod env;
mod evaluation;
mod failure;
mod feed;
mod freshness;
mod host;
mod inside;
mod kernels;
mod launch;
mod live;
mod mcp;
mod notice;
mod parameters;
mod screen;
mod settings;
mod startup;
mod table;
mod trust;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::screen::Screen;

fn main() -> ExitCode {
    failure::quiet_panics();
    if let Some(well) = kernels::supervise().or_else(host::start::host) {
        return if well {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return screen::usage(&error),
    };
    let screen = Screen::new(&cli.global);
    let result = std::panic::catch_unwind(|| verbs::run(&cli.verb, &Engine::from_env(), &screen))
        .unwrap_or_else(|panic| Err(Failure::bug(panic.as_ref())));
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => screen.report(&failure),
    }
}
