// Bench measures the service side by side with its peers, in one run on one
// machine, and prints the results as lines of "go test -bench". scripts/bench
// runs it and scripts/benchreport turns the lines into docs/performance.md.
//
//	go run . [flags] [MEASURE ...]
//
// Without a measure it takes all of them but soak, in the order of their table below.
//
// Invariants:
//
//   - Servers, ours and the others, are separate processes. The load comes
//     from this process, over loopback, and runs on the same cores.
//   - The servers that ours is compared with do the least that their job requires.
//   - What is compared is measured in turns, in the same round.
//   - Latencies cover the whole step: from its start, or from when it was due if
//     no worker was free, until its response was read.
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
	"strconv"
	"strings"
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
	Idle   []int         // numbers of idle organizations
	Stored int           // events whose bytes on disk are counted
	Many   int           // organizations with ten events each
	Scale  []int         // sizes of the log that grows
	Rate   int           // events a second that are offered to nodes
	Lines  int           // events of a request to nodes
	Spared bool          // nodes answer before their anchors are written, as with a synchronous standby
	Soak   time.Duration // of the long load
	Dir    string        // where data directories are made; "" for the system's
	Memory string        // where those of idle organizations are made: best in memory
}

func parse(args []string) (o options, names []string, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.Runs, "runs", 3, "rounds of each measure")
	f.DurationVar(&o.Window, "time", time.Second, "time of one load")
	f.IntVar(&o.Leaves, "leaves", 1_000_000, "leaves of the log that is read")
	f.IntVar(&o.Stored, "stored", 800*bundle, "events whose bytes on disk are counted, rounded up to whole bundles")
	f.IntVar(&o.Many, "organizations", 20_000, "organizations with ten events each")
	f.IntVar(&o.Rate, "rate", offeredRate, "events a second that are offered to several nodes")
	f.IntVar(&o.Lines, "lines", 1, "events of a request that is offered to several nodes, up to 1000")
	f.BoolVar(&o.Spared, "spare-anchors", false, "several nodes answer before their anchors are written, as with a synchronous standby")
	f.DurationVar(&o.Soak, "soak", 10*time.Minute, "time of the long load, from a second")
	f.StringVar(&o.Dir, "dir", "", "folder for data directories (default: the system's for temporary files)")
	f.StringVar(&o.Memory, "memory-dir", "", "folder for the data of idle organizations, best in memory (default: that of -dir)")
	idle := f.String("idle", "100000", "numbers of idle organizations, with commas")
	scale := f.String("scale", "100000,1000000", "sizes of the log that grows, with commas, ascending")
	if err := f.Parse(args); err != nil {
		return o, nil, err
	}
	o.Stored = (o.Stored + bundle - 1) / bundle * bundle
	if o.Idle, err = parseNumbers(*idle); err != nil {
		return o, nil, fmt.Errorf("-idle: %w", err)
	}
	if o.Scale, err = parseNumbers(*scale); err != nil {
		return o, nil, fmt.Errorf("-scale: %w", err)
	}
	if o.Rate < 1 {
		return o, nil, fmt.Errorf("-rate: %d is no rate", o.Rate)
	}
	if o.Lines < 1 || o.Lines > 1000 {
		return o, nil, fmt.Errorf("-lines: %d is not from 1 to 1000", o.Lines)
	}
	if o.Soak < time.Second {
		return o, nil, fmt.Errorf("-soak: %v is less than a second", o.Soak)
	}
	for _, name := range f.Args() {
		if !slices.ContainsFunc(measures(), func(m measure) bool { return m.name == name }) {
			return o, nil, fmt.Errorf("there is no measure %q", name)
		}
	}
	return o, f.Args(), nil
}

func parseNumbers(list string) (numbers []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number from 1", text)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// measure is one thing that is measured; round takes all its contenders once.
type measure struct {
	name  string
	round func(*suite, context.Context) error
	long  bool // one round is all
	named bool // it is taken only where it is named
}

func measures() []measure {
	return []measure{
		{"append", (*suite).appends, false, false},              // durable appends in process, by senders
		{"publish", (*suite).publishes, false, false},           // until a checkpoint covers an append in process
		{"ingest", (*suite).ingests, false, false},              // POST of one event, by connections
		{"offered", (*suite).offers, false, false},              // latencies at 1,000 events a second
		{"organizations", (*suite).organizations, false, false}, // many organizations at once, in process and over HTTP
		{"batch", (*suite).batches, false, false},               // POST of many events
		{"read", (*suite).reads, false, false},                  // proofs, tiles, heads, evaluations beside static answers
		{"idle", (*suite).idles, false, false},                  // memory of organizations that do nothing
		{"disk", (*suite).disks, false, false},                  // bytes of an event on disk
		{"engines", (*suite).engines, false, false},             // both storage engines: appends, reads, bytes of an event
		{"many", (*suite).many, true, false},                    // many organizations with ten events each, on both engines
		{"checkmany", (*suite).manyChecks, true, true},          // fsck of many organizations with a few signed events each
		{"nodes", (*suite).nodes, false, false},                 // several nodes on one database: processor time
		{"idlenodes", (*suite).idleNodes, true, false},          // several nodes with many organizations that do nothing
		{"scale", (*suite).scales, true, false},                 // a log that grows: events, reads, start, memory, fsck
		{"soak", (*suite).soaks, true, true},                    // mixed work for long: what grows with time alone
	}
}
