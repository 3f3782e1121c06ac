-- Events that were erased are stored in forms of their own (package document), which
-- programs before this version can't read and would report as damage. The tables are
-- the same: this version keeps such programs away.
--
-- Lowest: 5

-- +goose Up
SELECT 1;
