package chromium

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A test that uses a kept browser finds no traces of the test before it.
func TestKeptBrowserIsEmpty(t *testing.T) {
	defer Keep()()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Cache-Control", "max-age=600")
		fmt.Fprint(w, "<!doctype html><title>page</title>")
	}))
	defer page.Close()
	state := `
		const cookies = document.cookie, stored = localStorage.getItem("stored"), databases = await indexedDB.databases();
		const caches_ = await caches.keys();
		return [cookies, stored ?? "", databases.length, caches_.length, innerWidth, navigator.cookieEnabled].join();`
	var processes, states []string
	for i := range 2 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			b := New(t)
			processes = append(processes, b.session)
			b.Open(page.URL)
			var got string
			if err := b.Run(state, &got); err != nil {
				t.Fatal(err)
			}
			states = append(states, got)
			if requests, messages := b.Requests(), b.Messages(); len(requests) == 0 || len(messages) > 0 {
				t.Errorf("got %q, messages %q", requests, messages)
			}
			if err := b.Run(`
				document.cookie = "one=1";
				localStorage.setItem("stored", "yes");
				await caches.open("old");
				await new Promise((done, failed) => Object.assign(indexedDB.open("old"), {onsuccess: done, onerror: failed}));
				console.error("old");
				open("about:blank");`, nil); err != nil {
				t.Fatal(err)
			}
			b.SetDisplay(Display{"dark", 360})
			b.AddAuthenticator()
			b.Emulate("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
		})
	}
	if len(states) != 2 || processes[0] != processes[1] || states[0] != states[1] {
		t.Errorf("got browsers %q with %q", processes, states)
	}
}
