//! `windlass principal`: whom tokens stand for.

use super::{Context, Done, all, tokens::role};
use crate::{
    fail::code,
    output::{Rows, cell},
    times,
};
use clap::{Args, Subcommand};
use windlass_api::token::{ChangePrincipal, EndPrincipal, Principal};

#[derive(Subcommand)]
#[command(after_help = "Examples:
  windlass principal list
  windlass principal change alice --role viewer
  windlass principal change alice --only film --only sound
  windlass principal disable alice
  windlass principal delete alice")]
pub enum PrincipalCommand {
    /// List principals by name.
    List,
    Change(Change),
    /// Disable principals. Their tokens, and tokens created with those, are revoked. After `enable` they can get new tokens.
    Disable(End),
    /// Enable disabled principals. Their old tokens stay revoked.
    Enable {
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Delete principals. Their tokens, and tokens created with those, are revoked. The names can be used again.
    Delete(End),
}

/// Change the role or the namespaces of a principal. Its tokens follow at once.
#[derive(Args)]
pub struct Change {
    name: String,
    /// viewer: read. editor: also submit, cancel and define. admin: everything. worker: only claim and report jobs.
    #[arg(long, value_name = "ROLE", value_parser = ["viewer", "editor", "admin", "worker"], required_unless_present_any = ["namespaces", "everywhere"])]
    role: Option<String>,
    /// Limit the principal to this namespace (repeatable).
    #[arg(long = "only", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// Remove the limit: all namespaces.
    #[arg(long, conflicts_with = "namespaces")]
    everywhere: bool,
    /// Do it even if no admin of all namespaces is left.
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub struct End {
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Do it even if no admin of all namespaces is left, or if the principal is you.
    #[arg(long)]
    force: bool,
}

impl PrincipalCommand {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        match self {
            PrincipalCommand::List => {
                let found = all(async |paging| client.principals(&paging).await).await?;
                context.format.many(&found, || table(&found))?;
            }
            PrincipalCommand::Change(change) => {
                let namespaces = (change.everywhere || !change.namespaces.is_empty()).then_some(change.namespaces);
                let body = ChangePrincipal { role: change.role.as_deref().map(role), namespaces };
                let changed = client.change_principal(&change.name, &body, change.force).await?;
                context.format.one(&changed, || format!("{} is {} now", changed.name, rights(&changed)))?;
            }
            PrincipalCommand::Disable(end) => end.run(context, false).await?,
            PrincipalCommand::Delete(end) => end.run(context, true).await?,
            PrincipalCommand::Enable { names } => {
                for name in names {
                    client.enable_principal(&name).await?;
                    context.format.done("enabled", || format!("{name} can have tokens again"))?;
                }
            }
        }
        Ok(code::OK)
    }
}

impl End {
    async fn run(&self, context: &Context, remove: bool) -> anyhow::Result<()> {
        let how = EndPrincipal { remove, force: self.force };
        let word = if remove { "deleted" } else { "disabled" };
        for name in &self.names {
            context.client()?.end_principal(name, &how).await?;
            context.format.done(word, || format!("{name} {word}; its tokens are revoked"))?;
        }
        Ok(())
    }
}

fn rights(principal: &Principal) -> String {
    let where_ = match principal.namespaces.is_empty() {
        true => "all namespaces".to_owned(),
        false => principal.namespaces.join(", "),
    };
    format!("{} in {where_}", principal.role.name())
}

fn table(principals: &[Principal]) -> Rows {
    let now = times::now();
    let mut rows = Rows::new(&["NAME", "ROLE", "NAMESPACES", "STATE", "CREATED"], "No principals.");
    for principal in principals {
        rows.add(vec![
            cell(&principal.name),
            cell(principal.role.name()),
            cell(if principal.namespaces.is_empty() { "all".to_owned() } else { principal.namespaces.join(", ") }),
            cell(if principal.disabled { "disabled" } else { "enabled" }),
            cell(times::relative(&principal.created_at, now)),
        ]);
    }
    rows
}
