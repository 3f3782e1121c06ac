// Package objectstest contains the conformance tests for the stores of package objects.
package objectstest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive/objects"
)

// limit is larger than any object of the tests, in bytes.
const limit = 1 << 20

// Run runs the conformance tests. Each call of open must return another handle to the same store, which may contain
// objects of earlier runs with names outside of "red" and "blue".
func Run(t *testing.T, open func(t *testing.T) objects.Store) {
	t.Run("Lifecycle", func(t *testing.T) { testLifecycle(t, open(t), open(t)) })
	t.Run("Names", func(t *testing.T) { testNames(t, open(t)) })
	t.Run("Sizes", func(t *testing.T) { testSizes(t, open(t)) })
	t.Run("Neighbours", func(t *testing.T) { testNeighbours(t, open(t)) })
	t.Run("CreateRace", func(t *testing.T) { testCreateRace(t, open(t), open(t)) })
	t.Run("ReplaceRace", func(t *testing.T) { testReplaceRace(t, open(t), open(t)) })
	t.Run("ReadersSeeWholes", func(t *testing.T) { testReadersSeeWholes(t, open(t), open(t)) })
	t.Run("Probe", func(t *testing.T) {
		if err := objects.Probe(t.Context(), open(t)); err != nil {
			t.Error(err)
		}
	})
}

// Want reports a test failure if an error is not the wanted one. A nil want means success.
func Want(t *testing.T, step string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", step, got, want)
	}
}

// WantContent reports a test failure if the store does not have the content under the name. It returns the version.
func WantContent(t *testing.T, s objects.Store, name string, want []byte) string {
	t.Helper()
	got, version, err := s.Read(t.Context(), name, limit)
	if err != nil || !bytes.Equal(got, want) || version == "" {
		t.Errorf("read %s: got %d bytes %.20q, version %q, %v, want %d bytes",
			name, len(got), got, version, err, len(want))
	}
	return version
}

// One handle writes, and the other one reads.
func testLifecycle(t *testing.T, s, other objects.Store) {
	ctx, name := t.Context(), "red/0000000001"
	_, _, err := s.Read(ctx, name, limit)
	Want(t, "read before", err, objects.ErrNotFound)
	Want(t, "replace before", s.Replace(ctx, name, []byte("x"), "version"), objects.ErrChanged)
	Want(t, "delete before", s.Delete(ctx, name), nil)
	Want(t, "create", s.Create(ctx, name, []byte("one")), nil)
	first := WantContent(t, other, name, []byte("one"))
	Want(t, "create again", s.Create(ctx, name, []byte("two")), objects.ErrExists)
	Want(t, "create the same again", s.Create(ctx, name, []byte("one")), objects.ErrExists)
	Want(t, "replace another version", s.Replace(ctx, name, []byte("two"), first+"0"), objects.ErrChanged)
	Want(t, "replace no version", s.Replace(ctx, name, []byte("two"), ""), objects.ErrChanged)
	WantContent(t, other, name, []byte("one"))
	Want(t, "replace", s.Replace(ctx, name, []byte("two"), first), nil)
	second := WantContent(t, other, name, []byte("two"))
	if second == first {
		t.Errorf("two contents have the version %q", first)
	}
	Want(t, "replace a stale version", s.Replace(ctx, name, []byte("three"), first), objects.ErrChanged)
	Want(t, "delete", s.Delete(ctx, name), nil)
	Want(t, "delete again", s.Delete(ctx, name), nil)
	_, _, err = other.Read(ctx, name, limit)
	Want(t, "read after", err, objects.ErrNotFound)
	Want(t, "replace after", s.Replace(ctx, name, []byte("three"), second), objects.ErrChanged)
	Want(t, "create after", s.Create(ctx, name, []byte("four")), nil)
	WantContent(t, other, name, []byte("four"))
	Want(t, "delete at the end", s.Delete(ctx, name), nil)
}

// Each method rejects an invalid name, and affects no other object.
func testNames(t *testing.T, s objects.Store) {
	ctx := t.Context()
	for _, name := range []string{
		"", "/", "/red", "red/", "red//1", ".", "..", "../red", "red/../blue", "red/./1", ".lock", "red/.1",
		"red 1", "red\x001", "red\\1", "réd", "red?x", "red#x", "red%2f1", "red\n", "C:",
		strings.Repeat("a", 201), strings.Repeat("a/", 256) + "a",
	} {
		_, _, read := s.Read(ctx, name, limit)
		for step, err := range map[string]error{
			"create": s.Create(ctx, name, nil), "read": read,
			"replace": s.Replace(ctx, name, nil, "1"), "delete": s.Delete(ctx, name),
		} {
			Want(t, fmt.Sprintf("%s %q", step, name), err, storage.ErrUnavailable)
		}
	}
	long := strings.Repeat("a", 200)
	for _, name := range []string{"r", "red-1/x_2.bin", "0123456789abcdef/00000000000000000001", long} {
		Want(t, name, s.Create(ctx, name, []byte(name)), nil)
		WantContent(t, s, name, []byte(name))
		Want(t, name, s.Delete(ctx, name), nil)
	}
}

