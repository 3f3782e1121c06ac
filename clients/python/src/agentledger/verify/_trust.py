"""What an auditor relies on: pinned keys, further keys of the same logs, and a policy of witnesses."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from .._errors import NotAsked
from ._bundles import Bundle, SecondProof
from ._flaw import SIGNATURE, Flaw
from ._keys import VerifierKey, parse_log_key
from ._logkeys import LogKey, parse_log_keys
from ._note import Checkpoint, Note, instant, open_checkpoint, parse_note, read_checkpoint
from ._policy import Policy, parse_policy
from ._report import Options, Witnessed, witnessed


@dataclass(frozen=True)
class Trust:
    """Keys, one of which must have signed, further keys of the same log, and the policy whose quorum is required."""

    keys: tuple[VerifierKey, ...] = ()
    others: tuple[LogKey, ...] = ()
    policy: Policy | None = None
    now: float = field(default_factory=time.time, compare=False)
    """When the check began, in seconds since 1970. It distinguishes cosignatures from the future."""

    @property
    def given(self) -> bool:
        """Whether anything is trusted."""
        return bool(self.keys) or self.policy is not None

    def options(self, bundle: Bundle) -> Options:
        """Return the options for a bundle, with a pinned key that it names, or else one of its log."""
        key: VerifierKey | None = None
        for k in self.keys:
            if bundle.names_key(str(k)):
                key = k
                break
            if key is None or key.name != bundle.text("origin"):
                key = k
        return Options(key=key, retired=self.others, witnesses=self.witnesses, now=self.now)

    @property
    def witnesses(self) -> tuple[VerifierKey, ...]:
        """The witnesses of the policy."""
        return tuple(self.policy.witnesses.values()) if self.policy else ()

    def open(self, raw: str | bytes) -> Checkpoint:
        """Open a checkpoint that one of the keys signed. Errors are Flaw."""
        note = parse_note(raw)
        size = read_checkpoint(note).size
        last = Flaw("open checkpoint: no key", SIGNATURE)
        for key in (*self.keys, *(k.key for k in self.others if k.signed(size) and k.key not in self.keys)):
            try:
                return open_checkpoint(note, key)
            except Flaw as flaw:
                if flaw.kind != SIGNATURE:
                    raise
                last = flaw
        raise last

    def quorum(self, signed: bool, raw: str | bytes) -> bool | None:
        """Return whether enough witnesses cosigned, or None if none are required or no key signed the checkpoint."""
        if self.policy is None or not self.policy.asks_for_witnesses or not signed:
            return None
        note = _note(raw)
        return note is not None and self.policy.reached(self.policy.cosignatures(note))

    def cosignatures(self, raw: str | bytes) -> list[Witnessed]:
        """Return the valid cosignatures of the policy's witnesses."""
        note = _note(raw)
        if self.policy is None or note is None:
            return []
        return [witnessed(c.key, c.time, self.now) for c in self.policy.cosignatures(note)]

    def quorum_time(self, signed: bool, raw: str | bytes) -> str | None:
        """Return the time by which a quorum had cosigned a checkpoint, None if the cosignatures prove none."""
        note = _note(raw)
        if self.policy is None or not signed or note is None:
            return None
        by = self.policy.times(self.policy.cosignatures(note), self.now).by
        return None if by is None else instant(by)

    def unknown_signers(self, raw: str | bytes) -> list[str]:
        """Return who signed a checkpoint in its log's name, if none of the keys did. The lines are unverified."""
        note = _note(raw)
        if note is None:
            return []
        known = {(k.name, k.key_id) for k in (*self.keys, *(o.key for o in self.others))}
        if any((x.name, x.key_id) in known for x in note.lines):
            return []
        origin = read_checkpoint(note).origin
        return [f"{x.name}+{x.key_id.hex()}" for x in note.lines if x.name == origin]


def read_trust(
    key: str | None = None,
    policy: bytes | str | None = None,
    keys: bytes | str | None = None,
    now: float | None = None,
) -> Trust:
    """Return the trust in a pinned vkey, a tlog-policy and a saved list of keys. now defaults to the clock.

    Errors are NotAsked.
    """
    try:
        parsed = None if policy is None else parse_policy(policy.encode() if isinstance(policy, str) else policy)
        pinned = tuple(parsed.logs) if parsed else ()
        if key is not None:
            pinned = (parse_log_key(key.strip()),)
        others = () if keys is None else tuple(parse_log_keys(keys))
    except Flaw as flaw:
        raise NotAsked(f"no check without good keys: {flaw}") from None
    if keys is not None:
        _check_list(pinned, others)
    return Trust(pinned, others, parsed, time.time() if now is None else now)


def _check_list(pinned: tuple[VerifierKey, ...], others: tuple[LogKey, ...]) -> None:
    held = next((k.key for k in others if k.key in pinned), None)
    if held is None:
        raise NotAsked("the list does not hold the key that you trust")
    if any(k.key.name != held.name for k in others):
        raise NotAsked("the list has keys of several logs")


def options_with_directory(trust: Trust, directory: Trust, bundle: Bundle) -> Options:
    """Return the options for a bundle, with the trust in the service's directory."""
    options, second = trust.options(bundle), bundle.directory
    if second is None or not directory.given:
        return options
    inner = _inner_options(options, directory, second)
    return Options(options.key, options.retired, inner, options.witnesses, options.now)


def _inner_options(options: Options, directory: Trust, second: SecondProof) -> Options:
    inner = directory.options(second.bundle)
    more = tuple(w for w in options.witnesses if w not in inner.witnesses)
    return Options(inner.key, inner.retired, None, inner.witnesses + more, options.now)


def _note(raw: str | bytes) -> Note | None:
    try:
        return parse_note(raw)
    except Flaw:
        return None
