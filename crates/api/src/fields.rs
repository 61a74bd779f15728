//! Objects whose fields are their own and those of [`JobSettings`], side by side.
//!
//! `#[serde(flatten)]` would copy every field into a buffer first: payloads would lose their form, and errors the place
//! they are about. Here fields are told apart by name while they are read. Own fields go to the derived reader, which
//! thinks that there are no others.

use crate::settings::JobSettings;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, Visitor, value::StrDeserializer},
};
use std::{
    collections::BTreeMap,
    fmt,
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

/// How settings are written in one kind of text.
pub trait Notation {
    /// A duration.
    type Millis: DeserializeOwned + Into<u64>;
    type Retry: DeserializeOwned + Into<crate::job::Retry>;
    /// Durations have their unit in the value (`10m`) and not in the name.
    const UNITS: bool = false;
    /// Settings that have no place here, as the API calls them.
    const WITHOUT: &'static [&'static str] = &[];
    /// Tags are a list or absent, never null, and an empty list is as good as none.
    const TAGS_LIST: bool = false;
}

/// As in the API.
pub struct Wire;

/// Something with fields of its own (`T`, whose reader must refuse unknown fields) and settings.
#[derive(Debug)]
pub struct With<T, N> {
    pub own: T,
    pub settings: JobSettings,
    notation: PhantomData<N>,
}

impl<T: Default, N> Default for With<T, N> {
    fn default() -> Self {
        Self { own: T::default(), settings: JobSettings::default(), notation: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>, N: Notation> Deserialize<'de> for With<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut settings = JobSettings::default();
        let own =
            T::deserialize(Split::<D, N> { inner: deserializer, settings: &mut settings, notation: PhantomData })?;
        Ok(Self { own, settings, notation: PhantomData })
    }
}

fn written<N: Notation>(name: &'static str) -> &'static str {
    if N::UNITS { name.strip_suffix("_ms").unwrap_or(name) } else { name }
}

fn names<N: Notation>() -> impl Iterator<Item = &'static str> {
    JobSettings::NAMES.iter().copied().filter(|name| !N::WITHOUT.contains(name))
}

type Names = &'static [&'static str];

/// All fields of one kind of object, for an error text. Gathered once for each kind, and kept.
fn expected<N: Notation>(own: Names) -> Names {
    static KNOWN: Mutex<BTreeMap<(usize, Vec<&str>), Names>> = Mutex::new(BTreeMap::new());
    let settings: Vec<&'static str> = names::<N>().map(written::<N>).collect();
    let all = || -> Names { Box::leak(own.iter().chain(&settings).copied().collect()) };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry((own.as_ptr() as usize, settings.clone())).or_insert_with(all)
}

struct Split<'a, I, N> {
    inner: I,
    settings: &'a mut JobSettings,
    notation: PhantomData<N>,
}

/// Only structs are read this way, and from objects only.
impl<'de, D: Deserializer<'de>, N: Notation> Deserializer<'de> for Split<'_, D, N> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        own: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let Self { inner, settings, notation } = self;
        inner.deserialize_struct(name, own, Split { inner: (visitor, own), settings, notation })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, D::Error> {
        Err(D::Error::custom("only structs have settings"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>, N: Notation> Visitor<'de> for Split<'_, (V, Names), N> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.0.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let Self { inner: (visitor, own), settings, notation } = self;
        visitor.visit_map(Fields { map, own, settings, seen: 0, notation })
    }
}

/// An object of which only the own fields are to be seen.
struct Fields<'a, A, N> {
    map: A,
    own: Names,
    settings: &'a mut JobSettings,
    /// A bit for each setting that was read.
    seen: u64,
    notation: PhantomData<N>,
}

impl<'de, A: MapAccess<'de>, N: Notation> MapAccess<'de> for Fields<'_, A, N> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, mut seed: K) -> Result<Option<K::Value>, A::Error> {
        loop {
            let key = Key::<K, N> { seed, own: self.own, notation: PhantomData };
            let (name, back) = match self.map.next_key_seed(key)? {
                None => return Ok(None),
                Some(Found::Own(key)) => return Ok(Some(key)),
                Some(Found::Setting(name, back)) => (name, back),
            };
            let bit = JobSettings::NAMES.iter().position(|known| *known == name).map_or(0, |at| 1 << at);
            if self.seen & bit != 0 {
                return Err(A::Error::duplicate_field(written::<N>(name)));
            }
            self.seen |= bit;
            self.settings.read::<N, A>(name, &mut self.map)?;
            seed = back;
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

struct Key<K, N> {
    seed: K,
    own: Names,
    notation: PhantomData<N>,
}

enum Found<T, K> {
    Own(T),
    /// As the API calls it; the seed comes back unused.
    Setting(&'static str, K),
}

impl<'de, K: DeserializeSeed<'de>, N: Notation> DeserializeSeed<'de> for Key<K, N> {
    type Value = Found<K::Value, K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'de, K: DeserializeSeed<'de>, N: Notation> Visitor<'de> for Key<K, N> {
    type Value = Found<K::Value, K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("field identifier")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        if self.own.contains(&text) {
            return self.seed.deserialize(StrDeserializer::new(text)).map(Found::Own);
        }
        match names::<N>().find(|name| written::<N>(name) == text) {
            Some(name) => Ok(Found::Setting(name, self.seed)),
            None => Err(E::unknown_field(text, expected::<N>(self.own))),
        }
    }
}

/// Fields of one text in a fixed order: `first` as listed there, any others after them as they come. Bodies that are
/// recognised by their text keep it while fields are added.
pub fn in_order(text: &str, first: &[&str]) -> serde_json::Result<String> {
    let Pairs(mut pairs) = serde_json::from_str(text)?;
    pairs.sort_by_key(|(name, _)| first.iter().position(|known| known == name).unwrap_or(first.len()));
    let mut ordered = String::with_capacity(text.len());
    for (name, value) in pairs {
        ordered.push(if ordered.is_empty() { '{' } else { ',' });
        ordered += &serde_json::to_string(&name)?;
        ordered.push(':');
        ordered += value.get();
    }
    ordered += if ordered.is_empty() { "{}" } else { "}" };
    Ok(ordered)
}

/// Fields and values as they are written.
struct Pairs(Vec<(String, crate::Json)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(All)
    }
}
