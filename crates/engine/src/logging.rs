//! Diagnostic events of Cellwright's own crates. `CELLWRIGHT_LOG` selects them; they are off by default.
//!
//! Events describe what happens to kernels, messages, files and clients. They contain no code, no output, no tokens and
//! no values of environment variables.

use std::fmt::{self, Write as _};

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_stdext::secret::redact;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::Targets;

use crate::env;

/// Events of other crates are never written: some of them contain whole messages.
const OWN_TARGET_PREFIX: &str = "cellwright";

/// Passes the selected events of this process to `write`: the level, and the text in one line. Does nothing if
/// `CELLWRIGHT_LOG` is not set.
pub fn install(write: impl Fn(Level, &str) + Send + Sync + 'static) -> Result<(), Failure> {
    let Some(directives) = env::value(env::LOG) else {
        return Ok(());
    };
    let filter = parse_filter(&directives.to_string_lossy())?;
    // Fails if there is a subscriber already, which then stays.
    tracing::subscriber::set_global_default(EventSubscriber { filter, write }).ok();
    Ok(())
}

fn parse_filter(directives: &str) -> Result<Targets, Failure> {
    directives.parse::<Targets>().map_err(|error| {
        let mut failure = Failure::new(
            Kind::BadSettings,
            format!("{} is not a valid list of filters", env::LOG),
        );
        failure.causes.push(error.to_string());
        failure.hint("`CELLWRIGHT_LOG=debug` selects all events, `CELLWRIGHT_LOG=cellwright_kernel=trace` those of one crate")
    })
}

/// Formats events and passes them on. It ignores spans.
struct EventSubscriber<W> {
    filter: Targets,
    write: W,
}

impl<W: Fn(Level, &str) + Send + Sync + 'static> Subscriber for EventSubscriber<W> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with(OWN_TARGET_PREFIX)
            && self
                .filter
                .would_enable(metadata.target(), metadata.level())
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut text = EventText::default();
        event.record(&mut text);
        let line = format!("{}: {}{}", metadata.target(), text.message, text.fields);
        (self.write)(*metadata.level(), &redact(&line));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The text of an event: its message, then its other fields as ` name=value`.
#[derive(Default)]
struct EventText {
    message: String,
    fields: String,
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        if field.name() == "message" {
            write!(self.message, "{value:?}").ok();
        } else {
            write!(self.fields, " {}={value:?}", field.name()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn selected_events_of_own_crates_are_written_in_one_line() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&lines);
        let subscriber = EventSubscriber {
            filter: parse_filter("info,cellwright_kernel=trace").unwrap(),
            write: move |level: Level, line: &str| {
                written.lock().unwrap().push(format!("{level} {line}"));
            },
        };
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "cellwright::host", clients = 2, name = "a b", "client connected");
            tracing::info!(target: "cellwright::host", url = "http://me:pw@h/?token=t", "asked");
            tracing::debug!(target: "cellwright::host", "not selected");
            tracing::trace!(target: "cellwright_kernel::process", pid = 7, "process started");
            tracing::error!(target: "rmcp::service", "of another crate");
            let _span = tracing::error_span!(target: "cellwright::host", "span").entered();
        });
        let expected = [
            "INFO cellwright::host: client connected clients=2 name=\"a b\"",
            "INFO cellwright::host: asked url=\"http://***@h/?token=***\"",
            "TRACE cellwright_kernel::process: process started pid=7",
        ];
        assert_eq!(*lines.lock().unwrap(), expected);
    }

    #[test]
    fn invalid_filter_is_reported() {
        let failure = parse_filter("cellwright=loud").unwrap_err();
        assert_eq!(
            failure.message,
            "CELLWRIGHT_LOG is not a valid list of filters"
        );
        assert!(!failure.causes.is_empty());
    }
}
