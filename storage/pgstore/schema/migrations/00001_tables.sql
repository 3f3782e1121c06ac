-- The tables, in the SQL that CockroachDB documents too: every key begins with
-- the organization, and there are no sequences, triggers or procedures.
--
-- Unsigned 64-bit numbers are stored as int8 of the same bits. Tenants are below
-- 2^63, so theirs read as they are.
--
-- Lowest: 1

-- +goose Up
CREATE TABLE head (
    org            int8 NOT NULL PRIMARY KEY,
    size           int8 NOT NULL,
    last_received  int8 NOT NULL,  -- milliseconds since 1970, UTC
    epoch          int8 NOT NULL,
    config_version int8 NOT NULL,
    root           bytea NOT NULL,
    last           bytea NOT NULL
);

CREATE TABLE event (
    org         int8 NOT NULL,
    idx         int8 NOT NULL,
    received_at int8 NOT NULL,  -- milliseconds since 1970, UTC
    effective   int2 NOT NULL,
    disclosure  int2 NOT NULL,
    entry       bytea NOT NULL, -- the leaf's prev and record hash, 32 bytes each
    name        bytea NOT NULL, -- SHA-256 of the event id, 16 bytes
    idempotency bytea,          -- SHA-256 of the key, 16 bytes; NULL for none
    agent       bytea NOT NULL,
    trace       bytea NOT NULL,
    tool        bytea NOT NULL,
    action_kind bytea NOT NULL,
    documents   bytea NOT NULL, -- event id, record and envelope, compressed by the program
    PRIMARY KEY (org, idx)
);
CREATE UNIQUE INDEX event_name ON event (org, name);
CREATE UNIQUE INDEX event_idempotency ON event (org, idempotency) WHERE idempotency IS NOT NULL;

CREATE TABLE tile (
    org    int8 NOT NULL,
    level  int2 NOT NULL,
    idx    int8 NOT NULL,
    root   bytea NOT NULL,
    hashes bytea NOT NULL,
    PRIMARY KEY (org, level, idx)
);

CREATE TABLE counter (
    org   int8 NOT NULL,
    value int8 NOT NULL,
    name  bytea NOT NULL,
    PRIMARY KEY (org, name)
);

CREATE TABLE record (
    org     int8 NOT NULL,
    version int8 NOT NULL,
    kind    bytea NOT NULL,
    key     bytea NOT NULL,
    value   bytea NOT NULL,
    PRIMARY KEY (org, kind, key)
);

-- What a barrier writes. It has several rows so that barriers need not wait for
-- each other.
CREATE TABLE barrier (
    org    int8 NOT NULL,
    slot   int2 NOT NULL,
    passed int8 NOT NULL,
    PRIMARY KEY (org, slot)
);
