-- Events that were erased are stored in separate forms (storage/pgstore/document.go), which
-- programs before this version can't read and would report as damage. The tables are
-- the same: this version keeps such programs away.
--
-- Lowest: 5

-- +goose Up
SELECT 1;
