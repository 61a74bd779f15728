//! What a database address says beside host and user: whether to encrypt, whom to trust, and whether a pooler stands in
//! between. The names are libpq's where it has one.

use super::{failure::describe, open::OpenError, tls};
use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;

pub struct Address {
    pub config: Config,
    pub tls: MakeRustlsConnect,
    /// A pooler hands out another session for every transaction, so nothing may be left in one.
    pub pooled: bool,
}

/// Whose word is taken for who the server is.
#[derive(Debug, PartialEq, Eq)]
pub enum Trust {
    /// Nobody's: encrypted, but possibly to somebody in between.
    Anyone,
    System,
    File(PathBuf),
}

/// The parameters the driver does not know itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Extra {
    pooled: bool,
    ssl_mode: Option<String>,
    ssl_root_cert: Option<PathBuf>,
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, OpenError> {
        let (rest, extra) = split(text).map_err(|why| OpenError::Address { why })?;
        let mut config: Config =
            rest.parse().map_err(|error: tokio_postgres::Error| OpenError::Address { why: describe(&error) })?;
        let (mode, trust) = extra.encryption(&config).map_err(|why| OpenError::Address { why })?;
        config.ssl_mode(mode);
        let tls = tls::connector(&trust).map_err(|why| OpenError::Address { why })?;
        Ok(Self { config, tls, pooled: extra.pooled })
    }
}

impl Extra {
    fn encryption(&self, config: &Config) -> Result<(SslMode, Trust), String> {
        let given = self.ssl_root_cert.clone().map(Trust::File);
        match self.ssl_mode.as_deref() {
            // On the same machine there is nobody in between.
            None if given.is_none() && config.get_hosts().iter().all(is_here) => Ok((SslMode::Disable, Trust::Anyone)),
            None if given.is_none() => Ok((SslMode::Prefer, Trust::Anyone)),
            Some("disable") => Ok((SslMode::Disable, Trust::Anyone)),
            Some("prefer") => Ok((SslMode::Prefer, Trust::Anyone)),
            Some("require") => Ok((SslMode::Require, given.unwrap_or(Trust::Anyone))),
            None | Some("verify-full") => Ok((SslMode::Require, given.unwrap_or(Trust::System))),
            Some(other) => Err(format!("sslmode={other} is not known; use disable, prefer, require or verify-full")),
        }
    }
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback()),
        Host::Unix(_) => true,
    }
}

/// Takes our parameters out of an address, since the driver refuses what it does not know.
fn split(text: &str) -> Result<(String, Extra), String> {
    let mut extra = Extra::default();
    let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
    let Some((front, query)) = text.split_once('?').filter(|_| is_url) else { return Ok((text.to_owned(), extra)) };
    let mut rest = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8().map_err(|_| format!("{name} is not UTF-8"))?;
        match name {
            "pooled" => extra.pooled = is_true(&value)?,
            "sslmode" => extra.ssl_mode = Some(value.into_owned()),
            "sslrootcert" => extra.ssl_root_cert = Some(PathBuf::from(&*value)),
            _ => rest.push(pair),
        }
    }
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    Ok((format!("{front}{query}"), extra))
}

fn is_true(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" | "" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(format!("pooled={other} is neither true nor false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encryption(text: &str) -> Result<(SslMode, Trust), String> {
        let (rest, extra) = split(text)?;
        extra.encryption(&rest.parse().unwrap())
    }

    #[test]
    fn encryption_follows_the_address() {
        for (text, mode, trust) in [
            ("postgres://u@127.0.0.1/d", SslMode::Disable, Trust::Anyone),
            ("postgres://u@localhost/d", SslMode::Disable, Trust::Anyone),
            ("postgres://u@db.example.com/d", SslMode::Prefer, Trust::Anyone),
            ("postgres://u@127.0.0.1/d?sslmode=require", SslMode::Require, Trust::Anyone),
            ("postgres://u@db.example.com/d?sslmode=verify-full", SslMode::Require, Trust::System),
            ("postgres://u@db/d?sslrootcert=/a%20b/ca.pem", SslMode::Require, Trust::File("/a b/ca.pem".into())),
            ("postgres://u@db/d?sslmode=disable&sslrootcert=/ca.pem", SslMode::Disable, Trust::Anyone),
        ] {
            assert_eq!(encryption(text), Ok((mode, trust)), "{text}");
        }
        assert!(encryption("postgres://u@db/d?sslmode=verify-ca").unwrap_err().contains("verify-full"));
    }

    #[test]
    fn only_our_parameters_are_taken_out() {
        let text = "postgres://u@db/d?connect_timeout=3&pooled=true&application_name=a%20b";
        let (rest, extra) = split(text).unwrap();
        assert_eq!(rest, "postgres://u@db/d?connect_timeout=3&application_name=a%20b");
        assert_eq!(extra, Extra { pooled: true, ..Extra::default() });
        assert!(split("postgres://u@db/d?pooled=maybe").unwrap_err().contains("pooled=maybe"));
        assert_eq!(split("host=db dbname=d").unwrap().0, "host=db dbname=d");
    }
}
