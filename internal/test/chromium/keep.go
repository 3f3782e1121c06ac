package chromium

import (
	"sync"
	"testing"
)

// pool contains the browsers that no test uses at the moment. Starting a browser takes more processor time than most
// tests of pages.
var pool struct {
	mu   sync.Mutex
	on   bool
	idle []*process
}

// Keep lets the tests of this process use the same browsers one after the other. The caller must call end after the
// last test.
func Keep() (end func()) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	pool.on = true
	return func() {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		for _, p := range pool.idle {
			p.end()
		}
		pool.on, pool.idle = false, nil
	}
}

// takeIdle returns a browser that no test uses, or nil.
func takeIdle() *process {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	n := len(pool.idle)
	if n == 0 {
		return nil
	}
	p := pool.idle[n-1]
	pool.idle = pool.idle[:n-1]
	return p
}

// lend gives the browser to a test. Afterwards it is kept for the next one, or ended if the test failed.
func (p *process) lend(t testing.TB) *Browser {
	b := &Browser{t: t, session: p.session}
	t.Cleanup(func() {
		pool.mu.Lock()
		on := pool.on
		pool.mu.Unlock()
		if !on || t.Failed() {
			p.end()
			return
		}
		b.clear()
		pool.mu.Lock()
		defer pool.mu.Unlock()
		pool.idle = append(pool.idle, p)
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
