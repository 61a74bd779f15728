#!/usr/bin/env python3
"""A whole Windlass worker with nothing but the standard library: adds up {"numbers": [...]}.

WINDLASS_TOKEN=$(cat worker.token) WINDLASS_TAGS=sum python3 worker.py
"""
import json, os, random, threading, time, urllib.error, urllib.request, uuid

SERVER = os.environ.get("WINDLASS_SERVER", "http://127.0.0.1:3000")
HEADERS = {"Authorization": "Bearer " + os.environ.get("WINDLASS_TOKEN", ""), "Content-Type": "application/json"}
TAGS = [tag for tag in os.environ.get("WINDLASS_TAGS", "").split(",") if tag]
NAME = os.environ.get("WINDLASS_WORKER_NAME", f"python-{os.getpid()}")


def call(what, **body):
    """Asks until somebody answers: silence and 408, 429, 5xx are asked again, later and later."""
    wait = 0.2
    while True:
        request = urllib.request.Request(f"{SERVER}/api/v1/leases/{what}", json.dumps(body).encode(), HEADERS)
        least = 0.0
        try:
            with urllib.request.urlopen(request, timeout=90) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in (408, 429):
                return error.code, json.load(error)
            least = float(error.headers.get("Retry-After", 0))
        except (OSError, ValueError):
            pass
        time.sleep(least + random.uniform(0, wait))
        wait = min(wait * 2, 10)


def handle(payload, stop):
    """The work itself. Looks at `stop` now and then, because the job may be cancelled or lost."""
    for _ in range(payload.get("seconds", 0) * 10):
        if stop.wait(0.1):
            raise RuntimeError("stopped")
    return {"sum": sum(payload["numbers"])}


def keep(lease, seconds, stop, answered):
    """Renews until the report is answered. A refusal means that the job is somebody else's."""
    while not answered.wait(seconds):
        status, reply = call("renew", lease=lease)
        if status != 200 or reply["cancelled"]:
            stop.set()


def work(leased):
    lease, stop, answered = leased["lease"], threading.Event(), threading.Event()
    every = leased.get("lease_ms", 30_000) / 3_000
    threading.Thread(target=keep, args=(lease, every, stop, answered), daemon=True).start()
    try:
        result = handle(leased["payload"], stop)
        status, reply = call("complete", lease=lease, result=result)
    except Exception as error:
        status, reply = call("fail", lease=lease, message=repr(error))
    answered.set()
    print(leased["job"], "attempt", leased["attempt"], status, reply.get("state"), flush=True)


while True:
    # The same id until it is answered: jobs whose answer was lost are handed out again, to us.
    status, claimed = call("claim", worker=NAME, tags=TAGS, wait_ms=30_000, lease_ms=6_000, request_id=str(uuid.uuid4()))
    if status != 200:
        raise SystemExit(f"cannot claim: {claimed.get('detail')}")
    for leased in claimed["leases"]:
        work(leased)
