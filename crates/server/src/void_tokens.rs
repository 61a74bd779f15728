//! Removes tokens that nobody can call with any more: the line they were made in is broken, and nothing mends that. They are not listed
//! and not valid, so this is about room, and about names that dialects keep for them, only.

use crate::{
    admins::{Lookup, tokens},
    app::App,
    auth::system_namespace,
    problem::Result,
};
use std::time::Duration;
use tokio::time::sleep;
use windlass_core::{Refusal, commands::tokens::RevokeToken, principal::Token};
use windlass_engine::{Error, records::readable};

const EVERY: Duration = Duration::from_secs(3_600);

/// Runs until it is aborted.
pub async fn run(app: App) {
    loop {
        match sweep(&app).await {
            Ok(0) => {}
            Ok(gone) => tracing::info!(gone, "tokens whose makers have ended are gone"),
            Err(problem) => tracing::warn!(problem = %problem.0, "void tokens could not be removed"),
        }
        sleep(EVERY).await;
    }
}

/// How many went.
pub async fn sweep(app: &App) -> Result<usize> {
    let (mut gone, mut pages) = (0, app.engine.pages(tokens()));
    while let Some(found) = pages.next().await? {
        let mut lookup = Lookup::new(&app.engine).await?;
        let mut void = Vec::new();
        for record in &found {
            let Some(token) = readable::<Token>(record) else { continue };
            if !lookup.is_upheld(&token, |_, _| true).await? {
                void.push(RevokeToken { namespace: system_namespace(), hash: record.key.key.clone() });
            }
        }
        for reply in app.engine.run_many(void).await? {
            match reply {
                Ok(_) => gone += 1,
                // Somebody was first.
                Err(Refusal::NotFound { .. }) => {}
                Err(refusal) => return Err(Error::Refused(refusal).into()),
            }
        }
    }
    app.dialects.sweep(app).await?;
    Ok(gone)
}
