package web_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/clients"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/releasefiles"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/web"
)

type packageList struct {
	Packages []struct {
		Kind, Name, Version, File, URL, SHA256, Integrity, Install string
		Readme                                                     string `json:"readme_url"`
		Size                                                       int
	} `json:"packages"`
	Sums      string `json:"sums_url"`
	Signature string `json:"signature_url"`
}

func (w *world) packages() (list packageList) {
	w.Helper()
	answer := w.page("/clients/index.json", http.StatusOK)
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || answer.Header().Get("Content-Type") != "application/json" {
		w.Fatalf("%v: %s", err, answer.Body)
	}
	return list
}

// The list and the page describe the packages as they are served. The hashes of a program that is not a release are
// not signed, and its packages may change.
func TestClientPackages(t *testing.T) {
	w := newWorld(t)
	list, shown := w.packages(), w.page("/clients", http.StatusOK).Body.String()
	media := map[string]string{"npm": "application/gzip", "wheel": "application/zip", "sdist": "application/gzip"}
	if len(list.Packages) != len(media) || list.Signature != "" || !strings.Contains(shown, "Not signed") {
		t.Errorf("got %+v, %s", list, shown)
	}
	for _, p := range list.Packages {
		path := strings.TrimPrefix(p.URL, "https://log.example")
		answer := w.page(path, http.StatusOK)
		h, sum := answer.Header(), sha256.Sum256(answer.Body.Bytes())
		if path != "/clients/"+p.File || answer.Body.Len() != p.Size || hex.EncodeToString(sum[:]) != p.SHA256 ||
			h.Get("Content-Type") != media[p.Kind] || h.Get("Cache-Control") != "no-cache" || h.Get("ETag") == "" {
			t.Errorf("%s: got %d bytes with SHA-256 %x, %v", p.URL, answer.Body.Len(), sum, h)
		}
		w.page(path, http.StatusNotModified, "If-None-Match: "+h.Get("ETag"))
		readme := w.page(strings.TrimPrefix(p.Readme, "https://log.example"), http.StatusOK).Body.String()
		if !strings.HasPrefix(readme, "# agentledger for ") || !strings.Contains(shown, strings.TrimPrefix(p.Readme, "https://log.example")) {
			t.Errorf("%s: got %s", p.Readme, readme)
		}
		if p.Kind != "sdist" && !strings.Contains(shown, p.Install) || !strings.Contains(shown, p.SHA256) {
			t.Errorf("the page lacks %s or its hash", p.Install)
		}
	}
	if sums := w.page("/clients/SHA256SUMS", http.StatusOK).Body.String(); sums != clients.Read().Sums {
		t.Errorf("got the hashes %s", sums)
	}
	w.page("/clients/SHA256SUMS.note", http.StatusNotFound)
	w.page("/clients/agentledger-client-0.0.0.tgz", http.StatusNotFound)
	for _, target := range []string{"/clients?a=b", "/clients/index.json?a=b", "/clients/SHA256SUMS?a=b"} {
		w.page(target, http.StatusUnprocessableEntity)
	}
}

// Files of a signed release are immutable, and can be verified like all others of the release.
func TestSignedClientPackages(t *testing.T) {
	w := newWorld(t)
	key, err := tlog.NewSignerKey(releasefiles.KeyName, edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	set := *clients.Read()
	note, err := key.SignNote(set.Sums)
	if err != nil {
		t.Fatal(err)
	}
	set.Note = note.Bytes()
	w.serve(nil, func(o *web.Options) { o.Clients = func() *clients.Set { return &set } })
	list, folder := w.packages(), t.TempDir()
	if !strings.Contains(w.page("/clients", http.StatusOK).Body.String(), "aps verify-release "+list.Packages[0].File) {
		t.Error("the page does not have the command that checks a file")
	}
	for _, address := range []string{list.Signature, list.Packages[0].URL, list.Packages[1].URL, list.Packages[2].URL} {
		answer := w.page(strings.TrimPrefix(address, "https://log.example"), http.StatusOK)
		if immutable := strings.Contains(answer.Header().Get("Cache-Control"), "immutable"); immutable == (address == list.Signature) {
			t.Errorf("%s: got %v", address, answer.Header())
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(address)), answer.Body.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	signed, err := releasefiles.ReadList(dir)
	if err == nil {
		err = signed.CheckSignature(key.Verifier())
	}
	if err != nil || len(signed.Files) != 3 {
		t.Fatalf("got %+v, %v", signed, err)
	}
	for _, f := range signed.Files {
		if err := f.Check(t.Context(), dir); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}
