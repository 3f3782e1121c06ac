// Bench measures the service side by side with its peers, in one run on one
// machine, and prints the results as lines of "go test -bench". scripts/bench
// runs it and scripts/benchreport turns the lines into docs/performance.md.
//
//	go run . [flags] [MEASURE ...]
//
// By default it runs all measures except soak, in the order of measures.
//
// Invariants:
//
//   - Our server and the peers are separate processes. This process generates the load, over loopback and on the same
//     cores.
//   - The servers that ours is compared with do the minimum that their job requires.
//   - Contenders are measured in turns, in the same round.
//   - Latencies cover the whole step: from its start, or from when it was due if
//     no worker was free, until its response has been read.
//   - Everything is bounded in time and number, and a run ends at the first error.
//     Every process started here is ended here, and nothing is written outside of
//     one directory.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) > 0 && args[0] == "child" {
		return child(ctx, args[1:], in, out)
	}
	o, names, err := parse(args)
	if err != nil {
		return err
	}
	s, err := newSuite(ctx, o, out)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Fprintf(out, "goos: %s\ngoarch: %s\npkg: github.com/agentledger/agentledger/bench\n", runtime.GOOS, runtime.GOARCH)
	return s.measure(ctx, names)
}

// options bound a run.
type options struct {
	Runs   int           // rounds of each measure
	Window time.Duration // of one load
	Leaves int           // of the log that is read
	Stored int           // events whose bytes on disk are counted
	Soak   time.Duration // of the long load
	Dir    string        // where data directories are created; if empty, the system's temporary folder
}

func parse(args []string) (o options, names []string, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.Runs, "runs", 3, "rounds of each measure")
	f.DurationVar(&o.Window, "time", time.Second, "time of one load")
	f.IntVar(&o.Leaves, "leaves", 1_000_000, "leaves of the log that is read")
	f.IntVar(&o.Stored, "stored", 204_800, "events whose bytes on disk are counted")
	f.DurationVar(&o.Soak, "soak", 10*time.Minute, "time of the long load, at least a second")
	f.StringVar(&o.Dir, "dir", "", "folder for data directories (default: the system's for temporary files)")
	if err := f.Parse(args); err != nil {
		return o, nil, err
	}
	if o.Soak < time.Second {
		return o, nil, fmt.Errorf("-soak: %v is less than a second", o.Soak)
	}
	for _, name := range f.Args() {
		if !slices.ContainsFunc(measures(), func(m measure) bool { return m.name == name }) {
			return o, nil, fmt.Errorf("unknown measure %q", name)
		}
	}
	return o, f.Args(), nil
}

// measure is one thing that is measured. A round measures all its contenders once.
type measure struct {
	name  string
	round func(*suite, context.Context) error
}

func measures() []measure {
	return []measure{
		{"append", (*suite).appends},              // durable appends in process, by senders
		{"publish", (*suite).publishes},           // until a checkpoint covers an append in process
		{"ingest", (*suite).ingests},              // POST of one event, by connections
		{"clients", (*suite).clients},             // callers of each client, next to batches and to the peer by an HTTP client
		{"organizations", (*suite).organizations}, // many organizations at once, in process and over HTTP
		{"read", (*suite).reads},                  // proofs, tiles, heads and evaluations next to static responses
		{"engines", (*suite).engines},             // both storage engines: appends, reads, bytes of an event on disk
		{soakMeasure, (*suite).soaks},             // mixed work for a long time; only if named
	}
}

const soakMeasure = "soak"
