package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/syncs"
)

// sendTo sends everything that waits for a node. After a failure, the notes that it has not acknowledged wait again.
func (x *Exchange) sendTo(ctx context.Context, p *peer) {
	x.mu.Lock()
	node, behind, began := p.node, p.behind, time.Now()
	var queued []queuedNote
	if !behind {
		queued, p.queued, p.bytes = p.queued, nil, 0
	} else if p.taken == nil {
		p.taken = new(acknowledged)
	}
	taken := p.taken
	p.behind = false
	x.mu.Unlock()
	var err error
	if behind {
		err = x.sendAll(ctx, node, taken)
	} else {
		queued, err = x.sendNotes(ctx, node, queued)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	p.sending = false
	if err != nil {
		p.behind = p.behind || behind
		p.putBack(queued)
		p.retryAt = time.Now().Add(retryTime)
		x.Logger.WarnContext(ctx, "cluster: cannot send notes to a node", "node", node.ID, "url", node.URL, "error", err)
	} else if p.taken == taken && !p.behind {
		p.taken = nil
	}
	waits := p.behind || len(p.queued) > 0
	if waits {
		x.signal()
	}
	switch {
	case err == nil && waits:
		p.since = began // the remaining notes were added since then
	case err == nil:
		p.since = time.Time{}
	}
}

// sendAll sends the latest notes of all journals, except for those that the node has already acknowledged.
func (x *Exchange) sendAll(ctx context.Context, node cluster.Node, taken *acknowledged) error {
	for name, journal := range x.Journals {
		var sent []noteHash // notes in the message
		m := &message{send: func(body []byte) error {
			err := x.post(ctx, node, name, body)
			if err == nil {
				taken.add(sent)
				sent = nil
			}
			return err
		}}
		for note, err := range journal.Notes() {
			hash := hashNote(name, note)
			if err == nil && taken.contains(hash) {
				continue
			}
			if err == nil {
				err = m.addNote(note)
			}
			if err != nil {
				return fmt.Errorf("send all notes of %s: %w", name, err)
			}
			sent = append(sent, hash)
		}
		if err := m.flush(); err != nil {
			return fmt.Errorf("send all notes of %s: %w", name, err)
		}
	}
	return nil
}

// sendNotes sends notes in order, with one message for consecutive notes of a journal. It returns the notes that the
// node has not acknowledged.
func (x *Exchange) sendNotes(ctx context.Context, node cluster.Node, queued []queuedNote) ([]queuedNote, error) {
	for len(queued) > 0 {
		name, n := queued[0].journal, 0
		m := &message{send: func(body []byte) error {
			err := x.post(ctx, node, name, body)
			if err == nil {
				queued, n = queued[n:], 0
			}
			return err
		}}
		for n < len(queued) && queued[n].journal == name {
			if err := m.addNote(queued[n].note); err != nil {
				return queued, err
			}
			n++
		}
		if err := m.flush(); err != nil {
			return queued, err
		}
	}
	return nil, nil
}

// deliverTime bounds the call to one node before the next one is tried.
const deliverTime = time.Second

// Deliver sends notes to one other node, and returns once it has stored them. If there are no other nodes, it returns
// at once. Until a node accepts the notes, it retries with the current list of nodes, until ctx ends.
func (x *Exchange) Deliver(ctx context.Context, journal string, notes ...[]byte) error {
	for {
		err := x.deliverOnce(ctx, journal, notes)
		if err == nil {
			return nil
		}
		if syncs.Sleep(ctx, retryTime/10) != nil {
			return fmt.Errorf("deliver notes of %s: %w", journal, err)
		}
	}
}

// deliverOnce sends notes to the first other node that accepts them.
func (x *Exchange) deliverOnce(ctx context.Context, journal string, notes [][]byte) error {
	var refusals []error
	for _, n := range x.Members.Nodes() {
		if n.ID == x.Members.Self().ID {
			continue
		}
		m := &message{send: func(body []byte) error {
			ctx, cancel := context.WithTimeout(ctx, deliverTime)
			defer cancel()
			return x.post(ctx, n, journal, body)
		}}
		var err error
		for _, note := range notes {
			err = errors.Join(err, m.addNote(note))
		}
		if err = errors.Join(err, m.flush()); err == nil {
			return nil
		}
		refusals = append(refusals, err)
	}
	return errors.Join(refusals...)
}

// message collects notes for one call.
type message struct {
	send func(body []byte) error
	body []byte
}

func (m *message) addNote(note []byte) error {
	if len(note) > maxNote {
		return fmt.Errorf("note of %d bytes exceeds %d", len(note), maxNote)
	}
	if len(m.body)+len(note)+frameHeader > maxMessage {
		if err := m.flush(); err != nil {
			return err
		}
	}
	m.body = appendFrame(m.body, note)
	return nil
}

func (m *message) flush() error {
	if len(m.body) == 0 {
		return nil
	}
	err := m.send(m.body)
	m.body = nil
	return err
}

func (x *Exchange) post(ctx context.Context, node cluster.Node, journal string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, x.callTime)
	defer cancel()
	r, err := x.call(ctx, http.MethodPost, node, journalsPath+journal, body)
	if errors.Is(err, errUnknown) && x.Optional[journal] {
		return nil
	}
	if err != nil {
		return err
	}
	return r.Body.Close()
}

