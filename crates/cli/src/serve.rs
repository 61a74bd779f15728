//! `windlass serve`: the one place where a store, an engine and the HTTP server meet.

use crate::{
    parent,
    settings::Settings,
    store::{StoreAddress, sound, unfinished},
};
use anyhow::Context;
use clap::Args;
use std::{fs, path::Path, process::ExitCode, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};
use windlass_engine::{Engine, Quotas, Settings as EngineSettings, Store};
use windlass_server::{
    App, Options, Service, artifact_place,
    bootstrap::{self, Admin},
    config::Config,
    dialects, duties, listener, logs, native,
    route::Nameless,
    trace::Traces,
    without_token::WithoutToken,
};
use windlass_stores::{
    embedded::{self, Embedded},
    postgres::{self, Postgres},
};

/// Exit codes, beside 0 for a clean stop and 1 for everything else.
pub const BAD_CONFIGURATION: u8 = 2;
const NO_STORE: u8 = 3;
const STORE_FAILED: u8 = 4;
/// Cut short by a second signal.
const IMPATIENT: i32 = 130;

/// What the engine may take to write what it accepted, once nobody asks for anything any more.
const ENGINE_ENDS: Duration = Duration::from_secs(2);
/// Files other than connections: the store, the log, and some to spare.
const FILES_KEPT: usize = 128;

#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    settings: Settings,
}

/// Why the server did not start or did not stop well, and how the process ends then.
struct Failure(u8, anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(1, error.into())
    }
}

impl Serve {
    pub fn run(self) -> ExitCode {
        match self.start() {
            Ok(()) => ExitCode::SUCCESS,
            Err(Failure(code, error)) => {
                crate::output::note(format!("windlass: {error:#}"));
                ExitCode::from(code)
            }
        }
    }

    fn start(self) -> Result<(), Failure> {
        let refused = |error: windlass_server::config::ConfigError| Failure(BAD_CONFIGURATION, error.into());
        let config = Config::new(&self.settings.effective().map_err(refused)?).map_err(refused)?;
        logs::init(&config.log, config.log_format);
        for variable in Settings::without_effect() {
            tracing::info!(variable, "this variable is known and has no effect here");
        }
        parent::watch();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads(&config))
            .max_blocking_threads(BLOCKING_THREADS)
            .enable_all()
            .build()?;
        let ended = runtime.block_on(serve(config));
        // Lets go of the store, which then notes that it was closed cleanly.
        runtime.shutdown_timeout(Duration::from_secs(1));
        ended
    }
}

/// For reads of the embedded store, files and plans, all of which are short. Each that was ever needed keeps memory of its own,
/// and the runtime makes a new one whenever none is free at the moment.
const BLOCKING_THREADS: usize = 12;

/// The embedded store's writer has a thread of its own with as much to do as all that answer requests together, so it is left a
/// core: on two, a third thread makes a job a sixth dearer. With PostgreSQL that work is done elsewhere.
fn threads(config: &Config) -> usize {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    if config.database.is_some() { cores } else { cores.saturating_sub(1).max(1) }
}

/// How many bytes a namespace may store in a database, whose disk we do not see.
const QUOTA: u64 = 64 << 30;

