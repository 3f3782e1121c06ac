package granthttp

import (
	"encoding/base64"
	"net/http"

	"github.com/agentledger/agentledger/grant"
)

// ReceiptHeader is the header of an answer with the tool's receipt: base64 of the signed note.
const ReceiptHeader = "Agentledger-Receipt"

// receiptWriter adds the receipt to the header of an answer, once its status is known.
type receiptWriter struct {
	http.ResponseWriter
	sign   func(status int) ([]byte, error)
	signed bool
}

func (w *receiptWriter) WriteHeader(status int) {
	if !w.signed && status >= 200 {
		w.signed = true
		if note, err := w.sign(status); err == nil { // an answer with a status that no receipt has goes without one
			w.Header().Set(ReceiptHeader, base64.StdEncoding.EncodeToString(note))
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *receiptWriter) Write(b []byte) (int, error) {
	if !w.signed {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher, for servers that send events.
func (w *receiptWriter) Flush() {
	if !w.signed {
		w.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (w *receiptWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// signReceipt returns the receipt of an action that was answered with a status.
func (c *Checker) signReceipt(r grant.Receipt, status int) ([]byte, error) {
	r.Status, r.At = status, c.now()
	return grant.SignReceipt(r, *c.receipts)
}
