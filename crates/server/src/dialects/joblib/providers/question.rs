//! What a provider is asked, in the one form that all sides agree on, so that its hash names it.

use crate::auth;
use std::{collections::BTreeMap, fmt::Write};

/// The query as JSON: keys in order, no blanks, everything outside printable ASCII escaped. The last of several of a name counts.
pub fn canonical(query: &[(String, String)]) -> String {
    // By code point, which is the order of the bytes too.
    let by_name: BTreeMap<&str, &str> = query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut text = String::from("{");
    for (at, (name, value)) in by_name.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        quote(&mut text, name);
        text.push(':');
        quote(&mut text, value);
    }
    text.push('}');
    text
}

fn quote(text: &mut String, part: &str) {
    text.push('"');
    for c in part.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            ' '..='~' => text.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a String does not fail.
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text.push('"');
}

pub fn hash(canonical: &str) -> String {
    auth::hash(canonical)
}
