package coverage

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
)

const tolerance = 60_000

var within = Options{From: 1_000_000, To: 9_000_000, Tolerance: tolerance}

func refund(at id.Instant, ids IDs) Act {
	return Act{Index: id.Index(at), Tool: "refund", Agent: "bot", Time: at, Outcome: "done", Permitted: true, IDs: ids}
}

// Each call has what the table says, and each act.
func TestCompare(t *testing.T) {
	denied := func(a Act) Act { a.Permitted, a.Outcome = false, "denied"; return a }
	for _, c := range []struct {
		name  string
		calls []Call
		acts  []Act
		o     Options
		want  string
	}{
		{"identified", []Call{{Tool: "refund", IDs: IDs{callID: "c1"}}}, []Act{refund(2_000_000, IDs{callID: "c1"})}, within, "0 call_id 0"},
		{"the strongest identifier counts", []Call{{Tool: "refund", IDs: IDs{eventID: "e1", callID: "c1"}}},
			[]Act{refund(2_000_000, IDs{eventID: "e1", callID: "c1"})}, within, "0 event_id 0"},
		{"denied and made", []Call{{Tool: "refund", IDs: IDs{callID: "c1"}}}, []Act{denied(refund(2_000_000, IDs{callID: "c1"}))}, within,
			"0 unpermitted call_id 0"},
		{"made twice under one grant", []Call{{Tool: "refund", IDs: IDs{grantNonce: "n"}}, {Tool: "refund", IDs: IDs{grantNonce: "n"}}},
			[]Act{refund(2_000_000, IDs{grantNonce: "n"})}, within, "0 grant_nonce 0; 1 repeated 0"},
		{"another tool", []Call{{Tool: "payout", IDs: IDs{callID: "c1"}}}, []Act{refund(2_000_000, IDs{callID: "c1"})}, within,
			"0 conflict 0; extra 0"},
		{"another agent", []Call{{Tool: "refund", Agent: "other", IDs: IDs{callID: "c1"}}}, []Act{refund(2_000_000, IDs{callID: "c1"})}, within,
			"0 conflict 0; extra 0"},
		{"identifiers that contradict", []Call{{Tool: "refund", IDs: IDs{approvalID: "a", callID: "c2"}}},
			[]Act{refund(2_000_000, IDs{approvalID: "a", callID: "c1"})}, within, "0 conflict 0; extra 0"},
		{"an attempt that was denied and one that was not", []Call{{Tool: "refund", IDs: IDs{callID: "c1"}}},
			[]Act{denied(refund(2_000_000, IDs{callID: "c1"})), refund(2_000_001, IDs{callID: "c1"})}, within, "0 call_id 1; not made 1"},
		{"by time, nearly too far", []Call{{Tool: "refund", Time: 2_060_000}, {Tool: "refund", Time: 3_060_001}},
			[]Act{refund(2_000_000, IDs{}), refund(3_000_000, IDs{})}, within, "0 time 0; 1 no_act; extra 1"},
		{"an act by time alone with another identifier", []Call{{Tool: "refund", Time: 2_000_000, IDs: IDs{callID: "c2"}}},
			[]Act{refund(2_000_000, IDs{callID: "c1"})}, within, "0 no_act; extra 0"},
		{"more calls than acts", []Call{{Tool: "refund", Time: 2_000_000}, {Tool: "refund", Time: 2_000_001}}, []Act{refund(2_000_000, IDs{})}, within,
			"0 time 0; 1 taken"},
		{"agents", []Call{{Tool: "refund", Agent: "bot", Time: 2_000_000}, {Tool: "refund", Agent: "other", Time: 2_000_000}},
			[]Act{refund(2_000_000, IDs{}), refund(2_000_001, IDs{})}, within, "0 time_agent 0; 1 no_act; extra 1"},
		{"a call that names its agent chooses first", []Call{{Tool: "refund", Trace: "t", Time: 2_000_000}, {Tool: "refund", Agent: "bot", Trace: "t", Time: 2_000_001}},
			[]Act{{Index: 1, Tool: "refund", Agent: "bot", Time: 2_000_000, Permitted: true, Traces: [2]string{"x", "t"}}}, within, "0 taken; 1 trace 0"},
		{"an approval took five days", []Call{{Tool: "refund", Time: 2_000_000 + 5*86_400_000}},
			[]Act{refund(2_000_000, IDs{approvalID: "a"})}, Options{From: 1, To: 9e12, Tolerance: tolerance}, "0 time 0"},
		{"a denied act only if no other fits", []Call{{Tool: "refund", Time: 2_000_000}},
			[]Act{denied(refund(2_000_000, IDs{})), refund(2_000_001, IDs{})}, within, "0 time 1; not made 1"},
		{"only a denied act", []Call{{Tool: "refund", Time: 2_000_000}}, []Act{denied(refund(2_000_000, IDs{}))}, within, "0 unpermitted time 0"},
		{"a denied act of its trace before another that only is near in time", []Call{{Tool: "refund", Time: 2_000_000, Trace: "t"}},
			[]Act{{Index: 1, Tool: "refund", Agent: "bot", Time: 2_000_000, Outcome: "denied", Traces: [2]string{"t"}}, refund(2_000_001, IDs{})}, within,
			"0 unpermitted trace 0; extra 1"},
		{"a permitted act of its trace before a denied one", []Call{{Tool: "refund", Time: 2_000_000, Trace: "t"}},
			[]Act{{Index: 1, Tool: "refund", Time: 2_000_000, Outcome: "denied", Traces: [2]string{"t"}},
				{Index: 2, Tool: "refund", Time: 2_000_001, Outcome: "done", Permitted: true, Traces: [2]string{"t"}}}, within, "0 trace 1; not made 1"},
		{"strict", []Call{{Tool: "refund", Time: 2_000_000}}, []Act{refund(2_000_000, IDs{})},
			Options{From: 1, To: 9e12, Tolerance: tolerance, Strict: true}, "0 weak 0"},
		{"arguments", []Call{{Tool: "refund", InputDigest: "d", Time: 2_000_000}, {Tool: "refund", InputDigest: "e", Time: 2_000_000}},
			[]Act{{Index: 1, Tool: "refund", Time: 2_000_000, Permitted: true, InputDigest: "d"}, {Index: 2, Tool: "refund", Time: 2_000_000, Permitted: true, InputDigest: "f"}},
			within, "0 input_digest 0; 1 no_act; extra 1"},
		{"nothing to identify it by", []Call{{Tool: "refund"}}, []Act{refund(2_000_000, IDs{})}, within, "0 unidentified; extra 0"},
		{"outside", []Call{{Tool: "refund", Time: 999_999}, {Tool: "refund", Time: 9_000_000}, {Tool: "refund", Time: 1_000_000}},
			[]Act{refund(999_000, IDs{}), refund(9_000_000, IDs{})}, within, "2 time 0; outside 2"},
	} {
		r := compare(t, c.calls, c.acts, c.o)
		if got := describe(&r); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func compare(t testing.TB, calls []Call, acts []Act, o Options) Result {
	t.Helper()
	r, err := Compare(calls, acts, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func describe(r *Result) string {
	byCall := map[int]string{}
	for _, m := range r.Matched {
		byCall[m.Call] = fmt.Sprintf("%d %s %d", m.Call, m.By, m.Act)
	}
	for _, m := range r.Unpermitted {
		byCall[m.Call] = fmt.Sprintf("%d unpermitted %s %d", m.Call, m.By, m.Act)
	}
	for _, m := range r.Missing {
		byCall[m.Call] = fmt.Sprintf("%d %s", m.Call, m.Reason)
		if m.Act >= 0 {
			byCall[m.Call] += fmt.Sprintf(" %d", m.Act)
		}
	}
	var words []string
	for c := range 100 {
		if byCall[c] != "" {
			words = append(words, byCall[c])
		}
	}
	for _, a := range r.Extra {
		words = append(words, fmt.Sprint("extra ", a))
	}
	if r.NotMade > 0 {
		words = append(words, fmt.Sprint("not made ", r.NotMade))
	}
	if r.Outside > 0 {
		words = append(words, fmt.Sprint("outside ", r.Outside))
	}
	return strings.Join(words, "; ")
}

// permits is the naive form of a rule: whether it may pair a call with an act.
func (r Rule) permits(c *Call, a *Act) bool {
	if c.Tool != a.Tool || c.Agent != "" && c.Agent != a.Agent {
		return false
	}
	for k := range c.IDs {
		same := c.IDs[k] != "" && c.IDs[k] == a.IDs[k]
		if r == Rule(k) {
			return same
		}
		if c.IDs[k] != "" && a.IDs[k] != "" && !(same && r < ByInput) {
			return false
		}
	}
	if r != ByInput && c.InputDigest != "" && a.InputDigest != "" {
		return false
	}
	last := a.Time + tolerance
	if a.IDs[approvalID] != "" {
		last += ApprovalTime
	}
	if c.Time != 0 && (c.Time < a.Time-tolerance || c.Time > last) {
		return false
	}
	switch r {
	case ByInput:
		return c.InputDigest != "" && c.InputDigest == a.InputDigest
	case ByTrace:
		return c.Trace != "" && (c.Trace == a.Traces[0] || c.Trace == a.Traces[1])
	case ByTimeAgent:
		return c.Time != 0 && c.Agent != ""
	}
	return c.Time != 0 && c.Agent == ""
}

// Every pair satisfies its rule, no call is missing for which an act is free, nothing is counted twice, and the order of the acts does not matter.
func TestComparisonsOfRandomRecords(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func(odds int, of ...string) string {
		if rng.IntN(odds) > 0 {
			return ""
		}
		return of[rng.IntN(len(of))]
	}
	for range 3000 {
		calls, acts := make([]Call, rng.IntN(8)), make([]Act, rng.IntN(8))
		for i := range calls {
			calls[i] = Call{Line: i, Tool: []string{"refund", "payout"}[rng.IntN(2)], Agent: word(2, "a", "b"), InputDigest: word(3, "d", "e"), Trace: word(3, "t", "u"),
				IDs: IDs{word(6, "1", "2"), word(6, "1", "2"), word(6, "1", "2"), word(4, "1", "2"), word(6, "1")}}
			if rng.IntN(4) > 0 {
				calls[i].Time = id.Instant(900_000 + 20_000*rng.IntN(20))
			}
		}
		for i := range acts {
			acts[i] = Act{Index: id.Index(i), Tool: []string{"refund", "payout"}[rng.IntN(2)], Agent: []string{"a", "b"}[rng.IntN(2)], Permitted: rng.IntN(3) > 0,
				Time: id.Instant(900_000 + 20_000*rng.IntN(20)), InputDigest: word(3, "d", "e"), Traces: [2]string{word(2, "t", "u"), word(4, "t", "u")},
				IDs: IDs{fmt.Sprint(i), word(6, "1", "2"), word(6, "1", "2"), word(3, "1", "2"), word(6, "1")}}
		}
		o := Options{From: 1_000_000, To: 1_200_000, Tolerance: tolerance}
		r := compare(t, calls, acts, o)
		checkResult(t, calls, acts, &o, &r)

		shuffled := slices.Clone(acts)
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again := compare(t, calls, shuffled, o)
		pairs := func(of []Match, acts []Act) (list []string) {
			for _, m := range of {
				list = append(list, fmt.Sprint(m.Call, m.By, acts[m.Act].Index))
			}
			return list
		}
		if !reflect.DeepEqual(pairs(r.Matched, acts), pairs(again.Matched, shuffled)) || len(r.Missing) != len(again.Missing) {
			t.Fatalf("the order of acts counts: %+v %+v: %s, then %s", calls, acts, describe(&r), describe(&again))
		}
	}
}

func checkResult(t *testing.T, calls []Call, acts []Act, o *Options, r *Result) {
	t.Helper()
	held, found := make(map[int]bool), r.Outside
	for i, m := range slices.Concat(r.Matched, r.Unpermitted) {
		if held[m.Act] || !m.By.permits(&calls[m.Call], &acts[m.Act]) && m.By >= ByInput || acts[m.Act].Permitted != (i < len(r.Matched)) {
			t.Fatalf("%+v %+v: wrong pair %+v in %s", calls, acts, m, describe(r))
		}
		held[m.Act] = true
		found++
	}
	for _, m := range r.Missing {
		found++
		if m.Reason != Taken && m.Reason != NoAct && m.Reason != Unidentified {
			continue
		}
		fits := false
		for a := range acts {
			for _, by := range Rules() {
				if !by.permits(&calls[m.Call], &acts[a]) {
					continue
				}
				if fits = true; !held[a] {
					t.Fatalf("%+v %+v: call %d is missing, but act %d fits by %s: %s", calls, acts, m.Call, a, by, describe(r))
				}
			}
		}
		if fits != (m.Reason == Taken) {
			t.Fatalf("%+v %+v: call %d is %s: %s", calls, acts, m.Call, m.Reason, describe(r))
		}
	}
	if found != len(calls) {
		t.Fatalf("%+v: %d of %d calls are in the result", calls, found, len(calls))
	}
	extra, notMade := 0, 0
	for a := range acts {
		if !held[a] && o.contains(acts[a].Time) {
			if acts[a].Permitted {
				extra++
			} else {
				notMade++
			}
		}
	}
	if extra != len(r.Extra) || notMade != r.NotMade {
		t.Fatalf("got %d extra and %d not made, want %d and %d", len(r.Extra), r.NotMade, extra, notMade)
	}
}

// By time, as many calls as possible have an act: as many as the naive search for augmenting paths finds.
func TestAsManyAsPossible(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		calls, acts := make([]Call, rng.IntN(10)), make([]Act, rng.IntN(10))
		for i := range calls {
			calls[i] = Call{Tool: "refund", Time: id.Instant(1_000_000 + 10_000*rng.IntN(60))}
		}
		for i := range acts {
			acts[i] = refund(id.Instant(1_000_000+10_000*rng.IntN(60)), IDs{})
			if acts[i].Index = id.Index(i); rng.IntN(5) == 0 {
				acts[i].IDs[approvalID] = "a"
			}
		}
		r := compare(t, calls, acts, Options{From: 1, To: 9e12, Tolerance: tolerance})
		if got, want := len(r.Matched), maximum(calls, acts); got != want {
			t.Fatalf("%+v %+v: got %d pairs, want %d", calls, acts, got, want)
		}
	}
}

func maximum(calls []Call, acts []Act) (n int) {
	callOf := make([]int, len(acts))
	for a := range callOf {
		callOf[a] = -1
	}
	var find func(c int, seen map[int]bool) bool
	find = func(c int, seen map[int]bool) bool {
		for a := range acts {
			if seen[a] || !ByTime.permits(&calls[c], &acts[a]) {
				continue
			}
			seen[a] = true
			if callOf[a] < 0 || find(callOf[a], seen) {
				callOf[a] = c
				return true
			}
		}
		return false
	}
	for c := range calls {
		if find(c, map[int]bool{}) {
			n++
		}
	}
	return n
}

func TestPermits(t *testing.T) {
	for _, c := range []struct {
		outcome  string
		decision id.Decision
		approval bool
		want     bool
	}{
		{"done", id.Allow, false, true}, {"failed", id.Allow, false, true}, {"open", id.Allow, false, true}, {"unknown", id.Allow, false, true},
		{"open", id.AllowWithObligation, false, false}, {"done", id.AllowWithObligation, true, true}, {"done", id.AllowWithObligation, false, false},
		{"denied", id.Deny, false, false}, {"denied", id.Allow, false, false}, {"refused", id.AllowWithObligation, true, false},
		{"waiting", id.AllowWithObligation, true, false}, {"expired", id.AllowWithObligation, true, false}, {"cancelled", id.AllowWithObligation, true, false},
		{"done", id.Deny, true, false},
	} {
		if got := Permits(c.outcome, c.decision, c.approval); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

// Few identifiers of many calls and acts end the comparison, rather than take the product of both.
func TestMaxSteps(t *testing.T) {
	calls, acts := make([]Call, 40_000), make([]Act, 40_000)
	for i := range calls {
		calls[i] = Call{Line: i, Tool: "refund", Agent: "other", IDs: IDs{callID: "same"}}
	}
	for i := range acts {
		acts[i] = refund(id.Instant(1_000_000+i), IDs{callID: "same"})
	}
	_, err := Compare(calls, acts, within)
	if want := "line 1250: too many acts have the same call_id: compare a part of the range, or ignore this field"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for i := range calls[:10_000] {
		calls[i].Agent = "bot"
	}
	if r := compare(t, calls[:10_000], acts[:10_000], within); len(r.Matched) != 10_000 {
		t.Errorf("got %d matched of 10,000 identical calls", len(r.Matched))
	}
}

// The maximum number of acts is read, and one more ends the comparison.
func TestMaxActs(t *testing.T) {
	page := wire.Acts{Acts: make([]wire.Act, 1000), Next: "more"}
	for i := range page.Acts {
		page.Acts[i].Tool, page.Acts[i].ReceivedAt = "refund", within.From
	}
	const full = MaxActs / 1000
	pages := 0
	_, err := within.ReadActs(map[string]bool{"refund": true}, "", func(url.Values) (wire.Acts, error) {
		if pages++; pages <= full {
			return page, nil
		}
		return wire.Acts{Acts: page.Acts[:1]}, nil
	})
	if want := "the range has more than 500000 acts: compare a part of it"; fmt.Sprint(err) != want || pages != full+1 {
		t.Errorf("got %v after %d pages, want %s", err, pages, want)
	}
}

func BenchmarkCompare(b *testing.B) {
	calls, acts := make([]Call, MaxCalls), make([]Act, MaxActs)
	for i := range calls {
		calls[i] = Call{Line: i, Tool: "refund", Time: id.Instant(1_000_000 + 25*i)}
	}
	for i := range acts {
		acts[i] = refund(id.Instant(1_000_000+10*i), IDs{eventID: fmt.Sprint(i), callID: fmt.Sprint("c", i)})
	}
	for b.Loop() {
		Compare(calls, acts, Options{From: 1, To: 9e12, Tolerance: tolerance})
	}
}
