-- The nodes that serve from this database, and who of them owns which shard of the
-- organizations (package internal/cluster). The rows of lease and lease_epoch are all made here, so
-- that nodes change them only. All rows are the service's own, organization 0.
--
-- Lowest: 7

-- +goose Up
CREATE TABLE node (
    org     int8 NOT NULL,
    id      bytea NOT NULL, -- 16 random bytes
    beats   int8 NOT NULL,
    leaving int2 NOT NULL,  -- 1 while the node gives its shards away
    url     bytea NOT NULL,
    version bytea NOT NULL,
    key     bytea NOT NULL, -- fingerprint of its master key
    PRIMARY KEY (org, id)
);

CREATE TABLE lease (
    org   int8 NOT NULL,
    shard int2 NOT NULL,
    epoch int8 NOT NULL,
    owner bytea NOT NULL, -- a node, which may be gone; empty before the first one
    PRIMARY KEY (org, shard)
);
INSERT INTO lease (org, shard, epoch, owner) SELECT 0, s, 0, '' FROM generate_series(0, 1023) AS s;

-- One row: the newest epoch of a lease. A node that changes leases or members locks it first, so
-- that these changes come one after another.
CREATE TABLE lease_epoch (
    org   int8 NOT NULL PRIMARY KEY,
    epoch int8 NOT NULL
);
INSERT INTO lease_epoch (org, epoch) VALUES (0, 0);
