//! YAML that somebody wrote: read with its places, and with limits that no file can talk its way around.
//!
//! JSON is read by the same parser, so that both have lines.
#![forbid(unsafe_code)]

pub mod parts;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{DefaultMessageFormatter, Localizer};
pub use serde_saphyr::{Location, Spanned};
use std::{borrow::Cow, fmt, marker::PhantomData};

pub const DEPTH_MAX: usize = 32;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// Line and column, from 1. Line 0: nowhere in particular.
    pub line: u64,
    pub column: u64,
    /// Such as `steps.build.needs`, where it is said.
    pub field: String,
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        f.write_str(&self.sentence())
    }
}

impl Fault {
    pub fn at(location: Location, text: impl Into<String>) -> Self {
        Self { line: location.line(), column: location.column(), ..Self::nowhere(text) }
    }

    pub fn nowhere(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub fn of(self, field: impl Into<String>) -> Self {
        Self { field: field.into(), ..self }
    }

    /// What is wrong in which field, without the place.
    pub fn sentence(&self) -> String {
        let separator = if self.field.is_empty() { "" } else { ": " };
        format!("{}{separator}{}", self.field, self.text)
    }
}

/// Which words mean true or false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Booleans {
    /// Only `true` and `false`.
    Strict,
    /// Also `yes`, `no`, `on`, `off`, as YAML once had them.
    Loose,
}

/// No aliases, so nothing grows on its way in; one document; nothing twice; no more parts than such a file can sensibly have.
fn options(bytes_max: usize, booleans: Booleans) -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: booleans == Booleans::Strict,
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_aliases: 0,
            max_anchors: 0,
            max_merge_keys: 0,
            max_documents: 1,
            max_nodes: bytes_max / 6,
            max_events: bytes_max / 3,
        },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::Error,
    }
}

pub fn read<T: serde::de::DeserializeOwned>(text: &str, bytes_max: usize, booleans: Booleans) -> Result<T, Fault> {
    if text.len() > bytes_max {
        let why = format!("it has {} bytes; at most {bytes_max} are read", text.len());
        return Err(Fault::nowhere(why));
    }
    serde_saphyr::from_str_with_options(text, options(bytes_max, booleans)).map_err(|error| {
        let location = error.location().unwrap_or(Location::UNKNOWN);
        let said = error.render_with_formatter(&DefaultMessageFormatter.with_localizer(&WithoutPlace));
        let fault = Fault::at(location, said.lines().next().unwrap_or("cannot be read"));
        tab(text, &fault).unwrap_or(fault)
    })
}

/// The place is told beside the text, so not in it.
struct WithoutPlace;

impl Localizer for WithoutPlace {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
}

/// A tab in an indentation puts the parser off, which then complains about the line before or the one after.
fn tab(text: &str, fault: &Fault) -> Option<Fault> {
    let place = |line: &str| {
        let indentation = &line[..line.len() - line.trim_start().len()];
        indentation.find('\t').map(|at| at as u64 + 1)
    };
    let named = fault.text.split(|char: char| !char.is_alphabetic()).any(|word| word == "tab" || word == "tabs");
    let near = |line: &u64| named || line.abs_diff(fault.line) <= 1;
    let lines = text.lines().zip(1u64..).filter(|(_, number)| near(number));
    let found = lines.filter_map(|(line, number)| Some((number, place(line)?)));
    let (line, column) = found.min_by_key(|(number, _)| number.abs_diff(fault.line))?;
    let text = "a tab in the indentation; YAML takes spaces only".into();
    Some(Fault { line, column, text, ..Fault::default() })
}

/// A map in the order of the file. Nothing at all counts as an empty one.
#[derive(Debug)]
pub struct Ordered<K, V>(pub Vec<(K, V)>);

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Ordered<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<K, V>(PhantomData<(K, V)>);
        impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
            type Value = Ordered<K, V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Ordered::default())
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// Anything a file can say, each part with its place.
#[derive(Clone, Debug)]
pub struct Tree {
    pub line: u64,
    pub column: u64,
    pub node: Node,
}

#[derive(Clone, Debug)]
pub enum Node {
    Null,
    Bool(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    pub line: u64,
    pub column: u64,
    pub value: Tree,
}

impl Node {
    /// For messages.
    pub fn name(&self) -> &'static str {
        match self {
            Node::Null => "nothing",
            Node::Bool(_) => "true or false",
            Node::Whole(_) | Node::Number(_) => "a number",
            Node::Text(_) => "text",
            Node::List(_) => "a list",
            Node::Map(_) => "a map",
        }
    }

