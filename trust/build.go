package trust

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/tlog"
)

// builder adds the items of a policy one by one and checks each against the items before it.
type builder struct {
	policy Policy
	logs   map[edkey.Public]bool
	keys   map[string]bool // identities of witness keys
	names  map[string]bool // of witnesses and groups; the value is whether the name is in a group
}

func newBuilder() *builder {
	return &builder{logs: map[edkey.Public]bool{}, keys: map[string]bool{}, names: map[string]bool{}}
}

// Validate reports whether Parse would accept the policy that Text writes. Callers that build a
// policy MUST call it. The error wraps ErrMalformed.
func (p *Policy) Validate() error {
	b := newBuilder()
	for _, l := range p.Logs {
		if err := b.appendLog(l); err != nil {
			return fmt.Errorf("policy: log: %w", err)
		}
	}
	for _, w := range p.Witnesses {
		if err := b.appendWitness(w); err != nil {
			return fmt.Errorf("policy: witness: %w", err)
		}
	}
	for _, g := range p.Groups {
		if err := b.appendGroup(g); err != nil {
			return fmt.Errorf("policy: group: %w", err)
		}
	}
	if err := b.setQuorum(p.Quorum); err != nil {
		return fmt.Errorf("policy: quorum: %w", err)
	}
	if len(p.Text()) > MaxText {
		return fmt.Errorf("policy: size: %w", ErrMalformed)
	}
	return nil
}

func (b *builder) parseLogLine(vkey string, url []string) error {
	key, err := tlog.ParseVerifierKey(vkey)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return b.appendLog(Log{Key: key, URL: optionalItem(url)})
}

func (b *builder) parseWitnessLine(name, vkey string, url []string) error {
	key, err := tlog.ParseWitnessKey(vkey)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return b.appendWitness(Witness{Name: name, Key: key, URL: optionalItem(url)})
}

func (b *builder) parseGroupLine(name, k string, members []string) error {
	g := Group{Name: name, Members: members}
	switch k {
	case "any":
		g.K = 1
	case "all":
		g.K = len(members)
	default:
		var err error
		if g.K, err = strconv.Atoi(k); err != nil || strconv.Itoa(g.K) != k {
			return fmt.Errorf("threshold: %w", ErrMalformed)
		}
	}
	return b.appendGroup(g)
}

func optionalItem(optional []string) string {
	if len(optional) == 0 {
		return ""
	}
	return optional[0]
}

func (b *builder) appendLog(l Log) error {
	if l.Key == (tlog.VerifierKey{}) || l.URL != "" && !isSingleItem(l.URL) || len(b.policy.Logs) == MaxItems {
		return fmt.Errorf("key, URL or number of logs: %w", ErrMalformed)
	}
	if !addNew(b.logs, l.Key.Public()) {
		return fmt.Errorf("the key of another log: %w", ErrMalformed)
	}
	b.policy.Logs = append(b.policy.Logs, l)
	return nil
}

func (b *builder) appendWitness(w Witness) error {
	if w.Key == (tlog.WitnessKey{}) || w.URL != "" && !isSingleItem(w.URL) || len(b.policy.Witnesses) == MaxItems {
		return fmt.Errorf("key, URL or number of witnesses: %w", ErrMalformed)
	}
	if !addNew(b.keys, w.Key.Identity()) {
		return fmt.Errorf("the key of another witness: %w", ErrMalformed)
	}
	if err := b.defineName(w.Name); err != nil {
		return err
	}
	b.policy.Witnesses = append(b.policy.Witnesses, w)
	return nil
}

func (b *builder) appendGroup(g Group) error {
	if g.K < 1 || g.K > len(g.Members) || len(b.policy.Groups) == MaxItems {
		return fmt.Errorf("threshold or number of groups: %w", ErrMalformed)
	}
	for _, name := range g.Members {
		if taken, defined := b.names[name]; !defined || taken {
			return fmt.Errorf("a member that is not defined, or in a group already: %w", ErrMalformed)
		}
		b.names[name] = true
	}
	if err := b.defineName(g.Name); err != nil {
		return err
	}
	b.policy.Groups = append(b.policy.Groups, g)
	return nil
}

// defineName defines the name of a witness or a group.
func (b *builder) defineName(name string) error {
	if _, defined := b.names[name]; defined || name == None || !isSingleItem(name) {
		return fmt.Errorf("name: %w", ErrMalformed)
	}
	b.names[name] = false
	return nil
}

func (b *builder) setQuorum(name string) error {
	if _, defined := b.names[name]; b.policy.Quorum != "" || !defined && name != None {
		return fmt.Errorf("a second quorum, or a name that is not defined: %w", ErrMalformed)
	}
	b.policy.Quorum = name
	return nil
}

// isSingleItem reports whether s can be one item of a line.
func isSingleItem(s string) bool {
	return s != "" && !slices.ContainsFunc([]byte(s), isForbidden) && !strings.ContainsAny(s, " \t\n")
}

// addNew adds a key and reports whether it was missing.
func addNew[K comparable](keys map[K]bool, k K) bool {
	known := keys[k]
	keys[k] = true
	return !known
}
