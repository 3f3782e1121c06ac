package guard

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard/internal/linelog"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// Stages of an action. The function runs between started and done.
const (
	stageDeciding = "deciding"
	stageStarted  = "started"
	stageDone     = "done"
)

// action is the stored state of an action.
type action struct {
	Key    string   `json:"key"`
	Digest id.Hash  `json:"digest"` // preparedAction.contentDigest
	Trace  id.Trace `json:"trace"`
	// Traceparent is a signed member of the events, "" if there is none.
	Traceparent string            `json:"traceparent,omitzero"`
	OnBehalfOf  *event.OnBehalfOf `json:"on_behalf_of,omitzero"`
	Tool        id.Tool           `json:"tool,omitzero"` // "" in files written before results named the tool
	Stage       string            `json:"stage"`
	Attempt     int               `json:"attempt"`        // number of signed intents
	New         bool              `json:"new,omitzero"`   // Action.KeyIsNew
	Asked       bool              `json:"asked,omitzero"` // approval was requested
	// The signed intent that the decision is about. May be nil, and is nil in files of older versions.
	Intent   jsontext.Value   `json:"intent,omitempty"`
	Approval *client.Approval `json:"approval,omitempty"`
	Permit   Permit           `json:"permit"`
	Result   jsontext.Value   `json:"result,omitempty"` // of the function
	Failure  string           `json:"failure,omitzero"` // of the function, or ""
	BeganAt  id.Instant       `json:"began_at,omitzero"`
	// How long the function ran; nil before its end.
	DurationMS *int64         `json:"duration_ms,omitempty"`
	Members    jsontext.Value `json:"members,omitempty"` // of Disclosed
	Stated     bool           `json:"told"`              // the event that states the result is queued or sent
	// Undecided is set on a started action that was stored before the decision was known.
	Undecided bool `json:"undecided,omitzero"`

	begunEarly bool // the latest stored state of this action is Undecided
}

func (a *action) resultStatus() string {
	switch a.Failure {
	case "":
		return "ok"
	case ErrInterrupted.Error():
		return "unknown"
	}
	return "error"
}

// isForgettable reports whether the action is never looked up again once its result was sent.
func (a *action) isForgettable() bool { return a.New && !a.Asked }

// expires reports whether the action is forgotten after some time.
func (a *action) expires() bool {
	return a.Stage == stageDone && a.Stated || a.Stage == stageDeciding && a.New
}

// kept returns the part of the action that the journal stores, or nil if a is nil.
func (a *action) kept() *action {
	if a == nil || a.Stage != stageDone {
		return a
	}
	k := *a
	k.Intent = nil
	if k.isForgettable() && k.Stated {
		k.Result, k.Members, k.Permit.Approved = nil, nil, ""
	}
	return &k
}

func keyHash(key string) id.Hash { return sha256.Sum256([]byte(key)) }

// loadAction returns the stored action with a key, or nil if there is none.
func (j *Journal) loadAction(key string) (*action, error) { return j.loadByHash(keyHash(key)) }

func (j *Journal) loadByHash(hash id.Hash) (*action, error) {
	for {
		j.mu.Lock()
		k, ok := j.actions[hash]
		j.mu.Unlock()
		if !ok {
			return nil, nil
		}
		r, there, err := j.readRecord(k.at)
		if !there && err == nil { // the line was moved in the meantime
			continue
		}
		if err == nil && r.Action == nil {
			err = errors.New("a line without an action")
		}
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		return r.Action, nil
	}
}

// readRecord reads a line. there is false if its file was removed.
func (j *Journal) readRecord(at linelog.Place) (r record, there bool, err error) {
	text, there, err := j.lines.Read(at)
	if there {
		err = json.Unmarshal(text, &r)
	}
	return r, there, err
}

// unended returns the actions without an end, and those whose end is not stated in the ledger.
func (j *Journal) unended() (hashes []id.Hash) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for hash, k := range j.actions {
		if !k.expires {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}
