package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// hangingDisk is a file system whose syncs do not end while it hangs. Written data can be read back nevertheless.
type hangingDisk struct {
	vfs.FS
	syncs sync.RWMutex // held by Hang
}

func (d *hangingDisk) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &hangingFile{f, d}, nil
}

func (d *hangingDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(d.FS.Create(name, c))
}

func (d *hangingDisk) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return d.file(d.FS.OpenReadWrite(name, c, o...))
}

func (d *hangingDisk) ReuseForWrite(before, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(d.FS.ReuseForWrite(before, name, c))
}

type hangingFile struct {
	vfs.File
	disk *hangingDisk
}

func (f *hangingFile) wait() {
	f.disk.syncs.RLock()
	defer f.disk.syncs.RUnlock()
}

func (f *hangingFile) Sync() error {
	f.wait()
	return f.File.Sync()
}

func (f *hangingFile) SyncData() error {
	f.wait()
	return f.File.SyncData()
}

func (f *hangingFile) SyncTo(n int64) (bool, error) {
	f.wait()
	return f.File.SyncTo(n)
}

// newDiskServer is a whole service in this process, on a disk that can hang.
func newDiskServer(t *testing.T, disk *hangingDisk) *hangServer {
	c := testSettings(t.TempDir())
	engine, err := pebblestore.Open(pebblestore.Options{Dir: c.DatabaseDir(), FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	anchors, err := anchor.Open(c.AnchorsDir())
	if err != nil {
		t.Fatal(err)
	}
	watch := logOnlyObservation(config.Logging{LogLevel: "error"}.NewLogger(t.Output()))
	service, err := newService(t.Context(), c, &datadir.Store{Engine: engine, Anchors: anchors, Keyring: keyring}, watch, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	shared := watch.newEdge()
	shared.Bound = edge.NewBound(hangTimeout)
	signIn, err := service.identitySurface(c, testSecret, shared)
	if err != nil {
		t.Fatal(err)
	}
	main, err := service.mainHandler(c, signIn, shared)
	if err != nil {
		t.Fatal(err)
	}
	identity := service.identityHandler(signIn, shared)
	s := &hangServer{process: &process{t: t, main: listen(t, main), identity: listen(t, identity)}, t: t}
	t.Cleanup(func() { // before the listeners end
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func listen(t *testing.T, h http.Handler) string {
	l := httptest.NewServer(h)
	t.Cleanup(l.Close)
	return l.URL
}

// The disk's syncs hang while two organizations send. Events are rejected in time, requests for data in memory are
// answered, and /readyz reports it. When the disk continues, the appends in flight are stored, and no acknowledged
// event is lost.
func TestDiskHangs(t *testing.T) {
	disk := &hangingDisk{FS: vfs.Default}
	s := newDiskServer(t, disk)
	for _, slug := range []string{"red", "blue"} {
		org := s.found(t.Context(), slug, nil)
		w, err := newWorker(s.main, org, client.Retry{})
		if err != nil {
			t.Fatal(err)
		}
		s.senders = append(s.senders, newHangSender(s, org, w))
	}
	for _, o := range s.senders {
		for range 20 {
			if status := o.event("", nil); status != http.StatusCreated {
				t.Fatal(status)
			}
		}
		o.inMemory()
	}
	const senders = 6
	stop := make(chan struct{})
	wait := s.load(senders, stop)
	disk.syncs.Lock()
	s.eventually("requests are refused", func() bool {
		for _, o := range s.senders {
			o.inMemory()
		}
		return s.senders[0].refused() >= 3*senders && s.senders[1].refused() >= 3*senders
	})
	s.eventually("/readyz says that the store hangs", func() bool { return !s.ready() })
	close(stop)
	wait()
	disk.syncs.Unlock()
	s.eventually("ready again", s.ready)
	for _, o := range s.senders {
		s.wantRecovered(o)
		first := id.Event("evt-1")
		if status := o.event(first, o.acked[first]); status != http.StatusOK {
			t.Errorf("%s: got %d", first, status)
		}
	}
}
