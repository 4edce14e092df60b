//! Compares an upgraded notebook with the original, cell by cell. Shares no code with the
//! conversion, so that a mistake there cannot destroy a file.

use super::legacy::{MIME_TYPES, MULTILINE_OUTPUTS};
use crate::cell::CellKind;
use crate::document::{Cells, Notebook};
use crate::error::FormatError;
use crate::json::content;
use crate::json::object;
use crate::json::object_edit::{Object, string_array};
use crate::json::text;
use crate::span::Span;

/// The part of the notebook that differs.
type Difference = String;

/// Checks that `new` is `old` with ids and the minor version of nbformat 4.5.
pub(super) fn same_except_ids(old: &Notebook, new: &Notebook) -> Result<(), FormatError> {
    let is_same = |old_span, new_span, except: &[&str]| {
        kept_members(old, old_span, except) == kept_members(new, new_span, except)
    };
    let is_same_cell = |index: usize| {
        is_same(old.cell(index).span, new.cell(index).span, &["id"])
            && (old.id(index).is_none() || old.id(index) == new.id(index))
    };
    let changed = ["cells", "nbformat_minor"];
    let what = if !is_same(old.spans().top, new.spans().top, &changed)
        || new.minor() != old.minor().max(5)
    {
        "the notebook's own fields".to_owned()
    } else if old.count() != new.count() {
        "the number of cells".to_owned()
    } else if let Some(index) = (0..old.count()).find(|&index| !is_same_cell(index)) {
        format!("cell {index}")
    } else {
        return Ok(());
    };
    Err(FormatError::UpgradeDiffers { what })
}

/// Names and bytes of the members of an object, except for those named.
fn kept_members<'n>(
    notebook: &'n Notebook,
    span: Span,
    except: &[&str],
) -> Vec<(String, &'n [u8])> {
    object::members(notebook.bytes(), span)
        .into_iter()
        .filter(|member| !except.contains(&member.name.as_str()))
        .map(|member| (member.name, notebook.slice(member.value)))
        .collect()
}

/// Checks that `new` has the content of `old`, which is in nbformat 2 or 3.
pub(super) fn same_content_as_legacy(old: &[u8], new: &Notebook) -> Result<(), FormatError> {
    compare(old, new).map_err(|what| FormatError::UpgradeDiffers { what })
}

fn compare(old: &[u8], new: &Notebook) -> Result<(), Difference> {
    let start = memchr::memchr(b'{', old).unwrap_or(old.len());
    let own = || "the notebook's own fields".to_owned();
    let old_top = Object::parse(old, Span::new(start, old.len())).ok_or_else(own)?;
    let new_top = Object::parse(new.bytes(), new.spans().top).ok_or_else(own)?;
    for name in old_top.names() {
        let is_same = match name {
            "worksheets"
            | "cells"
            | "nbformat"
            | "nbformat_minor"
            | "orig_nbformat"
            | "orig_nbformat_minor" => true,
            "metadata" => {
                let dropped = ["name", "signature"];
                same_members(&old_top, "metadata", &new_top, "metadata", &dropped)
            }
            name => old_top.same_member(Some(&new_top), name),
        };
        if !is_same {
            return Err(format!("`{name}` of the notebook"));
        }
    }
    let mut index = 0;
    for sheet in old_top.get("worksheets").map(elements).unwrap_or_default() {
        let sheet = whole_object(sheet);
        let cells = sheet.as_ref().and_then(|sheet| sheet.get("cells"));
        for cell in cells.map(elements).unwrap_or_default() {
            let in_cell = |what: Difference| format!("{what} of cell {index}");
            if index >= new.count() {
                return Err("the number of cells".to_owned());
            }
            let old = whole_object(cell).ok_or_else(|| format!("cell {index}"))?;
            compare_cell(&old, new, index).map_err(in_cell)?;
            index += 1;
        }
    }
    if index != new.count() {
        return Err("the number of cells".to_owned());
    }
    Ok(())
}

