//! What settings come to where that is not what was written: a default that follows from another setting, or a limit. Only for
//! people to see (`windlass config show`, the dashboard); the server reads the settings themselves.

use super::{
    table::{self, Setting},
    values::Values,
};
use windlass_core::Millis;

/// The value in effect, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjusted {
    pub setting: &'static str,
    pub text: String,
    pub source: String,
}

/// For dialects whose settings are what was written.
pub fn none(_: &Values) -> Vec<Adjusted> {
    Vec::new()
}

/// A time that has limits.
pub fn limited(read: &Values, setting: Setting, effective: Millis) -> Option<Adjusted> {
    let written = read.millis(setting);
    let how = if effective > written { "raised from" } else { "lowered from" };
    let source = format!("{}, {how} {}", read.origin(setting), read.text(setting));
    (effective != written).then(|| Adjusted { setting: setting.name, text: time(effective), source })
}

/// A time that follows from another setting if it was not set: `how` says from which.
pub fn follows(read: &Values, setting: Setting, effective: Millis, how: &str) -> Option<Adjusted> {
    if read.is_chosen(setting) {
        return limited(read, setting, effective);
    }
    let differs = effective != read.millis(setting);
    differs.then(|| Adjusted { setting: setting.name, text: time(effective), source: how.to_owned() })
}

/// Those of our own settings.
pub fn own(read: &Values) -> Vec<Adjusted> {
    let artifacts = read.some(table::artifacts).is_none().then(|| {
        let folder = read.path(table::data).unwrap_or_default().join("artifacts");
        let source = format!("in the folder that data names ({})", read.origin(table::data));
        Adjusted { setting: table::artifacts.name, text: folder.display().to_string(), source }
    });
    let retries = read.count(table::retry_rate);
    let retries = (retries > super::RETRY_RATE_MAX).then(|| Adjusted {
        setting: table::retry_rate.name,
        text: super::RETRY_RATE_MAX.to_string(),
        source: format!("{}, lowered from {retries}", read.origin(table::retry_rate)),
    });
    artifacts.into_iter().chain(retries).chain(without_token(read)).collect()
}

/// Unless the address is a name, which may stand for anything.
fn without_token(read: &Values) -> Option<Adjusted> {
    let (word, listen) = (read.text(table::without_token), read.text(table::listen));
    let address: std::net::SocketAddr = listen.parse().ok().filter(|_| word == "auto")?;
    let hosts = super::value::list(read.text(table::hosts));
    let text = super::WithoutToken::resolve(word, address.ip(), &hosts).name().to_owned();
    let source = format!("auto ({}), by listen and hosts", read.origin(table::without_token));
    Some(Adjusted { setting: table::without_token.name, text, source })
}

/// In the largest unit that needs no fraction, as it could stand in a file.
fn time(length: Millis) -> String {
    const UNITS: [(&str, i64); 4] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let unit = UNITS.iter().find(|(_, of)| length.0 != 0 && length.0 % of == 0);
    unit.map_or_else(|| format!("{}ms", length.0), |(name, of)| format!("{}{name}", length.0 / of))
}
