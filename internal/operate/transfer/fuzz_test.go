package transfer

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

func sampleEvent() storage.Event {
	record := []byte(`{"a":"\u0001\"","b":1e+21}`)
	return storage.Event{
		Index: 6, ID: "evt", Entry: storage.Entry{Prev: id.Hash{1}, Record: event.RecordHash(record)},
		Columns: storage.Columns{
			ReceivedAt: 1795176000500, Agent: "agt", Trace: "trc", Tool: "acme.x", ActionKind: "tool_call",
			Effective: id.Deny, Disclosure: id.DiscloseFull,
		},
		Record: record, Envelope: []byte(`{"text":"<é\u2028>"}`), KeyDigest: storage.DigestIdempotencyKey("key"),
	}
}

func TestEventLine(t *testing.T) {
	erased, plain := sampleEvent(), sampleEvent()
	erased.Envelope, erased.ErasedBy = nil, 1<<40
	plain.KeyDigest, plain.Tool = storage.KeyDigest{}, ""
	for _, e := range []storage.Event{sampleEvent(), erased, plain} {
		line, err := appendEventLine(nil, &e)
		if err != nil || bytes.IndexByte(line, '\n') >= 0 {
			t.Fatalf("%s: %v", line, err)
		}
		if got, err := parseEventLine(line); err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, e)
		}
	}
}

func TestRecordLine(t *testing.T) {
	for _, r := range []storage.Record{
		{Kind: "policy", Key: "a/b", Version: 3, Value: []byte(`{"a":[1,"\u00e9 é"],"n":1e21}`)},
		{Kind: "policy", Key: "", Version: 1, Value: []byte(`{}`)},
		{Kind: "x", Key: "\xff\x00", Version: 1<<64 - 2, Value: []byte("no JSON\n")},
		{Kind: "x", Key: "k", Version: 1, Value: []byte{}},
		{Kind: "x", Key: "k", Version: 1, Value: []byte("{\n}")},
		{Kind: "x", Key: "k", Version: 1, Value: []byte(`{"a":1,"a":2}`)},
		{Kind: "x", Key: "k", Version: 1, Value: []byte(` {} `)},
		{Kind: "x", Key: "k", Version: 1, Value: []byte(`null`)},
	} {
		line, err := encodeRecord(&r)
		if err != nil || bytes.IndexByte(line, '\n') >= 0 {
			t.Fatalf("%s: %v", line, err)
		}
		if got, err := parseRecordLine(line); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, r)
		}
	}
}

// FuzzRecordLine checks that a record is the same after writing and reading it.
func FuzzRecordLine(f *testing.F) {
	f.Add("policy", "key", uint64(1), []byte(`{"a":1}`))
	f.Add("x", "\xff", uint64(7), []byte("\n"))
	f.Fuzz(func(t *testing.T, kind, key string, version uint64, value []byte) {
		r := storage.Record{Kind: storage.Kind(kind), Key: key, Version: version, Value: append([]byte{}, value...)}
		line, err := encodeRecord(&r)
		if err != nil || version == 0 || kind == "" {
			return
		}
		if got, err := parseRecordLine(line); err != nil || !reflect.DeepEqual(got, r) || bytes.IndexByte(line, '\n') >= 0 {
			t.Fatalf("%s: got %+v, %v, want %+v", line, got, err, r)
		}
	})
}

// FuzzEventLine checks that a line that is accepted as an event is written the same again.
func FuzzEventLine(f *testing.F) {
	e := sampleEvent()
	line, _ := appendEventLine(nil, &e)
	f.Add(line)
	f.Add([]byte(`{"entry":{}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := parseEventLine(line)
		if err != nil {
			return
		}
		again, err := appendEventLine(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := parseEventLine(again); err != nil || !reflect.DeepEqual(twice, e) {
			t.Fatalf("got %+v, %v, want %+v", twice, err, e)
		}
	})
}

// FuzzPiece checks that no reader accepts a changed file to its end, unless a writer could have made it.
func FuzzPiece(f *testing.F) {
	h := newPieceHeader(pieceEvents, id.Organization{1}, 0)
	w, err := createPiece(filepath.Join(f.TempDir(), "piece"), h, nil)
	for _, line := range []string{"{}", `{"a":1}`, ""} {
		err = errors.Join(err, w.writeLine([]byte(line)))
	}
	if _, sealed := w.sealPiece(3, id.Hash{4}); err != nil || sealed != nil {
		f.Fatal(err, sealed)
	}
	whole, err := os.ReadFile(w.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(bytes.Replace(whole, []byte("{}\n"), nil, 1))
	path := filepath.Join(f.TempDir(), "fuzzed")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		lines, end, err := readAll(path, h)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrRefused) {
				t.Fatalf("got %v", err)
			}
			return
		}
		again, err := createPiece(path, h, nil)
		for _, line := range lines {
			err = errors.Join(err, again.writeLine(line))
		}
		if got, sealed := again.sealPiece(end.Size, end.Root); err != nil || sealed != nil || got != end {
			t.Fatalf("got %+v, %v, want %+v", got, sealed, end)
		}
	})
}

func readAll(path string, h header) (lines [][]byte, end sum, err error) {
	r, err := openPiece(path, h, nil)
	if err != nil {
		return nil, sum{}, err
	}
	defer r.close()
	for {
		line, err := r.nextLine()
		if errors.Is(err, io.EOF) {
			return lines, r.end, nil
		}
		if err != nil {
			return nil, sum{}, err
		}
		lines = append(lines, bytes.Clone(line))
	}
}
