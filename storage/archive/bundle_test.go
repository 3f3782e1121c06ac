package archive_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/storage/archive"
)

func newCodec(t testing.TB) *archive.Codec {
	t.Helper()
	c, err := archive.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// some contains texts in all states.
func some() *archive.Texts {
	return &archive.Texts{Tenant: 0x0102030405060708, First: 512, Events: []archive.Text{
		{Record: []byte(`{"v":1}`), Envelope: []byte(`{"payload":{}}`)},
		{Record: []byte(`{"v":1}`), Erased: true},
		{Record: []byte(`{"v":1}`)},
		{Record: []byte{}, Envelope: []byte{}},
		{Record: bytes.Repeat([]byte("\x00\xff"), 1000), Envelope: []byte("not JSON")},
	}}
}

func TestCodec(t *testing.T) {
	c := newCodec(t)
	want := some()
	object := c.Encode(want)
	got, err := c.Decode(object, want.Tenant, want.First, len(want.Events), want.Bytes())
	if err != nil || !got.Equal(want) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	if n := want.Bytes(); n != 7+14+7+7+2000+8 {
		t.Errorf("got %d bytes", n)
	}
	for name, change := range map[string]func(*archive.Texts){
		"tenant":       func(b *archive.Texts) { b.Tenant++ },
		"first":        func(b *archive.Texts) { b.First++ },
		"events":       func(b *archive.Texts) { b.Events = b.Events[1:] },
		"record":       func(b *archive.Texts) { b.Events[0].Record = []byte("x") },
		"envelope":     func(b *archive.Texts) { b.Events[0].Envelope = []byte("x") },
		"none for any": func(b *archive.Texts) { b.Events[3].Envelope = nil },
		"erasure":      func(b *archive.Texts) { b.Events[2].Erased = true },
	} {
		other := some()
		change(other)
		if other.Equal(want) || want.Equal(other) {
			t.Errorf("%s: another one is the same", name)
		}
	}
}

// Objects of other events and damaged objects are rejected.
func TestDamaged(t *testing.T) {
	c := newCodec(t)
	texts := some()
	object := c.Encode(texts)
	events := len(texts.Events)
	for n := range object {
		changed := bytes.Clone(object)
		changed[n] ^= 0x10
		for _, damaged := range [][]byte{changed, object[:n], append(slices.Clone(object), object[n])} {
			if _, err := c.Decode(damaged, texts.Tenant, texts.First, events, texts.Bytes()); !errors.Is(err, archive.ErrDamaged) {
				t.Fatalf("byte %d: got %v, want %v", n, err, archive.ErrDamaged)
			}
		}
	}
	_, tenant := c.Decode(object, texts.Tenant+1, texts.First, events, texts.Bytes())
	_, first := c.Decode(object, texts.Tenant, texts.First+1, events, texts.Bytes())
	_, less := c.Decode(object, texts.Tenant, texts.First, events-1, texts.Bytes())
	for name, err := range map[string]error{"tenant": tenant, "first": first, "events": less} {
		if !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("another %s: got %v, want %v", name, err, archive.ErrDamaged)
		}
	}
}

// storedForm is an object that a program has written. It must stay readable permanently.
const storedForm = "ARGL5GEQl85qNIQFIm0NBJKLvyWPnFsc9nPn+T2fcDj6KLUv/WQaBzUCAHQDAQIDBAUGBwgAAgAFAQd7InYiOjF9DnsicGF5" +
	"bG9hZCI6e319AgABAAAB0A8A/whub3QgSlNPTgQAy+c+szzGzpcRnBx+KLnt"

func TestStoredForm(t *testing.T) {
	object, err := base64.StdEncoding.DecodeString(storedForm)
	if err != nil {
		t.Fatal(err)
	}
	want := some()
	got, err := newCodec(t).Decode(object, want.Tenant, want.First, len(want.Events), want.Bytes())
	if err != nil || !got.Equal(want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// Bytes with a valid checksum are either an object or damaged, and nothing worse.
func FuzzDecode(f *testing.F) {
	c := newCodec(f)
	f.Add(c.Encode(some())[33:])
	f.Add([]byte("\x28\xb5\x2f\xfd\x00"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		texts, err := c.Decode(archive.Checked(frame), some().Tenant, some().First, len(some().Events), some().Bytes())
		if (err == nil) != (texts != nil) || err != nil && !errors.Is(err, archive.ErrDamaged) {
			t.Fatalf("got %+v, %v", texts, err)
		}
		if texts == nil {
			return
		}
		again, err := c.Decode(c.Encode(texts), texts.Tenant, texts.First, len(texts.Events), texts.Bytes())
		if err != nil || !again.Equal(texts) {
			t.Errorf("written again: got %+v, %v, want %+v", again, err, texts)
		}
	})
}

// An object whose body is longer than its texts may be is rejected before more than that is in memory.
func TestLongBody(t *testing.T) {
	c, texts := newCodec(t), some()
	if _, err := c.Decode(c.Encode(texts), texts.Tenant, texts.First, len(texts.Events), texts.Bytes()); err != nil {
		t.Error(err)
	}
	if _, err := c.Decode(c.Encode(texts), texts.Tenant, texts.First, len(texts.Events), 0); !errors.Is(err, archive.ErrDamaged) {
		t.Errorf("texts of more bytes than they may have: got %v", err)
	}
	texts.Events[0].Envelope = make([]byte, 60<<20)
	bomb := c.Encode(texts)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := c.Decode(bomb, texts.Tenant, texts.First, len(texts.Events), some().Bytes()); !errors.Is(err, archive.ErrDamaged) {
		t.Errorf("%d bytes that expand to 60 MiB: got %v", len(bomb), err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes were allocated, want 4 MiB at most", n)
	}
}
