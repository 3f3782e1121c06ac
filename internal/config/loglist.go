package config

import (
	"errors"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// LogList says whether the service shows a list of its logs to witnesses.
type LogList struct {
	LogListContact string `help:"How witnesses' operators reach you: an address or a page. With it the service lists the origins and keys of all its logs at /v1/public/witness-network/logs/v0, for all to see. Default: no list." placeholder:"TEXT" env:"AGENTLEDGER_LOG_LIST_CONTACT"`
	LogListQPD     int    `name:"log-list-qpd" help:"Requests of one log to one witness in a day, as the list says it. 0: a day divided by --witness-interval." default:"0" placeholder:"N" env:"AGENTLEDGER_LOG_LIST_QPD"`
}

// PerDay returns how often one log asks a witness in a day, when a round about it
// begins every interval.
func (l LogList) PerDay(interval time.Duration) int {
	if l.LogListQPD > 0 {
		return l.LogListQPD
	}
	const day = 24 * time.Hour
	return max(1, int((day+interval-1)/max(interval, time.Second)))
}

const maxContact = 256 // bytes

func (l LogList) validate() error {
	contact := l.LogListContact
	switch {
	case len(contact) > maxContact || contact != strings.TrimSpace(contact) || strings.ContainsFunc(contact, unicode.IsControl) || !utf8.ValidString(contact):
		return errors.New("--log-list-contact: one line of at most 256 bytes, without white space around it")
	case l.LogListQPD < 0 || l.LogListQPD > math.MaxInt32:
		return errors.New("--log-list-qpd: from 1 to 2147483647")
	case l.LogListQPD > 0 && contact == "":
		return errors.New("--log-list-qpd: needs --log-list-contact, without which there is no list")
	}
	return nil
}
