//! What is wrong with a file part by part. A reader stops at the first mistake; the file's author wants to see all of them.

use crate::{Entry, Fault, Node, Tree};
use serde_json::json;

/// [`relined`] makes a text at most so many times as long.
pub const BYTES: usize = 8;

/// Tries to read a text that has nothing but the one entry.
pub type ReadAlone<'a> = dyn Fn(&str) -> Result<(), Fault> + 'a;

/// What keeps an entry from being read: those of its members that cannot be read, each at its place, else the whole of it.
/// `field` says where the entry is.
pub fn faults(entry: &Entry, field: &str, read: &ReadAlone) -> Vec<Fault> {
    let alone = |value: Tree| read(&relined(&map(vec![Entry { value, ..entry.clone() }])).0);
    let Err(whole) = alone(entry.value.clone()) else { return Vec::new() };
    let mut found = Vec::new();
    if let Node::Map(members) = &entry.value.node {
        for member in members {
            let wrong = alone(map(vec![member.clone()])).err();
            // That the others are missing is no fault of this one.
            let wrong = wrong.filter(|fault| !fault.text.starts_with("missing field"));
            found.extend(wrong.map(|fault| member.fault(field, fault.text)));
        }
    }
    if found.is_empty() {
        found.push(entry.fault(field, whole.text));
    }
    found
}

fn map(entries: Vec<Entry>) -> Tree {
    Tree { line: 0, column: 0, node: Node::Map(entries) }
}

impl Entry {
    /// Something that is wrong here.
    pub fn fault(&self, field: &str, text: String) -> Fault {
        Fault { line: self.line, column: self.column, field: field.to_owned(), text }
    }
}

/// The same as JSON with each part on a line of its own, and where each of these lines comes from: what is read from this text
/// is told with places in the file.
pub fn relined(tree: &Tree) -> (String, Vec<(u64, u64)>) {
    let mut lines = JsonLines::default();
    lines.tree(tree);
    (lines.text, lines.places)
}

#[derive(Default)]
struct JsonLines {
    text: String,
    places: Vec<(u64, u64)>,
}

impl JsonLines {
    fn line(&mut self, place: (u64, u64), text: &str) {
        self.text += text;
        self.text.push('\n');
        self.places.push(place);
    }

    fn tree(&mut self, tree: &Tree) {
        let at = (tree.line, tree.column);
        match &tree.node {
            Node::List(list) => {
                self.line(at, "[");
                for (number, one) in list.iter().enumerate() {
                    self.comma(number, at);
                    self.tree(one);
                }
                self.line(at, "]");
            }
            Node::Map(entries) => {
                self.line(at, "{");
                for (number, entry) in entries.iter().enumerate() {
                    let at = (entry.line, entry.column);
                    self.comma(number, at);
                    self.line(at, &format!("{}:", json!(entry.key)));
                    self.tree(&entry.value);
                }
                self.line(at, "}");
            }
            Node::Null | Node::Bool(_) | Node::Whole(_) | Node::Number(_) | Node::Text(_) => {
                self.line(at, &tree.node.json().unwrap_or_default().to_string());
            }
        }
    }

    fn comma(&mut self, number: usize, place: (u64, u64)) {
        if number > 0 {
            self.line(place, ",");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Booleans, read};

    #[test]
    fn what_is_read_from_the_other_form_has_its_place_in_the_file() {
        let text = "a: 1\nb:\n  c: [x, {d: 2.5}, \"q\\\"\\n\"]\n  ? long\n  : ~\ne: {}\n";
        let tree: Tree = read(text, 1_000, Booleans::Loose).unwrap();
        let (lines, places) = relined(&tree);
        assert_eq!(lines.lines().count(), places.len());
        let again: Tree = read(&lines, 10_000, Booleans::Loose).unwrap();
        assert_eq!(again.node.json(), tree.node.json());
        let (Node::Map(first), Node::Map(second)) = (&tree.node, &again.node) else { panic!() };
        for (old, new) in first.iter().zip(second) {
            assert_eq!(places[new.line as usize - 1], (old.line, old.column), "{}", old.key);
            assert_eq!(places[new.value.line as usize - 1], (old.value.line, old.value.column), "{}", old.key);
        }
    }
}
