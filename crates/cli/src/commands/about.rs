//! `windlass namespaces`, `dialects` and `settings`: what a server says about itself.

use super::{Context, Done};
use crate::{
    fail::code,
    output::{Rows, cell, cut},
    times,
};

pub async fn namespaces(context: &Context) -> Done {
    let found = context.client()?.namespaces().await?.items;
    context.format.many(&found, || {
        let mut rows = Rows::new(&["NAMESPACE"], "No namespaces.");
        found.iter().for_each(|name| rows.add(vec![cell(name)]));
        rows
    })?;
    Ok(code::OK)
}

pub async fn dialects(context: &Context) -> Done {
    let found = context.client()?.dialects().await?.items;
    context.format.many(&found, || {
        let mut rows = Rows::new(&["PROTOCOL", "NAMESPACE", "CALLS", "LAST CALL", "BY…"], "No protocols.");
        for one in &found {
            rows.add(vec![
                cell(&one.name),
                cell(one.namespace.as_deref().unwrap_or("any")),
                cell(one.calls.to_string()),
                cell(times::maybe_relative(one.last_call.as_deref(), times::now())),
                cell(one.last_caller.as_deref().unwrap_or_default()),
            ]);
        }
        rows
    })?;
    Ok(code::OK)
}

pub async fn settings(context: &Context) -> Done {
    let found = context.client()?.settings().await?.items;
    context.format.many(&found, || {
        let mut rows = Rows::new(&["SETTING", "VALUE…", "FROM"], "No settings.");
        for one in &found {
            rows.add(vec![cell(&one.name), cell(cut(&one.value, 200)), cell(&one.origin)]);
        }
        rows
    })?;
    Ok(code::OK)
}
