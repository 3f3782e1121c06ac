package witness

import (
	"net/url"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// target is a key that is configured for a witness, and is asked for a cosignature.
type target struct {
	trust.Witness
	label string // in metrics
}

// endpoint is one address that checkpoints are submitted to, with all keys that are
// configured for it. One request is for all of them: each line of its answer that
// verifies under one of the keys counts. The usual case is a witness with an Ed25519
// and an ML-DSA-44 key.
type endpoint struct {
	address string
	targets []*target // at least one
	lane    *lane
}

// name is how the endpoint is called in the operator's log.
func (e *endpoint) name() string { return e.targets[0].Key.Name() }

// addressOf returns where checkpoints are submitted to. Equal prefixes that are
// written differently (case of the host, a slash at the end) have one address.
func addressOf(prefix string) string {
	if u, err := url.Parse(prefix); err == nil {
		u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
		prefix = u.String()
	}
	return strings.TrimSuffix(prefix, "/") + "/add-checkpoint"
}

// addTarget puts a key to the endpoint of its URL, which is made when there is none.
// Its lane is then the one that newLane returns for the address.
func (f *force) addTarget(t *target, newLane func(address string) *lane) {
	f.targets = append(f.targets, t)
	address := addressOf(t.URL)
	for _, e := range f.endpoints {
		if e.address == address {
			e.targets = append(e.targets, t)
			return
		}
	}
	f.endpoints = append(f.endpoints, &endpoint{address: address, targets: []*target{t}, lane: newLane(address)})
}

// endpointOf returns where a target of f is asked.
func (f *force) endpointOf(t *target) *endpoint {
	i := slices.IndexFunc(f.endpoints, func(e *endpoint) bool { return slices.Contains(e.targets, t) })
	return f.endpoints[i]
}

// acknowledged returns the largest size that one of an endpoint's keys cosigned, as
// far as is known; 0 for none.
func (p *page) acknowledged(e *endpoint) (size id.Index) {
	for _, t := range e.targets {
		size = max(size, p.heard(t.Key).Size)
	}
	return size
}

// cosignaturesIn returns the lines of an answer that are cosignatures of text by the
// keys of an endpoint, by WitnessKey.Identity.
func (e *endpoint) cosignaturesIn(body []byte, text string) map[string]tlog.Signature {
	found := make(map[string]tlog.Signature, len(e.targets))
	lines, err := tlog.ParseSignatures(string(body))
	if err != nil {
		return found
	}
	for _, t := range e.targets {
		if s, ok := cosignatureIn(lines, t.Key, text); ok {
			found[t.Key.Identity()] = s
		}
	}
	return found
}

// cosignatureIn returns the line of a key that is its cosignature of text.
func cosignatureIn(lines []tlog.Signature, key tlog.WitnessKey, text string) (tlog.Signature, bool) {
	for _, s := range lines {
		if _, err := key.Verify(text, s); err == nil {
			return s, true
		}
	}
	return tlog.Signature{}, false
}
