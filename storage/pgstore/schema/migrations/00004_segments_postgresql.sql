-- What only PostgreSQL knows. Nothing but speed and space depends on it.
--
-- Lowest: 3

-- +goose Up

-- Texts that are long are moved out of the row, and the entries, which are read
-- most, stay in it.
ALTER TABLE segment SET (autovacuum_vacuum_insert_scale_factor = 0.05, toast_tuple_target = 4080);
ALTER TABLE segment ALTER COLUMN entries SET STORAGE EXTERNAL;
ALTER TABLE segment ALTER COLUMN texts SET STORAGE EXTERNAL;
