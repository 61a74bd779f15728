//! Sessions of the dashboard: a token exchanged for a cookie.

use crate::token::Role;
use serde::{Deserialize, Serialize};

/// Begins a session: exactly one of `token` and `code`.
#[derive(Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SignIn {
    /// The token of a viewer, an editor or an admin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The code of a one-time link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Who is signed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    pub principal: String,
    pub role: Role,
    /// Namespaces the principal is limited to. Empty: all namespaces.
    pub namespaces: Vec<String>,
    /// Calls that change something and come with the cookie send this in the header `Windlass-Page-Key`. Absent if the caller came
    /// with a token and without a cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_key: Option<String>,
    /// The server's version.
    pub version: String,
    /// The server's time.
    pub now: String,
}

/// A code that begins one session. It is shown only this once.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SignInCode {
    pub code: String,
    /// The code is valid for this long.
    pub expires_ms: u64,
}