func testSizes(t *testing.T, s objects.Store) {
	ctx := t.Context()
	for i, size := range []int{0, 1, 4096, limit} {
		name, data := fmt.Sprintf("red/size-%d", i), bytes.Repeat([]byte{0, '\r', '\n', 0xff}, size/4+1)[:size]
		Want(t, name, s.Create(ctx, name, data), nil)
		WantContent(t, s, name, data)
		if size > 0 {
			_, _, err := s.Read(ctx, name, int64(size)-1)
			Want(t, name+", one byte too large", err, objects.ErrTooLarge)
		}
		Want(t, name, s.Delete(ctx, name), nil)
	}
}

// Two organizations have objects with the same number. Writing one does not change the other.
func testNeighbours(t *testing.T, s objects.Store) {
	ctx := t.Context()
	Want(t, "create red", s.Create(ctx, "red/1", []byte("red")), nil)
	Want(t, "create blue", s.Create(ctx, "blue/1", []byte("blue")), nil)
	red := WantContent(t, s, "red/1", []byte("red"))
	WantContent(t, s, "blue/1", []byte("blue"))
	Want(t, "replace blue by red's version", s.Replace(ctx, "blue/1", []byte("red"), red), objects.ErrChanged)
	Want(t, "delete red", s.Delete(ctx, "red/1"), nil)
	WantContent(t, s, "blue/1", []byte("blue"))
	Want(t, "delete blue", s.Delete(ctx, "blue/1"), nil)
}

// Exactly one of many concurrent creates succeeds, and its content stays.
func testCreateRace(t *testing.T, handles ...objects.Store) {
	ctx, name := t.Context(), "red/race"
	var won atomic.Pointer[string]
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			content := fmt.Sprint("writer ", i)
			err := handles[i%len(handles)].Create(ctx, name, []byte(content))
			switch {
			case err == nil && !won.CompareAndSwap(nil, &content):
				t.Errorf("%s won after another one", content)
			case err != nil:
				Want(t, content, err, objects.ErrExists)
			}
		})
	}
	all.Wait()
	if won.Load() == nil {
		t.Fatal("no create won")
	}
	WantContent(t, handles[0], name, []byte(*won.Load()))
	Want(t, "delete", handles[0].Delete(ctx, name), nil)
}

// Writers that each append a byte by reading and replacing lose no byte.
func testReplaceRace(t *testing.T, handles ...objects.Store) {
	ctx, name := t.Context(), "red/count"
	Want(t, "create", handles[0].Create(ctx, name, nil), nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for added := false; !added; {
				s := handles[i%len(handles)]
				data, version, err := s.Read(ctx, name, limit)
				if err == nil {
					err = s.Replace(ctx, name, append(data, byte('a'+i)), version)
				}
				if added = err == nil; !added && !errors.Is(err, objects.ErrChanged) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if data, _, err := handles[0].Read(ctx, name, limit); err != nil || len(data) != 8 {
		t.Errorf("got %q, %v, want 8 additions", data, err)
	}
	Want(t, "delete", handles[0].Delete(ctx, name), nil)
}

// A concurrent reader sees the old content or the new one, never a mixture.
func testReadersSeeWholes(t *testing.T, writer, reader objects.Store) {
	ctx, name := t.Context(), "red/whole"
	content := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 1000*(i+1)) }
	Want(t, "create", writer.Create(ctx, name, content(0)), nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 1; i < 20; i++ {
			_, version, err := writer.Read(ctx, name, limit)
			Want(t, "read", err, nil)
			Want(t, "replace", writer.Replace(ctx, name, content(i), version), nil)
		}
	}()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		data, _, err := reader.Read(ctx, name, limit)
		if err != nil || len(data) == 0 || !bytes.Equal(data, content(int(data[0]-'a'))) {
			t.Fatalf("got %d bytes, %v", len(data), err)
		}
	}
	WantContent(t, reader, name, content(19))
	Want(t, "delete", writer.Delete(ctx, name), nil)
}
