package trust

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/tlog"
)

// builder puts a policy together, item by item, each checked against those
// before it.
type builder struct {
	policy Policy
	logs   map[edkey.Public]bool
	keys   map[string]bool // identities of witnesses' keys
	names  map[string]bool // of witnesses and groups: whether a group has it
}

func newBuilder() *builder {
	return &builder{logs: map[edkey.Public]bool{}, keys: map[string]bool{}, names: map[string]bool{}}
}

// Validate reports whether Parse would read back the policy that Text writes.
// Policies that were not read need it. The error wraps ErrMalformed.
func (p *Policy) Validate() error {
	b := newBuilder()
	for _, l := range p.Logs {
		if err := b.log(l); err != nil {
			return fmt.Errorf("policy: log: %w", err)
		}
	}
	for _, w := range p.Witnesses {
		if err := b.witness(w); err != nil {
			return fmt.Errorf("policy: witness: %w", err)
		}
	}
	for _, g := range p.Groups {
		if err := b.group(g); err != nil {
			return fmt.Errorf("policy: group: %w", err)
		}
	}
	if err := b.quorum(p.Quorum); err != nil {
		return fmt.Errorf("policy: quorum: %w", err)
	}
	if len(p.Text()) > MaxText {
		return fmt.Errorf("policy: size: %w", ErrMalformed)
	}
	return nil
}

func (b *builder) logLine(vkey string, url []string) error {
	key, err := tlog.ParseVerifierKey(vkey)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return b.log(Log{Key: key, URL: only(url)})
}

func (b *builder) witnessLine(name, vkey string, url []string) error {
	key, err := tlog.ParseWitnessKey(vkey)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return b.witness(Witness{Name: name, Key: key, URL: only(url)})
}

func (b *builder) groupLine(name, k string, members []string) error {
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
	return b.group(g)
}

func only(optional []string) string {
	if len(optional) == 0 {
		return ""
	}
	return optional[0]
}

func (b *builder) log(l Log) error {
	if l.Key == (tlog.VerifierKey{}) || l.URL != "" && !isItem(l.URL) || len(b.policy.Logs) == MaxItems {
		return fmt.Errorf("key, URL or number of logs: %w", ErrMalformed)
	}
	if !take(b.logs, l.Key.Public()) {
		return fmt.Errorf("the key of another log: %w", ErrMalformed)
	}
	b.policy.Logs = append(b.policy.Logs, l)
	return nil
}

func (b *builder) witness(w Witness) error {
	if w.Key == (tlog.WitnessKey{}) || w.URL != "" && !isItem(w.URL) || len(b.policy.Witnesses) == MaxItems {
		return fmt.Errorf("key, URL or number of witnesses: %w", ErrMalformed)
	}
	if !take(b.keys, w.Key.Identity()) {
		return fmt.Errorf("the key of another witness: %w", ErrMalformed)
	}
	if err := b.define(w.Name); err != nil {
		return err
	}
	b.policy.Witnesses = append(b.policy.Witnesses, w)
	return nil
}

func (b *builder) group(g Group) error {
	if g.K < 1 || g.K > len(g.Members) || len(b.policy.Groups) == MaxItems {
		return fmt.Errorf("threshold or number of groups: %w", ErrMalformed)
	}
	for _, name := range g.Members {
		if taken, defined := b.names[name]; !defined || taken {
			return fmt.Errorf("a member that is not defined, or in a group already: %w", ErrMalformed)
		}
		b.names[name] = true
	}
	if err := b.define(g.Name); err != nil {
		return err
	}
	b.policy.Groups = append(b.policy.Groups, g)
	return nil
}

// define makes a name of a witness or group known.
func (b *builder) define(name string) error {
	if _, defined := b.names[name]; defined || name == None || !isItem(name) {
		return fmt.Errorf("name: %w", ErrMalformed)
	}
	b.names[name] = false
	return nil
}

func (b *builder) quorum(name string) error {
	if _, defined := b.names[name]; b.policy.Quorum != "" || !defined && name != None {
		return fmt.Errorf("a second quorum, or a name that is not defined: %w", ErrMalformed)
	}
	b.policy.Quorum = name
	return nil
}

// isItem reports whether s can stand in a line by itself.
func isItem(s string) bool {
	return s != "" && !slices.ContainsFunc([]byte(s), func(c byte) bool { return forbidden(c) || c == ' ' || c == '\t' || c == '\n' })
}

// take adds a key and reports whether it was not there.
func take[K comparable](keys map[K]bool, k K) bool {
	known := keys[k]
	keys[k] = true
	return !known
}
