package index_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// columnPaths are the columns of the tests.
var columnPaths = []string{"amount_usd", "order.id", "items[1].price", "note"}

// randomPayload makes up a payload with numbers, texts, other values, long texts and missing members, as canonical JSON.
func randomPayload(r *rand.Rand) (canonical []byte, tagged bool) {
	scalar := func() any {
		return pick(r, []any{r.IntN(1000), float64(r.IntN(100000)) / 100, -r.IntN(50), 0.1 + float64(r.IntN(3)), 1e300, 5e-324, 1 << 52, "ord-" + fmt.Sprint(r.IntN(40)),
			"Grüße \"Ärger\" \\ \n" + fmt.Sprint(r.IntN(5)), "500", "", strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("ü", 64), strings.Repeat("ü", 65),
			true, nil, []any{1}, map[string]any{"id": 5}})
	}
	p := map[string]any{"z\"order\":": map[string]any{"id": "decoy"}, "amount": 500, "text": `","amount_usd":500,"`}
	for _, path := range []string{"amount_usd", "note"} {
		if r.IntN(3) > 0 {
			p[path] = scalar()
		}
	}
	switch r.IntN(4) {
	case 0:
		p["order"] = scalar()
	case 1, 2:
		p["order"] = map[string]any{"id": scalar(), "idx": 1}
	}
	if r.IntN(3) > 0 {
		items := []any{}
		for range r.IntN(4) {
			items = append(items, pick(r, []any{map[string]any{"price": scalar(), "x": []any{}}, scalar()}))
		}
		p["items"] = items
	}
	if r.IntN(10) == 0 {
		p["amount_usd"], p["$tagged"], tagged = map[string]any{"$number": "90071992547409931"}, true, true
	}
	text, _ := json.Marshal(p)
	canonical, err := jcs.Canonicalize(text, 32)
	if err != nil {
		panic(err)
	}
	return canonical, tagged
}

// naiveValue is the value of a payload at a path: a float64, a string, or nil.
func naiveValue(payload []byte, path string) any {
	var v any
	if payload == nil || json.Unmarshal(payload, &v) != nil {
		return nil
	}
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch of := v.(type) {
		case map[string]any:
			v = of[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(of) {
				return nil
			}
			v = of[n]
		default:
			return nil
		}
	}
	if tagged, ok := v.(map[string]any); ok && tagged["$number"] != nil {
		n, _ := strconv.ParseFloat(tagged["$number"].(string), 64)
		return n
	}
	switch of := v.(type) {
	case float64:
		return of
	case string:
		if len(of) <= 128 {
			return of
		}
	}
	return nil
}

// naiveMatch reports whether a value satisfies a condition.
func naiveMatch(v any, operator, literal string) bool {
	n, err := strconv.ParseFloat(literal, 64)
	number, isNumber := v.(float64)
	text, isText := v.(string)
	if v == nil {
		return false
	}
	switch operator {
	case "=":
		return isText && text == literal || isNumber && err == nil && number == n
	case "!=":
		return !naiveMatch(v, "=", literal)
	case "~":
		return isText && strings.Contains(strings.ToLower(text), strings.ToLower(literal))
	case ">":
		return isNumber && number > n
	case ">=":
		return isNumber && number >= n
	case "<":
		return isNumber && number < n
	}
	return isNumber && number <= n
}

// columnStory is a story whose acts have random payloads, and some of whose events change settings.
type columnStory struct {
	*story
	values  []map[string]any // of the events, by path
	changes []id.Index
	columns []index.Column // the settings
}

func (s *columnStory) next(at id.Index) made {
	if len(s.changes) > 0 && s.changes[0] == at {
		s.changes = s.changes[1:]
		e := told{row: index.Row{Index: at, Event: id.Event(fmt.Sprintf("evt_%08d", at)), ReceivedAt: s.now, Agent: "system", Kind: "ledger_settings_changed",
			Signer: event.SignerSystem, Trace: "ledger", Declared: id.Allow, Effective: id.Allow, Principal: "acc_1", Policy: "pol_1", Version: 1, Rule: "rule-1"}}
		s.events, s.values = append(s.events, e), append(s.values, nil)
		return e.make()
	}
	m := s.story.next(at)
	e := &s.events[len(s.events)-1]
	if e.row.Signer == event.SignerSystem || e.row.Tool == "" {
		s.values = append(s.values, nil)
		return m
	}
	payload, tagged := randomPayload(s.random)
	if !tagged { // phase and status are in the payload too
		var members map[string]any
		_ = json.Unmarshal(payload, &members)
		var own struct {
			Payload map[string]any `json:"payload"`
		}
		if err := json.Unmarshal(m.envelope, &own); err != nil {
			panic(err)
		}
		for name, v := range own.Payload {
			members[name] = v
		}
		text, _ := json.Marshal(members)
		payload, _ = jcs.Canonicalize(text, 32)
	} else if e.phase != "" || e.status != "" { // keep the phase of the story
		e := *e
		var members map[string]any
		_ = json.Unmarshal(payload, &members)
		if e.phase != "" {
			members["phase"] = e.phase
		}
		if e.status != "" && e.row.Signer != event.SignerBridge {
			members["status"] = e.status
		}
		text, _ := json.Marshal(members)
		payload, _ = jcs.Canonicalize(text, 32)
	}
	var envelope map[string]json.RawMessage
	if err := json.Unmarshal(m.envelope, &envelope); err != nil {
		panic(err)
	}
	envelope["payload"] = payload
	text, _ := json.Marshal(envelope)
	m.envelope, _ = jcs.Canonicalize(text, 32)
	values := map[string]any{}
	for _, path := range columnPaths {
		values[path] = naiveValue(payload, path)
	}
	s.values = append(s.values, values)
	return m
}

