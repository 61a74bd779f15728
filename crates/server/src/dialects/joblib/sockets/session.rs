//! One client's socket: who it is, which rooms it is in, and which workers live by it.

use super::{
    super::{Joblib, namespace, users, who::Who},
    Listening, listen,
    said::{Said, Wish, watched},
    ties::Tie,
    transport::Opened,
};
use crate::{auth::Caller, problem::Problem};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use socketioxide::{
    extract::{AckSender, Event, SocketRef, TryData},
    socket::DisconnectReason,
};
use std::{
    collections::HashMap,
    future::ready,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_core::{
    Millis, WorkerId,
    commands::{doubt::Doubt, tell::Tell},
};

/// Rooms of one session. A worker that serves a thousand extensions is in a room for each.
const ROOMS_MAX: usize = 2_048;
/// Workers that live by one socket: usually one.
const WORKERS_MAX: usize = 64;
/// Told to all servers: another one may have a socket of that worker.
pub const LOST: &str = "socket_lost";

#[derive(Deserialize)]
pub struct Auth {
    token: Option<String>,
}

pub struct Session {
    joblib: Joblib,
    user: Arc<str>,
    opened: Weak<Opened>,
    inside: Mutex<Inside>,
    _listening: Listening,
    _gone: DropGuard,
}

#[derive(Default)]
struct Inside {
    rooms: HashMap<String, Why>,
    /// In how many rooms each worker is.
    workers: HashMap<Tie, usize>,
    is_over: bool,
}

/// Why a socket is in a room.
enum Why {
    /// To see what changes.
    Watches,
    /// For a worker that lives by it.
    Serves(Tie),
    /// For a worker that does not, because there are too many, or because it cannot be one.
    Listens,
}

/// Before a client is let in. What it is told is the text of the refusal.
pub async fn admit(socket: SocketRef, TryData(auth): TryData<Auth>) -> Result<(), &'static str> {
    let opened = socket.req_parts().extensions.get::<Arc<Opened>>().ok_or("No session")?;
    let token = auth.ok().and_then(|auth| auth.token).filter(|token| !token.is_empty());
    let joblib = opened.joblib.clone();
    let token = token.ok_or("No authentication token")?;
    let who = who(&joblib, &token).await.map_err(|problem| why(&problem))?;
    opened.is_known();
    let listening = listen(&joblib).await;
    let user: Arc<str> = who.id.to_string().into();
    let gone = end_with_access(&joblib, &who.caller, &socket);
    let session = Session {
        joblib,
        user,
        opened: Arc::downgrade(opened),
        inside: Mutex::default(),
        _listening: listening,
        _gone: gone,
    };
    hear(&socket, Arc::new(session));
    Ok(())
}

/// Ends a socket when the token or the user it was opened with is no longer what it was. Holds the socket's id alone: a socket holds
/// its session.
fn end_with_access(joblib: &Joblib, caller: &Caller, socket: &SocketRef) -> DropGuard {
    let permit = joblib.streams.watch(joblib, caller);
    let (id, gone, joblib) = (socket.id, CancellationToken::new(), joblib.clone());
    let over = gone.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = permit.ended.cancelled() => {}
            () = over.cancelled() => return,
        }
        if let Some(socket) = joblib.own.sockets.io.get_socket(id) {
            drop(socket.disconnect());
        }
    });
    gone.drop_guard()
}

async fn who(joblib: &Joblib, token: &str) -> Result<Who, Problem> {
    let caller = users::token::caller(joblib, token).await?;
    caller.check_namespace(&namespace())?;
    Ok(Who::of(caller))
}

/// Trouble of ours must not read like a token that is not valid.
fn why(problem: &Problem) -> &'static str {
    match problem.0.status {
        401 | 403 => "Invalid token",
        _ => "The server cannot tell now who you are; try again",
    }
}

/// Once it is let in there is nothing left to do.
pub async fn begin() {}

/// Everything a client says is done at once, in the order in which it was said. Prepared before the client knows that it is let in,
/// so that its first words are not missed.
fn hear(socket: &SocketRef, session: Arc<Session>) {
    let hears = session.clone();
    socket.on_fallback(move |socket: SocketRef, Event(event): Event, TryData(said): TryData<Said>, ack: AckSender| {
        if let Some(wish) = said.ok().and_then(|said| said.wish(&event)) {
            hears.grant(&socket, wish, ack);
        }
        ready(())
    });
    socket.on_disconnect(move |_: DisconnectReason| {
        session.end();
        ready(())
    });
}

impl Session {
    fn grant(&self, socket: &SocketRef, wish: Wish, ack: AckSender) {
        let answer = match wish {
            Wish::Enter { room, worker } => {
                // Nobody waits for an answer. One room too many is heard of by asking.
                self.enter(socket, room, Some(worker.unwrap_or_default()));
                return;
            }
            Wish::Leave { room } => return self.leave(socket, &room),
            Wish::Watch { id, also } => self.watch(socket, &id, also.as_deref()),
            Wish::Unwatch { id } => {
                self.leave(socket, &watched(&id));
                json!({ "room_id": id })
            }
        };
        // A client that is gone, or reads nothing, is not waiting for it.
        drop(ack.send(&answer));
    }

