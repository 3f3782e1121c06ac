package verify

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/tlog"
)

// LogKey is a key of a log and the sizes of the trees whose checkpoints it signed.
type LogKey struct {
	Key      tlog.VerifierKey
	From, To id.Index // [From, To)
}

// Always returns a key that signs trees of every size.
func Always(key tlog.VerifierKey) LogKey { return LogKey{Key: key, To: tlog.MaxSize + 1} }

// Signed reports whether the key signs checkpoints of trees of that size.
func (k LogKey) Signed(size id.Index) bool { return k.From <= size && size < k.To }

// keyLine is one key in the answer of transparency/keys.
type keyLine struct {
	VerifierKey *string        `json:"vkey"`
	Use         *string        `json:"use"`
	FromSize    *id.Index      `json:"from_size"`
	ToSize      jsontext.Value `json:"to_size"` // null while it signs
}

// ParseKeys parses a saved answer of transparency/keys and returns the keys that sign checkpoints
// (use log), in the same order. The text MUST be strict I-JSON with all members and with sizes
// below 2^53. Unknown members and keys of other uses are ignored. The answer is unsigned, so the
// caller MUST trust its source. The caller must also bound its length. Errors wrap ErrMalformed.
func ParseKeys(src []byte) ([]LogKey, error) {
	canonical, _, err := jcs.ParseObject(nil, src, jcs.MaxDepth)
	if err != nil {
		return nil, fmt.Errorf("parse keys: %w: %w", ErrMalformed, err)
	}
	var list struct {
		Keys []keyLine `json:"keys"`
	}
	if err := json.Unmarshal(canonical, &list); err != nil {
		return nil, fmt.Errorf("parse keys: %w: %w", ErrMalformed, err)
	}
	var keys []LogKey
	for i, line := range list.Keys {
		k, ofLog, err := line.parseLogKey()
		if err != nil {
			return nil, fmt.Errorf("parse keys: key %d: %w", i+1, err)
		}
		if ofLog {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("parse keys: no key of a log: %w", ErrMalformed)
	}
	return keys, nil
}

// parseLogKey checks one key. ofLog is false if the key has another use.
func (l keyLine) parseLogKey() (k LogKey, ofLog bool, err error) {
	if l.VerifierKey == nil || l.Use == nil || l.FromSize == nil || l.ToSize == nil {
		return k, false, fmt.Errorf("missing member: %w", ErrMalformed)
	}
	k.From, k.To = *l.FromSize, tlog.MaxSize+1
	if !isNullValue(l.ToSize) {
		if err := json.Unmarshal(l.ToSize, &k.To); err != nil {
			return k, false, fmt.Errorf("to_size: %w: %w", ErrMalformed, err)
		}
	}
	if k.From > event.MaxSeq || !isNullValue(l.ToSize) && k.To > event.MaxSeq || k.From > k.To {
		return k, false, fmt.Errorf("sizes: %w", ErrMalformed)
	}
	if *l.Use != "log" {
		return k, false, nil
	}
	if k.Key, err = tlog.ParseVerifierKey(*l.VerifierKey); err != nil {
		return k, false, fmt.Errorf("vkey: %w: %w", ErrMalformed, err)
	}
	return k, true, nil
}
