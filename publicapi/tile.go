package publicapi

import (
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/header"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

const mediaBytes = "application/octet-stream"

// answerLogCheckpoint serves checkpoint below a log's prefix.
func (s *Server) answerLogCheckpoint(r *request) (response, error) {
	state, err := s.byID(r)
	if err != nil {
		return response{}, err
	}
	return s.newestCheckpoint(r, state)
}

// hasQuery reports whether a request has a query, even an empty one. A tile has exactly one URL,
// because caches store each URL permanently, and queries would fill them with copies.
func hasQuery(r *http.Request) bool { return r.URL.RawQuery != "" || r.URL.ForceQuery }

// answerTile serves tile/<L>/<N>[.p/<W>].
func (s *Server) answerTile(r *request) (response, error) {
	t, err := tlog.ParseTilePath(tilePath(r.Request))
	if err != nil || hasQuery(r.Request) {
		return response{}, errNotFound()
	}
	state, err := s.provableByID(r)
	if err != nil {
		return response{}, err
	}
	if !t.Within(state.Size()) {
		return response{}, errNotFound()
	}
	hashes, err := s.ledgers.Tile(r.Context(), state, t)
	if err != nil {
		return response{}, err
	}
	return response{media: mediaBytes, cache: immutable, body: hashes}, nil
}

// answerEntries serves tile/entries/<N>[.p/<W>].
func (s *Server) answerEntries(r *request) (response, error) {
	b, err := tlog.ParseBundlePath(tilePath(r.Request))
	if err != nil || hasQuery(r.Request) {
		return response{}, errNotFound()
	}
	state, err := s.provableByID(r)
	if err != nil {
		return response{}, err
	}
	if !b.Within(state.Size()) {
		return response{}, errNotFound()
	}
	return s.encodedEntries(r, state, b)
}

// encodedEntries returns an entry bundle in the content coding that the client accepts.
func (s *Server) encodedEntries(r *request, state *log.State, b tlog.Bundle) (response, error) {
	compress, isFull := header.WantsGzip(r.Header["Accept-Encoding"]), b.Width == tlog.TileWidth
	key := bundleKey{state.Identity().Tenant, b.Index}
	if compress && isFull {
		if p, ok := s.gzipCache.cachedBundle(key); ok {
			return p, nil
		}
	}
	content, err := s.renderEntries(r, state, b)
	if err != nil {
		return response{}, err
	}
	p := response{media: mediaBytes, cache: immutable, vary: "Accept-Encoding", body: content}
	if !compress {
		return p, nil
	}
	if p, err = s.gzipCache.compressBundle(p); err == nil && isFull {
		s.gzipCache.storeBundle(key, p)
	}
	return p, err
}

// renderEntries renders an entry bundle from stored events.
func (s *Server) renderEntries(r *request, state *log.State, b tlog.Bundle) (content []byte, err error) {
	begin, count := id.Index(b.Index)*tlog.TileWidth, 0
	var buffer [event.MaxEntryLen]byte
	content = make([]byte, 0, int(b.Width)*(2+len(buffer)))
	for e, err := range s.ledgers.Events(r.Context(), state, begin, begin+id.Index(b.Width), 0) {
		if err != nil {
			return nil, fmt.Errorf("read entry bundle: %w", err)
		}
		if content, err = tlog.AppendBundled(content, log.EntryOf(e).AppendTo(buffer[:0])); err != nil {
			return nil, err
		}
		count++
	}
	if count < int(b.Width) {
		return nil, fmt.Errorf("read entry bundle: %d entries of %d: %w", count, b.Width, storage.ErrCorrupt)
	}
	return content, nil
}
