//! A runner's configuration: a YAML file, and variables that come before it. What is wrong is said with its key.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, fs, io, path::Path, path::PathBuf, time::Duration};
use windlass_yaml::{Booleans, Fault, Spanned};

pub const FILE: &str = "/etc/silo/runner.yaml";
const FILE_BYTES_MAX: u64 = 1 << 20;
const PREFIX: &str = "SILO_RUNNER_";
const TOKEN_PREFIX: &str = "silo_runner_";
/// Of `commands` there is no variable.
const KEYS: [&str; 10] = [
    "server_url",
    "token",
    "name",
    "tags",
    "poll_interval",
    "create_path",
    "heartbeat_interval",
    "work_dir",
    "fetch",
    "commands",
];
const BUILT_IN: [&str; 4] = ["validate", "export", "dag-extract", "thumbnail"];

/// Which files a job's folder gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fetch {
    None,
    /// Those of the job's item.
    #[default]
    Item,
    /// And those of everything else in its scope.
    Scope,
}

/// No `Debug`: it holds the token.
pub struct Config {
    pub server_url: String,
    pub token: String,
    pub name: String,
    /// None: all that the runner was registered with.
    pub tags: Option<Vec<String>>,
    pub poll_interval: Duration,
    pub heartbeat_interval: Duration,
    pub work_dir: Option<PathBuf>,
    pub fetch: Fetch,
    /// Programs by the names jobs know them by, ready to be started.
    pub commands: BTreeMap<String, Vec<String>>,
}

impl Config {
    /// What the file and the environment say; the environment comes first. The text says what is wrong, with its key.
    pub fn read(file: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let said = match text(file)? {
            Some(text) => said(&text).map_err(|why| format!("{}:{why}", file.display()))?,
            None => Said::default(),
        };
        let source = Source { file, said, variable };
        let create_path = source.text("create_path")?.unwrap_or_else(|| "/usr/bin/create".into());
        let token: String = source.required("token")?;
        if !token.starts_with(TOKEN_PREFIX) {
            return Err(format!("token: must start with {TOKEN_PREFIX}; the one that registering the runner showed"));
        }
        Ok(Self {
            server_url: source.required("server_url")?,
            token,
            name: source.text("name")?.unwrap_or_else(crate::args::host),
            tags: source.tags()?,
            poll_interval: source.seconds("poll_interval", 5.0)?,
            heartbeat_interval: source.seconds("heartbeat_interval", 30.0)?,
            work_dir: source.text("work_dir")?.map(PathBuf::from),
            fetch: source.fetch()?,
            commands: commands(source.file_value("commands")?.unwrap_or_default(), &create_path)?,
        })
    }
}

fn text(file: &Path) -> Result<Option<String>, String> {
    let large = fs::metadata(file).is_ok_and(|meta| meta.len() > FILE_BYTES_MAX);
    if large {
        return Err(format!("{}: a configuration has at most {FILE_BYTES_MAX} bytes", file.display()));
    }
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        // Everything may be in the environment.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", file.display())),
    }
}

/// What the file says: keys and values with their lines.
#[derive(Default)]
struct Said(Vec<(Spanned<String>, Spanned<Value>)>);

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Said;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of settings")
            }
            fn visit_unit<E>(self) -> Result<Said, E> {
                Ok(Said::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Said, A::Error> {
                let mut said = Vec::new();
                while let Some(key) = map.next_key()? {
                    said.push((key, map.next_value()?));
                }
                Ok(Said(said))
            }
        }
        deserializer.deserialize_any(Map)
    }
}

fn at(Fault { line, column, text, .. }: Fault) -> String {
    match line {
        0 => format!(" {text}"),
        line => format!("{line}:{column}: {text}"),
    }
}

