package exchange

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/internal/cluster"
)

const (
	// Prefix is the common prefix of the paths of all calls between nodes.
	Prefix       = "/node/v1/"
	journalsPath = Prefix + "journals/"
	lookPath     = Prefix + "look"

	// wholeTrailer ends a response that contains all notes, so that a truncated response is not mistaken for a shorter
	// one.
	wholeTrailer = "Agentledger-Whole"

	// protocolHeader contains the protocol of a call and, in a response, the latest protocol that the node supports. A
	// call without the header has protocol 1.
	protocolHeader = "Agentledger-Node-Protocol"
)

// ServeHTTP handles the calls of other nodes.
func (x *Exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ofJournal := strings.CutPrefix(r.URL.Path, journalsPath)
	journal, found := x.Journals[name]
	w.Header().Set(protocolHeader, strconv.Itoa(cluster.Protocol))
	protocol, err := cluster.ParseProtocol(r.Header.Get(protocolHeader))
	switch {
	case err != nil:
		x.Logger.WarnContext(r.Context(), "cluster: rejected a call from another node", "protocol", protocol,
			"remote", r.RemoteAddr, "error", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
	case r.URL.Path == lookPath && r.Method == http.MethodPost:
		x.takeNews(w, r)
	case !ofJournal || !found:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPost:
		x.takeNotes(w, r, journal)
	case r.Method == http.MethodGet:
		x.giveNotes(w, r, journal)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// takeNotes stores the notes of another node, and responds once they are durable.
func (x *Exchange) takeNotes(w http.ResponseWriter, r *http.Request, journal Journal) {
	keep := keeper{journal: journal}
	err := readFrames(http.MaxBytesReader(w, r.Body, maxMessage), keep.addNote)
	if err != nil {
		x.Logger.WarnContext(r.Context(), "cluster: malformed notes from another node", "error", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if err := keep.flush(); err != nil {
		x.Logger.WarnContext(r.Context(), "cluster: notes from another node not stored", "error", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// giveNotes sends all notes of a journal to another node.
func (x *Exchange) giveNotes(w http.ResponseWriter, r *http.Request, journal Journal) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Trailer", wholeTrailer)
	m := &message{send: func(body []byte) error {
		_, err := w.Write(body)
		return err
	}}
	for note, err := range journal.Notes() {
		if err == nil {
			err = m.addNote(note)
		}
		if err != nil {
			x.Logger.WarnContext(r.Context(), "cluster: cannot send notes to another node", "error", err)
			return
		}
	}
	if m.flush() == nil {
		w.Header().Set(wholeTrailer, "yes")
	}
}
