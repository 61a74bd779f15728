//! `windlass token`: who may call.

use super::{Context, Done, all};
use crate::{
    fail::code,
    output::{Facts, Rows, cell, note, say},
    profile::write_private,
    times,
};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use windlass_api::token::{CreateToken, Role, Token};

#[derive(Subcommand)]
#[command(after_help = "Examples:
  windlass token create render-farm --role worker --file worker.token
  windlass token create alice --role editor --only film --expires 30d
  windlass token list
  windlass token revoke ID")]
pub enum TokenCommand {
    Create(Create),
    /// List tokens. A token itself is shown only once, when it is created.
    List,
    /// Revoke tokens by the ids that `token list` shows. Tokens created with them are revoked too.
    Revoke {
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Do it even if no admin of all namespaces is left with a valid token.
        #[arg(long)]
        force: bool,
    },
    /// Show the principal and the rights of the token in use.
    Me,
}

/// Create a token. It is shown only once: the server stores just a hash.
#[derive(Args)]
pub struct Create {
    /// The principal. If it exists already, it keeps its role and namespaces; change them with `principal change`.
    principal: String,
    /// viewer: read. editor: also submit, cancel and define. admin: everything. worker: only claim and report jobs.
    #[arg(long, value_name = "ROLE", value_parser = ["viewer", "editor", "admin", "worker"])]
    role: String,
    /// Limit the token to this namespace (repeatable). Default: all namespaces.
    #[arg(long = "only", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// Expires after this time: 12h, 30d. Default: never. In any case no later than the token it is created with.
    #[arg(long, value_name = "TIME", value_parser = times::length)]
    expires: Option<u64>,
    /// Write the token to this file, readable only by its owner, instead of showing it.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl TokenCommand {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        match self {
            TokenCommand::Create(create) => create.run(context).await?,
            TokenCommand::List => {
                let found = all(async |paging| client.tokens(&paging).await).await?;
                context.format.many(&found, || table(&found))?;
            }
            TokenCommand::Revoke { ids, force } => {
                for id in ids {
                    client.revoke_token(&id, force).await?;
                    context.format.done("revoked", || format!("Token {id} revoked"))?;
                }
            }
            TokenCommand::Me => {
                let me = client.me().await?;
                context.format.one(&me, || {
                    let mut facts = Facts::default();
                    let namespaces = if me.namespaces.is_empty() { "all".to_owned() } else { me.namespaces.join(", ") };
                    facts.add("Principal", &me.principal).add("Role", me.role.name()).add("Namespaces", namespaces);
                    facts.text()
                })?;
            }
        }
        Ok(code::OK)
    }
}

impl Create {
    async fn run(&self, context: &Context) -> anyhow::Result<()> {
        let request = CreateToken {
            principal: self.principal.clone(),
            role: role(&self.role),
            namespaces: self.namespaces.clone(),
            expires_ms: self.expires,
        };
        let created = context.client()?.create_token(&request).await?;
        if let Some(file) = &self.file {
            write_private(file, format!("{}\n", created.token).as_bytes())?;
            return context.format.one(&created.about, || format!("written to {}", file.display()));
        }
        if context.format.is_table() {
            // On its own line and alone on standard output, so that it can be piped on.
            note(format!("The token of {}, shown only now:", created.about.principal));
            return say(&created.token);
        }
        context.format.one(&created, String::new)
    }
}

/// The names were checked before.
pub fn role(name: &str) -> Role {
    match name {
        "viewer" => Role::Viewer,
        "editor" => Role::Editor,
        "admin" => Role::Admin,
        _ => Role::Worker,
    }
}

fn table(tokens: &[Token]) -> Rows {
    let now = times::now();
    let heads = ["ID", "PRINCIPAL", "ROLE", "NAMESPACES…", "BEGINS", "CREATED", "EXPIRES", "USED"];
    let mut rows = Rows::new(&heads, "No tokens.");
    for token in tokens {
        rows.add(vec![
            cell(&token.id),
            cell(&token.principal),
            cell(token.role.name()),
            cell(if token.namespaces.is_empty() { "all".to_owned() } else { token.namespaces.join(", ") }),
            cell(&token.shown),
            cell(times::relative(&token.created_at, now)),
            cell(token.expires_at.as_deref().map_or("never".to_owned(), |at| times::relative(at, now))),
            cell(times::maybe_relative(token.last_used.as_deref(), now)),
        ]);
    }
    rows
}
