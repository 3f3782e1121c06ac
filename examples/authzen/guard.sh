#!/bin/sh
# A policy enforcement point in shell: it asks by the AuthZEN Authorization API
# whether the agent may act, and runs the command only if it may.
#
#   APS_URL=http://localhost:8080 APS_TOKEN=apl_… APS_AGENT=agt_… \
#     ./guard.sh acme.payments.refund '{"amount_usd":5}' order 4711 echo refunded
#
# It exits with the status of the command, with 3 if the act is denied, and with 4
# if there was no decision. It needs sh and curl, and a resource without quotes.
set -eu

tool=$1 arguments=$2 type=$3 name=$4
shift 4

answer=$(curl --silent --show-error --fail-with-body --max-time 10 "$APS_URL/access/v1/evaluation" \
	-H "Authorization: Bearer $APS_TOKEN" -H 'Content-Type: application/json' -H "X-Request-ID: guard-$$" \
	--data '{"subject":{"type":"agent","id":"'"$APS_AGENT"'"},"action":{"name":"'"$tool"'","properties":'"$arguments"'},
		"resource":{"type":"'"$type"'","id":"'"$name"'"}}') || { echo "no decision: $answer" >&2; exit 4; }

# Only this answer is access.
if [ "$answer" = '{"decision":true}' ]; then
	exec "$@"
fi
echo "denied: $answer" >&2
exit 3
