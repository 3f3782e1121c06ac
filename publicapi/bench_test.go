package publicapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/agentledger/agentledger/id"
)

func BenchmarkGet(b *testing.B) {
	w := newWorld(b)
	w.append(&w.red, id.DiscloseFull, names("e", 3000)...)
	prefix := "/o/" + w.red.id.String()
	for name, target := range map[string]string{
		"head":        "/v1/public/orgs/red/transparency/head",
		"inclusion":   redInclusion + "?log_index=1234",
		"consistency": redConsistency + "?from=1000",
		"bundle":      "/v1/public/orgs/red/verify/e-1234",
		"verify":      "/v1/public/orgs/red/verify/e-1234?verify=1",
		"tile":        prefix + "/tile/0/004",
		"entries":     prefix + "/tile/entries/004",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				answer := httptest.NewRecorder()
				w.handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, target, nil))
				if answer.Code != http.StatusOK {
					b.Fatalf("got %d %s", answer.Code, answer.Body)
				}
			}
		})
	}
}