fn compare_cell(old: &Object<'_>, new: &Notebook, index: usize) -> Result<(), Difference> {
    let new_cell =
        Object::parse(new.bytes(), new.cell(index).span).ok_or_else(|| "the fields".to_owned())?;
    let old_kind = old.get("cell_type").map(text::decode).unwrap_or_default();
    let is_code = old_kind == "code";
    let kind = match &*old_kind {
        "code" => CellKind::Code,
        "raw" => CellKind::Raw,
        _ => CellKind::Markdown,
    };
    if new.kind(index) != kind {
        return Err("the type".to_owned());
    }
    let name = if is_code { "input" } else { "source" };
    let source = old.get(name).map(joined_lines).unwrap_or_default();
    let is_same = if old_kind == "heading" {
        let new_source = new.source(index).into_owned();
        let heading = new_source.trim_start_matches('#');
        heading.len() < new_source.len() && words(heading) == words(&source)
    } else {
        new.source(index) == source
    };
    if !is_same {
        return Err("the source".to_owned());
    }
    for name in old.names() {
        let is_same = match (name, is_code) {
            ("cell_type" | "id" | "source", _)
            | ("input" | "language" | "collapsed" | "execution_count", true)
            | ("level", false) => true,
            ("metadata", _) => same_members(old, name, &new_cell, name, &["collapsed"]),
            ("prompt_number", true) => same_as(old, name, &new_cell, "execution_count"),
            ("outputs", true) => {
                compare_outputs(old, &new_cell)?;
                true
            }
            ("rendered", false) => {
                old.get(name).map(joined_lines) == new_cell.get(name).map(concatenated_lines)
            }
            (name, _) => old.same_member(Some(&new_cell), name),
        };
        if !is_same {
            return Err(format!("`{name}`"));
        }
    }
    Ok(())
}

fn compare_outputs(old: &Object<'_>, new: &Object<'_>) -> Result<(), Difference> {
    let old = old.get("outputs").map(elements).unwrap_or_default();
    let new = new.get("outputs").map(elements).unwrap_or_default();
    if old.len() != new.len() {
        return Err("the number of outputs".to_owned());
    }
    for (index, (old, new)) in old.into_iter().zip(new).enumerate() {
        let is_same = match (whole_object(old), whole_object(new)) {
            (Some(old), Some(new)) => same_output(&old, &new),
            _ => false,
        };
        if !is_same {
            return Err(format!("output {index}"));
        }
    }
    Ok(())
}

fn same_output(old: &Object<'_>, new: &Object<'_>) -> bool {
    let kind = |output: &Object<'_>| {
        let kind = output.get("output_type").map(text::decode);
        kind.unwrap_or_default().into_owned()
    };
    let old_kind = kind(old);
    let is_bundle = ["pyout", "display_data"].contains(&old_kind.as_str());
    let expected_kind = match old_kind.as_str() {
        "pyout" => "execute_result",
        "pyerr" => "error",
        other => other,
    };
    let data = new.get_object("data");
    kind(new) == expected_kind
        && old.names().into_iter().all(|name| match name {
            "output_type" => true,
            "metadata" if is_bundle => match (old.get_object(name), new.get_object(name)) {
                (Some(old), Some(new)) => old
                    .names()
                    .into_iter()
                    .all(|name| same_as(&old, name, &new, new_name(name))),
                (old, _) => old.is_none(),
            },
            "prompt_number" if old_kind == "pyout" => same_as(old, name, new, "execution_count"),
            "stream" if old_kind == "stream" => same_as(old, name, new, "name"),
            name if is_bundle => data.as_ref().is_some_and(|data| same_data(old, name, data)),
            "text" => old.get(name).map(joined_lines) == new.get(name).map(concatenated_lines),
            name => old.same_member(Some(new), name),
        })
}

/// Whether the data of an output is the same under its new name.
fn same_data(old: &Object<'_>, name: &str, data: &Object<'_>) -> bool {
    let long = new_name(name);
    let (Some(before), Some(after)) = (old.get(name), data.get(long)) else {
        return false;
    };
    if long == "application/json" {
        // A string that contains JSON became the value.
        let text = joined_lines(before);
        return content::same_content("", Some(before), Some(after))
            || content::same_content("", Some(text.as_bytes()), Some(after));
    }
    let is_text = before.first() == Some(&b'"') || string_array(before).is_some();
    if MULTILINE_OUTPUTS.contains(&name) && is_text {
        return joined_lines(before) == concatenated_lines(after);
    }
    content::same_content(long, Some(before), Some(after))
}

