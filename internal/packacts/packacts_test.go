package packacts

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/jcs"
)

func columnValue(e *event.Envelope, name string) []byte {
	return New([]string{name}).columnValues(e)[0].Value
}

func TestColumnValue(t *testing.T) {
	payload := `{"a":1.5,"b":{"c":["x",-2,[true,"y"]]},"d":null,"e":"` + string(bytes.Repeat([]byte("x"), 128)) + `","f":"` +
		string(bytes.Repeat([]byte("x"), 129)) + `","g":false,"h":""}`
	for name, want := range map[string]string{
		"a": "1.5", "b": "null", "b.c": "null", "b.c[0]": `"x"`, "b.c[1]": "-2", "b.c[2]": "null", "b.c[2][1]": `"y"`, "b.c[2][0]": "null",
		"b.c[3]": "null", "b.c[0][0]": "null", "a[0]": "null", "a.b": "null", "d": "null", "f": "null", "g": "null", "h": `""`, "z": "null", "z.y[1]": "null",
	} {
		if got := string(columnValue(&event.Envelope{Payload: []byte(payload)}, name)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if got := columnValue(&event.Envelope{Payload: []byte(payload)}, "e"); len(got) != 130 {
		t.Errorf("a text of 128 bytes: got %s", got)
	}
	if got := columnValue(nil, "a"); string(got) != "null" {
		t.Errorf("without an envelope: got %s", got)
	}
}

func FuzzColumnValue(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",{"b":2}]}`), "a[2].b")
	f.Fuzz(func(t *testing.T, payload []byte, name string) {
		canonical, _, err := jcs.ParseObject(nil, payload, jcs.MaxDepth)
		if err != nil || !column.ValidPath(name) {
			return
		}
		value := columnValue(&event.Envelope{Payload: canonical}, name)
		again, err := jcs.Canonicalize(value, jcs.MaxDepth)
		if err != nil || !bytes.Equal(again, value) || !bytes.ContainsAny(value[:1], `-0123456789"n`) || len(value) > 2000 {
			t.Errorf("%s of %s: got %s, %v", name, canonical, value, err)
		}
	})
}

func TestVotesAreBounded(t *testing.T) {
	table := New(nil)
	e := &event.Envelope{ActorPrincipal: "acc_1/session", Payload: []byte(`{"transition":"voted","vote":"approve"}`)}
	for i := range MaxVotes {
		if !table.AddStatement(fmt.Sprint("apr_", i%1000), id.Index(i), e) {
			t.Fatalf("vote %d is refused", i)
		}
	}
	if table.AddStatement("apr_1", MaxVotes, e) {
		t.Error("a vote more is accepted")
	}
}

// Size is at least the size of the lines, for the longest values, and not much more for short ones.
func TestSize(t *testing.T) {
	most := strings.Repeat("x", 128)
	escaped := `{"a":"` + strings.Repeat("\\u0001", 128) + `","b":"` + strings.Repeat("\\u0001", 128) + `"}`
	for name, c := range map[string]struct {
		tool    id.Tool
		payload string
		votes   int
		spare   uint64
	}{
		"short":         {"acme.pay", `{"a":1}`, 0, 250},
		"long":          {id.Tool(strings.Repeat("t", 256)), escaped, 3, 120},
		"large payload": {"acme.pay", `{"a":1,"z":"` + strings.Repeat("z", 1<<20) + `"}`, 0, 2000},
		"many votes":    {"acme.pay", `{"a":1}`, 1000, 500},
		"erased":        {"", "", 2, 120},
	} {
		table := New([]string{"a", "b"})
		var e *event.Envelope
		if c.payload != "" {
			e = &event.Envelope{Tool: c.tool, ActorPrincipal: "\x01" + most, Payload: []byte(c.payload)}
		}
		r := &event.Record{Signer: event.SignerAgent, EventID: id.Event(most), AgentID: id.Agent(most),
			Policy: event.Policy{Evaluated: true, Effective: id.AllowWithObligation, PolicyID: most, PolicyVersion: event.MaxSeq, RuleID: most}}
		const at = event.MaxSeq - 1
		var want uint64
		for i := range uint64(2) {
			r.EventID = id.Event(fmt.Sprint(i, most[1:]))
			r.Policy.ApprovalID = most
			table.AddEvent(at+id.Index(i), r, e)
		}
		for i := range c.votes {
			vote := &event.Envelope{ActorPrincipal: most, Payload: []byte(`{"transition":"invalidated","vote":"approve"}`)}
			if i%2 > 0 {
				vote.Payload = []byte(`{"transition":"invalidated","vote":"approve","deputy_for":"` + most + `"}`)
			}
			table.AddStatement(most, 1, vote)
		}
		if !table.Join() {
			t.Fatal(name)
		}
		for i := range uint64(2) {
			r.EventID = id.Event(fmt.Sprint(i, most[1:]))
			line, is := table.Line(at+id.Index(i), r, e)
			if !is || len(line.Votes) != c.votes {
				t.Fatalf("%s: got %+v, %v", name, line, is)
			}
			want += uint64(len(line.AppendText(nil))) + 1
		}
		if got := table.Size(); got < want || got > want+2*c.spare {
			t.Errorf("%s: got %d for %d bytes", name, got, want)
		}
	}
}

// An approval without a vote in the pack is not counted as that of a person.
func TestSummaryOfApprovals(t *testing.T) {
	var s Summary
	yes, no := Vote{Account: "acc_1", Approve: true}, Vote{Account: "acc_1"}
	for _, l := range []Line{
		{Outcome: Done, Status: StatusApproved, Votes: []Vote{yes, yes}},
		{Outcome: Done, Status: StatusApproved, Votes: []Vote{no}},
		{Outcome: Done, Status: StatusApproved},
		{Outcome: Failed, Status: StatusApproved},
		{Outcome: Done, Status: StatusRefused, Votes: []Vote{no}},
		{Outcome: Done},
	} {
		s.Add(&l)
	}
	if s.ApprovedDone != 1 || s.OutsideDone != 2 || s.RefusedDone != 1 {
		t.Errorf("got %+v", s)
	}
}

// A table of 100,000 acts with results takes a bounded amount of memory.
func TestMemory(t *testing.T) {
	const acts = 100_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	table := New(nil)
	act := &event.Record{Signer: event.SignerAgent, Policy: event.Policy{Evaluated: true, Effective: id.Allow}}
	result := &event.Record{Signer: event.SignerAgent}
	e := &event.Envelope{Tool: "acme.pay", Payload: []byte(`{"phase":"intent"}`)}
	for i := range acts {
		act.EventID = id.Event(fmt.Sprint("evt-", i))
		result.Policy.Intent = act.EventID
		table.AddEvent(id.Index(2*i), act, e)
		table.AddEvent(id.Index(2*i+1), result, e)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := (after.HeapAlloc - before.HeapAlloc) / acts; used > 250 {
		t.Errorf("%d bytes for each act with its result", used)
	} else {
		t.Logf("%d bytes for each act with its result", used)
	}
	if !table.Join() || table.Len() != acts {
		t.Errorf("got %d acts", table.Len())
	}
	act.EventID = "evt-0"
	if line, is := table.Line(0, act, e); !is || line.Outcome != Done || line.Result != 1 {
		t.Errorf("got %+v, %v", line, is)
	}
}
