//! How to reach a server, and as whom: the options that every command of every program here has, and the variables behind them.
//!
//! An option wins over a variable. What neither says is for the program: `windlass` looks at profiles and at this machine's data
//! folders next (`remote.rs` in its crate), `windlass-worker` takes the defaults.

use anyhow::{Context, Result, bail, ensure};
use std::{
    ffi::OsString,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};
use windlass_sdk::Client;

pub const SERVER: &str = "http://127.0.0.1:3000";
pub const NAMESPACE: &str = "default";
/// The largest token or certificate file.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What was said, by options or variables. No `Debug`: it holds the token.
#[derive(clap::Args, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub struct ConnectOptions {
    /// The server's URL [default: http://127.0.0.1:3000] [env: WINDLASS_SERVER].
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// The token. Prefer --token-file: other users of this machine can see command lines [env: WINDLASS_TOKEN].
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
    /// A file that contains the token [env: WINDLASS_TOKEN_FILE].
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The namespace to work in [default: default] [env: WINDLASS_NAMESPACE].
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// An additional certificate authority to trust (PEM) [env: WINDLASS_CA_CERT].
    #[arg(long, global = true, value_name = "FILE")]
    pub ca_cert: Option<PathBuf>,
}

/// A server, and who calls it. No `Debug`: it holds the token.
#[derive(Clone)]
pub struct Endpoint {
    pub server: String,
    pub namespace: String,
    pub token: Option<String>,
    pub ca_cert: Option<PathBuf>,
}

impl ConnectOptions {
    /// With the variables for what no option says; an empty one says nothing. A token is said by one of two options or variables: either option wins over
    /// both variables.
    pub fn or_variables(self, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        ensure!(
            self.token.is_none() || self.token_file.is_none(),
            "--token and --token-file were both given; give one of them"
        );
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let given = self.token.is_some() || self.token_file.is_some();
        let text = |name: &str| variable(name).map(|value| as_text(name, value)).transpose();
        let file = |name: &str| variable(name).map(PathBuf::from);
        let (token, token_file) = match given {
            true => (self.token, self.token_file),
            false => (text("WINDLASS_TOKEN")?, file("WINDLASS_TOKEN_FILE")),
        };
        Ok(Self {
            server: self.server.map_or_else(|| text("WINDLASS_SERVER"), |server| Ok(Some(server)))?,
            token,
            token_file,
            namespace: self.namespace.map_or_else(|| text("WINDLASS_NAMESPACE"), |namespace| Ok(Some(namespace)))?,
            ca_cert: self.ca_cert.or_else(|| file("WINDLASS_CA_CERT")),
        })
    }

    /// Where nothing else is looked at.
    pub fn endpoint(self) -> Result<Endpoint> {
        let token = match (self.token, self.token_file) {
            (Some(token), _) => Some(token.trim().to_owned()),
            (None, Some(file)) => Some(read_token(&file)?),
            (None, None) => None,
        };
        Ok(Endpoint {
            server: self.server.unwrap_or_else(|| SERVER.to_owned()),
            namespace: self.namespace.unwrap_or_else(|| NAMESPACE.to_owned()),
            token,
            ca_cert: self.ca_cert,
        })
    }
}

fn as_text(name: &str, value: OsString) -> Result<String> {
    match value.into_string() {
        Ok(text) => Ok(text),
        Err(_) => bail!("the variable {name} is not UTF-8 text"),
    }
}

impl Endpoint {
    pub fn client(&self) -> Result<Client> {
        let mut builder = Client::builder(&self.server).namespace(&self.namespace);
        if let Some(token) = &self.token {
            builder = builder.token(token);
        }
        if let Some(file) = &self.ca_cert {
            let pem = read(file).with_context(|| format!("the certificate {} cannot be read", file.display()))?;
            builder = builder.root_certificate(pem);
        }
        Ok(builder.build()?)
    }
}

/// Reads a token or a certificate, no further than a limit: the name may be that of a pipe or a device that never ends.
fn read(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= FILE_BYTES_MAX, "it is larger than {FILE_BYTES_MAX} bytes, the most that is read");
    Ok(bytes)
}

pub fn read_token(file: &Path) -> Result<String> {
    let bytes = read(file).with_context(|| format!("no token can be read from {}", file.display()))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{} is not valid UTF-8", file.display()))?;
    let token = text.trim();
    ensure!(!token.is_empty(), "{} is empty; it should hold a token", file.display());
    Ok(token.to_owned())
}