// errUnknown is returned if a node does not know a journal or a call.
var errUnknown = errors.New("the node does not support this call")

// call makes a call to another node. The caller must close the body of the response.
func (x *Exchange) call(ctx context.Context, method string, node cluster.Node, path string, body []byte) (
	*http.Response, error,
) {
	r, err := http.NewRequestWithContext(ctx, method, node.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	protocol, err := node.Speaks()
	if err != nil {
		return nil, err
	}
	r.Header.Set(protocolHeader, strconv.Itoa(protocol))
	answer, err := x.Client.Do(r)
	if err != nil {
		return nil, err
	}
	switch {
	case answer.StatusCode == http.StatusNotFound:
		err = errUnknown
	case answer.StatusCode/100 != 2:
		err = fmt.Errorf("%s %s: %w", method, path, errorFrom(answer))
	}
	if err != nil {
		return nil, errors.Join(err, answer.Body.Close())
	}
	return answer, nil
}

// refusalSize bounds how much of the text of an error response is reported, in bytes.
const refusalSize = 300

func errorFrom(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, refusalSize))
	if err != nil {
		return fmt.Errorf("status %d: %w", answer.StatusCode, err)
	}
	return fmt.Errorf("status %d: %s", answer.StatusCode, bytes.TrimSpace(text))
}

// Tell sends news of leases to nodes in the background. A node that does not respond learns them from its next beat.
func (x *Exchange) Tell(nodes []cluster.Node, n cluster.News) {
	news := encodeNews(n)
	for _, n := range nodes {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if r, err := x.call(ctx, http.MethodPost, n, lookPath, news); err == nil {
				_ = r.Body.Close()
			}
		}()
	}
}

// Fetch gets the latest notes of a node and stores them. A node calls it for all others before it owns an organization.
func (x *Exchange) Fetch(ctx context.Context, node cluster.Node) error {
	for name, journal := range x.Journals {
		err := x.fetchJournal(ctx, node, name, journal)
		if errors.Is(err, errUnknown) && x.Optional[name] {
			continue
		}
		if err != nil {
			return fmt.Errorf("fetch notes of %s from node %v: %w", name, node.ID, err)
		}
	}
	return nil
}

// fetchJournal gives up on a node that stalls, because another one may respond.
func (x *Exchange) fetchJournal(ctx context.Context, node cluster.Node, name string, journal Journal) error {
	ctx, cancel := context.WithTimeout(ctx, x.fetchTime)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	wait := patience{limit: x.callTime, timer: time.AfterFunc(x.callTime, func() { giveUp(errStalled) })}
	defer wait.timer.Stop()
	r, err := x.call(ctx, http.MethodGet, node, journalsPath+name, nil)
	if err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	defer r.Body.Close()
	wait.Reader = r.Body
	keep := keeper{journal: journal}
	if err := readFrames(&wait, keep.addNote); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	if r.Trailer.Get(wholeTrailer) != "yes" {
		return io.ErrUnexpectedEOF
	}
	return keep.flush()
}
