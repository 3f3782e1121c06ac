package web_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/packtest"
	"github.com/agentledger/agentledger/verify/pack"
)

// largePack returns a pack of more than 50 MB, compressed, and its key.
func largePack(t *testing.T) (compressed []byte, key string) {
	t.Helper()
	l := packtest.NewLog(t)
	for n := range 256 {
		l.Append(packtest.EventSpec{Payload: map[string]any{"n": n, "text": strings.Repeat("Größe ", 25_000)}})
	}
	size := id.Index(len(l.Events))
	content := l.Pack(packtest.Selection{End: size, Size: size, Request: pack.Request{Envelopes: true}}).Bytes(t)
	if len(content) < 50_000_000 {
		t.Fatalf("the pack has %d bytes", len(content))
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), l.Key().String()
}

// The page reads a large pack in slices, also as one file without a network: no read exceeds 1 MiB.
func TestLargePackInChromium(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.handler)
	defer server.Close()
	content, key := largePack(t)
	b := chromium.New(t)
	for _, url := range []string{server.URL + "/check", keepOffline(t, w)} {
		b.Open(url)
		var got struct {
			State, Words, Report string
			Size, Largest        int
		}
		if err := b.Run(`
			while (document.getElementById("checked").dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
			const [packed, key] = args, outcome = document.getElementById("outcome");
			const bytes = new Blob([Uint8Array.from(atob(packed), (c) => c.charCodeAt(0))]);
			const whole = await new Response(bytes.stream().pipeThrough(new DecompressionStream("gzip"))).blob();
			const chosen = new DataTransfer();
			chosen.items.add(new File([whole], "pack.zip"));
			let largest = 0;
			for (const name of ["arrayBuffer", "text", "bytes", "stream"]) {
				const read = Blob.prototype[name];
				Blob.prototype[name] = function () { largest = Math.max(largest, this.size); return read.call(this); };
			}
			document.getElementById("trusted").value = key;
			outcome.dataset.state = "waiting";
			document.getElementById("file").files = chosen.files;
			document.querySelector("#check button").click();
			globalThis.told = () => ({state: outcome.dataset.state, words: outcome.textContent, size: whole.size, largest,
				report: document.getElementById("report").textContent});`,
			nil, base64.StdEncoding.EncodeToString(content), key); err != nil {
			t.Fatal(err)
		}
		for got.State == "" || got.State == "waiting" { // a script has a time limit, but the check has none
			if err := b.Run(`await new Promise((next) => setTimeout(next, 100)); return told();`, &got); err != nil {
				t.Fatal(err)
			}
		}
		if got.State != "ok" || !strings.Contains(got.Report, "256 events shown") {
			t.Errorf("%s: got %s, %q, %q", url, got.State, got.Words, got.Report)
		}
		if got.Size < 50_000_000 || got.Largest == 0 || got.Largest > 1<<20 {
			t.Errorf("%s: %d bytes of %d were read at once", url, got.Largest, got.Size)
		}
	}
}
