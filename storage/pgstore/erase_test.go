package pgstore

import (
	"bytes"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

func TestEraseDocument(t *testing.T) {
	c := newDocumentCodec()
	for name, d := range map[string]document{
		"packed":      {ID: "e", Record: []byte(`{"v":1}`), Envelope: []byte(`{"text":"secret words"}`)},
		"plain":       {ID: "e", Record: []byte("\x01"), Envelope: []byte("secret words")},
		"no envelope": {ID: "e", Record: []byte(`{"v":1}`)},
	} {
		value, _ := c.Append(nil, d, nil)
		erased, ok := c.EraseDocument(value, 7)
		got, parsed := c.Parse(erased)
		if !ok || !parsed || got.ID != d.ID || !bytes.Equal(got.Record, d.Record) || got.Envelope != nil || got.ErasedBy != 7 {
			t.Errorf("%s: got %+v, %v, %v", name, got, ok, parsed)
		}
		if bytes.Contains(erased, []byte("secret")) {
			t.Errorf("%s: the text is there: %q", name, erased)
		}
		if again, ok := c.EraseDocument(erased, 8); !ok || again != nil {
			t.Errorf("%s, again: got %q, %v", name, again, ok)
		}
	}
	if got, ok := c.EraseDocument([]byte{9}, 7); ok {
		t.Errorf("no document: got %q", got)
	}
}

func TestEraseMembers(t *testing.T) {
	c := newDocumentCodec()
	member := func(name string) documentMember {
		return documentMember{storage.Columns{Agent: "a"}, document{ID: id.Event(name), Record: []byte("r"), Envelope: []byte("secret" + name)}}
	}
	value := c.AppendSegment(nil, []documentMember{member("0"), member("1"), member("2")}, new(documentScratch))
	steps := []struct {
		by   [3]id.Index
		want [3]id.Index
		same bool
	}{
		{by: [3]id.Index{0, 7, 0}, want: [3]id.Index{0, 7, 0}},
		{by: [3]id.Index{0, 8, 0}, want: [3]id.Index{0, 7, 0}, same: true},
		{by: [3]id.Index{9, 9, 9}, want: [3]id.Index{9, 7, 9}},
	}
	for n, step := range steps {
		stored, ok := c.EraseMembers(value, 3, func(i int) id.Index { return step.by[i] })
		if !ok || (stored == nil) != step.same {
			t.Fatalf("step %d: got %q, %v", n, stored, ok)
		}
		if stored != nil {
			value = stored
		}
		members, ok := c.ParseSegment(value, 0, 3)
		if !ok {
			t.Fatalf("step %d: not parsed", n)
		}
		for i, m := range members {
			if m.ErasedBy != step.want[i] || (m.Envelope == nil) != (step.want[i] != 0) || string(m.Record) != "r" {
				t.Errorf("step %d, member %d: got %+v, want erased by %d", n, i, m, step.want[i])
			}
		}
	}
	if got, ok := c.EraseMembers(value, 4, func(int) id.Index { return 1 }); ok {
		t.Errorf("one more than there are: got %q", got)
	}
}

func TestDropTexts(t *testing.T) {
	c := newDocumentCodec()
	d := document{ID: "e", Record: []byte(`{"v":1}`), Envelope: []byte(`{"text":"secret words"}`)}
	for name, by := range map[string]id.Index{"with its envelope": 0, "erased": 7} {
		value, _ := c.Append(nil, d, nil)
		if by != 0 {
			value, _ = c.EraseDocument(value, by)
		}
		dropped, ok := c.DropDocument(value)
		got, parsed := c.Parse(dropped)
		if !ok || !parsed || got.ID != "e" || !got.Archived || got.Record != nil || got.Envelope != nil || got.ErasedBy != by {
			t.Errorf("%s: got %+v, %v, %v", name, got, ok, parsed)
		}
		if again, ok := c.DropDocument(dropped); !ok || again != nil {
			t.Errorf("%s, again: got %q, %v", name, again, ok)
		}
		erased, ok := c.EraseDocument(dropped, 9)
		if by != 0 {
			ok = ok && erased == nil
		} else {
			got, parsed = c.Parse(erased)
			ok = ok && parsed && got.Archived && got.ErasedBy == 9 && got.ID == "e"
		}
		if !ok {
			t.Errorf("%s, erased afterwards: got %+v", name, got)
		}
	}
	all := []documentMember{{document: d}, {document: d}, {document: d}}
	value := c.AppendSegment(nil, all, new(documentScratch))
	second := func(i int) bool { return i == 1 }
	value, ok := c.DropMembers(value, 3, second)
	if same, again := c.DropMembers(value, 3, second); !ok || !again || same != nil {
		t.Errorf("dropped again: got %q, %v, %v", same, ok, again)
	}
	value, _ = c.EraseMembers(value, 3, func(i int) id.Index { return id.Index(2*i + 7) })
	got, ok := c.ParseSegment(value, 0, 3)
	if !ok || got[0].Archived || string(got[0].Record) != string(d.Record) || !got[1].Archived || got[1].Record != nil ||
		got[1].ErasedBy != 9 || got[1].ID != "e" {
		t.Errorf("members: got %+v, %v", got, ok)
	}
	for name, stored := range map[string][]byte{"none": {9}, "empty": {}} {
		if _, ok := c.DropDocument(stored); ok {
			t.Errorf("%s: it is a document", name)
		}
		if _, ok := c.DropMembers(stored, 1, second); ok {
			t.Errorf("%s: it is a segment", name)
		}
	}
}
