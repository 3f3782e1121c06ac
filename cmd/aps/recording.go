package main

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// recorded is one line of a recording: an act of an agent, without the members that only the sender knows.
type recorded struct {
	Trace      string         `json:"trace"`
	Step       uint64         `json:"step"`
	ActionKind string         `json:"action_kind"`
	ToolName   string         `json:"tool_name"`
	Payload    jsontext.Value `json:"payload"`
}

// sourceLine is one line of a file; number counts from 0.
type sourceLine struct {
	number uint64
	text   []byte
}

// maxLine is the maximum length of a line in bytes.
const maxLine = 4 << 20

// sourceLines yields the non-empty lines of r from number skip on, at most limit lines, or all if limit is 0. Empty lines
// are numbered too.
func sourceLines(r io.Reader, skip, limit uint64) iter.Seq2[sourceLine, error] {
	return func(yield func(sourceLine, error) bool) {
		scanner := bufio.NewScanner(r)
		scanner.Buffer(nil, maxLine)
		given := uint64(0)
		for number := uint64(0); (limit == 0 || given < limit) && scanner.Scan(); number++ {
			if number < skip || len(scanner.Bytes()) == 0 {
				continue
			}
			given++
			if !yield(sourceLine{number, append([]byte(nil), scanner.Bytes()...)}, nil) {
				return
			}
		}
		if err := scanner.Err(); err != nil {
			yield(sourceLine{}, fmt.Errorf("read recording: %w", err))
		}
	}
}

// countLines returns how many lines sourceLines will yield for a file, or 0 if the file can't be read twice.
func countLines(f io.Reader, skip, limit uint64) (int64, error) {
	seeker, ok := f.(io.ReadSeeker)
	if !ok {
		return 0, nil
	}
	if _, err := seeker.Seek(0, io.SeekCurrent); err != nil {
		return 0, nil // a pipe
	}
	count := int64(0)
	for _, err := range sourceLines(seeker, skip, limit) {
		if err != nil {
			return 0, err
		}
		count++
	}
	_, err := seeker.Seek(0, io.SeekStart)
	return count, err
}

// interval is the time between the emitted_at of consecutive lines.
const interval = 100 * time.Millisecond

// playback makes events of recorded lines. Members that a line lacks are derived from the line, its number, start and
// the signer, so that the same line becomes the same envelope each time. Ids and salt are keyed by the private key:
// they are as hard to guess as random ones, although the content may be easy to guess.
type playback struct {
	signer *client.Signer
	start  time.Time
}

// signRecorded returns the signed envelope of a line and the trace that it belongs to.
func (p playback) signRecorded(l sourceLine) (trace string, envelope []byte, err error) {
	canonical, err := jcs.Canonicalize(l.text, jcs.MaxDepth)
	if err != nil {
		return "", nil, err
	}
	var r recorded
	if err := json.Unmarshal(canonical, &r, json.RejectUnknownMembers(true)); err != nil {
		return "", nil, errors.New("not a line of {trace, step, action_kind, tool_name?, payload}")
	}
	if r.Trace == "" {
		return "", nil, errors.New("trace is missing")
	}
	envelope, err = p.signer.SignEvent(p.draftEvent(r, l.number, canonical))
	return r.Trace, envelope, err
}

func (p playback) draftEvent(r recorded, number uint64, canonical []byte) client.Event {
	who := p.signer.Identity()
	start := id.InstantOf(p.start)
	basis := fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%d\n%s", who.Organization, who.Agent, who.Key, start, number, canonical)
	eventID := p.signer.Secret("aps/replay/event_id", basis)
	salt := p.signer.Secret("aps/replay/salt", basis)
	e := client.Event{
		EventID:    id.Event("evt_" + hex.EncodeToString(eventID[:16])),
		TraceID:    p.traceIDFor(r.Trace),
		EmittedAt:  id.InstantOf(p.start.Add(time.Duration(number) * interval)),
		ActionKind: r.ActionKind,
		Tool:       id.Tool(r.ToolName),
		Extra:      map[string]any{"salt": base64.RawURLEncoding.EncodeToString(salt[:16]), "step": r.Step},
	}
	if len(r.Payload) > 0 {
		e.Payload = r.Payload
	}
	return e
}

// traceIDFor returns a trace's own name if it is a valid ID.
func (p playback) traceIDFor(trace string) id.Trace {
	if event.ValidEvent(trace) {
		return id.Trace(trace)
	}
	name := p.signer.Secret("aps/replay/trace_id", []byte(trace))
	return id.Trace("trc_" + hex.EncodeToString(name[:16]))
}
