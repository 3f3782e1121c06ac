package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// monitorTrust is the keys and the policy that a monitor relies on.
type monitorTrust struct {
	keys      []tlog.VerifierKey // of the log; with --all of the directory
	witnesses []tlog.WitnessKey
	policy    *trust.Policy // whose quorum is required, or nil
}

// readTrust reads the keys and the policy that the flags name. As for verify, --key replaces the log lines of a policy.
func (c *monitorCommand) readTrust(s *streams) (r monitorTrust, err error) {
	if r.keys, err = parseFlagValues("--key", c.Key, tlog.ParseVerifierKey); err != nil {
		return r, err
	}
	if r.witnesses, err = parseFlagValues("--witness", c.Witness, tlog.ParseWitnessKey); err != nil || c.Policy == "" {
		return r, err
	}
	text, err := s.readSettings(c.Policy, trust.MaxText)
	if err == nil {
		r.policy, err = parsePolicy(c.Policy, text)
	}
	if err == nil && len(r.keys) == 0 {
		r.keys, err = policyKeysAt(r.policy, c.URL, c.All)
	}
	if err != nil {
		return r, fmt.Errorf("--policy: %w", err)
	}
	return r, nil
}

// policyKeysAt returns the keys of the only log that a policy names or, if it names several, of those at the address. If
// all is set, it returns the keys of every log.
func policyKeysAt(p *trust.Policy, address string, all bool) (keys []tlog.VerifierKey, err error) {
	logs := p.Logs
	if several := slices.ContainsFunc(logs,
		func(l trust.Log) bool { return l.Key.Name() != logs[0].Key.Name() }); several && !all {
		logs = slices.DeleteFunc(slices.Clone(logs), func(l trust.Log) bool {
			return strings.TrimRight(l.URL, "/") != strings.TrimRight(address, "/")
		})
	}
	for _, l := range logs {
		keys = append(keys, l.Key)
	}
	if len(keys) == 0 {
		return nil, errors.New("it has no log line for --url: --key is required")
	}
	return keys, nil
}
