//! Errors that say what to do next.

use crate::remote::{Remote, TokenFrom, data_folders};
use windlass_sdk::Error;

/// Exit codes, as documented in the help: anything but success has one of its own only where a script would care.
pub mod code {
    pub const OK: u8 = 0;
    pub const ERROR: u8 = 1;
    /// The command line does not say what to do.
    pub const USAGE: u8 = 2;
    /// A job that was waited for failed, or was skipped because another did.
    pub const FAILED: u8 = 3;
    /// A job that was waited for was cancelled.
    pub const CANCELLED: u8 = 4;
    /// The wait was over before the job was.
    pub const TIMEOUT: u8 = 5;
}

/// What could be done about it; none where the error says so itself.
pub fn advice(error: &anyhow::Error, remote: &Remote) -> Option<String> {
    let error = error.chain().find_map(|cause| cause.downcast_ref::<Error>())?;
    match error {
        Error::Unreachable { url, .. } => Some(format!(
            "Is a server running there? Start one here:  windlass up\nor name another address than {url}:  --server URL, or WINDLASS_SERVER"
        )),
        Error::Confused { .. } => {
            Some("Does the address belong to a Windlass server? Check --server and any proxy in between.".into())
        }
        Error::Problem(problem) => match problem.status {
            401 => Some(unauthorized(remote)),
            403 => Some(format!(
                "The token ({}) is not allowed to do this. `windlass token create` makes one that is, called with an admin's.",
                remote.find().map_or(TokenFrom::Nowhere, |found| found.from)
            )),
            404 if problem.detail.contains("nothing at") => {
                Some("The server is older than this program, or a part of it is switched off.".into())
            }
            _ => None,
        },
        Error::Certificate { .. } | Error::Setup(_) => None,
    }
}

fn unauthorized(remote: &Remote) -> String {
    let from = remote.find().map_or(TokenFrom::Nowhere, |found| found.from);
    match from {
        TokenFrom::Nowhere => {
            let folders: Vec<_> =
                data_folders().iter().map(|folder| folder.join("admin.token").display().to_string()).collect();
            format!(
                "No token was found. Looked for: --token, --token-file, WINDLASS_TOKEN, WINDLASS_TOKEN_FILE, the profile and, for a \
                 server on this machine, {}.\nThe server wrote its admin token to `admin.token` in its data folder; set WINDLASS_DATA to that folder.",
                folders.join(" and ")
            )
        }
        from => {
            format!("The token came from {from}. It may have been revoked, have expired, or belong to another server.")
        }
    }
}
