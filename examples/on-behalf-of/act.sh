#!/bin/sh
# Records a call that an agent makes in the name of a user, as the claims iss and sub
# of the user's token name the user.
#
#   SUBJECT=248289761001 ISSUER=https://login.example \
#     ./act.sh acme.payments.refund '{"amount_usd":84.5}'
#   aps acts list --on-behalf-of 248289761001
#
# It needs sh, aps and the variables of aps. Take a subject that says nothing to
# others, and without quotes and backslashes. The event only claims the subject; with
# the header Agentledger-Subject-Token, the service verifies it.
set -eu

printf '{"action_kind":"tool_call","tool_name":"%s","payload":%s,"on_behalf_of":{"issuer":"%s","subject":"%s"}}\n' \
	"$1" "$2" "$ISSUER" "$SUBJECT" | aps send
