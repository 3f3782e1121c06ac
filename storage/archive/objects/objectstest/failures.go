package objectstest

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive/objects"
)

// Tries is the value of Options.Tries for the stores of RunFailures.
const Tries = 4

// RunFailures runs the tests of a bucket whose server and network fail. open returns a store at an http endpoint with
// Tries as Options.Tries.
func RunFailures(t *testing.T, endpoint string, open func(t *testing.T, endpoint string) objects.Store) {
	p := NewProxy(t, endpoint)
	f := failures{Proxy: p, store: open(t, p.URL), other: open(t, endpoint)}
	t.Run("LostAnswers", f.testLostAnswers)
	t.Run("Refusals", f.testRefusals)
	t.Run("Reads", f.testReads)
	t.Run("Redirect", f.testRedirect)
}

type failures struct {
	*Proxy
	store objects.Store // through the proxy
	other objects.Store // not through the proxy
}

// A write whose response is lost succeeds if it was carried out, and never undoes another writer's write.
func (f failures) testLostAnswers(t *testing.T) {
	ctx := t.Context()
	lost := func(n int64, w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if n > 1 {
			forward.ServeHTTP(w, r)
			return
		}
		forward.ServeHTTP(httptest.NewRecorder(), r)
		cut(w, r)
	}
	overtaken := firstOnly(func(w http.ResponseWriter, r *http.Request) {
		if err := f.other.Delete(ctx, "red/lost"); err != nil {
			t.Error(err)
		}
		if err := f.other.Create(ctx, "red/lost", []byte("another")); err != nil {
			t.Error(err)
		}
		cut(w, r)
	})
	for _, c := range []struct {
		name    string
		fault   Fault
		create  error
		replace error
		stored  string
	}{
		{"after the write", lost, nil, nil, "mine"},
		{"before the write", firstOnly(cut), nil, nil, "mine"},
		{"before the write, and another one wrote", overtaken, objects.ErrExists, objects.ErrChanged, "another"},
	} {
		f.Inject(c.fault)
		Want(t, c.name+": create", f.store.Create(ctx, "red/lost", []byte("mine")), c.create)
		f.Inject(nil)
		WantContent(t, f.store, "red/lost", []byte(c.stored))
		Want(t, c.name+": delete", f.other.Delete(ctx, "red/lost"), nil)

		Want(t, c.name+": create before", f.other.Create(ctx, "red/lost", []byte("old")), nil)
		version := WantContent(t, f.store, "red/lost", []byte("old"))
		f.Inject(c.fault)
		Want(t, c.name+": replace", f.store.Replace(ctx, "red/lost", []byte("mine"), version), c.replace)
		f.Inject(nil)
		WantContent(t, f.store, "red/lost", []byte(c.stored))

		f.Inject(c.fault)
		Want(t, c.name+": delete", f.store.Delete(ctx, "red/lost"), nil)
		f.Inject(nil)
		_, _, err := f.other.Read(ctx, "red/lost", limit)
		Want(t, c.name+": read", err, objects.ErrNotFound)
	}
}

