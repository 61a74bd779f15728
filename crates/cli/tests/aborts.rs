//! A planner that ends the process it runs in: the server starts again, serves others, and gives up only the run that is at fault.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use windlass_core::{
    JobKey, Namespace, RunId,
    commands::{
        advance::{Advance, Move},
        submit::{NewJob, Submit},
        submit_run::{RunNode, RunPlan, SubmitRun},
    },
    stage::Hold,
};
use windlass_engine::{Engine, Settings, ids};
use windlass_server::{
    App, Options,
    dialect::{Dialect, Served, one_spelling},
    flows::{planner, reader},
    planned::{Decided, Unit},
    problem::Problem,
    route::{Rules, Surface},
};
use windlass_stores::embedded::{self, Embedded};

const FOLDER: &str = "WINDLASS_ABORTS_FOLDER";
const START: &str = "WINDLASS_ABORTS_START";
const NAME: &str = "falling";

static FALLING: Dialect = Dialect {
    surface: Surface { name: NAME, rules: Rules { namespace: Some(NAME), ..Rules::OURS } },
    prefixes: &["/falling/"],
    respell: one_spelling,
    settings: &[],
    adjusted: windlass_server::config::adjusted::none,
    foreign: Vec::new,
    start_worker: None,
    serve: |_| Served::new(Vec::new()).plans(decide, give_up),
};

static BYSTANDER_BEGAN: AtomicBool = AtomicBool::new(false);

async fn named(app: &App, unit: &Unit) -> String {
    let id = unit.jobs[0].expect("a step");
    let job = app.engine.store().job(&JobKey::new(&unit.namespace, id)).await.expect("reads").expect("is there");
    job.spec.name.as_deref().unwrap_or_default().to_owned()
}

async fn end(app: &App, unit: Unit, wanted: Move) {
    let moves = unit.jobs.iter().flatten().map(|id| (*id, Hold::Plan, wanted.clone())).collect();
    let advance = Advance { namespace: unit.namespace, run: unit.run, moves, undo: None, strict: false };
    app.engine.run(advance).await.expect("is taken");
}

/// One ends the process. The other, under way in the same moment, does nothing wrong.
async fn decide(app: App, unit: Unit) -> Result<Decided, Problem> {
    let first = env::var(START).as_deref() == Ok("1");
    match named(&app, &unit).await.as_str() {
        "killer" => {
            while first && !BYSTANDER_BEGAN.load(Relaxed) {
                tokio::task::yield_now().await;
            }
            std::process::abort();
        }
        _ if first => {
            BYSTANDER_BEGAN.store(true, Relaxed);
            std::future::pending().await
        }
        _ => {
            end(&app, unit, Move::Complete { result: Default::default() }).await;
            Ok(Decided::Turns(1))
        }
    }
}

async fn give_up(app: App, unit: Unit, why: Arc<str>) -> Result<(), Problem> {
    end(&app, unit, Move::Fail { why }).await;
    Ok(())
}

fn namespace() -> Namespace {
    Namespace::new(NAME).expect("a legal name")
}

async fn plan(engine: &Engine, name: &str) {
    let mut job = NewJob { name: Some(name.into()), ..NewJob::new(ids::job_id()) };
    job.stage.plan = true;
    let nodes = vec![RunNode { name: "only".into(), needs: Vec::new(), job }];
    let plan = RunPlan { parts: vec![reader::marked(NAME, "{}").into()], ..RunPlan::default() };
    let run = SubmitRun { plan, ..SubmitRun::new(namespace(), RunId(ids::run_id().0), nodes) };
    engine.run(run).await.expect("is taken");
}

/// Says how each step stands.
async fn tell(engine: &Engine) {
    let query = windlass_engine::store::JobQuery { namespace: Some(namespace()), limit: 10, ..Default::default() };
    for job in engine.store().jobs(&query).await.expect("reads") {
        let why = job.live.outcome.as_ref().map(|outcome| outcome.message.to_string()).unwrap_or_default();
        println!("{}: {:?} {why}", job.spec.name.as_deref().unwrap_or_default(), job.state);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "no test: what another test starts"]
async fn child() {
    let folder = env::var(FOLDER).expect("started by its test");
    let store = Arc::new(Embedded::open(Path::new(&folder), embedded::Options::default()).expect("opens"));
    let engine = Engine::start(store, Settings::default()).await.expect("starts");
    let app = App::new(engine.clone(), Options { dialects: vec![&FALLING], ..Options::default() });
    if env::var(START).as_deref() == Ok("1") {
        plan(&engine, "killer").await;
        plan(&engine, "bystander").await;
    }
    let job = NewJob::new(ids::job_id());
    engine.run(Submit { namespace: Namespace::default(), job }).await.expect("others are served");
    println!("serves");
    planner::tick(&app).await.expect("plans");
    tell(&engine).await;
}

fn start(folder: &Path, times: u32) -> (bool, String) {
    let child = Command::new(env::current_exe().expect("a test has a program"))
        .args(["aborts::child", "--exact", "--ignored", "--nocapture"])
        .envs([(FOLDER, folder.as_os_str()), (START, times.to_string().as_ref())])
        .stderr(Stdio::null())
        .output()
        .expect("starts");
    (child.status.success(), String::from_utf8_lossy(&child.stdout).into_owned())
}

#[test]
fn a_planner_that_ends_the_server_twice_ends_its_run_and_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    for times in 1..=2 {
        let (well, told) = start(folder.path(), times);
        assert!(!well && told.contains("serves"), "start {times}: {told}");
    }
    for times in 3..=4 {
        let (well, told) = start(folder.path(), times);
        assert!(well && told.contains("serves"), "start {times}: {told}");
        assert!(
            told.contains("killer: Failed the server ended 2 times while this step was being worked out"),
            "{told}"
        );
        assert!(told.contains("bystander: Completed"), "{told}");
    }
}
