package syncs

import "sync"

// Hub notifies callers that wait for changes of objects, which are identified by name. A waiting caller costs no goroutine
// of the Hub, and an object without one costs nothing. The zero value is ready to use. Its methods may be called
// concurrently.
type Hub[K comparable] struct {
	mu     sync.Mutex
	topics map[K]*topic
	closed bool
}

// topic is an object with waiting callers.
type topic struct {
	news    chan struct{} // closed at the next change
	waiting int
}

// Subscribe returns a channel that is closed at the next change of an object. No change after Subscribe is missed, so the
// caller should subscribe first and then read the object. The caller must call done once.
func (h *Hub[K]) Subscribe(name K) (news <-chan struct{}, done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topics == nil {
		h.topics = make(map[K]*topic)
	}
	t := h.topics[name]
	if t == nil {
		t = &topic{news: make(chan struct{})}
		h.topics[name] = t
	}
	t.waiting++
	return t.news, func() { h.unsubscribe(name, t) }
}

func (h *Hub[K]) unsubscribe(name K, t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.waiting--; t.waiting == 0 && h.topics[name] == t {
		delete(h.topics, name)
	}
}

// Notify notifies all callers that wait for a change of an object.
func (h *Hub[K]) Notify(name K) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[name]; t != nil {
		close(t.news)
		delete(h.topics, name)
	}
}

// Close notifies all waiting callers. Afterwards Closed returns true, and callers must not wait.
func (h *Hub[K]) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, t := range h.topics {
		close(t.news)
	}
	clear(h.topics)
}

// Closed reports whether Close was called.
func (h *Hub[K]) Closed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}
