-- Which programs may write, so that programs of two versions can serve beside each other. The row
-- of writer is read by each append and once a second by each program.
--
-- Lowest: 7

-- +goose Up
CREATE TABLE writer (
    org       int8 NOT NULL PRIMARY KEY,
    lowest    int8 NOT NULL,  -- the oldest schema that a program may know and yet write
    version   bytea NOT NULL, -- of the program that brought the schema up last, for people
    described int8 NOT NULL,  -- the schema that tables is of
    tables    bytea NOT NULL  -- as text, for programs that know an older schema
);
INSERT INTO writer (org, lowest, version, described, tables) VALUES (0, 7, '', 0, '');

-- Programs before this step write NULL. They know schema 7 and protocol 1.
ALTER TABLE node
    ADD COLUMN schema int8,   -- the newest that the program of the node knows
    ADD COLUMN protocol int8; -- the newest of the calls among nodes that it knows
