//! `cellwright`: notebooks and live kernels for AI agents and people.
//!
//! This file parses, runs and reports; everything a verb does is in [`verbs`].

mod cli;
mod console;
mod document;
mod hosted_execution;
mod local_execution;
mod verbs;
mod viewer;

use std::ffi::OsString;
use std::process::ExitCode;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;

use crate::console::Console;

fn main() -> ExitCode {
    cellwright_diagnostics::failure::quiet_panics();
    if let Some(well) = cellwright_engine::program::run_supervisor()
        .or_else(|| cellwright_engine::local_gateway::run_if_keeper(console::print_to_parent))
        .or_else(|| cellwright_host::host_main::run_if_host(engine, console::print_to_parent))
    {
        return if well {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((first, words)) = arguments.split_first()
        && first == cli::complete::COMMAND
    {
        cli::complete::complete(words, &engine());
        return ExitCode::SUCCESS;
    }
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(error) => {
            return console::print_usage(&error, &cli::usage_text(&error), cli::wants_json());
        }
    };
    // Before threads and kernels exist. Also for verbs that run no code: they may wait for stdin or an editor.
    cellwright_engine::env::hide_values();
    let console = Console::new(cli.global.json, cli.global.quiet);
    if let Err(failure) = cellwright_engine::logging::install(console::print_event) {
        return console.report_failure(&failure);
    }
    let result = std::panic::catch_unwind(|| cli::run(&cli.verb, &engine(), &console))
        .unwrap_or_else(|panic| Err(Failure::from_panic(panic.as_ref())));
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => console.report_failure(&failure),
    }
}

fn engine() -> Engine {
    Engine::from_env(cli::bridge_command::build)
}
