package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/grant/granthttp"
	"github.com/agentledger/agentledger/tlog"
)

// toolName is whose word the receipts are. Take the name of a host that is yours.
const toolName = "did:web:shop.example"

// newShop returns the tool: an API that sends mails, behind the middleware that signs receipts. It needs no grant and no key of
// the log, and it is never told whose agents call it.
func newShop(key tlog.SignerKey) (http.Handler, error) {
	checker, err := granthttp.New(granthttp.Config{
		Routes:   []granthttp.Route{{Route: "POST /mails", Tool: "shop.mails.post", Optional: true}},
		Receipts: &key,
	})
	if err != nil {
		return nil, err
	}
	return checker.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // only declared requests come here
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"queued":true}`)
	})), nil
}

// loadToolKey returns the tool's own key. The file has the seed in base64, as aps keygen writes it; it is made at the first start.
// No agent may read it.
func loadToolKey(file string) (tlog.SignerKey, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		seed := make([]byte, edkey.SeedSize)
		_, _ = rand.Read(seed) // never fails
		text = []byte(base64.StdEncoding.EncodeToString(seed) + "\n")
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return tlog.SignerKey{}, err
	}
	seed, err := edkey.ParseSeed(string(text))
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("%s: %w", file, err)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("%s: %w", file, err)
	}
	return tlog.NewSignerKey(toolName, private)
}
