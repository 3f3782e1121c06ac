package publicapi_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// gunzip decompresses a response with the standard library.
func gunzip(t *testing.T, answer *httptest.ResponseRecorder) []byte {
	t.Helper()
	r, err := gzip.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestCodingOfEntryBundles(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, names("e", tlog.TileWidth+9)...)
	w.append(&w.blue, id.DiscloseRecord, names("e", tlog.TileWidth)...)
	for _, c := range []struct{ accept, want string }{
		{"", ""}, {"identity", ""}, {"gzip", "gzip"}, {"GZIP", "gzip"}, {"x-gzip", "gzip"}, {"*", "gzip"}, {"gzip, identity", "gzip"},
		{"identity, gzip", "gzip"}, {"br, gzip;q=0.8, *;q=0.1", "gzip"}, {"br, deflate, zstd", ""}, {"br, *;q=0", ""},
		{"gzip;q=0", ""}, {"gzip;q=0, *", ""}, {"gzip;q=0.0", ""}, {"identity;q=0", ""}, {"identity;q=0, gzip;q=0.001", "gzip"},
		{"gzip;q=0.5, identity;q=0.9", ""}, {"gzip;q=0.9, identity;q=0.5", "gzip"}, {"gzip;q=x", "gzip"}, {";;, gzip", "gzip"}, {"gzipped", ""},
	} {
		for _, path := range []string{"tile/entries/000", "tile/entries/001.p/9", "tile/entries/000.p/7"} {
			answer := w.get("/o/"+w.red.id.String()+"/"+path, "Accept-Encoding: "+c.accept)
			if got := answer.Header().Get("Content-Encoding"); got != c.want {
				t.Errorf("%s with Accept-Encoding %q: got %q, want %q", path, c.accept, got, c.want)
			}
			if got := answer.Header().Get("Vary"); got != "Accept-Encoding" {
				t.Errorf("%s: got Vary %q", path, got)
			}
		}
		for _, path := range []string{"tile/0/000", "tile/0/001.p/9", "checkpoint"} {
			if h := w.get("/o/"+w.red.id.String()+"/"+path, "Accept-Encoding: "+c.accept).Header(); h.Get("Content-Encoding") != "" || h.Get("Vary") != "" {
				t.Errorf("%s with Accept-Encoding %q: got %v", path, c.accept, h)
			}
		}
	}
}

// Both content codings contain the same bytes under different ETags, cached or not, and each organization gets its own
// bundle.
func TestGzipCarriesTheBundle(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, names("e", tlog.TileWidth+9)...)
	w.append(&w.blue, id.DiscloseRecord, names("e", tlog.TileWidth+9)...)
	tags := map[string]string{}
	for _, o := range []*owner{&w.red, &w.blue} {
		for _, path := range []string{"tile/entries/000", "tile/entries/001.p/9", "tile/entries/000.p/256", "tile/entries/000.p/255"} {
			target := "/o/" + o.id.String() + "/" + path
			if path == "tile/entries/000.p/256" {
				w.missing(target)
				continue
			}
			plain := w.get(target)
			for range 3 {
				packed := w.get(target, "Accept-Encoding: gzip")
				h := packed.Header()
				if got := h.Get("Content-Length"); got != strconv.Itoa(packed.Body.Len()) || packed.Body.Len() >= plain.Body.Len() {
					t.Errorf("%s: %s bytes announced, %d given, %d as they are", target, got, packed.Body.Len(), plain.Body.Len())
				}
				if h.Get("ETag") == plain.Header().Get("ETag") || h.Get("Cache-Control") != plain.Header().Get("Cache-Control") || h.Get("Content-Type") != plain.Header().Get("Content-Type") {
					t.Errorf("%s: got %v, as it is %v", target, h, plain.Header())
				}
				if before := tags[target]; before != "" && before != h.Get("ETag") {
					t.Errorf("%s: another ETag than before", target)
				}
				tags[target] = h.Get("ETag")
				if !bytes.Equal(gunzip(t, packed), plain.Body.Bytes()) {
					t.Errorf("%s: other bytes in gzip", target)
				}
			}
		}
	}
}

func TestRevalidationByCoding(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, names("e", tlog.TileWidth)...)
	target := "/o/" + w.red.id.String() + "/tile/entries/000"
	plain, packed := w.get(target).Header().Get("ETag"), w.get(target, "Accept-Encoding: gzip").Header().Get("ETag")
	for _, c := range []struct {
		accept, match string
		want          int
	}{
		{"", plain, http.StatusNotModified}, {"gzip", packed, http.StatusNotModified},
		{"gzip", plain, http.StatusOK}, {"", packed, http.StatusOK},
		{"gzip", plain + ", " + packed, http.StatusNotModified}, {"gzip", "*", http.StatusNotModified}, {"gzip", `"other"`, http.StatusOK},
	} {
		answer := w.do(http.MethodGet, target, "Accept-Encoding: "+c.accept, "If-None-Match: "+c.match)
		h := answer.Header()
		if answer.Code != c.want || h.Get("Vary") != "Accept-Encoding" || h.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("Accept-Encoding %q, If-None-Match %s: got %d %v", c.accept, c.match, answer.Code, h)
		}
		if c.want == http.StatusNotModified && (answer.Body.Len() > 0 || h.Get("Content-Encoding") != "") {
			t.Errorf("304 with %d bytes, %v", answer.Body.Len(), h)
		}
	}
}
