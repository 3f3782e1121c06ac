package identity_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// platformRoutes are all calls of the operator in openapi.json.
func platformRoutes(t *testing.T, organization string) (routes [][2]string) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(edge.OpenAPI()), &document); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	for path, item := range document.Paths {
		for method := range item {
			if strings.HasPrefix(path, "/v1/id/platform/") && slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
				routes = append(routes, [2]string{strings.ToUpper(method), parameter.ReplaceAllString(path, organization)})
			}
		}
	}
	if len(routes) < 9 {
		t.Fatalf("got %d routes: %v", len(routes), routes)
	}
	return routes
}

const tooManyGuesses = "Too many wrong platform secrets, try again later"

// Each of three nodes allows its share of the wrong secrets.
func TestGuessesAreSharedByNodes(t *testing.T) {
	w := newWorld(t, func(o *identity.Options) { o.Nodes = func() int { return 3 } })
	for i, want := range []int{401, 401, 401, 401, 429} { // 10 divided by three nodes
		if a := w.call("GET", "/v1/id/platform/clock", "", "X-Platform-Secret", "a wrong secret of some length"); a.Code != want {
			t.Errorf("guess %d: got %d, want %d", i, a.Code, want)
		}
	}
}

// A network may try ten wrong secrets, then one every half minute. A caller with the correct secret elsewhere is not
// affected.
func TestGuessedPlatformSecretsAreSlowedDown(t *testing.T) {
	registry, now := prometheus.NewRegistry(), time.Unix(1_800_000_000, 0)
	w := newWorld(t, func(o *identity.Options) { o.Metrics, o.Now = registry, func() time.Time { return now } })
	m := w.organization("red")
	const stranger = "2001:db8::"
	guess := func(i int, secret string) (int, string) {
		a := w.callFrom(fmt.Sprintf("[%s%x]", stranger, i+1), "GET", "/v1/id/platform/clock", "", "X-Platform-Secret", secret)
		return a.Code, a.Header().Get("Retry-After")
	}
	for i := range 10 {
		if status, _ := guess(i, fmt.Sprintf("guess-number-%d", i)); status != 401 {
			t.Fatalf("guess %d: got %d", i, status)
		}
	}
	routes := platformRoutes(t, m.OrganizationID)
	for i, route := range routes {
		answer := w.callFrom(fmt.Sprintf("[%sffff:%x]", stranger, i), route[0], route[1], "no JSON", "X-Platform-Secret", platformSecret)
		answers(t, route[1], answer, 429, `{"error":"`+tooManyGuesses+`","code":"rate_limited"}`)
		if got := answer.Header().Get("Retry-After"); got != "30" {
			t.Errorf("%s: got Retry-After %q", route[1], got)
		}
		if elsewhere := w.call("GET", "/v1/id/platform/clock", "", "X-Platform-Secret", platformSecret); elsewhere.Code != 200 {
			t.Errorf("from elsewhere: got %d %s", elsewhere.Code, elsewhere.Body)
		}
	}
	now = now.Add(29 * time.Second)
	if status, wait := guess(0, "guess"); status != 429 || wait != "1" {
		t.Errorf("got %d, Retry-After %s", status, wait)
	}
	now = now.Add(time.Second)
	if status, _ := guess(0, platformSecret); status != 200 {
		t.Errorf("the right secret when the pause is over: got %d", status)
	}
	for i, want := range []int{401, 429} {
		if status, _ := guess(i, "guess"); status != want {
			t.Errorf("got %d, want %d", status, want)
		}
	}

	log := w.log.String()
	if n := strings.Count(log, `"platform secret refused"`); n == 0 || n > 2 {
		t.Errorf("got %d warnings, want one in ten seconds", n)
	}
	if !strings.Contains(log, `"level":"WARN","msg":"platform secret refused","network":"2001:db8::/64","limited":false}`) {
		t.Errorf("got %s", log)
	}
	if strings.Contains(log, platformSecret) || strings.Contains(log, "guess-number") {
		t.Error("a secret is in the log")
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "agentledger_platform_calls_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	if want := map[string]float64{"accepted": float64(len(routes) + 2), "limited": float64(len(routes) + 2), "refused": 11}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Correct secrets do not count as attempts.
func TestRightPlatformSecretsAreNotCounted(t *testing.T) {
	w := newWorld(t)
	for range 50 {
		if a := w.platform("GET", "/v1/id/platform/clock", ""); a.Code != 200 {
			t.Fatalf("got %d %s", a.Code, a.Body)
		}
	}
}
