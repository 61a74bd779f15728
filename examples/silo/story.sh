#!/usr/bin/env bash
# From a revision to a clean graph and back by undo, told as it happens: a server, a runner, and the event stream.
#   examples/silo/story.sh        needs bash, curl, jq, python3, and the programs windlass and silorunner (PATH or PROGRAMS=FOLDER)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
PATH="${PROGRAMS:+$PROGRAMS:}$PATH"
port=${PORT:-3939} work=$(mktemp -d) pids=()
api=http://127.0.0.1:$port/api
export SILO_ADMIN_TOKEN=story-admin-0123456789abcdef

end() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap end EXIT

say() { printf '\n== %s\n' "$*"; }
show() { jq -c "${1:-.}" | sed 's/^/   /'; }
check() { if [ "$1" != "$2" ]; then echo "the story went wrong: $3 is $1, not $2" >&2; cat "$work"/*.log >&2; exit 1; fi; }
call() { # METHOD PATH [JSON]
  curl -sS --fail-with-body -X "$1" -H "Authorization: Bearer $SILO_ADMIN_TOKEN" -H 'Content-Type: application/json' \
    ${3:+-d "$3"} "$api$2"
}
upload() { curl -sS --fail-with-body -T "$1" -H "Authorization: Bearer $SILO_ADMIN_TOKEN" "$api$2?sha256=$(sha256sum "$1" | cut -d' ' -f1)"; }
finished() { # JOB: waits for its end
  local job; for _ in $(seq 600); do
    job=$(call GET "/jobs/$1"); case $(jq -r .status <<<"$job") in completed|failed|cancelled) echo "$job"; return;; esac
    sleep 0.1
  done; echo "job $1 does not end" >&2; exit 1
}
dirty() { call GET /items/ASM-001/dag/dirty | jq -c '[.nodes[].node_key]'; }

say "A server with the two definitions of Silo's documentation"
windlass serve --listen "127.0.0.1:$port" --data "$work/data" --silo-jobs "$here" >"$work/server.log" 2>&1 & pids+=($!)
for _ in $(seq 300); do curl -sf -o /dev/null "http://127.0.0.1:$port/ready" && break; sleep 0.1; done
call GET /job-definitions | show '.[] | {name, trigger: .trigger.type, scope: .scope.type, tags: .runner.tags}'
curl -sN -H "Authorization: Bearer $SILO_ADMIN_TOKEN" "$api/events" >"$work/events" & pids+=($!)

say "A runner, registered by an admin; its program for CAD work is the stand-in create.py"
token=$(call POST /runners '{"name":"worker-01","tags":["create","linux"]}' | jq -r .token)
cat >"$work/runner.yaml" <<YAML
server_url: http://127.0.0.1:$port
token: $token
name: worker-01
tags: [create]
poll_interval: 0.2
create_path: $here/create.py
work_dir: $work/jobs
YAML
silorunner --config "$work/runner.yaml" >"$work/runner.log" 2>&1 & pids+=($!)

say "An assembly; its design is put before the revision is made, so that the job finds it"
call POST /items '{"part_number":"ASM-001","item_type":"assembly","description":"Bracket"}' | show '{part_number, current_revision}'
upload "$here/design.json" /items/ASM-001/revisions/2/files/design.json | show '{name, size, sha256}'
made=$(call POST /items/ASM-001/revisions '{"comment":"first"}')
show '{revision_number, triggered_jobs}' <<<"$made"
job=$(jq -r '.triggered_jobs[0].id' <<<"$made")

say "The runner claims the job, reports progress and log, writes the graph, completes"
done=$(finished "$job"); show '{status, progress, runner_name, result}' <<<"$done"
check "$(jq -r .status <<<"$done")" completed "the first job"
call GET "/jobs/$job/logs" | show '.[] | "\(.level): \(.message)"'
call GET /items/ASM-001/dag | show '{revision_number, nodes: [.nodes[] | "\(.node_key) \(.validation_state)"]}'
check "$(dirty)" '[]' "what is not clean"

say "One sketch changes: it and what stands on it is dirty, and nothing else"
jq '.sketches.Sketch001.width = 50' "$here/design.json" >"$work/design.json"
"$here/create.py" --graph "$work/design.json" >"$work/graph.json"
call PUT /items/ASM-001/dag "$(cat "$work/graph.json")" | show '{changed, dirty}'
check "$(dirty)" '["Sketch001","Pad001","Fillet001"]' "what is not clean"

say "The changed design becomes a revision; the job it sets off rebuilds exactly that"
upload "$work/design.json" /items/ASM-001/revisions/3/files/design.json | show '{name, sha256}'
made=$(call POST /items/ASM-001/revisions '{"comment":"wider"}')
done=$(finished "$(jq -r '.triggered_jobs[0].id' <<<"$made")"); show '{status, result}' <<<"$done"
check "$(jq -c .result.rebuilt <<<"$done")" '["Sketch001","Pad001","Fillet001"]' "what was rebuilt"
check "$(dirty)" '[]' "what is not clean"

say "Another change, undone before anybody computed anything: clean again, with no job"
before=$(call GET '/jobs?limit=500' | jq length)
jq '.sketches.Sketch002.radius = 7' "$work/design.json" >"$work/other.json"
call PUT /items/ASM-001/dag "$("$here/create.py" --graph "$work/other.json")" | show '{changed, dirty}'
call PUT /items/ASM-001/dag "$(cat "$work/graph.json")" | show '{dirty, released}'
check "$(dirty)" '[]' "what is not clean"
check "$(call GET '/jobs?limit=500' | jq length)" "$before" "the number of jobs"

say "A part is exported by hand; what the job made can be had, whole"
call POST /items '{"part_number":"PRT-100"}' | show '{part_number, item_type}'
upload "$here/design.json" /items/PRT-100/revisions/1/files/design.json >/dev/null
job=$(call POST /jobs '{"definition_name":"part-export-step","part_number":"PRT-100"}' | jq -r .id)
done=$(finished "$job"); show '{status, result}' <<<"$done"
key=$(jq -r '.result.artifacts[0].key' <<<"$done")
call GET "/jobs/$job/artifacts/$key" >"$work/out.step"
check "$(sha256sum "$work/out.step" | cut -d' ' -f1)" "$(jq -r '.result.artifacts[0].sha256' <<<"$done")" "the digest of $key"
sed -n '1,6p' "$work/out.step" | sed 's/^/   /'

say "What the event stream told meanwhile"
sleep 0.3
sed 's/^/   /' "$work/events"
say "The end"
