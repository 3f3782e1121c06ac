package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
)

func TestWitnesses(t *testing.T) {
	w := newWorld(t)
	own := witnesstest.New(t, "own.example")
	for _, x := range []*witnesstest.Witness{own, w.house} {
		x.AddLog(w.State(t, red).VerifierKey())
	}
	house := "witness house " + w.house.Signer.Key().String() + "\n"
	none := `"newest":null,"quorum":null`
	one := func(name string, x *witnesstest.Witness, size int) string {
		return fmt.Sprintf(`{"name":%q,"vkey":%q,"acknowledged_size":%d,"not_asked_before":null,"last_result":null,"last_asked_at":null}`, name, x.Signer.Key(), size)
	}
	service := fmt.Sprintf(`{"policy":null,"fail":"open","in_force":%s,%s,"witnesses":[%s]}`, quoted(house+"quorum house\n"), none, one("house", w.house, 0))
	equal(t, "the service's", w.call(200, "GET", "/witnesses", "", as("red-member")), service)

	policy := own.PolicyLine("own") + house + "group both all own house\nquorum both\n"
	shown := "witness own " + own.Signer.Key().String() + "\n" + house + "group both all own house\nquorum both\n"
	put := w.call(200, "PUT", "/witnesses", fmt.Sprintf(`{"policy":%s,"fail":"closed"}`, quoted(policy)))
	equal(t, "its own", put, fmt.Sprintf(`{"policy":%s,"fail":"closed","in_force":%s,%s,"witnesses":[%s,%s]}`,
		quoted(policy), quoted(shown), none, one("own", own, 0), one("house", w.house, 0)))
	for _, role := range []string{"approver", "member"} {
		got := w.call(200, "GET", "/witnesses", "", as("red-"+role))
		if got["policy"] != shown || strings.Contains(fmt.Sprint(got), "http") {
			t.Errorf("%s: got %v, want the policy without addresses", role, got)
		}
	}
	if got := w.call(200, "GET", "/witnesses", "", as("red-admin")); got["policy"] != policy {
		t.Errorf("admin: got %v", got["policy"])
	}
	equal(t, "blue", w.call(200, "GET", "/witnesses", "", as("blue-owner")), service)

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.witnesses.Run(ctx) })
	var cosigned map[string]any
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if cosigned = w.call(200, "GET", "/witnesses", ""); cosigned["quorum"] != nil || time.Now().After(end) {
			break
		}
	}
	cancel()
	running.Wait()
	for _, name := range []string{"newest", "quorum"} {
		v, _ := cosigned[name].(map[string]any)
		if all, _ := v["cosignatures"].([]any); v["tree_size"] != 1.0 || len(all) != 2 || all[0].(map[string]any)["name"] != "own.example" {
			t.Errorf("%s: got %v", name, v)
		}
	}

	w.call(204, "DELETE", "/witnesses", "")
	if back := w.call(200, "GET", "/witnesses", ""); back["policy"] != nil || back["fail"] != "open" {
		t.Errorf("got %v", back)
	}
	want := []string{"ledger_settings_changed by acc_red-owner", "ledger_settings_changed by acc_red-owner"}
	if got := w.kinds(red); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := w.kinds(blue); len(got) > 0 {
		t.Errorf("another organization's: %v", got)
	}
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestWitnessesRefuse(t *testing.T) {
	w := newWorld(t)
	own := witnesstest.New(t, "own.example")
	line, vkey := own.PolicyLine("own"), own.Signer.Key().String()
	var many strings.Builder
	for i := range 17 {
		many.WriteString(witnesstest.New(t, "w.example").PolicyLine(fmt.Sprint("w", i)))
	}
	for name, row := range map[string]struct{ policy, message string }{
		"no policy":              {"", "policy is required"},
		"no tlog-policy":         {"hello\n", "policy is not a tlog-policy: parse policy: line 1: unknown keyword or number of items: malformed policy"},
		"carriage returns":       {"quorum none\r\n", "policy is not a tlog-policy: parse policy: size or characters: malformed policy"},
		"a log line":             {"log " + w.State(t, red).VerifierKey().String() + "\nquorum none\n", "policy must have no log line and at most 16 witnesses"},
		"too many witnesses":     {many.String() + "quorum none\n", "policy must have no log line and at most 16 witnesses"},
		"too long":               {"quorum none\n#" + strings.Repeat("x", 16<<10) + "\n", "policy must have at most 16384 bytes"},
		"witness without a URL":  {"witness own " + vkey + "\nquorum own\n", "policy: witness 1 has no URL that can be called"},
		"private address":        {"witness own " + vkey + " https://10.0.0.1/\nquorum own\n", "policy: witness 1 has no URL that can be called"},
		"one of the service too": {line + "witness w " + w.house.Signer.Key().String() + "\nquorum own\n", ""},
		"http to anywhere":       {"witness own " + vkey + " http://8.8.8.8/\nquorum own\n", "policy: witness 1 has no URL that can be called"},
		"a query":                {"witness own " + vkey + " https://w.example/?a=b\nquorum own\n", "policy: witness 1 has no URL that can be called"},
		"a user":                 {"witness own " + vkey + " https://a:b@w.example/\nquorum own\n", "policy: witness 1 has no URL that can be called"},
		"key of another witness": {line + strings.Replace(line, "own", "two", 1) + "quorum own\n", "policy is not a tlog-policy: parse policy: line 2: the key of another witness: malformed policy"},
	} {
		r := w.request("PUT", "/witnesses", fmt.Sprintf(`{"policy":%s}`, quoted(row.policy)))
		if row.message == "" {
			if g := w.do(r); g.status != 200 {
				t.Errorf("%s: got %d %s", name, g.status, g.text)
			}
			continue
		}
		w.refuses(name, r, 422, row.message)
	}
	w.refuses("fail", w.request("PUT", "/witnesses", `{"policy":"quorum none\n","fail":"sometimes"}`), 422, "fail must be open or closed")
	w.refuses("member", w.request("PUT", "/witnesses", `{"policy":"quorum none\n","url":"x"}`), 422, `Member "url" is not known`)
}

