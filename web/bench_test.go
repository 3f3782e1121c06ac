package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// BenchmarkLogHome compares the home page of an idle log with the JSON head, over HTTP and in the process.
func BenchmarkLogHome(b *testing.B) {
	w := newWorld(b)
	for _, name := range []string{"one", "two", "three"} {
		w.append(ledgertest.Red, id.DiscloseFull, name, nil)
	}
	server := httptest.NewServer(w.bare)
	defer server.Close()
	for name, target := range map[string]string{"page": "/log/red", "head": "/v1/public/orgs/red/transparency/head"} {
		b.Run("process/"+name, func(b *testing.B) {
			for b.Loop() {
				if answer := w.askUnwatched(http.MethodGet, target); answer.Code != http.StatusOK {
					b.Fatal(answer.Code)
				}
			}
		})
		b.Run("http/"+name, func(b *testing.B) {
			b.RunParallel(func(each *testing.PB) {
				for each.Next() {
					fetch(b, server.URL+target)
				}
			})
		})
	}
}

func fetch(b *testing.B, url string) {
	answer, err := http.Get(url)
	if err != nil {
		b.Error(err)
		return
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		b.Errorf("%d, %v", answer.StatusCode, err)
	}
}
