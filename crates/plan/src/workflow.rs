//! A workflow that was read and found in order.

use crate::{
    expr::Expr,
    faults,
    format::{self, Fault, File, FileStep, FileUndo, FileWait, InStep, InUndo, OnTimeout, When},
    pattern::Written,
    settings::{self, of_undo},
    template::Template,
};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use windlass_api::{JobSettings, fields::With};
use windlass_core::{Millis, graph, stage::Wait};
use windlass_yaml::{Location, Spanned};

pub const STEPS_MAX: usize = 10_000;
const NEEDS_MAX: usize = 1_000;
pub const NAME_MAX: usize = 100;
/// Expressions of one workflow.
const EXPRESSIONS_MAX: usize = 20_000;
/// Bytes of what `defaults` say, for all steps together.
const DEFAULTS_BYTES_MAX: usize = 16 << 20;
/// Faults told at once.
pub(crate) const FAULTS_MAX: usize = 20;

#[derive(Debug)]
pub struct Workflow {
    pub name: Option<String>,
    pub description: String,
    pub input_schema: Option<Value>,
    pub max_parallel: Option<u32>,
    pub steps: Vec<Step>,
    pub by_id: HashMap<String, usize>,
    pub outputs: Option<Template>,
    /// Steps that its outputs look at.
    pub gives: BTreeSet<String>,
}

#[derive(Debug)]
pub struct Step {
    pub id: String,
    /// By position, without repetitions.
    pub needs: Vec<usize>,
    pub when: When,
    pub condition: Option<Expr>,
    pub work: Work,
    pub map: Option<Map>,
    pub definition: Option<String>,
    pub settings: JobSettings,
    pub undo: Option<Undo>,
    /// Steps that its expressions look at.
    pub looks: BTreeSet<String>,
}

#[derive(Debug)]
pub enum Work {
    /// None: the definition's payload, or none at all.
    Job(Option<Template>),
    Sub {
        workflow: String,
        input: Template,
    },
    Wait(Wait),
}

#[derive(Debug)]
pub struct Map {
    pub over: Template,
    pub max_parallel: Option<u32>,
}

#[derive(Debug)]
pub struct Undo {
    pub payload: Template,
    pub settings: JobSettings,
}

impl Step {
    /// Whether its turn at the planner has to come; otherwise the graph alone knows what to do.
    pub fn is_staged(&self) -> bool {
        let sub = matches!(self.work, Work::Sub { .. });
        let filled = matches!(&self.work, Work::Job(Some(payload)) if !payload.is_plain());
        self.condition.is_some() || self.map.is_some() || sub || filled
    }

    /// Whether an expression of it looks at the output of a step.
    pub fn looks_at(&self, id: &str) -> bool {
        self.looks.contains(id)
    }

    fn each(&self, see: &mut dyn FnMut(&Expr)) {
        self.condition.iter().for_each(&mut *see);
        match &self.work {
            Work::Job(Some(payload)) => payload.each(see),
            Work::Sub { input, .. } => input.each(see),
            Work::Job(None) | Work::Wait(_) => {}
        }
        if let Some(map) = &self.map {
            map.over.each(see);
        }
    }
}

impl Workflow {
    /// All that is wrong, or the workflow.
    pub fn parse(text: &str) -> Result<Self, Vec<Fault>> {
        let count = text.match_indices("${{").count();
        if count > EXPRESSIONS_MAX {
            let why = format!("{count} expressions; at most {EXPRESSIONS_MAX}");
            return Err(vec![Fault::nowhere(why).of("steps")]);
        }
        match format::read(text) {
            Ok(file) => Self::make(&file),
            Err(first) => Err(faults::all(text, first)),
        }
    }

    /// What is wrong with a text of which all that cannot be read was left out.
    pub(crate) fn check(text: &str) -> Result<(), Vec<Fault>> {
        let file = faults::relined(text).map_err(|fault| vec![fault])?;
        Self::make(&file).map(drop)
    }