async fn serve(config: Config) -> Result<(), Failure> {
    // Before anything is opened, so that a signal during the start is not lost.
    let signals = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    if config.database.is_none() {
        sound::close_to_others(&config.data).map_err(|error| Failure(NO_STORE, error))?;
    }
    let (store, mut settings) = open(&config).await.map_err(|error| Failure(NO_STORE, error))?;
    if config.database.is_none() {
        sound::check(&*store, &config.data).await.map_err(|error| Failure(NO_STORE, error))?;
    }
    let place = StoreAddress {
        data: Some(config.data.clone()),
        database: config.database.as_ref().map(|url| url.reveal().into()),
    };
    unfinished::check(&*store, &place).await.map_err(|error| Failure(NO_STORE, error))?;
    settings.limits = config.limits;
    settings.events_kept = config.events_kept;
    settings.quotas = quotas(&config);
    let engine = Engine::start(store, settings).await.map_err(|error| Failure(NO_STORE, error.into()))?;
    let alone = config.database.is_none();
    let admin = bootstrap::admin(&engine, config.admin_token.as_ref(), &config.data, alone).await?;
    // Who needs no token depends on where the server listens.
    let socket = TcpListener::bind(&config.listen).await;
    let socket = socket.with_context(|| format!("cannot listen on {}", config.listen))?;
    let app = App::new(engine.clone(), options(&config, &socket)?);
    if let (Some(_), Some(files)) = (&config.database, &app.options.artifacts) {
        let one = artifact_place::check(&engine, files.store(), &artifacts(&config), config.artifacts_adopt).await;
        one.map_err(|why| Failure(BAD_CONFIGURATION, anyhow::anyhow!("artifacts: {why}")))?;
    }
    if let Some(watch) = bootstrap::Watch::new(&admin, alone) {
        tokio::spawn(watch.run(app.clone()));
    }
    let duties = duties::start(&app, config.definitions.as_deref(), config.workflows.as_deref()).await;
    let tls = match &config.tls {
        Some((certificate, key)) => {
            let acceptor = listener::acceptor(certificate, key);
            Some(acceptor.map_err(|error| Failure(BAD_CONFIGURATION, error.into()))?)
        }
        None => None,
    };
    announce(&config, &socket, &admin, &app)?;
    let limits =
        listener::Limits { connections: connections_max(config.connections.connections), ..config.connections };
    let drain = app.drain.clone();
    let serving = listener::serve(socket, tls, app.clone(), Service::new(app.clone()), limits);
    let mut serving = std::pin::pin!(serving);
    let failed = tokio::select! {
        () = serving.as_mut() => None,
        () = asked_to_stop(signals) => None,
        error = engine.stopped() => Some(error),
    };
    drain.cancel();
    if let Some(error) = failed {
        // Nothing more can be acknowledged, so there is nothing to wait for.
        return Err(Failure(
            STORE_FAILED,
            anyhow::Error::new(error).context("the store failed; nothing more is accepted"),
        ));
    }
    serving.await;
    duties.finish().await;
    app.options.traces.flush().await;
    if timeout(ENGINE_ENDS, engine.shut_down()).await.is_err() {
        tracing::warn!("the store did not finish in time; it recovers at the next start");
    }
    tracing::info!("stopped");
    Ok(())
}

async fn open(config: &Config) -> anyhow::Result<(Arc<dyn Store>, EngineSettings)> {
    match &config.database {
        Some(url) => {
            let mut options = postgres::Options::new(url.reveal());
            options.allow_unsafe = config.unsafe_no_fsync;
            Ok((Arc::new(Postgres::connect(options).await?), EngineSettings::shared()))
        }
        None => {
            let sync = if config.unsafe_no_fsync { embedded::Sync::Off } else { embedded::Sync::Full };
            let reserve = Some(config.disk_reserve);
            let options = embedded::Options { sync, reserve, ..embedded::Options::default() };
            let store = Embedded::open(&config.data, options)?;
            Ok((Arc::new(store), EngineSettings::default()))
        }
    }
}

/// With a store of our own, one namespace leaves others half of the disk.
fn quotas(config: &Config) -> Quotas {
    let half_of_disk = || embedded::disk_bytes(&config.data).map(|bytes| bytes / 2);
    let auto = || if config.database.is_some() { None } else { half_of_disk() };
    let each = config.quotas.each.unwrap_or_else(|| auto().unwrap_or(QUOTA));
    Quotas { each, of: Arc::new(config.quotas.of.clone()) }
}

/// Where artifacts are kept.
fn artifacts(config: &Config) -> String {
    let folder = || config.data.join("artifacts").to_string_lossy().into_owned();
    config.artifacts.clone().unwrap_or_else(folder)
}

