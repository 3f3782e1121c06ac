package pgstore_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// tableFilesWith returns the files of the server's tables that contain a text, excluding the write-ahead log.
func tableFilesWith(t *testing.T, text []byte) (found []string) {
	t.Helper()
	err := filepath.WalkDir(shared.Dir(), func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil && d.IsDir() && d.Name() == "pg_wal" {
			return fs.SkipDir
		}
		if err != nil || !d.Type().IsRegular() || d.Name() == "log" {
			return err
		}
		b, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if bytes.Contains(b, text) {
			found = append(found, path)
		}
		return err
	})
	must(t, err)
	return found
}

// After an erasure and VACUUM (FULL), no page of the tables contains the texts of an event in a separate row, of one in
// a segment, or of one whose text is stored out of line (TOAST). Another organization's texts are still there.
func TestVacuumForgets(t *testing.T) {
	url := fresh(t, shared)
	e := open(t, pgstore.Options{URL: url, Writers: 1, Readers: 1})
	defer closeEngine(t, e)
	random := func(w *storagetest.Writer) []byte { // incompressible bytes
		b := w.Next(0)
		return bytes.Join([][]byte{b.Head.Root[:], b.Head.Last[:]}, nil)
	}
	hashes := storagetest.NewWriter(99)
	alone, together, concurrent, remaining := random(hashes), random(hashes), random(hashes), random(hashes)
	red, blue := storagetest.NewWriter(1), storagetest.NewWriter(2)
	add := func(w *storagetest.Writer, n int, change func(*storage.Batch)) {
		t.Helper()
		b := w.Next(n)
		change(&b)
		wantAll(t, e.Append([]storage.Batch{b}).Wait(), nil)
	}
	add(red, 8, func(b *storage.Batch) { b.Events[3].Envelope = together })
	add(red, 1, func(b *storage.Batch) { b.Events[0].Envelope = alone })
	add(red, 1, func(b *storage.Batch) {
		for range 400 {
			b.Events[0].Envelope = append(b.Events[0].Envelope, random(hashes)...)
		}
		b.Events[0].Envelope = append(b.Events[0].Envelope, concurrent...)
	})
	add(blue, 1, func(b *storage.Batch) { b.Events[0].Envelope = remaining })
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context())
	run := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			_, err := conn.Exec(t.Context(), s)
			must(t, err)
		}
	}
	run("CHECKPOINT")
	for _, text := range [][]byte{alone, together, concurrent, remaining} {
		if len(tableFilesWith(t, text[:32])) == 0 {
			t.Fatal("a text is not found before the erasure")
		}
	}
	add(red, 1, func(b *storage.Batch) { b.Events[0].Erases = []id.Range{{Begin: 3, End: 4}, {Begin: 8, End: 10}} })
	// VACUUM leaves what a transaction that began before could still see, for example that of an autovacuum worker.
	must(t, shared.Await("SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()"))
	run("VACUUM (FULL) event", "VACUUM (FULL) segment", "VACUUM (FULL) record", "CHECKPOINT")
	for name, text := range map[string][]byte{"alone": alone, "in a segment": together, "beside its row": concurrent} {
		if found := tableFilesWith(t, text[:32]); len(found) > 0 {
			t.Errorf("%s: the text is in %v", name, found)
		}
	}
	if len(tableFilesWith(t, remaining[:32])) == 0 {
		t.Error("the other organization's text is gone")
	}
}
