//! A folder of definitions, one per file, as YAML or JSON.
//!
//! The name is the file's `name:`, or the file's own name without its ending. A file that cannot be used is reported with
//! its line and column and leaves the version in force as it is; so does a file that is removed: definitions are deleted
//! by the API only. A file that did not change makes no new version.

use crate::{
    app::App,
    definition,
    definition_faults::{self, Settings},
    flows::folder,
    folders::{self, InFile, Loaded, Watch, list, on_change},
    problem::Problem,
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};
use windlass_api::definition::DefinitionBody;
use windlass_core::{
    Limits, Namespace,
    commands::{audited::Audited, definitions::PutDefinition},
};
use windlass_yaml::Fault;

pub use crate::definition_faults::FAULTS_MAX;

/// Reads the folder once.
pub async fn load(app: &App, namespace: &Namespace, folder: &Path) -> Loaded {
    let mut loaded = Loaded::default();
    let files = match list(folder) {
        Ok(files) => files,
        Err(error) => {
            loaded.faults.push(fault(folder, format!("the folder cannot be read: {error}")));
            return loaded;
        }
    };
    for file in files {
        match load_file(app, namespace, &file).await {
            Ok((name, true)) => loaded.changed.push(name),
            Ok((_, false)) => loaded.unchanged += 1,
            Err(faults) => loaded.faults.extend(faults),
        }
    }
    loaded
}

fn fault(file: &Path, why: impl Into<String>) -> InFile {
    InFile { file: file.to_owned(), fault: Fault::nowhere(why) }
}

async fn load_file(app: &App, namespace: &Namespace, file: &Path) -> Result<(String, bool), Vec<InFile>> {
    if let Some(workflow) = folder::load_file(app, namespace, file).await {
        return workflow.map_err(|fault| vec![fault]);
    }
    let (path, limits) = (file.to_owned(), app.engine.settings().limits);
    let refused = |problem: Problem| vec![fault(file, problem.0.to_string())];
    let (name, body) = app.aside.run(namespace, move || read(&path, &limits)).await.map_err(refused)??;
    let stored = definition::checked(app, namespace, &name, body).await.map_err(refused)?;
    let before = definition::latest(app, namespace, &name).await.map_err(refused)?;
    if before.is_some_and(|before| before.body == stored) {
        return Ok((name, false));
    }
    let put = PutDefinition { namespace: namespace.clone(), name: name.as_str().into(), body: stored };
    let by: Arc<str> = "definitions folder".into();
    app.engine.run(Audited::new(&by, put)).await.map_err(|error| refused(error.into()))?;
    Ok((name, true))
}

/// A file's definition and its name, or everything that is wrong with it, at most [`FAULTS_MAX`] faults.
pub fn read(file: &Path, limits: &Limits) -> Result<(String, DefinitionBody), Vec<InFile>> {
    let unread = |error: std::io::Error| vec![fault(file, error.to_string())];
    let text = folders::read(file, definition::BYTES_MAX).map_err(unread)?;
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let fault = |fault| InFile { file: file.to_owned(), fault };
    checked(&text, stem, limits).map_err(|faults| faults.into_iter().map(fault).collect())
}

/// What a text defines, under the name it gives or else this one.
pub fn checked(text: &str, name: &str, limits: &Limits) -> Result<(String, DefinitionBody), Vec<Fault>> {
    let settings = || Settings::read(text);
    let all = |first: Fault, settings: &Settings| match definition_faults::of_settings(settings, limits) {
        faults if faults.is_empty() => vec![first],
        faults => faults,
    };
    let (own, body) = parse(text).map_err(|first| all(first, &settings()))?;
    let name = own.unwrap_or_else(|| name.to_owned());
    definition::check(&name, &body, limits).map_err(|problem| {
        let settings = settings();
        all(definition_faults::placed(&settings, &problem), &settings)
    })?;
    Ok((name, body))
}

pub fn parse(text: &str) -> Result<(Option<String>, DefinitionBody), Fault> {
    let Named { name } = definition_faults::read(text)?;
    let Unnamed(body) = definition_faults::read(text)?;
    Ok((name, body))
}

#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

/// A body that overlooks the file's `name`, which is no part of it.
struct Unnamed(DefinitionBody);

impl<'de> Deserialize<'de> for Unnamed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Body;
        impl<'de> Visitor<'de> for Body {
            type Value = DefinitionBody;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a definition")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DefinitionBody, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(SkipName(map)))
            }
        }
        deserializer.deserialize_map(Body).map(Unnamed)
    }
}

struct SkipName<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for SkipName<A> {
    type Error = A::Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.0.next_key::<String>()? {
            if key != "name" {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            self.0.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

/// Loads the folder again whenever something in it changes, until the watch is dropped. Tells each time what became of it.
pub fn watch(
    app: App,
    namespace: Namespace,
    folder: PathBuf,
    tell: impl Fn(&Loaded) + Send + Sync + 'static,
) -> notify::Result<Watch> {
    let place = folder.clone();
    on_change(
        &place,
        move || {
            let (app, namespace, folder) = (app.clone(), namespace.clone(), folder.clone());
            async move { load(&app, &namespace, &folder).await }
        },
        tell,
    )
}
