//! A line of a log as people read it: its text without escape sequences, and its level. The dashboard has the same rules for the lines
//! it holds (`web/src/parts/level.ts`); the table of cases in the tests of both is the same.

use windlass_api::log::LogLevel;

/// The text without escape sequences: colours (`ESC [ … letter`), titles and links (`ESC ] … BEL`), and all others.
pub fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        text.push_str(&rest[..at]);
        rest = after_escape(&rest[at + 1..]);
    }
    text.push_str(rest);
    text
}

/// What follows an escape sequence, by the text behind its `ESC`. One without an end reaches to the end of the line.
fn after_escape(text: &str) -> &str {
    let mut chars = text.chars();
    match chars.next() {
        Some('[') => skip_past(chars.as_str(), |c| ('@'..='~').contains(&c)),
        Some(']') => {
            let body = chars.as_str();
            let end = body.find(['\u{7}', '\u{1b}']).unwrap_or(body.len());
            let rest = &body[end..];
            rest.strip_prefix("\u{1b}\\").or_else(|| rest.strip_prefix('\u{7}')).unwrap_or(rest)
        }
        Some('(' | ')' | '#' | '%') => skip_past(chars.as_str(), |_| true),
        _ => chars.as_str(),
    }
}

fn skip_past(text: &str, is_last: impl Fn(char) -> bool) -> &str {
    text.char_indices().find(|(_, c)| is_last(*c)).map_or("", |(at, c)| &text[at + c.len_utf8()..])
}

const ERRORS: [&str; 8] = ["ERROR", "ERR", "FATAL", "CRITICAL", "PANIC", "SEVERE", "Traceback", "panicked"];
const WARNINGS: [&str; 3] = ["WARN", "WARNING", "Warning"];
const DEBUG: [&str; 2] = ["DEBUG", "TRACE"];

/// By the words of a line that has no escape sequences. A word that only mentions errors (`0 errors`) is none.
pub fn level(line: &str) -> Option<LogLevel> {
    let mut found = None;
    let mut end = 0;
    while let Some(skipped) = line[end..].find(is_word) {
        let begin = end + skipped;
        end = line[begin..].find(|c| !is_word(c)).map_or(line.len(), |length| begin + length);
        let word = &line[begin..end];
        let level = of_word(word, &line[end..]).or_else(|| of_field(word, &line[..begin]));
        found = match (found, level) {
            (_, Some(LogLevel::Error)) => return level,
            (Some(LogLevel::Warn), _) | (_, None) => found,
            _ => level,
        };
    }
    found
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn of_word(word: &str, after: &str) -> Option<LogLevel> {
    let is_named = after.starts_with([':', '[']);
    let is_type = word.ends_with("Error") || word.ends_with("Exception");
    let bare = matches!(word, "Error" | "error" | "Exception");
    let is_error = ERRORS.contains(&word) || (is_type || bare) && is_named || is_type && !bare && after.is_empty();
    if is_error {
        Some(LogLevel::Error)
    } else if WARNINGS.contains(&word) || word == "warning" && is_named {
        Some(LogLevel::Warn)
    } else {
        DEBUG.contains(&word).then_some(LogLevel::Debug)
    }
}

/// `level=error`, `"level":"error"`, `"severity": "error"`.
fn of_field(word: &str, before: &str) -> Option<LogLevel> {
    let level = match word {
        "error" | "fatal" | "critical" | "panic" => LogLevel::Error,
        "warn" | "warning" => LogLevel::Warn,
        "debug" | "trace" => LogLevel::Debug,
        _ => return None,
    };
    let key = before.trim_end_matches([' ', '"']).strip_suffix([':', '='])?.trim_end_matches([' ', '"']);
    ["level", "lvl", "severity"].iter().any(|name| key.ends_with(name)).then_some(level)
}
