"""The original zndraw-joblib server on SQLite, as small a host as it can have: what `windlass bench dialect joblib` compares with.

    joblib_original.py PORT FILE
"""

import sys
from contextlib import asynccontextmanager

import socketio
import uvicorn
from fastapi import FastAPI
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from sqlmodel import SQLModel
from zndraw_auth import AuthSettings, Base, UserCreate, UserRead, auth_backend, create_engine_for_url, fastapi_users
from zndraw_joblib import ProblemException, problem_exception_handler, router
from zndraw_joblib.settings import JobLibSettings
from zndraw_socketio import wrap

port, path = int(sys.argv[1]), sys.argv[2]
engine = create_engine_for_url(f"sqlite+aiosqlite:///{path}")


@event.listens_for(engine.sync_engine, "connect")
def durable(connection, _record) -> None:
    """What it acknowledges is on the disk, as with us; with a log, which is faster than its default."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA busy_timeout=30000")
    cursor.close()


@asynccontextmanager
async def create(_app):
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
        await connection.run_sync(SQLModel.metadata.create_all)
    yield


app = FastAPI(lifespan=create)
app.state.engine = engine
app.state.session_maker = async_sessionmaker(engine, class_=AsyncSession, expire_on_commit=False)
app.state.auth_settings = AuthSettings()
app.state.joblib_settings = JobLibSettings()
app.add_exception_handler(ProblemException, problem_exception_handler)
app.include_router(fastapi_users.get_auth_router(auth_backend), prefix="/auth/jwt")
app.include_router(fastapi_users.get_register_router(UserRead, UserCreate), prefix="/auth")
app.include_router(router)

sockets = socketio.AsyncServer(async_mode="asgi")
app.state.tsio = wrap(sockets)


@sockets.on("connect")
async def connect(_sid, _environ, _auth) -> None:
    """Everybody may: how tokens are checked is not what is measured."""


@sockets.on("join_job_room")
async def join(sid, said) -> None:
    await sockets.enter_room(sid, f"jobs:{said['job_name']}")



uvicorn.run(socketio.ASGIApp(sockets, app), host="127.0.0.1", port=port, log_level="warning")
