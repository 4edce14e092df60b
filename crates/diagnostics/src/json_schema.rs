//! Types for fields of `--json` documents whose Rust type does not determine their schema.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A JSON value of any type.
pub struct AnyJson;

impl JsonSchema for AnyJson {
    fn schema_name() -> Cow<'static, str> {
        "AnyJson".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["object", "array", "string", "number", "boolean", "null"]})
    }
}

/// A time in UTC as RFC 3339 defines it.
pub struct Timestamp;

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// An output as nbformat 4 defines it.
pub struct NotebookOutput;

impl JsonSchema for NotebookOutput {
    fn schema_name() -> Cow<'static, str> {
        "NotebookOutput".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An output as nbformat 4 defines it.",
            "type": "object",
            "properties": {
                "output_type": {
                    "description": "Type of the output, which decides its other members.",
                    "enum": ["stream", "display_data", "execute_result", "error"],
                },
            },
            "required": ["output_type"],
            "additionalProperties": true,
        })
    }
}
