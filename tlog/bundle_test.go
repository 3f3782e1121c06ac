package tlog

import (
	"bytes"
	"errors"
	"testing"
)

func TestEntryBundle(t *testing.T) {
	large := bytes.Repeat([]byte("z"), MaxEntry)
	entries := [][]byte{[]byte("first"), {}, large}
	bundle, err := EntryBundle(entries...)
	if err != nil {
		t.Fatal(err)
	}
	if want := append([]byte("\x00\x05first\x00\x00\xff\xff"), large...); !bytes.Equal(bundle, want) {
		t.Errorf("got %d bytes, want %d", len(bundle), len(want))
	}
	got, err := ParseEntryBundle(bundle, 3)
	if err != nil || len(got) != 3 {
		t.Fatalf("got %d entries, %v", len(got), err)
	}
	for i := range got {
		if !bytes.Equal(got[i], entries[i]) {
			t.Errorf("entry %d differs", i)
		}
	}
}

func TestEntryBundleRefuses(t *testing.T) {
	for name, entries := range map[string][][]byte{
		"no entries":       nil,
		"257 entries":      make([][]byte, 257),
		"entry of 64 KiB":  {make([]byte, MaxEntry+1)},
		"one of two large": {nil, make([]byte, MaxEntry+1)},
	} {
		if _, err := EntryBundle(entries...); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestParseEntryBundleRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		bundle string
		width  uint16
	}{
		{"width 0", "", 0},
		{"width 257", string(make([]byte, 2*257)), 257},
		{"empty", "", 1},
		{"half a length", "\x00", 1},
		{"entry cut off", "\x00\x05firs", 1},
		{"one entry of two", "\x00\x05first", 2},
		{"two entries for one", "\x00\x05first\x00\x00", 1},
		{"a trailing byte", "\x00\x05first!", 1},
		{"little-endian length", "\x05\x00first", 1},
	} {
		if _, err := ParseEntryBundle([]byte(c.bundle), c.width); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

func FuzzParseEntryBundle(f *testing.F) {
	f.Add([]byte("\x00\x05first\x00\x00"), uint16(2))
	f.Add([]byte("\xff\xff"), uint16(1))
	f.Fuzz(func(t *testing.T, bundle []byte, width uint16) {
		entries, err := ParseEntryBundle(bundle, width)
		if err != nil {
			return
		}
		if again, err := EntryBundle(entries...); err != nil || !bytes.Equal(again, bundle) || len(entries) != int(width) {
			t.Errorf("%q is written %q, %v", bundle, again, err)
		}
	})
}
