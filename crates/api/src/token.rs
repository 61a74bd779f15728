//! Principals and tokens.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May read.
    Viewer,
    /// May also submit, cancel and define.
    Editor,
    /// May do everything, including tokens.
    Admin,
    /// May only claim and report jobs.
    Worker,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Editor => "editor",
            Role::Admin => "admin",
            Role::Worker => "worker",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// The principal. If it exists already, it keeps its role and namespaces; asking for others is refused
    /// (`PUT /api/v1/principals/{name}` changes them).
    pub principal: String,
    pub role: Role,
    /// Namespaces it is limited to. Empty: all namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Expires after this time. Default: never. In any case no later than the token it is created with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// The token. It is shown only this once.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreatedToken {
    pub token: String,
    #[serde(flatten)]
    pub about: Token,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Token {
    /// The id to revoke the token by. It is not the token.
    pub id: String,
    pub principal: String,
    pub role: Role,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// The token's first characters, to recognise it.
    pub shown: String,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<String>,
    /// The id of the token it was created with; it becomes invalid together with that token. Shown only to admins of all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
}

/// How to revoke a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Force {
    /// Do it even if no admin of all namespaces is left with a valid token.
    #[serde(default)]
    pub force: bool,
}

/// How to disable or delete a principal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndPrincipal {
    /// Delete the principal instead of disabling it. Its name can then be used again.
    #[serde(default)]
    pub remove: bool,
    /// Do it even if no admin of all namespaces is left with a valid token, or if the principal is the caller.
    #[serde(default)]
    pub force: bool,
}

/// New rights for a principal. Absent fields stay as they are; its tokens follow at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangePrincipal {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Namespaces it is limited to. Empty: all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
}

/// The caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Me {
    pub principal: String,
    pub role: Role,
    #[serde(default)]
    pub namespaces: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Principal {
    pub name: String,
    pub role: Role,
    /// Namespaces it is limited to. Empty: all namespaces.
    #[serde(default)]
    pub namespaces: Vec<String>,
    pub disabled: bool,
    pub created_at: String,
}