    fn watch(&self, socket: &SocketRef, id: &str, also: Option<&str>) -> Value {
        let entered = [Some(id), also].into_iter().flatten().all(|id| self.enter(socket, watched(id), None));
        if entered {
            json!({"room_id": id, "session_id": socket.id.to_string()})
        } else {
            json!({"error": format!("A connection may be in at most {ROOMS_MAX} rooms")})
        }
    }

    /// Whether there was room for it.
    fn enter(&self, socket: &SocketRef, room: String, worker: Option<String>) -> bool {
        let mut inside = self.inside.lock();
        if inside.is_over || inside.rooms.len() >= ROOMS_MAX && !inside.rooms.contains_key(&room) {
            return false;
        }
        socket.join(room.clone());
        // First what is new: a worker that enters a room again does not leave in between.
        let why = match worker {
            None => {
                self.watchers().fetch_add(1, Relaxed);
                Why::Watches
            }
            Some(worker) => self.tie(&mut inside, &worker).map_or(Why::Listens, Why::Serves),
        };
        let before = inside.rooms.insert(room, why);
        self.forget(&mut inside, before);
        true
    }

    fn watchers(&self) -> &AtomicUsize {
        &self.joblib.own.sockets.audience.watchers
    }

    fn tie(&self, inside: &mut Inside, worker: &str) -> Option<Tie> {
        let tie = Tie { user: self.user.clone(), worker: WorkerId::new(worker).ok()? };
        if inside.workers.len() >= WORKERS_MAX && !inside.workers.contains_key(&tie) {
            return None;
        }
        let rooms = inside.workers.entry(tie.clone()).or_default();
        *rooms += 1;
        // Also where another server doubts it: it came back here.
        if *rooms == 1 && self.joblib.own.sockets.ties.add(&tie) {
            tokio::spawn(lift(self.joblib.clone(), tie.clone()));
        }
        Some(tie)
    }

    fn leave(&self, socket: &SocketRef, room: &str) {
        let mut inside = self.inside.lock();
        socket.leave(room.to_owned());
        let before = inside.rooms.remove(room);
        self.forget(&mut inside, before);
    }

    /// A worker that leaves its last room says so, and is not doubted for it.
    fn forget(&self, inside: &mut Inside, why: Option<Why>) {
        let tie = match why {
            None | Some(Why::Listens) => return,
            Some(Why::Watches) => {
                self.watchers().fetch_sub(1, Relaxed);
                return;
            }
            Some(Why::Serves(tie)) => tie,
        };
        if let Some(rooms) = inside.workers.get_mut(&tie) {
            *rooms -= 1;
            if *rooms == 0 {
                inside.workers.remove(&tie);
                self.joblib.own.sockets.ties.remove(&tie);
                self.opened.upgrade().inspect(|opened| opened.worker_left());
            }
        }
    }

    /// The socket is gone. Workers whose last one it was are doubted, unless it is us who stop.
    fn end(&self) {
        let sockets = &self.joblib.own.sockets;
        let mut inside = self.inside.lock();
        inside.is_over = true;
        let watched = inside.rooms.drain().filter(|(_, why)| matches!(why, Why::Watches)).count();
        self.watchers().fetch_sub(watched, Relaxed);
        let ours = self.joblib.drain.is_cancelled();
        for (tie, _) in std::mem::take(&mut inside.workers) {
            if sockets.ties.remove(&tie) && !ours {
                tokio::spawn(doubt(self.joblib.clone(), tie));
            }
        }
    }
}

async fn doubt(joblib: Joblib, tie: Tie) {
    say_of(&joblib, &tie, Some(joblib.own.settings.doubt)).await;
    let data = json!({"user": &*tie.user, "worker": tie.worker.as_str()}).to_string();
    let lost = Tell { namespace: namespace(), topic: LOST.into(), data: data.into() };
    if let Err(error) = joblib.engine.run(lost).await {
        tracing::debug!(%error, "other servers do not hear that a socket was lost");
    }
}

/// Its worker is here after all.
pub async fn lift(joblib: Joblib, tie: Tie) {
    say_of(&joblib, &tie, None).await;
}

/// Of a worker that is gone, or somebody else's, nothing can be said, and nothing has to be.
async fn say_of(joblib: &Joblib, tie: &Tie, silence: Option<Millis>) {
    let principal = Some(tie.user.clone());
    let doubt = Doubt { namespace: namespace(), worker: tie.worker.clone(), silence, principal };
    if let Err(error) = joblib.engine.run(doubt).await {
        tracing::debug!(%error, worker = tie.worker.as_str(), "a worker is neither doubted nor cleared");
    }
}
