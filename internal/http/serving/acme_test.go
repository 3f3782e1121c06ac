package serving_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/http/serving"
)

// The log contains the reason why an ACME server issues no certificate.
func TestACMEFailuresAreLogged(t *testing.T) {
	const account = `{"status": "valid"}`
	for name, tc := range map[string]struct {
		directory int // status
		order     string
		want      string
	}{
		"the server refuses": {http.StatusForbidden, "", `status=403 type="" detail=""`},
		"it refuses the order": {http.StatusOK, `{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many certificates", "status": 403}`,
			`status=403 type=urn:ietf:params:acme:error:rateLimited detail="too many certificates"`},
		"it does not reach the host": {http.StatusOK, `{"status": "invalid", "challenges": [{"type": "tls-alpn-01", "status": "invalid",
			"error": {"type": "urn:ietf:params:acme:error:connection", "detail": "port 443 is closed"}}]}`,
			`status=201 type=urn:ietf:params:acme:error:connection detail="port 443 is closed"`},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			mux := http.NewServeMux()
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			answer := func(path string, status int, body string) {
				mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Replay-Nonce", "n")
					w.Header().Set("Location", server.URL+"/account")
					w.WriteHeader(status)
					fmt.Fprint(w, body)
				})
			}
			answer("/directory", tc.directory, fmt.Sprintf(`{"newNonce": %q, "newAccount": %q, "newOrder": %q}`,
				server.URL+"/nonce", server.URL+"/account", server.URL+"/order"))
			answer("/nonce", http.StatusOK, "")
			answer("/account", http.StatusCreated, account)
			status := http.StatusCreated
			if strings.Contains(tc.order, "rateLimited") {
				status = http.StatusForbidden
			}
			answer("/order", status, tc.order)
			a := serving.OpenACME(server.URL+"/directory", "log.test", "", t.TempDir(), slog.New(slog.NewTextHandler(&logged, nil)))
			if _, err := a.Certificate(&tls.ClientHelloInfo{ServerName: "log.test"}); err == nil {
				t.Error("there is a certificate")
			}
			if n := a.Failures(); n != 1 {
				t.Errorf("%d failures are counted", n)
			}
			if !strings.Contains(logged.String(), `msg="no certificate from the ACME server" server=127.0.0.1`) ||
				!strings.Contains(logged.String(), tc.want) {
				t.Errorf("got %s, want %s", logged.String(), tc.want)
			}
		})
	}
}

func TestUnreachableACMEServerIsLogged(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var logged bytes.Buffer
	a := serving.OpenACME(gone.URL, "log.test", "", t.TempDir(), slog.New(slog.NewTextHandler(&logged, nil)))
	if _, err := a.Certificate(&tls.ClientHelloInfo{ServerName: "log.test"}); err == nil || !strings.Contains(logged.String(), "connection refused") {
		t.Errorf("got %v, %s", err, logged.String())
	}
	logged.Reset()
	if _, err := a.Certificate(&tls.ClientHelloInfo{ServerName: "stranger.test"}); err == nil || logged.Len() > 0 || a.Failures() != 1 {
		t.Errorf("a host that is not ours: got %v, %s", err, logged.String())
	}
}