fn options(config: &Config, socket: &TcpListener) -> Result<Options, Failure> {
    let traces = match &config.otel_endpoint {
        Some(endpoint) => {
            Traces::to(endpoint).map_err(|why| Failure(BAD_CONFIGURATION, anyhow::anyhow!("otel_endpoint: {why}")))?
        }
        None => Traces::default(),
    };
    let artifacts = native::artifacts::open(&artifacts(config));
    let artifacts = artifacts.map_err(|why| Failure(BAD_CONFIGURATION, anyhow::anyhow!("artifacts: {why}")))?;
    let artifacts = if config.unsafe_no_fsync { artifacts.unsynced() } else { artifacts };
    let dialects = dialects::chosen(&config.dialects);
    let open = dialects.iter().any(|dialect| dialect.surface.rules.nameless != Nameless::Nothing);
    Ok(Options {
        hosts: config.hosts.clone(),
        origins: config.origins.clone(),
        proxies: config.proxies.clone(),
        store: if config.database.is_some() { "postgres" } else { "embedded" },
        without_token: if open { config.without_token(socket.local_addr()?.ip()) } else { WithoutToken::Never },
        body_max: config.body_max,
        bodies: config.bodies,
        dialects,
        values: config.values.clone(),
        traces,
        artifacts: Some(artifacts),
        artifact_bytes_max: config.artifact_max,
        files: config.files,
        with_files: dialects::namespaces(),
    })
}

/// One line on standard output when requests are taken; programs may wait for it.
fn announce(config: &Config, socket: &TcpListener, admin: &Admin, app: &App) -> anyhow::Result<()> {
    let address = socket.local_addr()?;
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    if !address.ip().is_loopback() && config.tls.is_none() {
        tracing::warn!(%address, "listening on a public address without TLS: tokens are sent unencrypted");
    }
    let (open, whose) = (app.options.without_token, app.dialects.without_token().join("'s and "));
    match open {
        WithoutToken::Never => tracing::info!("every call needs a token"),
        WithoutToken::Loopback => tracing::info!(
            "programs on this machine may use {whose}'s paths without a token; set without_token = never behind a proxy"
        ),
        WithoutToken::Anyone => {
            tracing::warn!("without_token = anyone: everybody who can reach the port can run jobs on {whose}'s paths")
        }
    }
    let store = match &config.database {
        Some(_) => "PostgreSQL".to_owned(),
        None => config.data.display().to_string(),
    };
    let token = match admin {
        Admin::Variable => "as set".to_owned(),
        Admin::File { path, .. } => format!("in {}", path.display()),
        Admin::Nowhere => "none".to_owned(),
    };
    let version = env!("CARGO_PKG_VERSION");
    let open = open.name();
    println!(
        "windlass {version} is ready on {scheme}://{address} (store: {store}; admin token: {token}; without a token: {open})"
    );
    Ok(())
}

/// As many connections as files allow: running out of files would hit the store as well.
fn connections_max(wanted: usize) -> usize {
    let limits = fs::read_to_string(Path::new("/proc/self/limits")).unwrap_or_default();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let files = files.and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok());
    match files.map(|files| files.saturating_sub(FILES_KEPT).max(16)) {
        Some(room) if room < wanted => {
            tracing::warn!(
                wanted,
                room,
                "fewer connections than configured: raise the limit of open files (ulimit -n)"
            );
            room
        }
        _ => wanted,
    }
}

/// Returns at the first signal; a second one ends the process at once.
async fn asked_to_stop((mut terminate, mut interrupt): (Signal, Signal)) {
    any(&mut terminate, &mut interrupt).await;
    tracing::info!("stopping; a second signal stops at once");
    tokio::spawn(async move {
        any(&mut terminate, &mut interrupt).await;
        std::process::exit(IMPATIENT);
    });
}

async fn any(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
