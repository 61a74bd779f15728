//! What a path names: its parts where the route has `{name}`, decoded.

use http::request::Parts;
use percent_encoding::percent_decode_str;
use std::{borrow::Cow, sync::Arc};
use windlass_api::Uuid;

/// Goes with a request from the table to its handler.
#[derive(Clone, Debug)]
pub struct Named {
    names: Arc<[&'static str]>,
    /// The name whose part is no text.
    texts: Result<Vec<String>, &'static str>,
}

impl Named {
    /// `names` are the route's; `parts` stand in the path as they were sent.
    pub fn new<'a>(names: Arc<[&'static str]>, parts: impl Iterator<Item = &'a str>) -> Self {
        let decoded = |(name, part): (&&'static str, &str)| {
            percent_decode_str(part).decode_utf8().map(Cow::into_owned).map_err(|_| *name)
        };
        let texts = names.iter().zip(parts).map(decoded).collect();
        Self { names, texts }
    }

    fn nothing() -> Self {
        Self { names: Arc::default(), texts: Ok(Vec::new()) }
    }

    fn texts<const N: usize>(self) -> Result<[(&'static str, String); N], String> {
        let texts = self.texts.map_err(|name| format!("Invalid URL: Invalid UTF-8 in `{name}`"))?;
        let named: Vec<_> = self.names.iter().copied().zip(texts).collect();
        named.try_into().map_err(|named: Vec<_>| format!("the path names {}, and its handler takes {N}", named.len()))
    }
}

/// What the path of a request names; or why it cannot be what the handler takes.
pub fn take<T: FromPath>(parts: &mut Parts) -> Result<T, String> {
    T::from_path(parts.extensions.remove::<Named>().unwrap_or_else(Named::nothing))
}

/// `Path<T>` of a surface: the parts of the path that are names, decoded. What cannot be one is refused in the surface's own
/// words, made from the reason and the address.
macro_rules! extractor {
    ($refusal:ty, $refuse:expr) => {
        pub struct Path<T>(pub T);

        impl<T: $crate::path::FromPath, S: Sync> axum::extract::FromRequestParts<S> for Path<T> {
            type Rejection = $refusal;
            async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, $refusal> {
                $crate::path::take(parts).map(Self).map_err(|why| $refuse(why, &parts.uri))
            }
        }
    };
}
pub(crate) use extractor;

/// What a handler may take from a path.
pub trait FromPath: Sized {
    fn from_path(named: Named) -> Result<Self, String>;
}

impl FromPath for String {
    fn from_path(named: Named) -> Result<Self, String> {
        named.texts().map(|[(_, text)]| text)
    }
}

impl FromPath for Uuid {
    fn from_path(named: Named) -> Result<Self, String> {
        named.texts().and_then(|[one]| Part::read(0, one))
    }
}

impl<A: Part, B: Part> FromPath for (A, B) {
    fn from_path(named: Named) -> Result<Self, String> {
        let [a, b] = named.texts()?;
        Ok((A::read(0, a)?, B::read(1, b)?))
    }
}

impl<A: Part, B: Part, C: Part> FromPath for (A, B, C) {
    fn from_path(named: Named) -> Result<Self, String> {
        let [a, b, c] = named.texts()?;
        Ok((A::read(0, a)?, B::read(1, b)?, C::read(2, c)?))
    }
}

/// One of the names in a path.
pub trait Part: Sized {
    fn read(index: usize, named: (&'static str, String)) -> Result<Self, String>;
}

impl Part for String {
    fn read(_: usize, (_, text): (&'static str, String)) -> Result<Self, String> {
        Ok(text)
    }
}

impl Part for Uuid {
    fn read(_: usize, (name, text): (&'static str, String)) -> Result<Self, String> {
        let why =
            |error| format!("Invalid URL: Cannot parse `{name}` with value `{text}`: UUID parsing failed: {error}");
        Uuid::parse_str(&text).map_err(why)
    }
}

impl Part for u32 {
    fn read(index: usize, (_, text): (&'static str, String)) -> Result<Self, String> {
        let why = |_| format!("Invalid URL: Cannot parse value at index {index} with value `{text}` to a `u32`");
        text.parse().map_err(why)
    }
}
