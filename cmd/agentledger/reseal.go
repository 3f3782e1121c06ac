package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/agent"
	"github.com/agentledger/agentledger/approval"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/notary"
	"github.com/agentledger/agentledger/outbox"
	"github.com/agentledger/agentledger/reseal"
)

// resealAgain is the time after which what could not be resealed is tried again.
const resealAgain = time.Minute

// reseal moves all keys of the store to the newest master key, beside the serving,
// until that is done or ctx ends.
func (s *service) reseal(ctx context.Context) {
	done := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "agentledger_reseal_done", Help: "1 when no key is sealed under an older master key any more.",
	})
	s.watch.registry.MustRegister(done)
	r := reseal.Resealer{Store: s.store.engine, Ledgers: s.ledgers, Keyring: s.store.keyring, Sealed: sealedRecords()}
	for ctx.Err() == nil {
		written, err := r.Run(ctx)
		if err == nil {
			done.Set(1)
			s.watch.logger.Info("all keys are sealed under the newest master key: the older ones are not needed any more", "records", written)
			return
		}
		if ctx.Err() == nil {
			s.watch.logger.Error("keys are not resealed", "records", written, "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(resealAgain):
		}
	}
}

// sealedRecords is every kind of record that holds private keys.
func sealedRecords() []log.Sealed {
	return []log.Sealed{log.SealedLogKeys(), notary.SealedSystemKey(), agent.SealedBridgeKey(), approval.SealedGrantKey(), outbox.SealedKey()}
}
