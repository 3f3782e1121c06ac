package publicapi_test

import (
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

const redInclusion = "/v1/public/orgs/red/transparency/inclusion"

func TestInclusion(t *testing.T) {
	w := newWorld(t)
	receipts := w.append(&w.red, id.DiscloseRecord, names("e", 7)...)
	w.append(&w.blue, id.DiscloseRecord, names("e", 2)...)
	s := w.state(&w.red)
	for size := id.Index(1); size <= 7; size++ {
		root, err := w.ledgers.Root(t.Context(), s, size)
		if err != nil {
			t.Fatal(err)
		}
		for at := id.Index(0); at < size; at++ {
			c := tlog.Checkpoint{Origin: w.red.origin(), Size: size, Root: root}
			for _, target := range []string{
				fmt.Sprintf("%s?log_index=%d&tree_size=%d", redInclusion, at, size),
				fmt.Sprintf("%s?event_id=e-%d&tree_size=%d", redInclusion, at, size),
			} {
				a := read[verify.InclusionAnswer](w, target)
				if err := verify.CheckInclusionAnswer(a, at, receipts[at].EventHash, c); err != nil {
					t.Errorf("%s: %v", target, err)
				}
			}
		}
	}
	if a := read[verify.InclusionAnswer](w, redInclusion+"?event_id=e-3"); a.TreeSize != 7 || a.LogIndex != 3 {
		t.Errorf("by default: got %+v, want the proof in the head", a)
	}
}

func TestInclusionOfOneLeafHasNoHashes(t *testing.T) {
	w := newWorld(t)
	leaf := w.append(&w.red, id.DiscloseRecord, "one")[0].EventHash.String()
	want := `{"log_index":0,"tree_size":1,"leaf_hash":"` + leaf + `","root_hash":"` + leaf + `","hashes":[]}`
	if got := w.get(redInclusion + "?log_index=0").Body.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInclusionRefused(t *testing.T) {
	const (
		number = " must be a whole number in decimal digits"
		either = "Give either log_index or event_id"
		below  = "log_index must be below tree_size"
	)
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one", "two")
	w.append(&w.blue, id.DiscloseRecord, names("blue", 9)...)
	for query, message := range map[string]string{
		"":                               either,
		"?log_index=0&event_id=one":      either,
		"?log_index=":                    `Query parameter \"log_index\" is empty: give it a value or leave it out`,
		"?log_index=-1":                  "log_index" + number,
		"?log_index=%2B1":                "log_index" + number,
		"?log_index=01":                  "log_index" + number,
		"?log_index=1e1":                 "log_index" + number,
		"?log_index=9223372036854775808": "log_index" + number,
		"?log_index=0&tree_size=x":       "tree_size" + number,
		"?log_index=2":                   below,
		"?log_index=1&tree_size=1":       below,
		"?log_index=0&tree_size=0":       below,
		"?log_index=9&tree_size=9":       below,
		"?event_id=two&tree_size=1":      below,
		"?event_id=":                     `Query parameter \"event_id\" is empty: give it a value or leave it out`,
		"?event_id=a/b":                  "event_id must match [A-Za-z0-9._:-]{1,128} and not be . or ..",
		"?log_index=0&log_index=1":       `Query parameter \"log_index\" is given more than once`,
		"?log_index=%zz":                 "The query is malformed",
	} {
		w.invalid(redInclusion+query, message)
	}
	for _, query := range []string{
		"?log_index=0&tree_size=3", "?log_index=0&tree_size=9223372036854775807",
		"?event_id=blue-0", "?event_id=one&tree_size=3",
	} {
		w.missing(redInclusion + query)
	}
	w.invalid("/v1/public/orgs/red/transparency/inclusion?log_index=5&tree_size=9x", "tree_size"+number)
}

const redConsistency = "/v1/public/orgs/red/transparency/consistency"

func TestConsistency(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, names("e", 7)...)
	s := w.state(&w.red)
	checkpoint := func(size id.Index) tlog.Checkpoint {
		root, err := w.ledgers.Root(t.Context(), s, size)
		if err != nil {
			t.Fatal(err)
		}
		return tlog.Checkpoint{Origin: w.red.origin(), Size: size, Root: root}
	}
	for to := id.Index(0); to <= 7; to++ {
		for from := id.Index(0); from <= to; from++ {
			target := fmt.Sprintf("%s?from=%d&to=%d", redConsistency, from, to)
			a := read[verify.Consistency](w, target)
			if err := verify.CheckConsistencyAnswer(a, checkpoint(from), checkpoint(to)); err != nil {
				t.Errorf("%s: %v", target, err)
			}
		}
	}
	if a := read[verify.Consistency](w, redConsistency+"?from=2"); a.To != 7 {
		t.Errorf("by default: got to %d, want the head's size", a.To)
	}
	want := `{"from":0,"to":7,"from_root":"` + tlog.EmptyRoot().String() + `","to_root":"` + s.Root().String() + `","hashes":[]}`
	if got := w.get(redConsistency + "?from=0").Body.String(); got != want {
		t.Errorf("from the empty tree: got %s, want %s", got, want)
	}
}

func TestConsistencyRefused(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one", "two")
	w.append(&w.blue, id.DiscloseRecord, names("blue", 9)...)
	for query, message := range map[string]string{
		"":                   "from is required",
		"?to=1":              "from is required",
		"?from=":             `Query parameter \"from\" is empty: give it a value or leave it out`,
		"?from=1&to=":        `Query parameter \"to\" is empty: give it a value or leave it out`,
		"?from=2&to=1":       "from must not be above to",
		"?from=3":            "from must not be above to",
		"?from=0&from=1":     `Query parameter \"from\" is given more than once`,
		"?from=0&to=0x1":     "to must be a whole number in decimal digits",
		"?from=00&to=1":      "from must be a whole number in decimal digits",
		"?from=9&to=8&x=%25": `Unknown query parameter \"x\": known are origin, from, to`,
	} {
		w.invalid(redConsistency+query, message)
	}
	w.missing(redConsistency + "?from=0&to=3")
	w.missing(redConsistency + "?from=3&to=3")
}
