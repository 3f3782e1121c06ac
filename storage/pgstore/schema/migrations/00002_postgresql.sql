-- What only PostgreSQL knows. Nothing but speed and space depends on it.
--
-- Lowest: 1

-- +goose Up

-- Rows that are rewritten all the time stay on their page and leave no index
-- entries behind; their dead versions are cleaned up by number, not by share.
ALTER TABLE head SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
ALTER TABLE counter SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
ALTER TABLE record SET (fillfactor = 80);
ALTER TABLE barrier SET (fillfactor = 10);

-- Events are written once. They stay in their row while a page can hold it: a
-- detour costs a second index. What is compressed already is not tried again; the
-- others are MAIN since of a long row PostgreSQL moves what is EXTENDED out first,
-- however short.
ALTER TABLE event SET (autovacuum_vacuum_insert_scale_factor = 0.05, toast_tuple_target = 8160);
ALTER TABLE event ALTER COLUMN documents SET STORAGE EXTERNAL;
ALTER TABLE event ALTER COLUMN entry SET STORAGE MAIN;
ALTER TABLE event ALTER COLUMN name SET STORAGE MAIN;
ALTER TABLE event ALTER COLUMN idempotency SET STORAGE MAIN;
ALTER TABLE event ALTER COLUMN agent SET STORAGE MAIN;
ALTER TABLE event ALTER COLUMN trace SET STORAGE MAIN;
ALTER TABLE event ALTER COLUMN tool SET STORAGE MAIN;
ALTER TABLE event ALTER COLUMN action_kind SET STORAGE MAIN;

-- Hashes can't be compressed. They lie beside the row, so that roots are read
-- without them.
ALTER TABLE tile ALTER COLUMN hashes SET STORAGE EXTERNAL;