    fn make(file: &File) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        if let Some(fault) = defaults_fault(file) {
            return Err(vec![fault]);
        }
        let made = Reader { faults: &mut faults, written: Written::default() }.workflow(file);
        faults.truncate(FAULTS_MAX);
        if faults.is_empty() { Ok(made) } else { Err(faults) }
    }

    /// Whether a run of it needs the planner.
    pub fn is_staged(&self) -> bool {
        self.compensates() || self.steps.iter().any(Step::is_staged)
    }

    pub fn compensates(&self) -> bool {
        self.steps.iter().any(|step| step.undo.is_some())
    }

    /// Workflows that it runs as steps.
    pub fn subs(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match &step.work {
            Work::Sub { workflow, .. } => Some(workflow.as_str()),
            Work::Job(_) | Work::Wait(_) => None,
        })
    }

    pub fn definitions(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| step.definition.as_deref())
    }
}

/// What `defaults` say is copied for each step.
fn defaults_fault(file: &File) -> Option<Fault> {
    let bytes = file.defaults.settings.bytes();
    let all = bytes.saturating_mul(file.steps.0.len());
    (all > DEFAULTS_BYTES_MAX).then(|| {
        let why = format!("{bytes} bytes for each step are {all} in all; at most {DEFAULTS_BYTES_MAX}");
        Fault::nowhere(why).of("defaults")
    })
}

/// Ids become parts of names such as `a/b[3]`.
fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !text.is_empty() && text.len() <= NAME_MAX && text.bytes().all(fits)
}

struct Reader<'a> {
    faults: &'a mut Vec<Fault>,
    written: Written,
}

