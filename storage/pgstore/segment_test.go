package pgstore

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func membersOf(events []storage.Event) (all []documentMember) {
	for i := range events {
		e := &events[i]
		all = append(all, documentMember{e.Columns, document{ID: e.ID, Record: e.Record, Envelope: e.Envelope, ErasedBy: e.ErasedBy}})
	}
	return all
}

// sameSegment checks that members are read as they were stored, in every range, and returns them as read.
func sameSegment(t testing.TB, c *documentCodec, members []documentMember) []byte {
	t.Helper()
	prefix := []byte("before")
	value := c.AppendSegment(bytes.Clone(prefix), members, new(documentScratch))
	if !bytes.HasPrefix(value, prefix) {
		t.Fatal("what was there before is gone")
	}
	value = value[len(prefix):]
	for begin := range members {
		for end := begin; end <= len(members); end++ {
			got, ok := c.ParseSegment(value, begin, end)
			if want := members[begin:end]; !ok || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Fatalf("members [%d, %d): got %+v, %v, want %+v", begin, end, got, ok, want)
			}
		}
	}
	if got, ok := c.ParseSegment(value, 0, len(members)+1); ok {
		t.Fatalf("one more than there are: got %+v", got)
	}
	return value
}

func TestSegment(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	full := documentMember{
		storage.Columns{ReceivedAt: 1_780_000_000_000, Agent: "agt_one", Trace: id.Trace(hash), Tool: "mail.send", ActionKind: "tool_call", Effective: id.Allow, Disclosure: id.DiscloseRecord},
		document{ID: id.Event(hash), Record: []byte(`{"a":"` + hash + `"}`), Envelope: []byte(`{"b":"` + hash + `"}`)},
	}
	bare := documentMember{document: document{ID: "e1", Record: []byte{}}}
	marks := documentMember{Columns: storage.Columns{ReceivedAt: -5}, document: document{ID: "\x01", Record: []byte("\x02\x01" + hash), Envelope: []byte{}}}
	c := newDocumentCodec()
	for name, members := range map[string][]documentMember{
		"one": {full}, "none of its parts": {bare}, "not JSON": {marks}, "several": {full, bare, marks, full, full},
		"lifelike": membersOf(storagetest.NewWriter(1).Next(12).Events),
	} {
		t.Run(name, func(t *testing.T) {
			value := sameSegment(t, c, members)
			for n := range value { // cut off anywhere, it is damaged
				if got, ok := c.ParseSegment(value[:n], 0, len(members)); ok {
					t.Fatalf("cut off at %d of %d: got %+v", n, len(value), got)
				}
			}
		})
	}
}

