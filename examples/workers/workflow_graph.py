#!/usr/bin/env python3
"""A whole worker for workflow-graph's protocol with nothing but the standard library. SERVER_URL, WORKER_LABELS=a,b."""
import json, os, signal, subprocess, tempfile, threading, time, urllib.error, urllib.request, uuid

SERVER = os.environ.get("SERVER_URL", "http://localhost:3000").rstrip("/")
LABELS = [label for label in os.environ.get("WORKER_LABELS", "").split(",") if label]
WORKER = f"python-{uuid.uuid4().hex[:8]}"

def call(method, path, body=None):
    request = urllib.request.Request(SERVER + path, method=method, headers={"Content-Type": "application/json"},
                                     data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, None
    except (OSError, ValueError):
        return 503, None

def until_heard(path, body):
    """A result that nobody heard is said again; 409 means that nobody waits for it any more."""
    while call("POST", path, body)[0] >= 500:
        time.sleep(1)

def watch(job, lease, process, ended):
    """Renews every ten seconds, asks every two whether to go on, and ends the command if not."""
    for tick in range(1, 1 << 30):
        if ended.wait(2):
            return
        lost = tick % 5 == 0 and call("POST", f"{lease}/heartbeat")[0] == 409
        if lost or call("GET", f"/api/jobs/{job['workflow_id']}/{job['job_id']}/cancelled")[1] is True:
            ended.set()
            return process.poll() is None and os.killpg(process.pid, signal.SIGKILL)

def run(job, lease):
    upstream = json.dumps(job["upstream_outputs"])
    with tempfile.NamedTemporaryFile("r") as outputs:
        env = {**os.environ, "UPSTREAM_OUTPUTS": upstream, "OUTPUTS_FILE": outputs.name}
        process = subprocess.Popen(["sh", "-c", job["command"]], env=env, start_new_session=True, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        ended, tail = threading.Event(), ""
        watcher = threading.Thread(target=watch, args=(job, lease, process, ended), daemon=True)
        watcher.start()
        for sequence, line in enumerate(process.stdout):
            tail = (tail + line)[-4096:]
            call("POST", f"{lease}/logs", {"chunks": [{"workflow_id": job["workflow_id"], "job_id": job["job_id"], "stream": "stdout",
                 "sequence": sequence, "data": line, "timestamp_ms": int(time.time() * 1000)}]})
        code, stopped = process.wait(), ended.is_set()
        if code == 0:
            handed_on = dict(line.rstrip("\n").split("=", 1) for line in outputs if "=" in line)
            until_heard(f"{lease}/complete", {"outputs": handed_on})
        else:
            error = "cancelled" if stopped else f"exit code {code}: {tail}"
            until_heard(f"{lease}/fail", {"error": error, "retryable": not stopped})
        ended.set()
        watcher.join()

call("POST", "/api/workers/register", {"worker_id": WORKER, "labels": LABELS})
while True:
    begun = time.monotonic()
    _, claimed = call("POST", "/api/jobs/claim", {"worker_id": WORKER, "labels": LABELS, "lease_ttl_secs": 30})
    if claimed:
        run(claimed["job"], f"/api/jobs/{claimed['lease']['lease_id']}")
    else:
        time.sleep(max(0, 2 - (time.monotonic() - begun)))
