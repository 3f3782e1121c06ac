package archive_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
	"github.com/agentledger/agentledger/storage/archive/objects"
	"github.com/agentledger/agentledger/storage/archive/objects/objectstest"
)

// Moves, reads and erasures through a bucket whose server is temporarily unavailable.
func TestBucket(t *testing.T) {
	var away atomic.Bool
	bucket := &objectstest.Server{}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, "away", http.StatusForbidden)
			return
		}
		bucket.ServeHTTP(w, r)
	}))
	defer served.Close()
	environment := map[string]string{"AWS_ACCESS_KEY_ID": objectstest.AccessKey, "AWS_SECRET_ACCESS_KEY": "HIDDEN-key"}
	o := objects.Options{Getenv: func(name string) string { return environment[name] }, Tries: 1}
	kept, err := objects.New("s3://bucket/prefix?endpoint="+url.QueryEscape(served.URL), o)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, openPebble(t))
	w.Engine = newEngine(t, archive.Options{Engine: w.inner, Objects: kept, Check: checkEnvelope}.WithWidth(width))
	w.add(red, 3*width)
	w.add(blue, width)
	w.pass()
	if got := w.archived(red); got != 3*width {
		t.Errorf("got %d archived events, want %d", got, 3*width)
	}
	w.check(red, "moved")
	away.Store(true)
	w.add(red, 1, id.Range{Begin: 1, End: width + 1})
	if err := w.RewriteErased(t.Context(), red); !errors.Is(err, storage.ErrUnavailable) || !w.waiting(red) {
		t.Errorf("the server is away: got %v", err)
	}
	away.Store(false)
	w.pass()
	if w.waiting(red) {
		t.Error("the erasure waits")
	}
	w.check(red, "erased")
	w.check(blue, "the other organization")
}