/// The MIME type that nbformat 4 uses for a name of nbformat 3.
fn new_name(name: &str) -> &str {
    let known = MIME_TYPES.iter().find(|(short, _)| *short == name);
    known.map_or(name, |(_, long)| long)
}

/// Whether two members of different names have the same content.
fn same_as(old: &Object<'_>, name: &str, new: &Object<'_>, new_name: &str) -> bool {
    content::same_content("", old.get(name), new.get(new_name))
}

/// Whether the objects in two members have the same members, except for those named.
fn same_members(
    old: &Object<'_>,
    name: &str,
    new: &Object<'_>,
    new_name: &str,
    except: &[&str],
) -> bool {
    let (Some(old), Some(new)) = (old.get_object(name), new.get_object(new_name)) else {
        // Not an object before: the value is copied, or left out.
        return old.get_object(name).is_none();
    };
    let mut names = old.names();
    names.extend(new.names());
    names
        .into_iter()
        .filter(|name| !except.contains(name))
        .all(|name| old.same_member(Some(&new), name))
}

fn whole_object(json: &[u8]) -> Option<Object<'_>> {
    Object::parse(json, Span::new(0, json.len()))
}

fn elements(array: &[u8]) -> Vec<&[u8]> {
    object::elements(array, Span::new(0, array.len()))
        .into_iter()
        .map(|element| &array[element.range()])
        .collect()
}

/// A text of nbformat 2 or 3. An array whose first line has no line break is joined with line
/// feeds.
fn joined_lines(value: &[u8]) -> String {
    let Some(lines) = string_array(value) else {
        return concatenated_lines(value);
    };
    let has_breaks = lines
        .first()
        .is_some_and(|line| line.ends_with('\n') || line.ends_with('\r'));
    lines.join(if has_breaks { "" } else { "\n" })
}

/// A text of nbformat 4.
fn concatenated_lines(value: &[u8]) -> String {
    match string_array(value) {
        Some(lines) => lines.concat(),
        None => text::decode(value).into_owned(),
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r##"{"metadata": {"name": "t", "x": 1}, "nbformat": 2, "worksheets": [{"cells": [
        {"cell_type": "code", "input": ["x = 1", "print(x)"], "language": "python", "prompt_number": 7,
         "outputs": [{"output_type": "stream", "stream": "stdout", "text": ["one", "two"]},
                     {"output_type": "pyout", "prompt_number": 7, "text": ["a", "b"], "png": "QQ=="}]},
        {"cell_type": "markdown", "source": ["# T", "text"], "metadata": {"tags": ["k"]}}]}]}"##;

    /// Every loss that the conversion could cause is found by the comparison.
    #[test]
    fn losses_are_detected() {
        let (_, new) = super::super::upgrade(OLD.as_bytes()).unwrap().unwrap();
        let new = String::from_utf8(new).unwrap();
        for (from, to, what) in [
            (r#""x = 1\n""#, r#""x = 1""#, "the source of cell 0"),
            (r#""one\n""#, r#""one""#, "output 0 of cell 0"),
            (r#""a\n""#, r#""a""#, "output 1 of cell 0"),
            ("QQ==", "QR==", "output 1 of cell 0"),
            ("stdout", "stderr", "output 0 of cell 0"),
            (r#""k""#, r#""l""#, "`metadata` of cell 1"),
            (r##""# T\n""##, r##""# T""##, "the source of cell 1"),
            (r#""x": 1"#, r#""x": 2"#, "`metadata` of the notebook"),
            (r#""markdown""#, r#""raw""#, "the type of cell 1"),
            (
                r#""execution_count": 7"#,
                r#""execution_count": 8"#,
                "`prompt_number` of cell 0",
            ),
        ] {
            assert!(new.contains(from), "{from} is not in {new}");
            let changed = Notebook::parse(new.replacen(from, to, 1)).unwrap();
            let found = compare(OLD.as_bytes(), &changed).unwrap_err();
            // The two counts have the same text.
            let is_count = from.contains("count") && found == "output 1 of cell 0";
            assert!(found == what || is_count, "{from}: {found}");
        }
        let unchanged = Notebook::parse(new).unwrap();
        assert_eq!(compare(OLD.as_bytes(), &unchanged), Ok(()));
    }
}
