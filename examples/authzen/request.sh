#!/bin/sh
# A policy enforcement point in shell whose agent asks people: a denial that can be
# requested is requested by the AuthZEN Access Request and Approval Profile, and the
# command runs if they approve, once.
#
#   APS_URL=http://localhost:8080 APS_TOKEN=apl_… APS_AGENT=agt_… APS_KEY_FILE=agent.key \
#     ./request.sh acme.payments.refund '{"amount_usd":84.5}' order 4711 echo refunded
#
# It exits with the status of the command, with 3 if the act is denied, and with 4
# if there was no decision. It needs sh, curl, openssl and base64, and a resource
# without quotes.
set -eu
umask 077

tool=$1 arguments=$2 type=$3 name=$4
shift 4
act='"subject":{"type":"agent","id":"'"$APS_AGENT"'"},"action":{"name":"'"$tool"'","properties":'"$arguments"'},
	"resource":{"type":"'"$type"'","id":"'"$name"'"}'

call() { # METHOD PATH [BODY]
	curl --silent --show-error --fail-with-body --max-time 60 --request "$1" "$APS_URL/access/v1/$2" \
		-H "Authorization: Bearer $APS_TOKEN" -H 'Content-Type: application/json' --data "${3:-}" || exit 4
}
member() { printf '%s' "$2" | sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; } # NAME ANSWER
denied() { echo "denied: $1" >&2; exit 3; }

answer=$(call POST evaluation "{$act}")
if [ "$answer" = '{"decision":true}' ]; then
	exec "$@"
fi
token=$(member binding_token "$answer")
[ -n "$token" ] || denied "$answer"

task=$(call POST requests "{$act,\"denial\":{\"binding_token\":\"$token\",\"expires_at\":\"$(member expires_at "$answer")\"}}")
path=requests/$(printf '%s' "$task" | sed 's/^{"task":{"id":"\([^"]*\)".*/\1/')
while [ "$(member status "$task")" = pending ]; do
	task=$(call GET "$path?wait=30")
done
approval=$(printf '%s' "$task" | sed -n 's/.*"approval":\({[^}]*}\).*/\1/p') # to be sent back as it is
[ -n "$approval" ] || denied "$task"

# The agent proves that it uses the approval. This is the part of the agent, which has the key.
digest=$(member action_digest "$(call POST evaluation "{$act,\"context\":{\"approval\":$approval}}")")
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
{ printf '\060\056\002\001\000\060\005\006\003\053\145\160\004\042\004\040'; base64 -d <"$APS_KEY_FILE"; } >"$scratch/key.der"
printf 'APS1-CONSUME\n%s\n%s\n' "${path#requests/}" "$digest" >"$scratch/message"
proof=$(openssl pkeyutl -sign -inkey "$scratch/key.der" -keyform DER -rawin -in "$scratch/message" | base64 | tr -d '\n')

answer=$(call POST evaluation "{$act,\"context\":{\"approval\":$approval,\"approval_proof_b64\":\"$proof\"}}")
case $answer in
'{"decision":true'*) "$@" ;;
*) denied "$answer" ;;
esac
