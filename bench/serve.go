package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// servePeer serves h on a free loopback port until ctx ends. It prints the line "serving URL" to out once it listens.
func servePeer(ctx context.Context, out io.Writer, h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: h}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	fmt.Fprintf(out, "serving http://%s\n", l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// maxBody bounds the bodies that a peer reads.
const maxBody = 1 << 20

func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > maxBody {
		return nil, errors.New("no or too large Content-Length")
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

func write(w http.ResponseWriter, status int, media string, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{media}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client has disconnected
}

// staticPeer answers every request with the same body, after reading the body of the request.
func staticPeer(body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := readBody(r); err != nil {
			http.Error(w, "unreadable body", http.StatusBadRequest)
			return
		}
		write(w, http.StatusOK, "application/octet-stream", body)
	})
}

// Handler serves POST /add, which answers 201 with the entry's index once the
// entry is durable and integrated, and GET /checkpoint.
func (t *tesseraPeer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add", func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(r)
		if err != nil {
			http.Error(w, "unreadable body", http.StatusBadRequest)
			return
		}
		at, err := t.Add(r.Context(), body)
		if err != nil {
			http.Error(w, "not added", http.StatusInternalServerError)
			return
		}
		write(w, http.StatusCreated, "text/plain", strconv.AppendUint(nil, at, 10))
	})
	mux.HandleFunc("GET /checkpoint", func(w http.ResponseWriter, r *http.Request) {
		note, err := t.Checkpoint(r.Context())
		if err != nil {
			http.Error(w, "no checkpoint", http.StatusNotFound)
			return
		}
		write(w, http.StatusOK, "text/plain", note)
	})
	return mux
}
