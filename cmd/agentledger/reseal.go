package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/operate/rekey"
)

// resealKeys seals all keys of the store under the newest master key, while the service runs, until it is done or ctx
// ends.
func (s *service) resealKeys(ctx context.Context) {
	done := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "agentledger_reseal_done", Help: "1 if no key is sealed under an older master key.",
	})
	s.watch.registry.MustRegister(done)
	r := rekey.Rekeyer{Store: s.store.Engine, Ledgers: s.ledgers, Keyring: s.store.Keyring,
		Sealed: rekey.SealedRecords(), Texts: rekey.SealedTexts()}
	s.retryUntilDone(ctx, "keys are not resealed", func() error {
		written, err := r.Run(ctx)
		if err != nil {
			return fmt.Errorf("after %d records: %w", written, err)
		}
		done.Set(1)
		s.watch.logger.Info("all keys are sealed under the newest master key: the older ones are no longer needed",
			"records", written)
		return nil
	})
}
