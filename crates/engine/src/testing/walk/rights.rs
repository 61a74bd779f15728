//! Draws principals and their tokens.

use super::world::{PRINCIPALS, World};
use std::sync::Arc;
use windlass_core::{
    Command,
    commands::{
        all::All,
        principals::{ChangePrincipal, CreatePrincipal, DeletePrincipal, DisablePrincipal, EnablePrincipal},
        tokens::{IssueToken, KeepToken, NeedAdmin, ReplaceToken, RevokeToken, UseToken},
    },
    principal::Role,
};

pub(super) fn create_principal(world: &mut World) -> Command {
    let namespace = world.namespace();
    let role = *world.dice.pick(&[Role::Viewer, Role::Editor, Role::Admin, Role::Worker]);
    let namespaces = if world.dice.percent(30) { vec![namespace.clone()] } else { Vec::new() };
    CreatePrincipal { namespace, name: world.dice.name(&PRINCIPALS), role, namespaces }.into()
}

pub(super) fn disable_principal(world: &mut World) -> Command {
    DisablePrincipal { namespace: world.namespace(), name: world.dice.name(&PRINCIPALS) }.into()
}

pub(super) fn enable_principal(world: &mut World) -> Command {
    EnablePrincipal { namespace: world.namespace(), name: world.dice.name(&PRINCIPALS) }.into()
}

pub(super) fn change_principal(world: &mut World) -> Command {
    let role = Some(*world.dice.pick(&[Role::Viewer, Role::Editor, Role::Admin, Role::Worker]));
    let (namespace, name) = (world.namespace(), world.dice.name(&PRINCIPALS));
    ChangePrincipal { namespace, name, role, namespaces: None }.into()
}

pub(super) fn delete_principal(world: &mut World) -> Command {
    DeletePrincipal { namespace: world.namespace(), name: world.dice.name(&PRINCIPALS) }.into()
}

fn token(world: &mut World) -> Arc<str> {
    if world.dice.percent(2) {
        return "nothing like a hash".into();
    }
    format!("{:064x}", world.dice.below(6)).into()
}

pub(super) fn issue_token(world: &mut World) -> Command {
    let (namespace, hash, now) = (world.namespace(), token(world), world.now);
    let expires_at = world.dice.maybe_millis(50, 60_000).map(|length| now + length);
    let (principal, shown) = (world.dice.name(&PRINCIPALS), "wl_abc".into());
    let made_by = world.dice.percent(40).then(|| token(world));
    IssueToken { namespace, principal, hash, shown, expires_at, made_by, session: false }.into()
}

pub(super) fn revoke_token(world: &mut World) -> Command {
    RevokeToken { namespace: world.namespace(), hash: token(world) }.into()
}

pub(super) fn use_token(world: &mut World) -> Command {
    UseToken { namespace: world.namespace(), hash: token(world) }.into()
}

/// One that an operator keeps outside, or that was replaced there.
pub(super) fn kept_token(world: &mut World) -> Command {
    let (namespace, hash) = (world.namespace(), token(world));
    match world.dice.below(4) {
        0 => ReplaceToken { namespace, hash }.into(),
        1 => NeedAdmin { namespace, hash }.into(),
        _ => {
            // An export leaves out until when one was seen, and what a walk leaves is moved as it is.
            let (principal, shown) = (world.dice.name(&PRINCIPALS), "file".into());
            KeepToken { namespace, principal, hash, shown, until: None }.into()
        }
    }
}

/// Made, found to be one, and replaced: all of it is accepted whatever went before.
pub(super) fn admin_for_a_moment(world: &mut World) -> Command {
    let namespace = world.namespace();
    let number = world.dice.below(1 << 40);
    let (name, hash): (Arc<str>, Arc<str>) = (format!("admin-{number}").into(), format!("{number:0>64x}").into());
    let create =
        CreatePrincipal { namespace: namespace.clone(), name: name.clone(), role: Role::Admin, namespaces: Vec::new() };
    let (shown, until) = ("file".into(), None);
    let keep = KeepToken { namespace: namespace.clone(), principal: name, hash: hash.clone(), shown, until };
    let need = NeedAdmin { namespace: namespace.clone(), hash: hash.clone() };
    let commands = vec![create.into(), keep.into(), need.into(), ReplaceToken { namespace, hash }.into()];
    All { commands }.into()
}
