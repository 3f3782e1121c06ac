package forward_test

import (
	"net/http"
	"strings"
	"testing"
)

// A passed request with a protocol that a node does not support is rejected before anything is done. A header of a
// newer node is ignored, and no handler sees it.
func TestOtherProtocols(t *testing.T) {
	s := newService(t, 2, func(n *node, w http.ResponseWriter, r *http.Request) error {
		for name := range r.Header {
			if strings.HasPrefix(name, "Agentledger-Hop-") {
				t.Errorf("the handler sees %s", name)
			}
		}
		return hello(n, w, r)
	})
	client := &http.Client{Transport: s.transport}
	for protocol, want := range map[string]int{"": 200, "1": 200, "99": 503, "0": 503, "newest": 503} {
		for i, path := range []string{"/red/x", "/blue/x"} {
			before := s.nodes[i].asked.Load()
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.nodes[i].internal.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Agentledger-Hop-Remote", "192.0.2.1:1")
			r.Header.Set("Agentledger-Hop-Later", "x")
			if protocol != "" {
				r.Header.Set("Agentledger-Hop-Protocol", protocol)
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			refused := answer.Header.Get("Agentledger-Hop-Refused") != ""
			if answer.StatusCode != want || refused != (want == 503) ||
				s.nodes[i].asked.Load()-before != asked(want) {
				t.Errorf("%q %s: got %d, refused %v", protocol, path, answer.StatusCode, refused)
			}
		}
	}
}

func asked(status int) int64 {
	if status == http.StatusOK {
		return 1
	}
	return 0
}
