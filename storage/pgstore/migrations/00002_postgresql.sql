-- What only PostgreSQL knows. Nothing but speed and space depends on it.

-- +goose Up

-- Rows that are rewritten all the time stay on their page and leave no index
-- entries behind; their dead versions are cleaned up by number, not by share.
ALTER TABLE head SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
ALTER TABLE counter SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
ALTER TABLE record SET (fillfactor = 80);
ALTER TABLE barrier SET (fillfactor = 10);

-- Events are written once. A row above 2 KB is compressed in place and leaves
-- its page only if it must.
ALTER TABLE event SET (toast_tuple_target = 1024, autovacuum_vacuum_insert_scale_factor = 0.05);
ALTER TABLE event ALTER COLUMN record SET STORAGE MAIN;
ALTER TABLE event ALTER COLUMN envelope SET STORAGE MAIN;
ALTER TABLE event ALTER COLUMN record SET COMPRESSION lz4;
ALTER TABLE event ALTER COLUMN envelope SET COMPRESSION lz4;
ALTER TABLE record ALTER COLUMN value SET COMPRESSION lz4;

-- Hashes can't be compressed. They lie beside the row, so that roots are read
-- without them.
ALTER TABLE tile ALTER COLUMN hashes SET STORAGE EXTERNAL;
