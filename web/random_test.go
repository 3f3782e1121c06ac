package web_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// verdictNames are the members of a report that both verifiers have.
var verdictNames = []string{"inclusion_ok", "checkpoint_ok", "chain_ok", "record_ok", "signature_ok", "envelope_ok"}

// bent is a modified bundle, and the verdict of the Go verifier: nil if the bundle cannot be parsed.
type bent struct {
	Text    string
	Key     string
	Verdict map[string]any `json:"-"`
}

// goVerdict checks a bundle like aps verify.
func goVerdict(t *testing.T, text string, key tlog.VerifierKey) map[string]any {
	t.Helper()
	b, err := verify.ParseBundle([]byte(text))
	if err != nil {
		return nil
	}
	report, err := json.Marshal(verify.Check(b, verify.Options{Key: &key}))
	if err != nil {
		t.Fatal(err)
	}
	var said map[string]any
	if err := json.Unmarshal(report, &said); err != nil {
		t.Fatal(err)
	}
	verdict := map[string]any{}
	for _, name := range verdictNames {
		verdict[name] = said[name]
	}
	return verdict
}

// bend changes one part of a JSON value: a character, a number, a member or an item.
func bend(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		name := slices.Sorted(maps.Keys(v))[r.IntN(len(v))]
		switch r.IntN(12) {
		case 0:
			delete(v, name)
		case 1:
			v["member"] = name
		default:
			v[name] = bend(r, v[name])
		}
		return v
	case []any:
		if len(v) == 0 {
			return append(v, "x")
		}
		i, k := r.IntN(len(v)), r.IntN(len(v))
		switch r.IntN(4) {
		case 0:
			v[i], v[k] = v[k], v[i]
		case 1:
			return slices.Delete(v, i, i+1)
		default:
			v[i] = bend(r, v[i])
		}
		return v
	case string:
		return bendText(r, v)
	case float64:
		return v + float64(r.IntN(3)-1)
	case bool:
		return !v
	}
	return "x"
}

func bendText(r *rand.Rand, s string) string {
	const letters = "0123456789abcdefABCXYZ+/=.:-_ \n\"\\é"
	if s == "" {
		return "x"
	}
	at := r.IntN(len(s))
	switch r.IntN(4) {
	case 0:
		return s[:at] + s[at+1:]
	case 1:
		return s[:at] + string(letters[r.IntN(len(letters)-2)]) + s[at:]
	case 2:
		return s // the unchanged bundle
	}
	return s[:at] + string(letters[r.IntN(len(letters)-2)]) + s[at+1:]
}

// For random changes of bundles, the browser's verdict equals that of the Go verifier.
func TestRandomBundlesInChromium(t *testing.T) {
	w := newWorld(t)
	var texts []string
	var keys []tlog.VerifierKey
	for _, tenant := range []id.Tenant{ledgertest.Red, ledgertest.Blue} {
		for i, disclosure := range []id.Disclosure{id.DiscloseFull, id.DiscloseRecord, id.DiscloseCommitment, id.DiscloseFull, id.DiscloseFull} {
			w.append(tenant, disclosure, fmt.Sprint("e", i), map[string]any{"payload": map[string]any{"n": 0.1 * float64(i), "t": "é\U0001F600", "deep": []any{1, nil, true}}})
		}
		slug := map[id.Tenant]string{ledgertest.Red: "red", ledgertest.Blue: "blue"}[tenant]
		for i := range 5 {
			texts = append(texts, w.ask(http.MethodGet, fmt.Sprintf("/v1/public/orgs/%s/verify/e%d", slug, i)).Body.String())
			keys = append(keys, w.State(t, tenant).VerifierKey())
		}
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var all []bent
	kinds := map[bool]int{} // by whether the bundle can be parsed
	for i := range 600 {
		from := r.IntN(len(texts))
		var value any
		if err := json.Unmarshal([]byte(texts[from]), &value); err != nil {
			t.Fatal(err)
		}
		for range i % 3 { // a third is unchanged
			value = bend(r, value)
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		verdict := goVerdict(t, string(text), keys[from])
		kinds[verdict != nil]++
		all = append(all, bent{string(text), keys[from].String(), verdict})
	}
	b := chromium.New(t)
	b.Open(serveCorpus(t).URL + "/")
	var got []map[string]any
	if err := b.Run(`
		const { judge } = await import("/clients/typescript/test/judge.js");
		const said = [];
		for (const { Text, Key } of args[0]) {
			const { said: verdict } = await judge("bundle", { bundle: Text, key: Key });
			said.push(verdict === undefined ? null : Object.fromEntries(args[1].map((n) => [n, verdict[n]])));
		}
		return said;`, &got, all, verdictNames); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(all) || kinds[true] < 100 || kinds[false] < 50 {
		t.Fatalf("seed %d: got %d verdicts on %d bundles, %v of which can be read", seed, len(got), len(all), kinds)
	}
	for i, c := range all {
		if !reflect.DeepEqual(got[i], c.Verdict) {
			t.Errorf("seed %d: the browser says %v, Go says %v of %s", seed, got[i], c.Verdict, c.Text)
		}
	}
}
