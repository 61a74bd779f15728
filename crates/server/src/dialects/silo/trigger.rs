//! From a definition and what it is about to a job.

use super::{
    definitions::{self, Definition, InForce, ScopeKind},
    namespace,
    show::{Detail, Extra, ScopeItem},
};
use crate::app::App;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::sync::Arc;
use windlass_core::{
    Command, Facet, Millis, Tags,
    commands::submit::{NewJob, Submit},
    job::DefinitionRef,
    policy::{JobPolicy, LeaseEnd, LeaseLength, LeasePolicy, RetryForm, RetryPolicy},
};
use windlass_engine::ids;
use windlass_product::{
    Error, Fires, Products, bom, projects,
    rules::{
        item::Item,
        trigger::{self, Covered, Trigger},
    },
};

/// What a job is about.
#[derive(Clone, Debug)]
pub struct Target {
    pub item: Option<Item>,
    /// Of the item; its current one where none is named.
    pub revision: Option<u32>,
    pub project: Option<String>,
}

/// What was asked for beside it.
#[derive(Clone, Debug, Default)]
pub struct TriggerOptions {
    pub args: Map<String, Value>,
    pub priority: Option<i32>,
}

pub fn submit(job: NewJob) -> Command {
    Submit { namespace: namespace(), job }.into()
}

/// Makes the jobs that the definitions in force say, by definition name.
pub struct ByDefinition(pub App);

#[async_trait]
impl Fires for ByDefinition {
    async fn fire(
        &self,
        products: &Products,
        trigger: Trigger,
        item: &Item,
        by: &Arc<str>,
    ) -> Result<Vec<NewJob>, Error> {
        let mut made = Vec::new();
        for one in definitions::all(&self.0).await? {
            if one.definition.trigger.kind != trigger.name() || !one.definition.wants(item) {
                continue;
            }
            for project in trigger::jobs_for(one.definition.scope.kind, item) {
                let target = Target { item: Some(item.clone()), revision: None, project };
                made.push(make(products, &one, trigger, &target, by, &TriggerOptions::default()).await?);
            }
        }
        Ok(made)
    }
}

pub async fn make(
    products: &Products,
    from: &InForce,
    trigger: Trigger,
    target: &Target,
    by: &Arc<str>,
    asked: &TriggerOptions,
) -> Result<NewJob, Error> {
    let definition = &*from.definition;
    let items = cover(products, definition, target).await?;
    let detail = Detail { definition: definitions::copy(definition), items };
    let extra = extra(definition, trigger, target, asked);
    Ok(NewJob {
        priority: asked.priority.unwrap_or(definition.priority),
        tags: definition.runner.tags.iter().map(String::as_str).collect::<Tags>(),
        payload: serde_json::to_string(&detail)?.as_str().into(),
        policy: policy(definition),
        definition: Some(DefinitionRef { name: definition.name.as_str().into(), version: from.number }),
        facets: facets(definition, target),
        owner: Some(by.clone()),
        extra: Some(serde_json::to_string(&extra)?.into()),
        ..NewJob::new(ids::job_id())
    })
}

/// Deadlines are fixed at the claim, and a failed job is followed by a new one.
fn policy(definition: &Definition) -> JobPolicy {
    JobPolicy {
        lease: LeasePolicy { length: LeaseLength::FromDeadline, ends: LeaseEnd::Fixed },
        hard_deadline: Some(Millis::from_secs(definition.timeout as i64)),
        retry: RetryPolicy {
            attempts: definition.max_retries + 1,
            form: RetryForm::NewJob,
            losses_max: u32::MAX,
            ..RetryPolicy::default()
        },
        ..JobPolicy::default()
    }
}

/// What names a target among all targets of a definition.
pub fn target_facet(definition: &str, target: &Target) -> Facet {
    let what = match (&target.project, &target.item) {
        (Some(code), _) => code.as_str(),
        (None, Some(item)) => item.part_number.as_str(),
        (None, None) => "",
    };
    Facet::new("target", &format!("{definition}/{what}"))
}

fn facets(definition: &Definition, target: &Target) -> Vec<Facet> {
    let mut facets = vec![Facet::new("definition", &definition.name), target_facet(&definition.name, target)];
    if let Some(item) = &target.item {
        facets.push(Facet::new("item", &item.id.to_string()));
        facets.push(Facet::new("part", &item.part_number));
    }
    facets.extend(target.project.as_ref().map(|code| Facet::new("project", code)));
    facets
}

fn extra(definition: &Definition, trigger: Trigger, target: &Target, asked: &TriggerOptions) -> Extra {
    let mut args = definition.compute.args.clone();
    args.extend(asked.args.clone());
    let item = target.item.as_ref();
    let covers_project = definition.scope.kind == ScopeKind::Project;
    Extra {
        definition_id: definitions::id_of(&definition.name),
        definition_version: definition.version,
        trigger_type: trigger.name().to_owned(),
        item_id: item.map(|item| item.id),
        part_number: item.map(|item| item.part_number.clone()),
        revision_number: item.map(|item| target.revision.unwrap_or(item.current_revision)),
        project: target.project.clone(),
        scope_type: definition.scope.kind,
        scope_part: item.filter(|_| !covers_project).map(|item| item.part_number.clone()),
        compute_type: definition.compute.kind.clone(),
        compute_command: definition.compute.command.clone(),
        args,
        timeout: definition.timeout,
        max_retries: definition.max_retries,
        runner_tags: definition.runner.tags.clone(),
    }
}

/// Which items the job covers, as they are now.
async fn cover(products: &Products, definition: &Definition, target: &Target) -> Result<Vec<ScopeItem>, Error> {
    let root = target.item.as_ref().map(|item| (item, target.revision.unwrap_or(item.current_revision)));
    let covered = match (definition.scope.kind, root) {
        (ScopeKind::Item, Some((item, revision))) => Covered::item(item, revision),
        (ScopeKind::Assembly, Some((item, revision))) => {
            let below = bom::below(products, &item.part_number, u32::MAX).await?;
            let parts = below.inside(&item.part_number)?.into_iter().map(|inside| inside.part_number).collect();
            Covered::assembly(item, revision, &below, &bom::items_of(products, parts).await?)?
        }
        (ScopeKind::Project, _) => {
            Covered::project(&projects::members(products, target.project.as_deref().unwrap_or_default()).await?)
        }
        (_, None) => Vec::new(),
    };
    Ok(covered.into_iter().map(scope_item).collect())
}

fn scope_item(covered: Covered) -> ScopeItem {
    ScopeItem {
        part_number: covered.part_number,
        item_id: covered.item_id,
        item_type: covered.item_type,
        revision_number: covered.revision,
        depth: covered.depth,
        quantity: bom::number(covered.quantity),
    }
}