// name adds a column by a change of settings some events later.
func (s *columnStory) name(size id.Index, path string) {
	at := size + 5
	s.changes = append(s.changes, at)
	s.columns = append(s.columns, index.Column{Path: path, From: size})
}

// beginning returns the index of the change that named a column.
func (s *columnStory) beginning(path string) id.Index {
	for _, c := range s.columns {
		if c.Path == path {
			for i := c.From; c.From > 0 && int(i) < len(s.events); i++ {
				if s.events[i].row.Kind == "ledger_settings_changed" && s.events[i].row.Principal == "acc_1" {
					return i
				}
			}
			return 0
		}
	}
	return 1 << 40
}

// checkColumns compares lists by columns with a naive computation.
func (w *world) checkColumns(tenant id.Tenant, s *columnStory, r *rand.Rand, times int) {
	w.t.Helper()
	acts, _ := s.acts()
	begin := map[string]id.Index{}
	for _, path := range columnPaths {
		begin[path] = s.beginning(path)
	}
	for range times {
		q := index.Query{Ascending: r.IntN(2) == 0, Limit: pick(r, []int{1, 2, 7, 50, 1000})}
		type condition struct{ path, operator, literal string }
		var all []condition
		for range 1 + r.IntN(3) {
			c := condition{pick(r, s.columns).Path, pick(r, []string{"=", "!=", ">", ">=", "<", "<=", "~"}),
				pick(r, []string{"500", "0.1", "-3", "12.34", "1e300", "ord-7", "ORD-", "grüße", "Ä", "", "xxx", "90071992547409931", fmt.Sprint(r.IntN(1000))})}
			parsed, err := column.ParseCondition(c.path + c.operator + c.literal)
			if err != nil {
				continue
			}
			all, q.Columns = append(all, c), append(q.Columns, parsed)
		}
		if len(all) == 0 {
			continue
		}
		if r.IntN(3) == 0 {
			q.Outcome = pick(r, []index.Outcome{index.Done, index.Refused, index.Unknown, index.Open})
		}
		if r.IntN(3) == 0 {
			q.Tool = pick(r, []string{"acme.pay", "acme.**"})
		}
		if r.IntN(4) == 0 {
			q.From = index.Bound{Given: true, Index: id.Index(r.IntN(len(s.events)))}
		}
		var want []id.Index
		for i := range acts {
			a := &acts[i]
			if !q.Ascending {
				a = &acts[len(acts)-1-i]
			}
			e := &s.events[a.Index]
			matches := !e.erased && (q.Outcome == 0 || q.Outcome == a.Act.Outcome) && (q.Tool != "acme.pay" || a.Tool == "acme.pay") &&
				(!q.From.Given || a.Index >= q.From.Index)
			for _, c := range all {
				matches = matches && a.Index >= begin[c.path] && naiveMatch(s.values[a.Index][c.path], c.operator, c.literal)
			}
			if matches {
				want = append(want, a.Index)
			}
		}
		var got []id.Index
		most := max(200, 5*q.Limit)
		for {
			page, err := w.index.List(w.t.Context(), tenant, q)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, row := range page.Rows {
				if row.Act == nil {
					w.t.Fatal("a row without an act")
				}
				got = append(got, row.Index)
			}
			if q.After = page.Next; page.Next == nil || len(got) > most {
				break
			}
		}
		if len(got) > most {
			want = want[:min(len(got), len(want))]
		}
		if !slices.Equal(got, want) {
			w.t.Fatalf("%v, outcome %v, tool %q, from %v, limit %d, ascending %v: got %d acts %v, want %d %v", all, q.Outcome, q.Tool, q.From, q.Limit, q.Ascending,
				len(got), got[:min(len(got), 10)], len(want), want[:min(len(want), 10)])
		}
	}
}

