package event_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

func parse(payload string) (event.Erasure, error) {
	return event.ParseErasure(&event.Envelope{ActionKind: event.KindErasure, Payload: []byte(payload)})
}

func TestErasureRoundTrip(t *testing.T) {
	want := event.Erasure{Ranges: []id.Range{{Begin: 0, End: 2}, {Begin: 2, End: 3}, {Begin: 9, End: 4105 - 3}}, Reason: "person_request"}
	payload, err := jcs.Marshal(want.Payload())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parse(string(payload)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, %v", payload, got, err)
	}
	for i, covered := range map[id.Index]bool{0: true, 2: true, 3: false, 8: false, 9: true, 4101: true, 4102: false} {
		if got := want.Covers(i); got != covered {
			t.Errorf("covers %d: got %v, want %v", i, got, covered)
		}
	}
}

func TestParseErasureRejects(t *testing.T) {
	many := make([]string, event.MaxErasedRanges+1)
	for i := range many {
		many[i] = fmt.Sprintf("[%d,%d]", 2*i, 2*i+1)
	}
	for name, payload := range map[string]string{
		"no ranges":       `{"ranges":[],"reason":"x"}`,
		"too many ranges": `{"ranges":[` + strings.Join(many, ",") + `],"reason":"x"}`,
		"too many events": `{"ranges":[[0,4096],[5000,5001]],"reason":"x"}`,
		"a huge range":    `{"ranges":[[0,18446744073709551615]],"reason":"x"}`,
		"an empty range":  `{"ranges":[[1,1]],"reason":"x"}`,
		"backwards":       `{"ranges":[[2,1]],"reason":"x"}`,
		"common indices":  `{"ranges":[[0,2],[1,3]],"reason":"x"}`,
		"descending":      `{"ranges":[[4,5],[1,3]],"reason":"x"}`,
		"three numbers":   `{"ranges":[[1,2,3]],"reason":"x"}`,
		"one number":      `{"ranges":[[1]],"reason":"x"}`,
		"negative":        `{"ranges":[[-1,3]],"reason":"x"}`,
		"no reason":       `{"ranges":[[1,2]]}`,
		"free text":       `{"ranges":[[1,2]],"reason":"Ann asked"}`,
		"a long reason":   `{"ranges":[[1,2]],"reason":"` + strings.Repeat("x", 33) + `"}`,
		"another member":  `{"ranges":[[1,2]],"reason":"x","text":"y"}`,
		"no object":       `[]`,
	} {
		if got, err := parse(payload); !errors.Is(err, event.ErrErasure) {
			t.Errorf("%s: got %+v, %v, want %v", name, got, err, event.ErrErasure)
		}
	}
	if _, err := event.ParseErasure(&event.Envelope{ActionKind: "ledger_clock", Payload: []byte(`{"ranges":[[1,2]],"reason":"x"}`)}); !errors.Is(err, event.ErrErasure) {
		t.Errorf("another kind: got %v, want %v", err, event.ErrErasure)
	}
}

// An accepted payload and the payload of its statement have the same members.
func FuzzParseErasure(f *testing.F) {
	f.Add(`{"ranges":[[0,2],[2,3]],"reason":"person_request"}`)
	f.Add(`{"reason":"x","ranges":[[4,5],[1,3]]}`)
	f.Fuzz(func(t *testing.T, payload string) {
		statement, err := parse(payload)
		if err != nil {
			return
		}
		again, err := json.Marshal(statement.Payload())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parse(string(again)); err != nil || !reflect.DeepEqual(got, statement) {
			t.Errorf("%s became %s: %+v, %v", payload, again, got, err)
		}
	})
}
