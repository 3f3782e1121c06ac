#!/bin/sh
# Compares what a tool recorded (calls.csv) with what the agent asked for (events.ndjson): the
# tool sent one mail twice, sent one that nobody asked for, and deleted a customer although the
# policy denies that.
#
#   aps send events.ndjson
#   ./compare.sh
#
# It needs sh and aps, and APS_CONSOLE_TOKEN or the session of aps login. The exit code is 1,
# because calls went around the policy.
exec aps coverage --calls "$(dirname "$0")/calls.csv" --field call_id=request --skip-status 401 \
	--from 2026-01-01T00:00:00Z --to 2100-01-01T00:00:00Z
