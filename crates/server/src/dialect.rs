//! What a dialect is: another job server's protocol, served at its original paths on the one engine.
//!
//! A [`Dialect`] is a value, and [`crate::dialects::ALL`] is the list of them. Everything outside a dialect's own folder treats all
//! of them alike: it mounts their routes, reads their settings, starts what they do by themselves, and lets them word refusals.

use crate::{
    app::App,
    config::{
        adjusted::Adjusted,
        table::{Foreign, Setting, shown},
        values::Values,
    },
    planned::{Decided, Unit},
    problem::Result,
    route::{Access, Handle, Identify, Nameless, Refuse, Route, Surface},
    running::Running,
};
use axum::extract::FromRef;
use futures_util::future::BoxFuture;
use http::Method;
use std::{fmt, ops::Deref, sync::Arc};
use windlass_api::overview::Sign;
use windlass_core::Namespace;
use windlass_product::Fires;

pub struct Dialect {
    /// Its name, and the rules for its callers.
    pub surface: Surface,
    /// Below these paths, what has no route is refused in its words. The longest one that fits counts.
    pub prefixes: &'static [&'static str],
    /// Another spelling of one of its paths, as its table has it. Asked only if no route fits. None: there is no such path.
    pub respell: fn(&str) -> Option<String>,
    /// In the order in which the documentation lists them. Their names begin with the dialect's.
    pub settings: &'static [Setting],
    /// Names that its users know settings by.
    pub foreign: fn() -> Vec<Foreign>,
    /// What its settings come to where that is not what was written.
    pub adjusted: fn(&Values) -> Vec<Adjusted>,
    /// How a worker that serves these tags is started, where that is not our own.
    pub start_worker: Option<StartWorker>,
    /// Makes what serves it, by the settings in effect.
    pub serve: fn(&Values) -> Served,
}

/// For dialects whose paths have one spelling.
pub fn one_spelling(_: &str) -> Option<String> {
    None
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.surface.name)
    }
}

impl Dialect {
    /// Its name as people write it.
    pub fn name(&self) -> String {
        shown(self.surface.name)
    }
}

/// Says in a sentence what to start.
pub type StartWorker = fn(&[&str]) -> String;

/// Says how its jobs and workers stand.
pub type Watch = Box<dyn Fn(App) -> BoxFuture<'static, Result<Vec<Sign>>> + Send + Sync>;

/// What a dialect does by itself: starts it, once the server is up.
pub type Start = Box<dyn Fn(App) -> BoxFuture<'static, Running> + Send + Sync>;

/// What makes the jobs that a change of an item in a dialect's namespace sets off.
pub type MakeFires = fn(&App) -> Arc<dyn Fires>;

/// What a dialect clears away now and then, after tokens that are void are gone.
pub type Sweep = Box<dyn Fn(App) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// Decides turns of runs whose plans the dialect wrote.
pub type Decide = Box<dyn Fn(App, Unit) -> BoxFuture<'static, Result<Decided>> + Send + Sync>;

/// Ends what turns belong to with a reason, because their server ended twice while they were decided. It reads and works out as
/// little as it can.
pub type GiveUp = Box<dyn Fn(App, Unit, Arc<str>) -> BoxFuture<'static, Result<()>> + Send + Sync>;

pub struct Planner {
    pub decide: Decide,
    pub give_up: GiveUp,
}

/// A dialect at work. Its state is in its routes, and in whatever it does by itself.
pub struct Served {
    pub routes: Vec<Route>,
    /// None: callers say who they are by token, as [`crate::route::Rules`] has it.
    pub identify: Option<Identify>,
    pub start: Start,
    /// None: changes of items in its namespace set off nothing.
    pub fires: Option<MakeFires>,
    pub sweep: Option<Sweep>,
    /// None: its runs, if it has any, are planned as ours are.
    pub plans: Option<Planner>,
    /// None: there is nothing to say beside what is said of all jobs and workers.
    pub watch: Option<Watch>,
}

