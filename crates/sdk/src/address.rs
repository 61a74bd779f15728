//! A server's address as people write it, and the secrets they write into it.
//!
//! Addresses end up in error messages, logs and the environment of jobs, so what is secret is taken out of them at once.

use crate::Error;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Without a slash at its end and without anything secret.
    pub base: String,
    /// Of `http://name:password@host`.
    pub basic: Option<(String, String)>,
    /// Of `http://host/~TOKEN`.
    pub token: Option<String>,
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", ""));
        let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (secret, host) = place.rsplit_once('@').map_or((None, place), |(secret, host)| (Some(secret), host));
        if !["http", "https"].contains(&scheme) || host.is_empty() {
            // What was written is not repeated: it may hold a secret.
            return Err(Error::Setup("this is not a server address; write it like http://127.0.0.1:3000".into()));
        }
        let basic = secret.map(|secret| {
            let (name, password) = secret.split_once(':').unwrap_or((secret, ""));
            (unescape(name), unescape(password))
        });
        let (token, path) = match path.strip_prefix("/~") {
            Some(rest) => {
                let (token, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(token.to_owned()), path)
            }
            None => (None, path),
        };
        Ok(Self { base: format!("{scheme}://{host}{}", path.trim_end_matches('/')), basic, token })
    }
}

fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_of_addresses() {
        let address = |base: &str, basic: Option<(&str, &str)>, token: Option<&str>| Address {
            base: base.into(),
            basic: basic.map(|(name, password)| (name.into(), password.into())),
            token: token.map(Into::into),
        };
        let table = [
            ("http://127.0.0.1:3000/", address("http://127.0.0.1:3000", None, None)),
            ("https://h/jobs/", address("https://h/jobs", None, None)),
            ("http://worker:a%40b@h:3000", address("http://h:3000", Some(("worker", "a@b")), None)),
            ("http://worker@h", address("http://h", Some(("worker", "")), None)),
            ("http://h:3000/~wl_secret", address("http://h:3000", None, Some("wl_secret"))),
            ("http://h/~wl_secret/below/", address("http://h/below", None, Some("wl_secret"))),
            ("http://[::1]:3000", address("http://[::1]:3000", None, None)),
        ];
        for (text, expected) in table {
            assert_eq!(Address::parse(text).unwrap(), expected, "{text}");
        }
        for junk in ["localhost:3000", "ftp://h", "http://", "", "http://name:secret@/"] {
            let error = Address::parse(junk).unwrap_err().to_string();
            assert!(error.contains("write it like") && !error.contains("secret"), "{junk}: {error}");
        }
    }
}
