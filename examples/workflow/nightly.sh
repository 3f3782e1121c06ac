#!/bin/sh
# A nightly job that reports itself as a run: it holds no agent key, only an ingest
# key with the scope workflows. It needs sh, curl and sed.
#
#   APS_URL=http://localhost:8080 APS_TOKEN=apl_… ./nightly.sh [NAME OF THIS RUN]
#
# Run it again with the same name after whatever went wrong: what was recorded is
# answered from the ledger, and nothing is recorded twice.
set -eu

name=${1:-nightly-$(date -u +%Y-%m-%d)}
runs=$APS_URL/v1/ingest/workflows/runs

# post URL BODY prints the answer. Every call may be repeated, so curl may.
post() {
	curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused --max-time 30 \
		-H "Authorization: Bearer $APS_TOKEN" -H 'Content-Type: application/json' --data "$2" "$1"
}

# member NAME prints a member of the answer on standard input, if it is a text.
member() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }

# step KEY TOOL PAYLOAD COMMAND… asks the policy, does what is allowed and reports
# what became of it.
step() {
	key=$1 tool=$2 payload=$3
	shift 3
	asked=$(post "$run/steps" '{"step_key":"'"$key"'","tool_name":"'"$tool"'","payload":'"$payload"',"status":"started"}')
	decision=$(echo "$asked" | member decision)
	if [ "$decision" != allow ]; then
		result=skipped
		echo "$key: $decision: $(echo "$asked" | member reason)"
	elif "$@"; then
		result=succeeded
	else
		result=failed failed=yes
	fi
	post "$run/steps" '{"step_key":"'"$key"'.result","kind":"result","status":"'"$result"'"}' >/dev/null
	echo "$key: $result"
}

started=$(post "$runs" '{"workflow":{"name":"nightly","version":"1","tool":"sh"},"external_run_id":"'"$name"'","planned_steps":4}')
run=$runs/$(echo "$started" | member run_id)
failed=
echo "run: ${run##*/}"

step report acme.reports.write '{"rows":120}' echo "  (writes the report)"
step purge acme.customers.purge '{"older_than_days":30}' echo "  (removes customers)"

post "$run/complete" '{"status":"'"$([ "$failed" ] && echo failed || echo succeeded)"'"}'
echo