// Owners and admins can contact their own log's witnesses immediately, including one that refused the log; the other
// organization's pause continues.
func TestAskWitnesses(t *testing.T) {
	w := newWorld(t) // its witness accepts no log
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.witnesses.Run(ctx) })
	defer func() { cancel(); running.Wait() }()
	last := func(who string) any {
		one, _ := w.call(200, "GET", "/witnesses", "", as(who))["witnesses"].([]any)[0].(map[string]any)
		if (one["last_result"] == nil) != (one["last_asked_at"] == nil) {
			t.Errorf("got %v", one)
		}
		return one["last_result"]
	}
	until := func(who, want string) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); last(who) != want; time.Sleep(2 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: got %v, want %s", who, last(who), want)
			}
		}
	}
	for _, who := range []string{"red-owner", "blue-owner"} {
		w.call(200, "PATCH", "/organization", `{"name":"moved"}`, as(who))
		until(who, "refused")
	}
	for _, tenant := range []id.Tenant{red, blue} {
		w.house.AddLog(w.State(t, tenant).VerifierKey())
	}
	w.call(403, "POST", "/witnesses/ask", "", as("red-member"))
	w.call(403, "POST", "/witnesses/ask", "", as("red-approver"))
	w.call(401, "POST", "/witnesses/ask", "", as(""))
	if answer := w.call(202, "POST", "/witnesses/ask", "", as("red-admin")); answer["in_force"] == nil {
		t.Errorf("got %v", answer)
	}
	until("red-owner", "cosigned")
	if got := last("blue-owner"); got != "refused" {
		t.Errorf("the other organization: got %v", got)
	}
}