// Values with damaged parts are rejected; whatever length they claim, no more is read than there is.
func TestDamagedSegments(t *testing.T) {
	c := newDocumentCodec()
	good := []byte("\x0d\x00\x01\x01\x02\x00\x00\x00\x00\x05\x01e1r")
	good[0] = byte(len(good) - 1)
	block := func(body string) []byte { return append([]byte{segmentForm}, s2.Encode(nil, []byte(body))...) }
	if got, ok := c.ParseSegment(block(string(good)), 0, 1); !ok || got[0].ID != "e1" || string(got[0].Record) != "r" || got[0].Envelope == nil {
		t.Fatalf("got %+v, %v", got, ok)
	}
	changed := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return block(string(b))
	}
	for name, value := range map[string][]byte{
		"empty":                    {},
		"another form":             append([]byte{2}, block(string(good))[1:]...),
		"no block":                 {segmentForm},
		"length of 4 GB":           append([]byte{segmentForm}, "\x80\x80\x80\x80\x10x"...),
		"no part":                  block(""),
		"a part longer than all":   changed(0, 40),
		"another form of texts":    changed(4, 9),
		"a text longer than all":   changed(5, 100),
		"texts of no envelope":     changed(9, 2),
		"a record longer than all": changed(10, 100),
	} {
		if got, ok := c.ParseSegment(value, 0, 1); ok {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// storedSegments are values that programs have written. They must stay readable permanently.
func storedSegments() map[string][]string {
	return map[string][]string{
		"AZgD8GPQAoCgpITOZwECAQckCQlJpAFhZ3Rfb25ldHJjXwEQ/+7dzLuqmYh3ZlVEMyIRAG1haWwuc2VuZHRvb2xfY2FsbGV2dF8BEAARIjNEVWZ3iJmqu8zd7v97ImV2ZW50X2lkIjoiViMAcCIsInNpZ192YWx1ZV9iNjQiOiICFavN7wEjRWeJ2ggAqGlRPT0iLCJ2IjoxfXsicGF5bG9hZCI6eyJ0ZXh0IjoidHdvIHdvcmRzIn0RfhUASAh9LIIlUSADAQIHAAAJBQsxUDUxNDJub3QgSlNPTjoBAhiEBS1EAAABAAAAAAQHZTN7InYiOjF9": {
			"1780000000000 1 2 agt_one trc_ffeeddccbbaa99887766554433221100 mail.send tool_call evt_00112233445566778899aabbccddeeff {\"event_id\":\"evt_00112233445566778899aabbccddeeff\",\"sig_value_b64\":\"q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8BI0VniQ==\",\"v\":1} {\"payload\":{\"text\":\"two words\"},\"sig_value_b64\":\"q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8BI0VniQ==\"}",
			"1780000000001 3 1 agt_one   tool_call e2 not JSON:\x01\x02 ",
			"1780000000002 0 0     e3 {\"v\":1} ",
		},
	}
}

func TestStoredSegments(t *testing.T) {
	c := newDocumentCodec()
	for text, want := range storedSegments() {
		got, ok := c.ParseSegment(stored(t, text), 0, len(want))
		if !ok {
			t.Fatalf("%s is not read", text)
		}
		for i, m := range got {
			if line := lineOf(m); line != want[i] {
				t.Errorf("member %d: got %s, want %s", i, line, want[i])
			}
		}
	}
}

func lineOf(m documentMember) string {
	return fmt.Sprintf("%d %d %d %s %s %s %s %s %s %s", m.ReceivedAt, m.Effective, m.Disclosure, m.Agent, m.Trace, m.Tool, m.ActionKind, m.ID, m.Record, m.Envelope)
}

func FuzzSegment(f *testing.F) {
	c := newDocumentCodec()
	f.Add(int64(5), "agent", "trace", "e1", []byte(`{"v":1}`), []byte(strings.Repeat("0123456789abcdef", 4)))
	f.Fuzz(func(t *testing.T, at int64, agent, trace, name string, record, envelope []byte) {
		one := documentMember{storage.Columns{ReceivedAt: id.Instant(at), Agent: id.Agent(agent), Trace: id.Trace(trace)}, document{ID: id.Event(name), Record: append([]byte{}, record...), Envelope: append([]byte{}, envelope...)}}
		erased := one
		erased.Envelope, erased.ErasedBy = nil, id.Index(at)&(1<<62-1)
		archived, both := one, erased
		archived.drop()
		both.drop()
		sameSegment(t, c, []documentMember{one, erased, archived, one, both})
	})
}

// Damaged stored bytes are rejected or read as something else; nothing worse.
func FuzzStoredSegments(f *testing.F) {
	c := newDocumentCodec()
	for text := range storedSegments() {
		f.Add(stored(f, text))
	}
	f.Add(c.AppendSegment(nil, membersOf(storagetest.NewWriter(1).Next(3).Events), new(documentScratch)))
	f.Fuzz(func(_ *testing.T, value []byte) { c.ParseSegment(value, 1, 3) })
}

func BenchmarkSegment(b *testing.B) {
	c := newDocumentCodec()
	for _, n := range []int{1, 4, 8, 16, 30, 64, 256} {
		members := membersOf(storagetest.NewWriter(1).Next(n).Events)
		var s documentScratch
		value := c.AppendSegment(nil, members, &s)
		b.Run(fmt.Sprintf("append/members=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				value = c.AppendSegment(value[:0], members, &s)
			}
			b.ReportMetric(float64(len(value))/float64(n), "B/event")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		})
		b.Run(fmt.Sprintf("parse-one/members=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, ok := c.ParseSegment(value, i%n, i%n+1); !ok {
					b.Fatal("not parsed")
				}
			}
		})
	}
}
