package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/jackc/pgx/v5"
)

// What an event comes to in the stores, as measured of what the engines measure
// writes: the floors write as much.
const (
	nameBytes     = 16
	aloneBytes    = 1080 // of an event in a row of its own, with its entry
	togetherBytes = 790  // of an event in a segment, with its entry
	segmentEvents = 16
	tileBytes     = 8192
)

// shape is what one commit of a crew holds when all of it waits: so many events each
// of so many organizations, over so many connections at once.
type shape struct{ connections, organizations, each int }

func (w crew) shape() shape {
	const connections, most = 4, 1024 // of the engine, and of a commit of the ledgers
	waiting, writing := min(w.senders*w.together, most), min(w.senders, w.organizations)
	lanes := min(connections, writing)
	return shape{lanes, writing / lanes, max(1, waiting/writing)}
}

func (s shape) events() int { return s.organizations * s.each }

// floors measures what each database allows on this machine: a bare program that
// writes the same number of rows with as many bytes, guards nothing, hashes and
// compresses nothing, and waits for the same commits.
func (s *suite) floors(ctx context.Context, w crew) error {
	return errors.Join(s.floorOfPebble(w), s.floorOfPostgres(ctx, w))
}

// floor runs a load each step of which writes so many events.
func (s *suite) floor(name string, w crew, workers, events int, start func(worker int) (step, error)) error {
	meter := s.meter(os.Getpid())
	r, err := closedLoop(workers, s.limit(), start)
	if err != nil {
		return fmt.Errorf("floor of %s: %w", name, err)
	}
	s.emitLoad(fmt.Sprintf("engines/append/%s-floor/senders=%d/organizations=%d/together=%d", name, w.senders, w.organizations, w.together),
		r, events, "events/s", meter.each(r.Done*events)...)
	return nil
}

// floorOfPebble commits batches of random values one after another, two at a time.
func (s *suite) floorOfPebble(w crew) error {
	dir, remove, err := s.folder()
	if err != nil {
		return err
	}
	defer remove()
	db, err := pebble.Open(filepath.Join(dir, "db"), &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}})
	if err != nil {
		return err
	}
	const out = 2
	sh := w.shape()
	sh.organizations *= sh.connections // one commit has what all connections have there
	err = s.floor("pebble", w, out, sh.events(), func(worker int) (step, error) {
		value := random(entrySize)
		return func(n int) error {
			b := db.NewBatch()
			for i := range sh.events() {
				at := uint64(n*sh.each + i/sh.organizations)
				key := binary.BigEndian.AppendUint64([]byte{byte(worker), byte(i % sh.organizations)}, at)
				for kind, size := range []int{64, entrySize, entrySize} { // entry, record, envelope
					if err := b.Set(append(key, byte(kind)), value[:size], nil); err != nil {
						return err
					}
				}
				if err := b.Set(append([]byte{9}, random(nameBytes)...), value[:8], nil); err != nil {
					return err
				}
			}
			return errors.Join(b.Commit(pebble.Sync), b.Close())
		}, nil
	})
	return errors.Join(err, db.Close())
}

// quiet is a log that nobody reads.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

const floorTables = `
CREATE TABLE floor_head (org int8 PRIMARY KEY, size int8, root bytea) WITH (fillfactor = 50);
CREATE TABLE floor_event (org int8, idx int8, name bytea, content bytea, PRIMARY KEY (org, name)) WITH (toast_tuple_target = 8160);
CREATE TABLE floor_segment (org int8, idx int8, entries bytea, content bytea, PRIMARY KEY (org, idx)) WITH (toast_tuple_target = 4080);
ALTER TABLE floor_event ALTER COLUMN content SET STORAGE EXTERNAL;
ALTER TABLE floor_segment ALTER COLUMN entries SET STORAGE EXTERNAL, ALTER COLUMN content SET STORAGE EXTERNAL`

const floorSQL = `WITH moved AS (
	UPDATE floor_head SET size = floor_head.size + 1, root = p.root FROM (SELECT unnest($1::int8[]) AS org, unnest($2::bytea[]) AS root) AS p
	WHERE floor_head.org = p.org
), events AS (
	INSERT INTO floor_event SELECT unnest($3::int8[]), unnest($4::int8[]), unnest($5::bytea[]), unnest($6::bytea[])
)
INSERT INTO floor_segment SELECT unnest($7::int8[]), unnest($8::int8[]), unnest($9::bytea[]), unnest($10::bytea[])`

// floorOfPostgres sends one statement after another on each connection.
func (s *suite) floorOfPostgres(ctx context.Context, w crew) error {
	d, err := s.postgres()
	if err != nil {
		return err
	}
	st, err := d.fresh()
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, st.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, floorTables); err != nil {
		return err
	}
	sh := w.shape()
	err = s.floor("postgres", w, sh.connections, sh.events(), func(worker int) (step, error) {
		return floorStep(ctx, st.url, sh, worker)
	})
	return errors.Join(err, st.drop())
}

func floorStep(ctx context.Context, url string, sh shape, worker int) (step, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	first := int64(1 + worker*sh.organizations)
	for i := range sh.organizations {
		if _, err := conn.Exec(ctx, "INSERT INTO floor_head VALUES ($1, 0, $2)", first+int64(i), random(32)); err != nil {
			return nil, err
		}
	}
	row := newFloorRows(first, sh)
	return func(n int) error {
		row.next()
		_, err := conn.Exec(ctx, floorSQL, row.orgs, row.roots, row.eventOrgs, row.indices, row.names, row.contents,
			row.segmentOrgs, row.segmentIndices, row.entries, row.texts)
		return err
	}, nil
}

// floorRows are the rows of a statement. Only names and numbers change.
type floorRows struct {
	orgs, eventOrgs, indices, segmentOrgs, segmentIndices []int64
	roots, names, contents, entries, texts                [][]byte
}

func newFloorRows(first int64, sh shape) *floorRows {
	r := new(floorRows)
	for o := range int64(sh.organizations) {
		r.orgs, r.roots = append(r.orgs, first+o), append(r.roots, random(32))
		for i := range sh.each {
			r.eventOrgs, r.indices, r.names = append(r.eventOrgs, first+o), append(r.indices, int64(i)), append(r.names, nil)
			var content []byte
			if sh.each < 4 {
				content = random(aloneBytes)
			}
			r.contents = append(r.contents, content)
		}
		if sh.each < 4 {
			continue
		}
		for begin := 0; begin < sh.each; begin += segmentEvents {
			n := min(segmentEvents, sh.each-begin)
			r.segmentOrgs, r.segmentIndices = append(r.segmentOrgs, first+o), append(r.segmentIndices, int64(begin))
			r.entries, r.texts = append(r.entries, random(64*n)), append(r.texts, random(n*(togetherBytes-64)+tileBytes*n/256))
		}
	}
	return r
}

func (r *floorRows) next() {
	all := random(nameBytes * len(r.names))
	for i := range r.names {
		r.names[i] = all[i*nameBytes : (i+1)*nameBytes]
		r.indices[i] += 1 << 20
	}
	for i := range r.segmentIndices {
		r.segmentIndices[i] += 1 << 20
	}
}
