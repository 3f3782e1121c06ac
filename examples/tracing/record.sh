#!/bin/sh
# Records a call under the span of the caller, which OpenTelemetry hands to programs
# in the variable TRACEPARENT. The event is signed with it.
#
#   TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 \
#     ./record.sh acme.payments.refund '{"amount_usd":84.5}'
#   aps acts list --trace 4bf92f3577b34da6a3ce929d0e0e4736
#
# It needs sh, aps and the variables of aps. Without TRACEPARENT the event has a trace
# of its own.
set -eu

if [ -n "${TRACEPARENT:-}" ]; then
	caller=',"traceparent":"'$TRACEPARENT'"'
else
	caller=
fi
printf '{"action_kind":"tool_call","tool_name":"%s","payload":%s%s}\n' "$1" "$2" "$caller" | aps send