// A temporary error response is retried; other ones are not. Other objects are not affected.
func (f failures) testRefusals(t *testing.T) {
	ctx := t.Context()
	Want(t, "create blue", f.other.Create(ctx, "blue/1", []byte("blue")), nil)
	refuse := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { Refuse(w, status, code) }
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		fault    Fault
		want     error
		requests int64
	}{
		"slow down once":           {firstOnly(refuse(503, "SlowDown")), nil, 2},
		"slow down always":         {always(refuse(503, "SlowDown")), storage.ErrUnavailable, Tries},
		"another write at a time":  {firstOnly(refuse(409, "ConditionalRequestConflict")), nil, 2},
		"an internal error once":   {firstOnly(refuse(500, "InternalError")), nil, 2},
		"a slow upload once":       {firstOnly(refuse(400, "RequestTimeout")), nil, 2},
		"too many requests once":   {firstOnly(refuse(429, "TooManyRequests")), nil, 2},
		"connections that end":     {always(cut), storage.ErrUnavailable, Tries},
		"access denied":            {always(refuse(403, "AccessDenied")), storage.ErrUnavailable, 1},
		"another clock":            {always(refuse(403, "RequestTimeTooSkewed")), storage.ErrUnavailable, 1},
		"no conditions":            {always(refuse(501, "NotImplemented")), objects.ErrUnsupported, 1},
		"no bucket":                {always(refuse(404, "NoSuchBucket")), storage.ErrUnavailable, 1},
		"a code with a line break": {always(refuse(403, "A\nB")), storage.ErrUnavailable, 1},
		"a refusal without an end": {always(endless), storage.ErrUnavailable, 1},
	} {
		f.Inject(c.fault)
		err := f.store.Create(ctx, "red/refused", []byte("red"))
		Want(t, name, err, c.want)
		if got := f.Requests(); got != c.requests {
			t.Errorf("%s: got %d requests, want %d", name, got, c.requests)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("%s: got %q", name, err)
		}
		f.Inject(nil)
		_, _, err = f.other.Read(ctx, "red/refused", limit)
		if written := err == nil; written != (c.want == nil) {
			t.Errorf("%s: read: got %v", name, err)
		}
		WantContent(t, f.store, "blue/1", []byte("blue"))
		Want(t, name, f.other.Delete(ctx, "red/refused"), nil)
	}
	Want(t, "delete blue", f.other.Delete(ctx, "blue/1"), nil)
}

// A reader gets the whole object or an error. Only the server itself can state that an object does not exist.
func (f failures) testReads(t *testing.T) {
	ctx := t.Context()
	content := bytes.Repeat([]byte("content "), 8<<10)
	Want(t, "create", f.other.Create(ctx, "red/read", content), nil)
	half := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "65536")
		w.Header().Set("ETag", `"abc"`)
		_, _ = w.Write(content[:1000])
		cut(w, r)
	}
	answer := func(status int, header, value, body string) Fault {
		return always(func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set(header, value)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	document := func(code string) Fault {
		return always(func(w http.ResponseWriter, _ *http.Request) { Refuse(w, http.StatusNotFound, code) })
	}
	huge := strings.Repeat("x", limit+1)
	for name, c := range map[string]struct {
		fault Fault
		want  error
	}{
		"half of a body once":         {firstOnly(half), nil},
		"half of a body always":       {always(half), storage.ErrUnavailable},
		"a huge body":                 {answer(200, "ETag", `"abc"`, huge), objects.ErrTooLarge},
		"a body that says it is huge": {answer(200, "Content-Length", "1000000000000", "x"), objects.ErrTooLarge},
		"no ETag":                     {answer(200, "", "", "x"), storage.ErrUnavailable},
		"a weak ETag":                 {answer(200, "ETag", `W/"abc"`, "x"), storage.ErrUnavailable},
		"a part":                      {answer(206, "ETag", `"abc"`, "x"), storage.ErrUnavailable},
		"404 of a proxy":              {answer(404, "", "", "<html>not found</html>"), storage.ErrUnavailable},
		"404 of a bucket":             {document("NoSuchBucket"), storage.ErrUnavailable},
		"404 of the object":           {document("NoSuchKey"), objects.ErrNotFound},
	} {
		f.Inject(c.fault)
		got, _, err := f.store.Read(ctx, "red/read", limit)
		if Want(t, name, err, c.want); c.want == nil && !bytes.Equal(got, content) {
			t.Errorf("%s: got %d bytes", name, len(got))
		}
	}
	f.Inject(nil)
	WantContent(t, f.store, "red/read", content)
	Want(t, "delete", f.other.Delete(ctx, "red/read"), nil)
}

// A redirect to another host is rejected, and that host receives no request.
func (f failures) testRedirect(t *testing.T) {
	seen := false
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen = true }))
	defer stranger.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		f.Inject(always(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, stranger.URL+r.URL.Path, status)
		}))
		Want(t, "create", f.store.Create(t.Context(), "red/redirect", []byte("x")), storage.ErrUnavailable)
		_, _, err := f.store.Read(t.Context(), "red/redirect", limit)
		Want(t, "read", err, storage.ErrUnavailable)
		Want(t, "delete", f.store.Delete(t.Context(), "red/redirect"), storage.ErrUnavailable)
		if got := f.Requests(); got != 3 || seen {
			t.Errorf("%d: got %d requests, want 3; request to the other host: %t", status, got, seen)
		}
	}
	f.Inject(nil)
}
