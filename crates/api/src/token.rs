//! Principals and tokens.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Submits, cancels, defines.
    Editor,
    /// Everything, tokens included.
    Admin,
    /// The worker's surface and nothing else.
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
    /// Who it stands for. A principal that exists already keeps its role and namespaces; asking for others is refused
    /// (`PUT /api/v1/principals/{name}` changes them).
    pub principal: String,
    pub role: Role,
    /// Where its rights end; everywhere where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Valid for so long. If absent, until it is revoked. It ends no later than the token it is made with in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// The only time the token is shown.
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
    /// For revoking it. Not the token.
    pub id: String,
    pub principal: String,
    pub role: Role,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Its first characters, to recognise it by.
    pub shown: String,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<String>,
    /// The id of the token it was made with, and with which it ends. Shown to admins of all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
}

/// How to revoke a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Force {
    /// Do it also if no admin of all namespaces is left with a valid token.
    #[serde(default)]
    pub force: bool,
}

/// How to end a principal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndPrincipal {
    /// Delete it instead of disabling it: its name can be used again.
    #[serde(default)]
    pub remove: bool,
    /// Do it also if no admin of all namespaces is left with a valid token, or if it is the caller.
    #[serde(default)]
    pub force: bool,
}

/// Other rights for a principal. What is absent stays as it is; its tokens have the new rights at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangePrincipal {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Where its rights end. Empty: everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
}

/// Who the caller is.
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
    /// Where its rights end; everywhere where empty.
    #[serde(default)]
    pub namespaces: Vec<String>,
    pub disabled: bool,
    pub created_at: String,
}