// openColumns opens the index of a world with the columns of stories.
func (w *world) openColumns(ledgers index.Ledgers, stories map[id.Tenant]*columnStory) *index.Index {
	return index.New(index.Options{Ledgers: ledgers, Store: w.engine, Clock: w.Clock,
		Columns: func(_ context.Context, s *log.State) ([]index.Column, error) {
			return stories[s.Identity().Tenant].columns, nil
		}})
}

// valueRecords returns the records of values of the current generation, without their generation.
func (w *world) valueRecords(tenant id.Tenant) map[string]string {
	found := map[string]string{}
	for key, value := range w.stored(tenant) {
		if name, ok := strings.CutPrefix(key, "derived/index_values "); ok {
			found[name[strings.IndexByte(name, '/'):]] = string(value)
		}
	}
	return found
}

// Lists by columns are those of a naive computation: in the tail and indexed, after erasures, after a rebuild, for columns that were named
// late, backfilled or removed. A rebuild writes the same records.
func TestColumns(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		stories := map[id.Tenant]*columnStory{}
		w := newWorld(t, open(t), 1000, func(f *filler) {
			s := &columnStory{story: &story{filler: f, random: rand.New(rand.NewPCG(9, uint64(f.tenant))), now: 1_790_000_000_000}}
			if f.tenant == red {
				s.columns = []index.Column{{Path: "amount_usd"}, {Path: "order.id"}}
			} else {
				s.columns = []index.Column{{Path: "items[1].price"}}
			}
			stories[f.tenant], f.make = s, s.next
		})
		ledgers := &reopenable{w.Ledgers}
		w.index = w.openColumns(ledgers, stories)
		random := rand.New(rand.NewPCG(5, 6))
		check := func() {
			t.Helper()
			for tenant, s := range stories {
				w.checkColumns(tenant, s, random, 15)
			}
		}
		grow := func(n int) {
			t.Helper()
			x := w.index
			for tenant := range stories {
				f := newFillerBehind(w, tenant)
				f.append(n)
				w.rows[tenant] = append(w.rows[tenant], f.rows...)
			}
			w.reopen()
			w.index, ledgers.Ledgers = x, w.Ledgers
		}
		check()
		for n := range 5 {
			grow(3500)
			if n%2 == 0 {
				check()
			}
			if n == 1 { // named in the tail, with a chunk that begins before it
				stories[red].name(w.State(t, red).Size(), "note")
				stories[blue].name(w.State(t, blue).Size(), "amount_usd")
				grow(100)
				check()
			}
			w.follow()
			check()
		}
		before := w.valueRecords(red)
		if err := w.index.Rebuild(t.Context(), red); err != nil {
			t.Fatal(err)
		}
		w.follow()
		check()
		if after := w.valueRecords(red); len(before) < 2 || !mapsEqual(before, after) {
			t.Errorf("a rebuild wrote other values: %d records, %d before", len(after), len(before))
		}
		for i := range stories[red].columns {
			stories[red].columns[i].From = 0
		}
		w.checkBuilding(true)
		w.follow()
		w.checkBuilding(false)
		check()
		stories[red].columns = slices.Delete(stories[red].columns, 0, 1)
		check()
		w.follow()
		check()
		for key, record := range w.valueRecords(red) {
			if text, err := decompress(record); err != nil || strings.Contains(text, "amount_usd") {
				t.Errorf("record %s: %v, or it still has the removed column", key, err)
			}
		}
		stories[red].columns = nil
		w.follow()
		if left := w.valueRecords(red); len(left) != 0 {
			t.Errorf("%d records of values are left without columns", len(left))
		}
		_, err := w.index.List(t.Context(), red, index.Query{Limit: 1, Filter: index.Filter{Columns: []column.Condition{{Path: "amount_usd"}}}})
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("a removed column: got %v, want %v", err, fault.Invalid)
		}
		w.checkColumns(blue, stories[blue], random, 15)
	})
}

func mapsEqual(a, b map[string]string) bool {
	for k := range a {
		if a[k] != b[k] {
			return false
		}
	}
	return len(a) == len(b)
}

func (w *world) checkBuilding(want bool) {
	w.t.Helper()
	columns, err := w.index.Columns(w.t.Context(), red)
	if err != nil {
		w.t.Fatal(err)
	}
	building := slices.ContainsFunc(columns, func(c index.ColumnState) bool { return c.Building })
	if building != want || len(columns) != 3 {
		w.t.Errorf("columns: got %v, want building: %v", columns, want)
	}
}

func decompress(record string) (string, error) {
	text, err := s2.Decode(nil, []byte(record))
	return string(text), err
}
