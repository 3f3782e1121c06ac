package pgstore

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// same checks that d is read as it was stored, and returns it as read.
func same(t testing.TB, c *documentCodec, d document) []byte {
	t.Helper()
	prefix := []byte("before")
	value, _ := c.Append(bytes.Clone(prefix), d, nil)
	if !bytes.HasPrefix(value, prefix) {
		t.Fatal("what was there before is gone")
	}
	value = value[len(prefix):]
	got, ok := c.Parse(value)
	if !ok || got.ID != d.ID || !bytes.Equal(got.Record, d.Record) || !bytes.Equal(got.Envelope, d.Envelope) || (got.Envelope == nil) != (d.Envelope == nil) || got.ErasedBy != d.ErasedBy || got.Archived != d.Archived {
		t.Fatalf("got %+v, %v, want %+v", got, ok, d)
	}
	return value
}

func TestDocument(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	signature := strings.Repeat("Ab+/09Zz", 11)
	tests := map[string]document{
		"empty":                   {},
		"no envelope":             {ID: "e1", Record: []byte(`{"v":1}`)},
		"empty envelope":          {ID: "e1", Record: []byte(`{"v":1}`), Envelope: []byte{}},
		"hashes":                  {ID: "e1", Record: []byte(`{"a":"` + hash + `","b":"` + hash[1:] + `"}`), Envelope: []byte(hash)},
		"signature":               {ID: "e1", Record: []byte(`{"a":"` + signature + `"}`), Envelope: []byte(signature + "==")},
		"hex, then other letters": {ID: "e1", Record: []byte(hash + "XYZ" + signature + hash)},
		"long runs":               {ID: "e1", Record: []byte(strings.Repeat("f", 511) + "-" + strings.Repeat("G", 3*1024+1))},
		"marks":                   {ID: "e1", Record: []byte("\x01\x02" + hash), Envelope: []byte(signature + "\x01")},
		"runs across the parts":   {ID: id.Event(hash), Record: []byte(hash), Envelope: []byte(signature)},
		"archived":                {ID: id.Event(hash), Archived: true},
		"archived and erased":     {ID: "\x01", Archived: true, ErasedBy: 7},
		"more than a block":       {ID: "e1", Record: []byte(hash), Envelope: bytes.Repeat([]byte(signature+" and words "), 4096)},
	}
	c := newDocumentCodec()
	for name, d := range tests {
		t.Run(name, func(t *testing.T) {
			value := same(t, c, d)
			for n := range min(len(value), 4096) { // cut off anywhere, it is damaged or shorter
				if got, ok := c.Parse(value[:n]); ok && string(got.Record)+string(got.Envelope) == string(d.Record)+string(d.Envelope) {
					t.Fatalf("cut off at %d of %d, it reads as if whole", n, len(value))
				}
			}
		})
	}
}

// storedForms are values that programs have written. They must stay readable permanently.
func storedForms() map[string]document {
	const signature = "q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8BI0VniQ=="
	return map[string]document{
		"AUmdAqoDVGV2dF8BEAARIjNEVWZ3iJmqu8zd7v9CDwIIb25ljhIChAEgn4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCghGNAJGfgBKwgAkAhWrze8BI0VnidoIAAxpUT09jlgEOtECUp0AffREdGV4dCI6InR3byB3b3JkcyJ9EbwVAEQQUT09In0=": {
			ID:       "evt_00112233445566778899aabbccddeeff",
			Record:   []byte(`{"agent_id":"agt_one","custody":"agent","event_digest":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","event_id":"evt_00112233445566778899aabbccddeeff","sig_value_b64":"` + signature + `","v":1}`),
			Envelope: []byte(`{"action_kind":"tool_call","event_id":"evt_00112233445566778899aabbccddeeff","payload":{"text":"two words"},"sig_value_b64":"` + signature + `"}`),
		},
		"AgULDTBlMm5vdCBKU09OOgEC": {ID: "e2", Record: []byte("not JSON:\x01\x02"), Envelope: []byte{}},
		"AQQHCSBlM3sidiI6MX0=":     {ID: "e3", Record: []byte(`{"v":1}`)},
		"AwQHrAIJIGUzeyJ2IjoxfQ==": {ID: "e3", Record: []byte(`{"v":1}`), ErasedBy: 300},
	}
}

func stored(t testing.TB, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestStoredForms(t *testing.T) {
	c := newDocumentCodec()
	for text, want := range storedForms() {
		got, ok := c.Parse(stored(t, text))
		if !ok || got.ID != want.ID || !bytes.Equal(got.Record, want.Record) || !bytes.Equal(got.Envelope, want.Envelope) || (got.Envelope == nil) != (want.Envelope == nil) ||
			got.ErasedBy != want.ErasedBy {
			t.Errorf("got %+v, %v, want %+v", got, ok, want)
		}
	}
	for name, text := range map[string]string{
		"empty": "", "another form": "BQULDTBlMm5vdCBKU09OOgEC", "lengths that are too long": "AgX//w0wZTJub3QgSlNPTjoBAg==",
		"length of 4 GB": "AgULgICAgBAwZTJub3QgSlNPTjoBAg==", "bytes of no envelope": "AQQGCSBlM3sidiI6MX0=",
	} {
		if got, ok := c.Parse(stored(t, text)); ok {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func FuzzDocument(f *testing.F) {
	c := newDocumentCodec()
	f.Add("e1", []byte(`{"v":1}`), []byte(strings.Repeat("0123456789abcdef", 4)))
	f.Add("", []byte{1, 2}, []byte(nil))
	f.Fuzz(func(t *testing.T, name string, record, envelope []byte) {
		if len(envelope) == 0 {
			envelope = nil
		}
		d := document{ID: id.Event(name), Record: record, Envelope: envelope}
		if envelope == nil {
			d.ErasedBy = id.Index(len(record))
		}
		same(t, c, d)
	})
}

// Damaged stored bytes are rejected or read as something else; nothing worse.
func FuzzStoredForms(f *testing.F) {
	c := newDocumentCodec()
	for text := range storedForms() {
		f.Add(stored(f, text))
	}
	f.Fuzz(func(_ *testing.T, value []byte) { c.Parse(value) })
}

func BenchmarkDocument(b *testing.B) {
	c := newDocumentCodec()
	events := storagetest.NewWriter(1).Next(500).Events
	text := func(e *storage.Event) document { return document{ID: e.ID, Record: e.Record, Envelope: e.Envelope} }
	var all [][]byte
	total, plain := 0, 0
	for i := range events {
		value, _ := c.Append(nil, text(&events[i]), nil)
		all = append(all, value)
		total, plain = total+len(value), plain+len(events[i].ID)+len(events[i].Record)+len(events[i].Envelope)
	}
	b.Run("append", func(b *testing.B) {
		var value, scratch []byte
		b.ReportAllocs()
		for b.Loop() {
			value, scratch = c.Append(value[:0], text(&events[rand.IntN(len(events))]), scratch)
		}
		b.ReportMetric(float64(total)/float64(len(all)), "B/event")
		b.ReportMetric(float64(plain)/float64(len(all)), "plain-B/event")
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := c.Parse(all[rand.IntN(len(all))]); !ok {
				b.Fatal("not parsed")
			}
		}
	})
}
