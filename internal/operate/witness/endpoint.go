package witness

import (
	"net/url"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// target is a configured key of a witness.
type target struct {
	trust.Witness
	label string // in metrics
}

// endpoint is one submission address with all keys configured for it. One request serves all its keys: each line of
// the response that verifies under one of the keys counts. For example, a witness may have an Ed25519 key and an
// ML-DSA-44 key.
type endpoint struct {
	address string
	targets []*target // at least one
	breaker *breaker
}

// displayName is the name of the endpoint in the operator's log.
func (e *endpoint) displayName() string { return e.targets[0].Key.Name() }

// submissionAddress returns the address of add-checkpoint below a prefix. Prefixes that differ only in the case of
// the host or in a trailing slash have the same address.
func submissionAddress(prefix string) string {
	if u, err := url.Parse(prefix); err == nil {
		u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
		prefix = u.String()
	}
	return strings.TrimSuffix(prefix, "/") + "/add-checkpoint"
}

// addTarget adds a key to the endpoint of its URL. If there is no endpoint, it creates one with a breaker from
// makeBreaker.
func (f *activePolicy) addTarget(t *target, makeBreaker func(address string) *breaker) {
	f.targets = append(f.targets, t)
	address := submissionAddress(t.URL)
	for _, e := range f.endpoints {
		if e.address == address {
			e.targets = append(e.targets, t)
			return
		}
	}
	f.endpoints = append(f.endpoints, &endpoint{address: address, targets: []*target{t}, breaker: makeBreaker(address)})
}

// endpointFor returns the endpoint of a target of f.
func (f *activePolicy) endpointFor(t *target) *endpoint {
	i := slices.IndexFunc(f.endpoints, func(e *endpoint) bool { return slices.Contains(e.targets, t) })
	return f.endpoints[i]
}

// acknowledged returns the largest known size that a key of the endpoint cosigned, or 0.
func (p *ledgerRecord) acknowledged(e *endpoint) (size id.Index) {
	for _, t := range e.targets {
		size = max(size, p.hintOrZero(t.Key).Size)
	}
	return size
}

// cosignaturesIn returns the lines of a response that are cosignatures of text by keys of the endpoint, by
// WitnessKey.Identity.
func (e *endpoint) cosignaturesIn(body []byte, text string) map[string]tlog.Signature {
	found := make(map[string]tlog.Signature, len(e.targets))
	lines, err := tlog.ParseSignatures(string(body))
	if err != nil {
		return found
	}
	for _, t := range e.targets {
		if s, ok := findCosignature(lines, t.Key, text); ok {
			found[t.Key.Identity()] = s
		}
	}
	return found
}

// findCosignature returns the first line that is the key's cosignature of text.
func findCosignature(lines []tlog.Signature, key tlog.WitnessKey, text string) (tlog.Signature, bool) {
	for _, s := range lines {
		if _, err := key.Verify(text, s); err == nil {
			return s, true
		}
	}
	return tlog.Signature{}, false
}