    /// None where JSON has no such number.
    pub fn json(&self) -> Option<serde_json::Value> {
        Some(match self {
            Node::Null => serde_json::Value::Null,
            Node::Bool(value) => (*value).into(),
            Node::Whole(value) => (*value).into(),
            Node::Number(value) => serde_json::Number::from_f64(*value)?.into(),
            Node::Text(text) => text.as_str().into(),
            Node::List(list) => list.iter().map(|tree| tree.node.json()).collect::<Option<Vec<_>>>()?.into(),
            Node::Map(map) => {
                let pairs = map.iter().map(|entry| Some((entry.key.clone(), entry.value.node.json()?)));
                serde_json::Value::Object(pairs.collect::<Option<serde_json::Map<_, _>>>()?)
            }
        })
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Node>::deserialize(deserializer)?;
        let (line, column) = (spanned.referenced.line(), spanned.referenced.column());
        Ok(Self { line, column, node: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Node;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("YAML")
            }
            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Null)
            }
            fn visit_none<E>(self) -> Result<Node, E> {
                Ok(Node::Null)
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
                Node::deserialize(deserializer)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Whole(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
                Ok(i64::try_from(value).map_or(Node::Number(value as f64), Node::Whole))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Number(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Node, E> {
                Ok(Node::Text(value.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
                let mut list = Vec::new();
                while let Some(one) = seq.next_element()? {
                    list.push(one);
                }
                Ok(Node::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut entries = Vec::new();
                while let Some(key) = map.next_key::<Spanned<String>>()? {
                    let (line, column) = (key.referenced.line(), key.referenced.column());
                    entries.push(Entry { key: key.value, line, column, value: map.next_value()? });
                }
                Ok(Node::Map(entries))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_knows_its_place() {
        let tree: Tree = read("a: 1\nb:\n  c: [x, {d: 2.5}]\n", 1_000, Booleans::Loose).unwrap();
        let Node::Map(top) = &tree.node else { panic!("{tree:?}") };
        let places: Vec<_> =
            top.iter().map(|e| (e.key.as_str(), e.line, e.column, e.value.line, e.value.column)).collect();
        assert_eq!(places, [("a", 1, 1, 1, 4), ("b", 2, 1, 3, 3)]);
        let Node::Map(inner) = &top[1].value.node else { panic!() };
        let Node::List(list) = &inner[0].value.node else { panic!() };
        assert_eq!((list[1].line, list[1].column), (3, 10));
        assert_eq!(tree.node.json().unwrap(), serde_json::json!({"a": 1, "b": {"c": ["x", {"d": 2.5}]}}));
    }

    #[track_caller]
    fn refused(text: &str) -> Fault {
        match read::<Tree>(text, 100_000, Booleans::Loose) {
            Ok(tree) => panic!("{text:?} was read as {tree:?}"),
            Err(fault) => fault,
        }
    }

    #[test]
    fn nothing_grows_on_its_way_in() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = format!("*a{}, ", level - 1).repeat(10);
            bomb += &format!("a{level}: &a{level} [{}]\n", before.trim_end_matches(", "));
        }
        for text in [&*bomb, "a: &x 1\nb: *x\n", "a: &x {b: 1}\nc:\n  <<: *x\n"] {
            assert!(refused(text).line > 0, "{text:?}");
        }
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(read::<Tree>(&deep(DEPTH_MAX - 1), 10_000, Booleans::Loose).is_ok());
        for levels in [DEPTH_MAX + 1, 50_000] {
            refused(&deep(levels));
        }
        // Small parts take more room in memory than in a file.
        let told = refused(&format!("[{}]", "[],".repeat(20_000))).text;
        assert!(["node", "event"].iter().any(|part| told.to_lowercase().contains(part)), "{told}");
        assert!(read::<Tree>("a: 1", 3, Booleans::Loose).is_err_and(|fault| fault.text.contains("4 bytes; at most 3")));
    }

    #[test]
    fn a_word_is_a_word_where_booleans_are_strict() {
        for (booleans, expected) in [(Booleans::Strict, serde_json::json!("on")), (Booleans::Loose, true.into())] {
            let read: std::collections::BTreeMap<String, serde_json::Value> = read("a: on\n", 1_000, booleans).unwrap();
            assert_eq!(read["a"], expected, "{booleans:?}");
        }
    }

    #[test]
    fn a_tab_is_reported_on_its_own_line() {
        for (text, line, column) in [
            ("a:\n\tb: 1\n", 2, 1),
            ("a:\n  b:\n\tc: 1\n", 3, 1),
            ("a:\n  b:\n  \tc: 1\n", 3, 3),
            ("a:\n  b: 1\n\tc: 1\nd: 1\n", 3, 1),
            ("a:\n  - b\n\t- c\n", 3, 1),
            ("jobs:\n  build:\n    run: make\n\tneeds: [x]\n  test:\n    run: make test\n", 4, 1),
        ] {
            let fault = refused(text);
            assert_eq!((fault.line, fault.column), (line, column), "{text:?}: {fault}");
            assert!(fault.text.contains("a tab"), "{text:?}: {fault}");
        }
        // A tab elsewhere is text like any other.
        assert!(read::<Tree>("a: |\n  one\n  \ttwo\nb: \"x\ty\"\n", 1_000, Booleans::Loose).is_ok());
        assert!(!refused("a: |\n  one\n  \ttwo\nb: 1\nc: 2\nb: 3\n").text.contains("a tab"));
    }

    #[test]
    fn what_is_no_yaml_is_told_with_its_place() {
        for (text, line) in [
            ("a:\n\tb: 1\n", 2),
            ("a: 1\nb: 2\na: 3\n", 3),
            ("a: [1, 2\n", 0),
            ("a: 'x\n", 0),
            ("a: 1\n---\nb: 2\n", 0),
            ("a: 1\n  b: 2\n", 0),
            ("%YAML 9\n", 0),
        ] {
            let fault = refused(text);
            assert!(line == 0 || fault.line == line, "{text:?}: {fault}");
            assert!(!fault.text.is_empty());
        }
    }
}
