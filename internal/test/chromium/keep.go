package chromium

import (
	"sync"
	"testing"
)

// kept contains the browsers that no test uses at the moment. Starting a browser takes more processor time than most
// tests of pages.
var kept struct {
	mu   sync.Mutex
	on   bool
	idle []*process
}

// Keep lets the tests of this process use the same browsers one after the other. The caller must call end after the
// last test.
func Keep() (end func()) {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	kept.on = true
	return func() {
		kept.mu.Lock()
		defer kept.mu.Unlock()
		for _, p := range kept.idle {
			p.end()
		}
		kept.on, kept.idle = false, nil
	}
}

// takeKept returns a browser that no test uses, or nil.
func takeKept() *process {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	n := len(kept.idle)
	if n == 0 {
		return nil
	}
	p := kept.idle[n-1]
	kept.idle = kept.idle[:n-1]
	return p
}

// lend gives the browser to a test. Afterwards it is kept for the next one, or ended if the test failed.
func (p *process) lend(t testing.TB) *Browser {
	b := &Browser{t: t, session: p.session}
	t.Cleanup(func() {
		kept.mu.Lock()
		on := kept.on
		kept.mu.Unlock()
		if !on || t.Failed() {
			p.end()
			return
		}
		b.clear()
		kept.mu.Lock()
		defer kept.mu.Unlock()
		kept.idle = append(kept.idle, p)
	})
	return b
}

// clear opens an empty page, closes all others, which ends their emulation and their authenticators, and removes cookies,
// caches, stored data and logs.
func (b *Browser) clear() {
	b.t.Helper()
	var old []string
	b.call("GET", b.session+"/window/handles", nil, &old)
	var fresh struct {
		Handle string `json:"handle"`
	}
	b.call("POST", b.session+"/window/new", map[string]any{"type": "tab"}, &fresh)
	for _, handle := range old {
		b.call("POST", b.session+"/window", map[string]any{"handle": handle}, nil)
		b.call("DELETE", b.session+"/window", nil, nil)
	}
	b.call("POST", b.session+"/window", map[string]any{"handle": fresh.Handle}, nil)
	b.Emulate("Network.clearBrowserCookies", map[string]any{})
	b.Emulate("Network.clearBrowserCache", map[string]any{})
	b.Emulate("Storage.clearDataForOrigin", map[string]any{"origin": "*", "storageTypes": "all"})
	b.readLog("browser")
	b.readLog("performance")
}
