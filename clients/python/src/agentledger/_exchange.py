"""Requests with their retries: which failures are retried, and after which pause. Nothing here waits or connects."""

from __future__ import annotations

import json
import random
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from ._answers import BadAnswer
from ._errors import LedgerError, NotAsked, Refused, Unreachable, one_line
from ._settings import SERVICE_VERSION, Retry, Settings
from ._shapes import is_object
from ._wire.effects import Answer, Operation, Pause, Request

JSON = "application/json"
NDJSON = "application/x-ndjson"
_STANDING = ("frozen", "read_only", "held", "importing", "moved")
MAX_RETRY_AFTER = 3600.0
"""Seconds: a longer Retry-After is reduced to this."""


def ingest_request(
    settings: Settings,
    method: str,
    path: str,
    body: bytes | None = None,
    media: str = JSON,
    headers: dict[str, str] | None = None,
    timeout: float | None = None,
) -> Request:
    """Return a request with the token. The error is NotAsked if there is none."""
    if not settings.token:
        raise NotAsked("no ingest key: set token (APS_TOKEN)")
    all_headers = {"Accept": media, "Authorization": f"Bearer {settings.token}", "Service-Version": SERVICE_VERSION}
    if body is not None:
        all_headers["Content-Type"] = media
    all_headers.update(headers or {})
    return Request(method, path, body, all_headers, settings.timeout if timeout is None else timeout)


def subject_headers(settings: Settings) -> dict[str, str]:
    """Return the header by which the service verifies on_behalf_of of events, or none.

    The error is Unreachable if there is no usable token, so that the events are sent later.
    """
    try:
        token = settings.subject_token() if settings.subject_token else None
    except Exception as why:
        raise Unreachable("no subject token") from why
    if not token:
        return {}
    if any(not "!" <= c <= "~" for c in token):
        raise Unreachable("the subject token is not visible ASCII without spaces and line ends")
    return {"Agentledger-Subject-Token": token}


def public_request(settings: Settings, path: str) -> Request:
    """Return a request of a public document, without the token."""
    return Request("GET", path, None, {"Accept": JSON}, settings.timeout)


def fetch(request: Request, retry: Retry) -> Operation[Answer]:
    """Make a request that is safe to repeat until it succeeds. Errors are Refused and Unreachable."""
    tried = 0
    while True:
        tried += 1
        try:
            answer: Answer = yield request
            if answer.status // 100 != 2:
                raise read_refusal(answer)
            return answer
        except (Refused, Unreachable) as why:
            if tried >= retry.attempts or not is_retryable(why):
                raise
            pause = pause_after(tried, why, retry)
        yield Pause(pause)


def read_refusal(answer: Answer) -> Refused:
    """Return the error for an answer other than 2xx. A body of another form, such as a proxy's page, is ignored."""
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        body = None
    return refusal(answer, answer.status, body if is_object(body) else {})


def refusal(answer: Answer, status: int, members: dict[str, Any]) -> Refused:
    """Return the error for the members of an answer, or of a line of it."""
    text = {name: one_line(v) if isinstance(v := members.get(name), str) else None for name in ("error", "code")}
    request_id = members.get("request_id", answer.headers.get("x-request-id"))
    return Refused(
        status,
        text["error"] or "the service refused",
        text["code"] or None,
        one_line(request_id) if isinstance(request_id, str) and request_id else None,
        _retry_after(answer.headers.get("retry-after", "")),
        proved=bool(text["error"] and request_id) and request_id == answer.headers.get("x-request-id"),
    )


def is_retryable(why: LedgerError) -> bool:
    """Return whether a request that failed with this error may be retried."""
    if isinstance(why, Refused):
        if why.code in _STANDING or why.code == "plan_limit":
            return False
        return why.status in (408, 429, 502, 503, 504)
    return isinstance(why, Unreachable) and not isinstance(why, BadAnswer)


def pause_after(tried: int, why: LedgerError | None, retry: Retry) -> float:
    """Return the pause in seconds after the given number of tries, from 1."""
    backoff = min(retry.most, retry.base * 2.0 ** min(tried - 1, 30))
    retry_after = why.retry_after if isinstance(why, Refused) else None
    return max(retry_after or 0.0, backoff / 2 + random.random() * backoff / 2)


def _retry_after(value: str) -> float | None:
    """Parse the header Retry-After: seconds or a date. Return None if it is absent or malformed."""
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), MAX_RETRY_AFTER)
    try:
        at = parsedate_to_datetime(value)
        return min(max(0.0, (at - datetime.now(timezone.utc)).total_seconds()), MAX_RETRY_AFTER)
    except (TypeError, ValueError):
        return None
