package config

import (
	"errors"
	"time"
)

// Witnesses says who is asked to cosign checkpoints.
type Witnesses struct {
	WitnessPolicyFile    string        `help:"Witnesses that are asked about every organization's log, and their quorum: a C2SP tlog-policy in which each witness has its URL, without log lines. Default: none; organizations may name their own." type:"path" env:"AGENTLEDGER_WITNESS_POLICY_FILE"`
	WitnessFail          string        `help:"What ?cosigned=1 answers when the newest checkpoint with a quorum is older than it may be: open gives it all the same, closed refuses with 503. Organizations with a policy of their own choose themselves." enum:"open,closed" default:"open" env:"AGENTLEDGER_WITNESS_FAIL"`
	WitnessMaxLag        time.Duration `help:"For how long an event may be without a quorum where failing is closed; 0: not at all." default:"1m" env:"AGENTLEDGER_WITNESS_MAX_LAG"`
	WitnessInterval      time.Duration `help:"Time between two rounds of asking about one log." default:"2s" env:"AGENTLEDGER_WITNESS_INTERVAL"`
	WitnessAnchor        string        `help:"What confirms the head of a log whose anchor is lost: off for adopt alone, quorum also for a quorum of witnesses that hold exactly this head." enum:"off,quorum" default:"off" env:"AGENTLEDGER_WITNESS_ANCHOR"`
	WitnessContradiction string        `help:"What happens when a witness says twice in a row that it knows a larger tree or another history: freeze stops the log for good and alarms, alarm only tells." enum:"freeze,alarm" default:"freeze" env:"AGENTLEDGER_WITNESS_CONTRADICTION"`
}

func (w Witnesses) validate() error {
	if w.WitnessMaxLag < 0 {
		return errors.New("--witness-max-lag: not negative")
	}
	if w.WitnessInterval != 0 && w.WitnessInterval < 100*time.Millisecond { // 0: of commands that ask nobody
		return errors.New("--witness-interval: at least 100ms")
	}
	return nil
}
