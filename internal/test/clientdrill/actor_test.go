package clientdrill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/id"
)

// actorVariable makes this test's program an agent whose journal is in the folder that it names.
const actorVariable = "CLIENTDRILL_ACTOR"

// actsVariable is the number of acts after which the agent ends.
const actsVariable = "CLIENTDRILL_ACTS"

// act runs acts under a guard whose results wait in the journal's queue. It notes each act that ended in the file offered.
// Acts that an earlier process began are recorded as unknown.
func act(folder string) error {
	acts, err := strconv.Atoi(os.Getenv(actsVariable))
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{BaseURL: os.Getenv("APS_URL"), Token: os.Getenv("APS_TOKEN"), Timeout: 1500 * time.Millisecond,
		Retry: client.Retry{Attempts: 1000, Base: time.Millisecond, Max: 20 * time.Millisecond}})
	if err != nil {
		return err
	}
	org, err := id.ParseOrganization(os.Getenv("APS_ORG"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(os.Getenv("APS_KEY_FILE"))
	if err != nil {
		return err
	}
	signer, err := client.ParseSigner(client.Identity{Organization: org, Agent: id.Agent(os.Getenv("APS_AGENT")), Key: id.Key(os.Getenv("APS_KEY_ID"))}, string(key))
	if err != nil {
		return err
	}
	journal, err := guard.OpenJournal(filepath.Join(folder, "journal"), guard.JournalOptions{})
	if err != nil {
		return err
	}
	defer journal.Close()
	g, err := guard.New(guard.Config{Client: c, Signer: signer, Journal: journal, FlushLater: true})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := g.RecordInterrupted(ctx); err != nil {
		return fmt.Errorf("record interrupted acts: %w", err)
	}
	offered, err := os.OpenFile(filepath.Join(folder, "offered"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer offered.Close()
	begun, err := os.OpenFile(filepath.Join(folder, "begun"), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer begun.Close()
	first, err := begun.Seek(0, 2)
	if err != nil {
		return err
	}
	flushing := make(chan struct{})
	var wg, flusher sync.WaitGroup
	flusher.Go(func() {
		for {
			_ = g.Flush(ctx) // an error is one of the proxy: the next flush sends the rest
			select {
			case <-flushing:
				return
			default:
			}
		}
	})
	var next atomic.Int64
	next.Store(first)
	for range callers {
		wg.Go(func() {
			for n := next.Add(1) - 1; n < first+int64(acts); n = next.Add(1) - 1 {
				_, _ = begun.Write([]byte("x"))
				a := guard.Action{Key: fmt.Sprint("act-", n), Tool: "acme.mail.send", Trace: id.Trace(fmt.Sprint("trc-", n)), Payload: map[string]int64{"n": n}}
				for {
					_, err := g.Run(ctx, a, func(context.Context, guard.Permit) (any, error) { return n, nil })
					var undecided *guard.NotDecidedError
					if !errors.As(err, &undecided) {
						break
					}
				}
				_, _ = fmt.Fprintln(offered, n)
			}
		})
	}
	wg.Wait()
	close(flushing)
	flusher.Wait()
	for journal.Queued() > 0 {
		_ = g.Flush(ctx)
	}
	return nil
}

// testKilledActor kills the agent. Each act has an intent and one result then, and each act that ended has them.
func testKilledActor(d *drill) {
	d.Helper()
	program, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	command := func(acts int) *exec.Cmd {
		c := exec.CommandContext(d.Context(), program)
		c.Env = append(d.environment(), actorVariable+"="+d.folder, fmt.Sprint(actsVariable, "=", acts))
		return c
	}
	offered := filepath.Join(d.folder, "offered")
	for range *kills {
		have := len(readNumbers(d.T, offered))
		d.killAt(command(10_000), offered, have+60+d.proxy.intN(100))
	}
	if out, err := command(0).CombinedOutput(); err != nil {
		d.Fatalf("%v\n%s", err, out)
	}
	traces := d.stored("trace_id")
	acts := readNumbers(d.T, offered)
	for n := range acts {
		if got := traces[fmt.Sprint("trc-", n)]; got != 2 {
			d.Errorf("act %d has %d events, want its intent and its result", n, got)
		}
	}
	more := 0
	for trace, n := range traces {
		if n != 2 && n != 1 { // a kill may come after the intent is stored, before the act begins
			d.Errorf("%s has %d events", trace, n)
		}
		if n == 1 {
			more++
		}
	}
	d.Logf("go, killed %d times: %d acts that ended = %d with a stored result + 0 queued; %d further acts of %d have only their intent, because they never began",
		*kills, len(acts), len(acts), more, len(traces))
	if more > *kills*callers || len(traces)-len(acts) > *kills*callers {
		d.Error("the counts do not add up")
	}
}
