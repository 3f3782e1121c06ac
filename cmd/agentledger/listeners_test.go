package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/config"
)

// startLogged is startHere with a log that the test reads.
func startLogged(t *testing.T, change func(*config.Serve)) (*server, *lockedBuffer) {
	t.Helper()
	c := testSettings(t.TempDir())
	change(&c)
	out := new(lockedBuffer)
	s, err := startServer(t.Context(), c, config.Logging{LogLevel: "warn"}.NewLogger(out))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stopServer(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, out
}

func TestListenersAreOnLoopbackByDefault(t *testing.T) {
	var c config.Serve
	parser, err := kong.New(&c, append(config.ParserOptions(), kong.Exit(func(int) { t.Fatal("exit") }))...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"--public-url", "http://log.example"}); err != nil {
		t.Fatal(err)
	}
	if c.Listen.Listen != "127.0.0.1:8080" || c.IDListen != "127.0.0.1:8091" || c.MetricsListen != "127.0.0.1:9464" {
		t.Errorf("got %+v", c.Listen)
	}
}

// The output names the ports that the system assigned, and who can reach them.
func TestStartPrintsItsAddresses(t *testing.T) {
	port := func(url string) string { return url[strings.LastIndexByte(url, ':')+1:] }
	for name, tc := range map[string]struct {
		main, identity, metrics string
		want                    string // M, I and X stand for the ports, * for all addresses
	}{
		"loopback": {"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0",
			"listening on 127.0.0.1:M (main), 127.0.0.1:I (identity), 127.0.0.1:X (metrics): only this machine can reach them"},
		"without metrics": {"127.0.0.1:0", "127.0.0.1:0", "",
			"listening on 127.0.0.1:M (main), 127.0.0.1:I (identity): only this machine can reach them"},
		"main beyond": {"0.0.0.0:0", "127.0.0.1:0", "",
			"listening on *:M (main), 127.0.0.1:I (identity): other machines can reach main, by plain HTTP"},
		"all": {"0.0.0.0:0", ":0", "0.0.0.0:0",
			"listening on *:M (main), *:I (identity), *:X (metrics): other machines can reach main and identity and metrics, by plain HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startHere(t, func(c *config.Serve) {
				c.Listen = config.Listen{Listen: tc.main, IDListen: tc.identity, MetricsListen: tc.metrics}
			})
			want := strings.NewReplacer(":M ", ":"+port(s.mainURL())+" ", ":I ", ":"+port(s.identityURL())+" ").Replace(tc.want)
			if tc.metrics != "" {
				want = strings.Replace(want, ":X ", ":"+port(s.listeners.URL(metricsListener))+" ", 1)
			}
			if got := strings.NewReplacer("[::]", "*", "0.0.0.0", "*").Replace(s.listeners.Describe()); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			for _, url := range []string{s.mainURL(), s.identityURL()} {
				getText(t, url+"/livez")
			}
		})
	}
}

// A proxy that no setting mentions is reported once, whatever it sends.
func TestProxyWithoutHeaderIsReported(t *testing.T) {
	const line = "--client-address-header does not name its header"
	ask := func(url, name string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/livez", nil)
		if err != nil {
			t.Fatal(err)
		}
		if name != "" {
			r.Header.Set(name, "203.0.113.7")
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	for _, header := range []string{"X-Forwarded-For", "Forwarded", "X-Real-IP"} {
		s, out := startLogged(t, func(*config.Serve) {})
		ask(s.mainURL(), "")
		ask(s.identityURL(), "")
		if strings.Contains(out.String(), line) {
			t.Errorf("reported without evidence: %s", out)
		}
		for range 2 {
			ask(s.identityURL(), header)
			ask(s.mainURL(), header)
		}
		if got := out.String(); strings.Count(got, line) != 1 || strings.Contains(got, "203.0.113.7") {
			t.Errorf("%s: got %s, want one line", header, got)
		}
	}
	s, out := startLogged(t, func(c *config.Serve) { c.ClientAddressHeader = "X-Forwarded-For" })
	ask(s.mainURL(), "X-Forwarded-For")
	_, secure := startLogged(t, func(c *config.Serve) { c.PublicURL = "https://log.example" })
	if strings.Contains(out.String(), line) || strings.Count(secure.String(), line) != 1 {
		t.Errorf("with the setting: %s\nwith an https URL: %s", out, secure)
	}
	chain, key, _ := writeCertificate(t, t.TempDir(), 1)
	_, own := startLogged(t, func(c *config.Serve) { c.PublicURL, c.TLSCert, c.TLSKey = "https://log.test", chain, key })
	if strings.Contains(own.String(), line) {
		t.Errorf("with its own TLS: %s", own)
	}
}

// The shipped settings are for a service behind a proxy and name its header.
func TestShippedSettingsNameTheClientAddressHeader(t *testing.T) {
	for _, file := range []string{"../../deploy/agentledger.json", "../../docs/reference/settings.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(`"client_address_header": "X-Forwarded-For"`)) {
			t.Errorf("%s does not name the header", file)
		}
	}
	var c struct {
		Config kong.ConfigFlag
		config.Serve
	}
	parser, err := kong.New(&c, append(config.ParserOptions(), kong.Exit(func(int) { t.Fatal("exit") }))...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"--config", "../../deploy/agentledger.json"}); err != nil || c.ClientAddressHeader != "X-Forwarded-For" {
		t.Errorf("got %q, %v", c.ClientAddressHeader, err)
	}
}
