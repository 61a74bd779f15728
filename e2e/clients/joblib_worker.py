"""Serves an extension, or providers, with ZnDraw's own JobManager, and says what happens: one JSON object a line.

Ends on SIGTERM or SIGINT as its users' programs do, and disconnects when its standard input ends.
"""

import gc

gc.disable()  # It would look for garbage again and again in what is imported, which stays: a tenth of the start.

import argparse
import json
import logging
import signal
import sys
import threading
import time
from typing import Any, ClassVar

import httpx
import socketio
from zndraw_joblib.client import Category, ClaimedTask, Extension, JobManager
from zndraw_joblib.provider import Provider
from zndraw_socketio import wrap

gc.enable()


class Rotate(Extension):
    category: ClassVar[Category] = Category.MODIFIER
    angle: float = 0.0
    seconds: float = 0.0
    fails: str = ""

    def run(self, vis: Any, **kwargs: Any) -> None:
        time.sleep(self.seconds)
        if self.fails:
            raise RuntimeError(self.fails)


class Listing(Provider):
    category: ClassVar[str] = "filesystem"
    path: str = "/"

    def read(self, handler: Any) -> Any:
        return [self.path, *handler]


class Bytes(Provider):
    category: ClassVar[str] = "frames"
    content_type: ClassVar[str] = "application/octet-stream"
    size: int = 0

    def read(self, handler: Any) -> bytes:
        return bytes(at % 256 for at in range(self.size))


class Api:
    """What the client wants of an application."""

    def __init__(self, url: str, token: str) -> None:
        self.base_url, self.token = url, token
        self.http = httpx.Client(timeout=10)

    def get_headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def raise_for_status(self, response: httpx.Response) -> None:
        kinds = {404: KeyError, 401: PermissionError, 403: PermissionError, 409: ValueError, 422: ValueError}
        if response.status_code >= 400:
            raise kinds.get(response.status_code, RuntimeError)(f"{response.status_code} {response.text}")


ONE_AT_A_TIME = threading.RLock()


def say(event: str, **more: Any) -> None:
    # `print` writes a line and its end in two steps, and another thread's line may come between them.
    with ONE_AT_A_TIME:
        print(json.dumps({"event": event, "at": time.time(), **more}), flush=True)


class Aloud(logging.Handler):
    """Says what the client only logs."""

    def emit(self, record: logging.LogRecord) -> None:
        say("trouble", text=record.getMessage())


def execute(task: ClaimedTask) -> None:
    say("began", task=task.task_id, angle=task.extension.angle)
    task.extension.run(None)
    say("ran", task=task.task_id)


def serve_by_hand(manager: JobManager, polling: float) -> None:
    """Call by call, as applications with loops of their own do."""
    for task in manager.listen(polling_interval=polling):
        manager.start(task)
        try:
            execute(task)
        except Exception as error:
            manager.fail(task, str(error))
        else:
            manager.complete(task)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--mode", choices=["auto", "manual", "provider"], default="auto")
    parser.add_argument("--transports", default="polling,websocket", help="empty: no Socket.IO")
    parser.add_argument("--room", default="@global")
    parser.add_argument("--heartbeat", type=float, default=30.0)
    parser.add_argument("--polling", type=float, default=2.0)
    asked = parser.parse_args()
    logging.getLogger("zndraw_joblib").addHandler(Aloud(logging.WARNING))

    sockets = None
    if asked.transports:
        client = socketio.Client(reconnection_delay=0.2, reconnection_delay_max=0.5)
        sockets = wrap(client)
    manager = JobManager(
        Api(asked.url, asked.token),
        sockets,
        execute=execute if asked.mode == "auto" else None,
        heartbeat_interval=asked.heartbeat,
        polling_interval=asked.polling,
    )
    if sockets is not None:
        joins = client.handlers["/"]["connect"]  # The manager's own, which stays.

        def back() -> None:
            # Answered after all that was said before it, so that the worker is in its rooms by now.
            client.call("room_join", {"room_id": "anywhere", "client_type": "pyclient"})
            say("socket_back")

        def connected() -> None:
            joins()
            threading.Thread(target=back, daemon=True).start()

        client.on("connect", connected)
        client.on("disconnect", lambda *_: say("socket_lost"))
        client.connect(asked.url, auth={"token": asked.token}, transports=asked.transports.split(","))
        say("socket", transport=client.transport())
    if asked.mode == "provider":
        manager.register_provider(Listing, name="local", handler=["a", "b"], room=asked.room)
        manager.register_provider(Bytes, name="box", handler=None, room=asked.room)
    else:
        manager.register(Rotate, room=asked.room)
    if sockets is not None:
        # Joining a room is not answered. This is, after all that was said before it: whoever is ready hears of new tasks.
        client.call("room_join", {"room_id": "anywhere", "client_type": "pyclient"})
    # As `wait` does a moment later: until then a signal would end this program like any other.
    signal.signal(signal.SIGTERM, lambda *_: manager.disconnect())
    say("ready", worker=str(manager.worker_id))

    def follow_input() -> None:
        sys.stdin.read()
        manager.disconnect()

    threading.Thread(target=follow_input, daemon=True).start()
    if asked.mode == "manual":
        threading.Thread(target=serve_by_hand, args=(manager, asked.polling), daemon=True).start()
    manager.wait()
    manager.disconnect()  # Waits for the one under way.
    say("ended")
    if sockets is not None:
        client.disconnect()


main()