impl Reader<'_> {
    fn fault(&mut self, at: Location, field: impl Into<String>, text: impl Into<String>) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(Fault::at(at, text).of(field));
        }
    }

    fn workflow(&mut self, file: &File) -> Workflow {
        if let Some(mark) = file.windlass.as_ref().filter(|mark| mark.value != "workflow") {
            self.fault(
                mark.referenced,
                "windlass",
                format!("{:?} is nothing that is known here; write workflow", mark.value),
            );
        }
        if let Some(name) = file.name.as_ref().filter(|name| !is_id(&name.value)) {
            self.fault(
                name.referenced,
                "name",
                format!("{:?} is not a name: use 1 to {NAME_MAX} letters, digits, '_', '-', '.'", name.value),
            );
        }
        self.size(&file.steps);
        let by_id = self.ids(&file.steps);
        let steps: Vec<Step> = file.steps.0.iter().map(|(id, step)| self.step(&id.value, step, &by_id, file)).collect();
        self.cycles(&file.steps, &steps);
        let outputs =
            file.outputs.as_ref().and_then(|outputs| self.template("outputs", outputs.referenced, &outputs.value));
        if let (Some(template), Some(outputs)) = (&outputs, &file.outputs) {
            self.named(template, outputs.referenced, "outputs", &by_id);
        }
        if let Some(zero) = file.max_parallel.as_ref().filter(|max| max.value == 0) {
            self.fault(zero.referenced, "max_parallel", "must be at least 1");
        }
        let mut gives = BTreeSet::new();
        outputs.iter().for_each(|outputs| outputs.each(&mut |expr| gives.extend(expr.steps.iter().cloned())));
        Workflow {
            gives,
            name: file.name.as_ref().map(|name| name.value.clone()),
            description: file.description.clone(),
            input_schema: file.input_schema.as_ref().map(|schema| schema.value.clone()),
            max_parallel: file.max_parallel.as_ref().map(|max| max.value),
            by_id,
            steps,
            outputs,
        }
    }

    fn size(&mut self, steps: &format::Steps) {
        let count = steps.0.len();
        if count == 0 {
            self.fault(Location::UNKNOWN, "steps", "a workflow needs at least one step");
        }
        if count > STEPS_MAX {
            self.fault(Location::UNKNOWN, "steps", format!("{count} steps; at most {STEPS_MAX}"));
        }
    }

    fn ids(&mut self, steps: &format::Steps) -> HashMap<String, usize> {
        let mut by_id = HashMap::with_capacity(steps.0.len());
        for (at, (id, _)) in steps.0.iter().enumerate() {
            let field = format!("steps.{}", id.value);
            if !is_id(&id.value) {
                let why = format!("{:?} is not an id: use 1 to {NAME_MAX} letters, digits, '_', '-', '.'", id.value);
                self.fault(id.referenced, &field, why);
            }
            if by_id.insert(id.value.clone(), at).is_some() {
                self.fault(id.referenced, field, "this id is used twice");
            }
        }
        by_id
    }

    fn step(
        &mut self,
        id: &str,
        step: &Spanned<With<FileStep, InStep>>,
        by_id: &HashMap<String, usize>,
        file: &File,
    ) -> Step {
        let (at, body) = (step.referenced, &step.value.own);
        let field = |name: &str| format!("steps.{id}.{name}");
        let needs = self.needs(id, step, by_id);
        if body.when == When::OnFailure && needs.is_empty() {
            self.fault(at, field("when"), "on_failure needs something that can fail: say what it `needs`");
        }
        let condition = body.condition.as_ref().and_then(|text| {
            let bare = text.value.trim();
            let bare = bare.strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}")).unwrap_or(bare);
            let made = Expr::within(bare.trim(), &mut self.written);
            made.map_err(|why| self.fault(text.referenced, field("if"), why)).ok()
        });
        let map = body.map.as_ref().and_then(|map| {
            if map.value.max_parallel == Some(0) {
                self.fault(map.referenced, field("map.max_parallel"), "must be at least 1");
            }
            let over = match &map.value.over {
                // A list, or an expression with or without its brackets.
                Value::String(text) if !text.contains("${{") => json!(format!("${{{{ {text} }}}}")),
                other => other.clone(),
            };
            let over = self.template(&field("map.over"), map.referenced, &over)?;
            Some(Map { over, max_parallel: map.value.max_parallel })
        });
        let settings = step.value.settings.clone().or(&file.defaults.settings);
        let mut made = Step {
            id: id.to_owned(),
            needs,
            when: body.when,
            condition,
            work: self.work(id, step),
            map,
            definition: body.definition.as_ref().map(|name| name.value.clone()),
            undo: body.compensate.as_ref().and_then(|undo| self.undo(id, undo, &settings)),
            settings,
            looks: BTreeSet::new(),
        };
        let mut looks = BTreeSet::new();
        made.each(&mut |expr| looks.extend(expr.steps.iter().cloned()));
        made.looks = looks;
        self.fits(id, step, &made);
        self.seen(&made, at, by_id);
        made
    }

    fn needs(
        &mut self,
        id: &str,
        step: &Spanned<With<FileStep, InStep>>,
        by_id: &HashMap<String, usize>,
    ) -> Vec<usize> {
        let Some(needs) = &step.value.own.needs else { return Vec::new() };
        let field = format!("steps.{id}.needs");
        if needs.value.names().len() > NEEDS_MAX {
            self.fault(needs.referenced, &field, format!("at most {NEEDS_MAX}"));
        }
        let mut found = Vec::new();
        for name in needs.value.names() {
            match by_id.get(name) {
                Some(&at) => found.push(at),
                None => self.fault(needs.referenced, &field, format!("there is no step {name:?}")),
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn work(&mut self, id: &str, step: &Spanned<With<FileStep, InStep>>) -> Work {
        let (at, body) = (step.referenced, &step.value.own);
        let kinds = [body.payload.is_some(), body.run.is_some(), body.workflow.is_some(), body.wait.is_some()];
        if kinds.iter().filter(|there| **there).count() > 1 {
            self.fault(at, format!("steps.{id}"), "give at most one of payload, run, workflow and wait");
        }
        if body.input.is_some() && body.workflow.is_none() {
            self.fault(
                at,
                format!("steps.{id}.input"),
                "only a step with a `workflow` has an input; others have a payload",
            );
        }
        if let Some(wait) = &body.wait {
            return Work::Wait(self.wait(id, wait));
        }
        if let Some(workflow) = &body.workflow {
            let input = body.input.as_ref().map_or(json!({}), |input| input.value.clone());
            let place = body.input.as_ref().map_or(at, |input| input.referenced);
            let input = self.template(&format!("steps.{id}.input"), place, &input);
            return Work::Sub {
                workflow: workflow.value.clone(),
                input: input.unwrap_or(Template::Plain(Value::Null)),
            };
        }
        let payload = match (&body.payload, &body.run) {
            (Some(payload), _) => self.template(&format!("steps.{id}.payload"), payload.referenced, &payload.value),
            (None, Some(run)) => {
                self.template(&format!("steps.{id}.run"), run.referenced, &json!({"shell": run.value}))
            }
            (None, None) => None,
        };
        Work::Job(payload)
    }

    fn wait(&mut self, id: &str, wait: &Spanned<FileWait>) -> Wait {
        let (at, body) = (wait.referenced, &wait.value);
        let kinds = [body.event.is_some(), body.approval, body.time.is_some()];
        if kinds.iter().filter(|there| **there).count() != 1 {
            self.fault(at, format!("steps.{id}.wait"), "say exactly one of event, approval: true and for");
        }
        if body.event.as_ref().is_some_and(|event| !is_id(event)) {
            self.fault(at, format!("steps.{id}.wait.event"), "use letters, digits, '_', '-', '.'");
        }
        if body.time.is_some() && body.timeout.is_some() {
            self.fault(at, format!("steps.{id}.wait.timeout"), "a wait for a time ends by itself");
        }
        Wait {
            event: body.event.as_deref().map(Into::into),
            approval: body.approval,
            timeout: body.time.or(body.timeout).map(|length| length.0.max(Millis(1))),
            then_complete: body.time.is_some() || body.on_timeout == OnTimeout::Continue,
        }
    }

    fn undo(&mut self, id: &str, undo: &Spanned<With<FileUndo, InUndo>>, step: &JobSettings) -> Option<Undo> {
        let With { own, settings, .. } = &undo.value;
        let field = format!("steps.{id}.compensate");
        let payload = match (&own.payload, &own.run) {
            (Some(payload), None) => payload.clone(),
            (None, Some(run)) => json!({"shell": run}),
            _ => {
                self.fault(undo.referenced, field, "give exactly one of payload and run");
                return None;
            }
        };
        let payload = self.template(&field, undo.referenced, &payload)?;
        Some(Undo { payload, settings: of_undo(settings, step) })
    }

    /// Things that make no sense together.
    fn fits(&mut self, id: &str, step: &Spanned<With<FileStep, InStep>>, made: &Step) {
        let wait = matches!(made.work, Work::Wait(_));
        let table = [
            (wait && made.map.is_some(), "map", "a wait has no items; wait before the map"),
            (wait && made.undo.is_some(), "compensate", "a wait does nothing that could be undone"),
            (wait && made.definition.is_some(), "definition", "a wait is not a job"),
            (
                matches!(made.work, Work::Sub { .. }) && made.definition.is_some(),
                "definition",
                "a workflow is not a job",
            ),
        ];
        if let Some((field, why)) = settings::fault(&made.settings) {
            self.fault(step.referenced, format!("steps.{id}.{field}"), why);
        }
        for (wrong, field, why) in table {
            if wrong {
                self.fault(step.referenced, format!("steps.{id}.{field}"), why);
            }
        }
    }

    /// Expressions see the outputs of what the step needs, and of nothing else: only that has ended for sure.
    fn seen(&mut self, step: &Step, at: Location, by_id: &HashMap<String, usize>) {
        for name in &step.looks {
            match by_id.get(name) {
                None => self.fault(
                    at,
                    format!("steps.{}", step.id),
                    format!("an expression names the step {name:?}, which does not exist"),
                ),
                Some(other) if !step.needs.contains(other) => {
                    let why = format!("an expression looks at the step {name:?}; add it to `needs`");
                    self.fault(at, format!("steps.{}", step.id), why);
                }
                Some(_) => {}
            }
        }
    }

    fn named(&mut self, template: &Template, at: Location, field: &str, by_id: &HashMap<String, usize>) {
        let mut unknown = Vec::new();
        template.each(&mut |expr| unknown.extend(expr.steps.iter().filter(|name| !by_id.contains_key(*name)).cloned()));
        for name in unknown {
            self.fault(at, field, format!("there is no step {name:?}"));
        }
    }

    fn template(&mut self, field: &str, at: Location, value: &Value) -> Option<Template> {
        let made = Template::within(value, &mut self.written);
        made.map_err(|(path, why)| self.fault(at, format!("{field}{path}"), why)).ok()
    }

    fn cycles(&mut self, file: &format::Steps, steps: &[Step]) {
        let parents: Vec<Vec<usize>> = steps.iter().map(|step| step.needs.clone()).collect();
        if let Some(cycle) = graph::cycle(&parents) {
            let path: Vec<&str> = cycle.iter().map(|&at| steps[at].id.as_str()).collect();
            let first = &file.0[cycle[0]].1;
            let at = first.value.own.needs.as_ref().map_or(first.referenced, |needs| needs.referenced);
            let field = format!("steps.{}.needs", path[0]);
            self.fault(at, field, format!("the steps wait for each other: {}", path.join(" -> ")));
        }
    }
}