impl Served {
    /// Answers, and does nothing by itself.
    pub fn new(routes: Vec<Route>) -> Self {
        let start: Start = Box::new(|_| Box::pin(async { Running::default() }));
        Self { routes, identify: None, start, fires: None, sweep: None, plans: None, watch: None }
    }

    pub fn starts<F>(self, start: impl Fn(App) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Running> + Send + 'static,
    {
        Self { start: Box::new(move |app| Box::pin(start(app))), ..self }
    }

    pub fn identifies(self, identify: Identify) -> Self {
        Self { identify: Some(identify), ..self }
    }

    pub fn fires(self, make: MakeFires) -> Self {
        Self { fires: Some(make), ..self }
    }

    pub fn plans<F, G>(
        self,
        decide: impl Fn(App, Unit) -> F + Send + Sync + 'static,
        give_up: impl Fn(App, Unit, Arc<str>) -> G + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Decided>> + Send + 'static,
        G: Future<Output = Result<()>> + Send + 'static,
    {
        let plans = Planner {
            decide: Box::new(move |app, unit| Box::pin(decide(app, unit))),
            give_up: Box::new(move |app, unit, why| Box::pin(give_up(app, unit, why))),
        };
        Self { plans: Some(plans), ..self }
    }

    pub fn watches<F>(self, watch: impl Fn(App) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Vec<Sign>>> + Send + 'static,
    {
        Self { watch: Some(Box::new(move |app| Box::pin(watch(app)))), ..self }
    }

    pub fn sweeps<F>(self, sweep: impl Fn(App) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        Self { sweep: Some(Box::new(move |app| Box::pin(sweep(app)))), ..self }
    }
}

/// The dialects of one server, each with what serves it.
pub struct Dialects(Vec<(&'static Dialect, Served)>);

impl Dialects {
    pub fn new(dialects: &[&'static Dialect], values: &Values) -> Self {
        Self(dialects.iter().map(|dialect| (*dialect, (dialect.serve)(values))).collect())
    }

    pub fn routes(&self) -> Vec<Route> {
        let on = |(dialect, served): &(&'static Dialect, Served)| {
            let mounted = served.routes.iter().cloned();
            mounted.map(|route| route.on(&dialect.surface, served.identify.as_ref())).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(on).collect()
    }

    pub async fn start(&self, app: &App) -> Running {
        let mut running = Running::default();
        for (_, served) in &self.0 {
            running.join((served.start)(app.clone()).await);
        }
        running
    }

    /// None: no dialect makes jobs of what changes in this namespace.
    pub fn fires(&self, app: &App, namespace: &Namespace) -> Option<Arc<dyn Fires>> {
        let has = |dialect: &Dialect| dialect.surface.rules.namespace == Some(namespace.as_str());
        let (_, served) = self.0.iter().find(|(dialect, served)| served.fires.is_some() && has(dialect))?;
        served.fires.map(|make| make(app))
    }

    /// Who decides for runs whose plans begin with the mark of this dialect.
    pub fn planner(&self, name: &str) -> Option<&Planner> {
        self.0.iter().find(|(dialect, _)| dialect.surface.name == name).and_then(|(_, served)| served.plans.as_ref())
    }

    pub async fn sweep(&self, app: &App) -> Result<()> {
        for sweep in self.0.iter().filter_map(|(_, served)| served.sweep.as_ref()) {
            sweep(app.clone()).await?;
        }
        Ok(())
    }

    /// How those that have something to say stand, by name.
    pub async fn signs(&self, app: &App, name: &str) -> Result<Vec<Sign>> {
        let watch = self.0.iter().find(|(dialect, _)| dialect.surface.name == name);
        match watch.and_then(|(_, served)| served.watch.as_ref()) {
            Some(watch) => watch(app.clone()).await,
            None => Ok(Vec::new()),
        }
    }

    /// What to start for jobs of a namespace. None: our own worker.
    pub fn start_worker(&self, namespace: &Namespace, tags: &[&str]) -> Option<String> {
        let has = |dialect: &Dialect| dialect.surface.rules.namespace == Some(namespace.as_str());
        let start = self.0.iter().filter(|(dialect, _)| has(dialect)).find_map(|(dialect, _)| dialect.start_worker)?;
        Some(start(tags))
    }

    /// Those whose jobs and workers have a namespace of their own.
    pub fn namespaces(&self) -> Vec<(&'static str, Namespace)> {
        let of = |(dialect, _): &(&'static Dialect, Served)| {
            let namespace = Namespace::new(dialect.surface.rules.namespace?).ok()?;
            Some((dialect.surface.name, namespace))
        };
        self.0.iter().filter_map(of).collect()
    }

    /// In whose words it is said that there is nothing at a path.
    pub fn refuse_at(&self, path: &str) -> Option<Refuse> {
        let fits = |dialect: &&'static Dialect| {
            dialect.prefixes.iter().filter(|prefix| path.starts_with(**prefix)).map(|prefix| prefix.len()).max()
        };
        let owners = self.0.iter().filter_map(|(dialect, _)| Some((fits(dialect)?, dialect.surface.rules.refuse)));
        owners.max_by_key(|(length, _)| *length).map(|(_, refuse)| refuse)
    }

    pub fn respell(&self, path: &str) -> Option<String> {
        self.0.iter().find_map(|(dialect, _)| (dialect.respell)(path))
    }

    /// Those that some callers may use without a token, as people write them.
    pub fn without_token(&self) -> Vec<String> {
        let open = self.0.iter().filter(|(dialect, _)| dialect.surface.rules.nameless != Nameless::Nothing);
        open.map(|(dialect, _)| dialect.name()).collect()
    }
}

/// What the handlers of a dialect with a state of its own get: the app, and that state.
pub struct With<S> {
    app: App,
    pub own: Arc<S>,
}

impl<S> With<S> {
    pub fn new(app: App, own: Arc<S>) -> Self {
        Self { app, own }
    }

    /// For what the server does by itself, also where a request is the occasion.
    pub fn itself(&self) -> Self {
        Self { app: self.app.itself(), own: self.own.clone() }
    }
}

impl<S> Clone for With<S> {
    fn clone(&self) -> Self {
        Self { app: self.app.clone(), own: self.own.clone() }
    }
}

impl<S> Deref for With<S> {
    type Target = App;
    fn deref(&self) -> &App {
        &self.app
    }
}

/// Handlers that need nothing but the app take nothing else.
impl<S> FromRef<With<S>> for App {
    fn from_ref(with: &With<S>) -> App {
        with.app.clone()
    }
}

/// Makes routes whose handlers share a state.
pub struct Mount<S>(pub Arc<S>);

impl<S: Send + Sync + 'static> Mount<S> {
    pub fn route<H, T>(&self, method: Method, path: &'static str, access: Access, handler: H) -> Route
    where
        H: Handle<T, With<S>>,
        T: 'static,
    {
        let own = self.0.clone();
        let run = move |request, app| handler.clone().call(request, With { app, own: own.clone() });
        Route::of(method, path, access, Arc::new(run))
    }

    pub fn get<H: Handle<T, With<S>>, T: 'static>(&self, path: &'static str, access: Access, handler: H) -> Route {
        self.route(Method::GET, path, access, handler)
    }
    pub fn post<H: Handle<T, With<S>>, T: 'static>(&self, path: &'static str, access: Access, handler: H) -> Route {
        self.route(Method::POST, path, access, handler)
    }
    pub fn put<H: Handle<T, With<S>>, T: 'static>(&self, path: &'static str, access: Access, handler: H) -> Route {
        self.route(Method::PUT, path, access, handler)
    }
    pub fn patch<H: Handle<T, With<S>>, T: 'static>(&self, path: &'static str, access: Access, handler: H) -> Route {
        self.route(Method::PATCH, path, access, handler)
    }
    pub fn delete<H: Handle<T, With<S>>, T: 'static>(&self, path: &'static str, access: Access, handler: H) -> Route {
        self.route(Method::DELETE, path, access, handler)
    }
}
