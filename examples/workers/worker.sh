#!/usr/bin/env bash
# A Windlass worker in bash, with curl and jq: runs the given command for every job, the payload on its standard input,
# what it prints (JSON) as the result.   WINDLASS_TOKEN=$(cat worker.token) WINDLASS_TAGS=add ./worker.sh jq '.numbers | add'
set -u
server=${WINDLASS_SERVER:-http://127.0.0.1:3000}
name=${WINDLASS_WORKER_NAME:-bash-$$}
[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARGUMENT...]" >&2; exit 2; }
for tool in curl jq; do
    command -v $tool >/dev/null || { echo "$0: needs $tool; install it first" >&2; exit 1; }
done

# call WHAT <BODY: prints the reply, then the status. Silence and 408, 429, 5xx are asked again by curl, as Retry-After says.
# The token goes in through a file descriptor: arguments can be seen by everybody on the machine.
call() {
    curl -sS -m 90 --retry 1000 --retry-all-errors --retry-max-time 3600 -H @<(echo "Authorization: Bearer ${WINDLASS_TOKEN:-}") \
        -H 'Content-Type: application/json' --data-binary @- -w '\n%{http_code}' "$server/api/v1/leases/$1"
}

# keep LEASE SECONDS PID: renews until it is killed; ends the work when the job is cancelled or lost.
keep() {
    while sleep "$2"; do
        reply=$(jq -n --arg lease "$1" '{$lease}' | call renew)
        [ "$(tail -1 <<<"$reply")" = 200 ] && [ "$(head -1 <<<"$reply" | jq .cancelled)" = false ] || kill -- "-$3" 2>/dev/null
    done
}

set -m # Each job in the background leads a process group, so that all of it can be ended.
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
trap 'for job in $(jobs -p); do kill -- "-$job" 2>/dev/null; done; exit 143' TERM INT
while true; do
    # curl repeats the same body, and with it the same request_id: jobs whose answer was lost are handed out again, to us.
    # In the background, because only a shell that waits for such a one hears signals at once.
    jq -n --arg worker "$name" --arg id "$(cat /proc/sys/kernel/random/uuid)" \
        --arg tags "${WINDLASS_TAGS:-}" '{$worker, tags: ($tags | split(",")), wait_ms: 30000, lease_ms: 6000, request_id: $id}' | call claim >"$answer" &
    wait $!
    reply=$(<"$answer")
    [ "$(tail -1 <<<"$reply")" = 200 ] || { echo "cannot claim: $reply" >&2; exit 1; }
    leased=$(head -1 <<<"$reply" | jq -c '.leases[0] // empty')
    [ -n "$leased" ] || continue
    lease=$(jq -r .lease <<<"$leased")
    out=$(mktemp)
    jq -c .payload <<<"$leased" | "$@" >"$out" 2>"$out.err" &
    last=$! pid=$(jobs -p %%)
    keep "$lease" "$(jq '(.lease_ms // 30000) / 3000' <<<"$leased")" "$pid" &
    keeper=$!
    wait "$last" 2>/dev/null && what=complete || what=fail
    if [ $what = complete ] && ! jq -e . >/dev/null 2>&1 <"$out"; then what=fail; echo "no JSON" >>"$out.err"; fi
    if [ $what = complete ]; then
        jq -c --arg lease "$lease" '{$lease, result: .}' <"$out"
    else
        tail -c 1000 "$out.err" | jq -Rsc --arg lease "$lease" '{$lease, message: .}'
    fi | call $what | tail -1 | sed "s/^/$(jq -r .job <<<"$leased") $what /"
    echo
    kill -- "-$keeper" 2>/dev/null
    wait 2>/dev/null
    rm -f "$out" "$out.err"
done
