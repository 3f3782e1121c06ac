package witness

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/trust"
)

// The cost of one round for a ledger that moved by one event, with n witnesses of the service: everything but the
// network, and with the network on loopback.
func BenchmarkRound(b *testing.B) {
	for _, n := range []int{1, 3} {
		b.Run(fmt.Sprintf("witnesses=%d", n), func(b *testing.B) {
			c := newCounter(b)
			c.pause = 0
			policy := &trust.Policy{Quorum: trust.None}
			policy.Witnesses = c.policy().Witnesses
			for i := 1; i < n; i++ {
				more := testSigner(b, fmt.Sprint("w", i))
				c.others = append(c.others, more)
				policy.Witnesses = append(policy.Witnesses, trust.Witness{Name: fmt.Sprint("w", i), Key: more.Key(), URL: "https://w.example"})
			}
			benchmarkRound(b, c, policy)
		})
	}
	b.Run("loopback", func(b *testing.B) {
		x := witnesstest.New(b, "x.example")
		client := egress.New(egress.Options{Allow: loopback})
		benchmarkRound(b, client, parsed(b, x.PolicyLine("x")+"quorum x\n"), x)
	})
}

func benchmarkRound(b *testing.B, client Client, policy *trust.Policy, known ...*witnesstest.Witness) {
	w := newWorld(b)
	for _, x := range known {
		x.AddLog(w.key(red))
	}
	w.witnesses = New(Options{
		Store: w.Store, Ledgers: w.Ledgers, Organizations: w.organizations(""), Client: client, Service: policy,
		Clock: func() time.Time { w.ahead.Add(int64(time.Hour)); return time.Unix(0, w.ahead.Load()) },
	})
	for range 1000 {
		w.Pass(time.Second) // changes are limited by rate
		w.append(red)
	}
	e := &queuedLedger{tenant: red}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		w.Pass(time.Second)
		w.append(red)
		b.StartTimer()
		w.witnesses.runRound(b.Context(), e)
	}
	s, err := w.witnesses.Status(b.Context(), red)
	if err != nil || s.Newest == nil || s.Newest.Size != w.State(b, red).Size() || len(s.Newest.Cosignatures) != len(policy.Witnesses) {
		b.Fatalf("got %+v, %v", s, err)
	}
}

// The cost of showing a checkpoint from memory: with one cosignature, and without witnesses.
func BenchmarkCheckpoint(b *testing.B) {
	for name, policy := range map[string]string{"witnessed": "x", "nobody": ""} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			x := w.witness("x.example")
			w.append(red)
			if policy != "" {
				policy = x.PolicyLine("x") + "quorum x\n"
			}
			w.start(policy)
			w.eventually("cosigned", func() bool { return policy == "" || w.by(red, x) == 1 })
			s := w.State(b, red)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.witnesses.Cosigned(b.Context(), s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The cost of a sweep for each of a million cosigned logs of one service: reading.
func BenchmarkIsDue(b *testing.B) {
	w := newWorld(b)
	c := newCounter(b)
	w.append(red)
	w.start("", func(o *Options) { o.Client, o.Service = c, c.policy() })
	w.eventually("cosigned", func() bool { return w.cosignedNow(red, c) })
	b.ReportAllocs()
	for b.Loop() {
		question := storage.SurveyQuestion{Wanted: func(t id.Tenant) bool { return t == red }, Kinds: []storage.Kind{org.Kind, kindWitnessed}}
		for l := range storage.Survey(b.Context(), w.witnesses.Store, question) {
			if due, _, err := w.witnesses.isLedgerDue(b.Context(), l); due || err != nil {
				b.Fatal(due, err)
			}
		}
	}
}

// The parts of a request that do not wait for anybody.
func BenchmarkRequest(b *testing.B) {
	w := testSigner(b, "w.example")
	c, note := signedCheckpoint(b, 1<<30)
	proof := make([]id.Hash, 30)
	answer := egress.Answer{Status: http.StatusOK, Body: witnesstest.SignatureLines(w.Cosign(c.Text(), testTime))}
	b.Run("render", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			addCheckpointBody(1<<29, proof, note)
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := cosignedLine(answer.Body, w.Key(), c.Text()); !ok {
				b.Fatal("refused")
			}
		}
	})
}