/// No key that means nothing: it would be a typing error that nobody sees.
fn said(text: &str) -> Result<Said, String> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Said::default());
    }
    // A runner may be called n, or on.
    let said: Said = windlass_yaml::read(text, FILE_BYTES_MAX as usize, Booleans::Strict).map_err(at)?;
    match said.0.iter().find(|(key, _)| !KEYS.contains(&key.value.as_str())) {
        Some((key, _)) => {
            let known = KEYS.join(", ");
            let why = format!("{}: there is no such key; there are {known}", key.value);
            Err(at(Fault::at(key.referenced, why)))
        }
        None => Ok(said),
    }
}

struct Source<'a, V> {
    file: &'a Path,
    said: Said,
    variable: V,
}

fn variable_name(key: &str) -> String {
    format!("{PREFIX}{}", key.to_uppercase())
}

impl<V: Fn(&str) -> Option<String>> Source<'_, V> {
    /// An empty variable is none.
    fn variable(&self, key: &str) -> Option<String> {
        (self.variable)(&variable_name(key)).filter(|text| !text.trim().is_empty())
    }

    /// Null is nothing said.
    fn file_value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, String> {
        let Some((_, value)) = self.said.0.iter().find(|(name, value)| name.value == key && !value.value.is_null())
        else {
            return Ok(None);
        };
        let wrong = |error: serde_json::Error| {
            format!("{}:{}", self.file.display(), at(Fault::at(value.referenced, format!("{key}: {error}"))))
        };
        serde_json::from_value(value.value.clone()).map(Some).map_err(wrong)
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.variable(key) {
            Some(text) => Ok(Some(text)),
            None => Ok(self.file_value::<String>(key)?.filter(|text| !text.trim().is_empty())),
        }
    }

    fn required(&self, key: &str) -> Result<String, String> {
        let file = self.file.display();
        let missing = if self.file.exists() { String::new() } else { format!(" (there is no file {file})") };
        let why = || format!("{key}: is needed; write it in {file} or set {}{missing}", variable_name(key));
        self.text(key)?.ok_or_else(why)
    }

    fn tags(&self) -> Result<Option<Vec<String>>, String> {
        let tags = match self.variable("tags") {
            Some(text) => Some(text.split(',').map(|tag| tag.trim().to_owned()).collect()),
            None => self.file_value::<Vec<String>>("tags")?,
        };
        let tags = tags.map(|tags| tags.into_iter().filter(|tag| !tag.is_empty()).collect::<Vec<_>>());
        Ok(tags.filter(|tags| !tags.is_empty()))
    }

    fn fetch(&self) -> Result<Fetch, String> {
        match self.variable("fetch") {
            Some(word) => serde_json::from_value(word.into()).map_err(|error| format!("fetch: {error}")),
            None => Ok(self.file_value("fetch")?.unwrap_or_default()),
        }
    }

    fn seconds(&self, key: &str, default: f64) -> Result<Duration, String> {
        let wrong = |what: &dyn fmt::Display| format!("{key}: {what} is not a number of seconds from 0.05 to 86400");
        let seconds = match self.variable(key) {
            Some(text) => text.trim().parse::<f64>().map_err(|_| wrong(&format_args!("{text:?}")))?,
            None => self.file_value(key)?.unwrap_or(default),
        };
        // A runner that asks without pause would be in everybody's way.
        if !(0.05..=86_400.0).contains(&seconds) {
            return Err(wrong(&seconds));
        }
        Ok(Duration::from_secs_f64(seconds))
    }
}

/// The built-in ones, and over them those of the file.
fn commands(own: BTreeMap<String, Vec<String>>, create_path: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let built_in = |what: &&str| {
        let argv = ["{create_path}", "--console", "-m", "silo.runner", what].map(str::to_owned);
        (format!("create-{what}"), argv.to_vec())
    };
    let mut all: BTreeMap<_, _> = BUILT_IN.iter().map(built_in).collect();
    all.extend(own);
    if let Some((name, _)) = all.iter().find(|(_, argv)| argv.first().is_none_or(String::is_empty)) {
        return Err(format!("commands.{name}: needs at least the program to start, as a list"));
    }
    for argument in all.values_mut().flatten() {
        *argument = argument.replace("{create_path}", create_path);
    }
    Ok(all)
}
