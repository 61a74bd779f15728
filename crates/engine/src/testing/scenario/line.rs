//! From text to lines: words, options, an expectation, and the lines indented under it.
//!
//! ```text
//! at 5s   w1 claims ttl=30s max=2   -> j1 as L1, j2 as L2   # why
//! ```
//!
//! `"…"` keeps spaces together, `{300xa}` stands for three hundred a's, `\0` inside quotes for a zero byte.

use super::super::TestResult;
use windlass_core::Millis;

/// Verbs that lines can be indented under. Under any other line, indenting is only for the eye.
const BLOCKS: [&str; 5] = ["together", "all", "submit-run", "expand", "undo"];

#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub number: usize,
    pub at: Option<Millis>,
    pub words: Vec<String>,
    pub options: Vec<(String, String)>,
    /// Clauses between commas, each a list of words.
    pub expect: Option<Vec<Vec<String>>>,
    pub block: Vec<Line>,
}

/// The lines of a text, indented ones under the line they belong to.
pub(super) fn parse(text: &str) -> TestResult<Vec<Line>> {
    let mut open: Vec<(usize, Line)> = Vec::new();
    let mut done = Vec::new();
    for (at, raw) in text.lines().enumerate() {
        let indent = raw.len() - raw.trim_start().len();
        let tokens = tokens(raw).map_err(|why| format!("line {}: {why}", at + 1))?;
        if tokens.is_empty() {
            continue;
        }
        close(&mut open, &mut done, indent);
        let line = line(at + 1, tokens)?;
        if line.words.first().is_some_and(|word| BLOCKS.contains(&word.as_str())) {
            open.push((indent, line));
        } else {
            add(&mut open, &mut done, line);
        }
    }
    close(&mut open, &mut done, 0);
    Ok(done)
}

/// Puts a line under the block that is open, if one is.
fn add(open: &mut [(usize, Line)], done: &mut Vec<Line>, line: Line) {
    match open.last_mut() {
        Some((_, parent)) => parent.block.push(line),
        None => done.push(line),
    }
}

/// Ends all lines that are not indented less than `indent`.
fn close(open: &mut Vec<(usize, Line)>, done: &mut Vec<Line>, indent: usize) {
    while open.last().is_some_and(|(at, _)| *at >= indent) {
        let Some((_, line)) = open.pop() else { return };
        add(open, done, line);
    }
}

struct Token {
    text: String,
    /// Quoted as a whole, so neither an option nor an arrow.
    quoted: bool,
}

fn line(number: usize, tokens: Vec<Token>) -> TestResult<Line> {
    let mut line = Line { number, ..Line::default() };
    let mut tokens = tokens.into_iter().peekable();
    if tokens.peek().is_some_and(|token| token.text == "at" && !token.quoted) {
        tokens.next();
        let time = tokens.next().ok_or_else(|| format!("line {number}: at what time?"))?;
        line.at = Some(length(&time.text).map_err(|why| format!("line {number}: {why}"))?);
    }
    for token in tokens {
        if let Some(expect) = &mut line.expect {
            push_clause_word(expect, token);
        } else if !token.quoted && token.text == "->" {
            line.expect = Some(vec![Vec::new()]);
        } else {
            match token.text.split_once('=').filter(|_| !token.quoted) {
                Some((name, value)) => line.options.push((name.into(), value.into())),
                None => line.words.push(token.text),
            }
        }
    }
    Ok(line)
}

fn push_clause_word(expect: &mut Vec<Vec<String>>, token: Token) {
    let ends = !token.quoted && token.text.ends_with(',');
    let word = if ends { token.text.trim_end_matches(',').to_string() } else { token.text };
    if let Some(clause) = expect.last_mut() {
        clause.push(word);
    }
    if ends {
        expect.push(Vec::new());
    }
}

fn tokens(raw: &str) -> TestResult<Vec<Token>> {
    let (mut found, mut rest) = (Vec::new(), raw.trim_start());
    while !rest.is_empty() && !rest.starts_with('#') {
        let (mut text, quoted) = (String::new(), rest.starts_with('"'));
        loop {
            match rest.chars().next() {
                Some('"') => rest = quoted_part(&rest[1..], &mut text)?,
                Some('{') => rest = repeated(&rest[1..], &mut text)?,
                Some(c) if !c.is_whitespace() => {
                    text.push(c);
                    rest = &rest[c.len_utf8()..];
                }
                _ => break,
            }
        }
        found.push(Token { text, quoted });
        rest = rest.trim_start();
    }
    Ok(found)
}

fn quoted_part<'a>(rest: &'a str, text: &mut String) -> TestResult<&'a str> {
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok(&rest[at + 1..]),
            '\\' => match chars.next() {
                Some((_, '0')) => text.push('\0'),
                Some((_, 'n')) => text.push('\n'),
                Some((_, other)) => text.push(other),
                None => break,
            },
            other => text.push(other),
        }
    }
    Err("a quote is not closed".into())
}

fn repeated<'a>(rest: &'a str, text: &mut String) -> TestResult<&'a str> {
    let wrong = || "write {300xa} for three hundred a's".to_string();
    let (inside, after) = rest.split_once('}').ok_or_else(wrong)?;
    let (count, what) = inside.split_once('x').ok_or_else(wrong)?;
    text.push_str(&what.repeat(count.parse().map_err(|_| wrong())?));
    Ok(after)
}

/// Also with a minus.
pub(super) fn length(text: &str) -> TestResult<Millis> {
    let Some(text) = text.strip_prefix('-') else { return text.parse() };
    text.parse().map(|Millis(length)| Millis(-length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_falls_into_its_parts() {
        let lines =
            parse("at 5s w1 claims ttl=30s \"a b\" -> j1 as L1, j2 as L2 # why\n  all\n    x={3xab}\ny").unwrap();
        assert_eq!(lines.len(), 3);
        let first = &lines[0];
        assert_eq!((first.number, first.at), (1, Some(Millis(5_000))));
        assert_eq!(first.words, ["w1", "claims", "a b"]);
        assert_eq!(first.options, [("ttl".to_string(), "30s".to_string())]);
        assert_eq!(first.expect.as_ref().unwrap()[1], ["j2", "as", "L2"]);
        assert_eq!(lines[1].block[0].options[0].1, "ababab");
        assert_eq!(lines[2].words, ["y"]);
    }

    #[test]
    fn odd_texts_are_named_by_line() {
        for (text, why) in [("\n\"a", "line 2"), ("at", "line 1"), ("at 5x go", "5x"), ("a={3}", "line 1")] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
