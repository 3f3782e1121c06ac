-- Several events of one append lie together in one row, without which they take
-- half as much again. Their rows in table event have nothing but what must be
-- unique and where it is. Events that are stored already stay where they are.
--
-- Lowest: 3

-- +goose Up
CREATE TABLE segment (
    org     int8 NOT NULL,
    idx     int8 NOT NULL, -- of the first event
    count   int2 NOT NULL,
    entries bytea NOT NULL, -- the leaves' prev and record hashes, 64 bytes for each event
    texts   bytea NOT NULL, -- all else, compressed by the program
    PRIMARY KEY (org, idx)
);

ALTER TABLE event
    ALTER COLUMN received_at DROP NOT NULL,
    ALTER COLUMN effective DROP NOT NULL,
    ALTER COLUMN disclosure DROP NOT NULL,
    ALTER COLUMN entry DROP NOT NULL,
    ALTER COLUMN agent DROP NOT NULL,
    ALTER COLUMN trace DROP NOT NULL,
    ALTER COLUMN tool DROP NOT NULL,
    ALTER COLUMN action_kind DROP NOT NULL,
    ALTER COLUMN documents DROP NOT NULL;
CREATE UNIQUE INDEX event_index ON event (org, idx) WHERE entry IS NOT NULL;
ALTER TABLE event DROP CONSTRAINT event_pkey;
ALTER TABLE event ADD CONSTRAINT event_name PRIMARY KEY USING INDEX event_name;
