package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/monitor"
	"github.com/agentledger/agentledger/tlog"
)

type monitorCommand struct {
	URL            string   `name:"url" required:"" placeholder:"PREFIX" help:"Prefix of the log's checkpoint and tiles: https://log.example/o/ORGANIZATION_ID. With --all the base URL of the service." type:"url"`
	Key            []string `placeholder:"VKEY" sep:"none" help:"The log's verifier key, from a source that you trust; with --all the directory's key. Repeat it for rotated keys." type:"vkey"`
	Policy         string   `placeholder:"FILE" help:"A C2SP tlog-policy: the log's keys, and witnesses of whom a quorum must cosign each head. With --key only the witnesses count. With --all the directory's policy." type:"existingfile" expected:"a file with a C2SP tlog-policy"`
	State          string   `required:"" type:"path" placeholder:"FILE" help:"File of the latest verified head; with --all a folder. If it does not exist, the log is read from its beginning."`
	All            bool     `help:"Follow the service's directory and every log that it lists."`
	Predecessor    string   `placeholder:"FILE" help:"State file of the frozen log that this log succeeds. It is compared with what the first event of this log states, and only read. With --all this happens automatically." type:"existingfile" expected:"the state file of the frozen log"`
	PredecessorKey []string `placeholder:"VKEY" sep:"none" help:"Key of the frozen log. Repeatable." type:"vkey"`
	PredecessorURL string   `name:"predecessor-url" placeholder:"PREFIX" help:"Prefix of the frozen log. Default: --url with the number at its end reduced by one." type:"url"`

	Compare  []string      `placeholder:"URL" sep:"none" help:"Prefix under which another source shows the checkpoint of the same log: a mirror, a witness. Repeatable." type:"url"`
	Witness  []string      `placeholder:"VKEY" sep:"none" help:"Key of a witness that cosigns the log. Repeatable." type:"witnesskey"`
	MaxLag   time.Duration `help:"With --policy: how long entries may wait for their quorum; 0 means 10m. With --witness: like --max-age."`
	MaxAge   string        `placeholder:"3h" help:"How old the view may be: the time since a quorum of the policy, or one of the witnesses, cosigned. A log, or an impostor, could otherwise show one old state permanently. 0: any age. Default: --max-lag if given, otherwise 3h, with --policy and --witness; without them the age is unknown." type:"duration"`
	Evidence string        `type:"path" placeholder:"DIR" help:"Folder for the evidence of a finding. Default: FILE.evidence."`
	Once     bool          `help:"Check once and exit, for cron and timers."`
	Interval time.Duration `default:"1m" help:"Time between checks, without --once."`
	Timeout  time.Duration `default:"10s" help:"Time limit of one attempt of a request."`
	Tries    int           `default:"4" help:"Attempts of a request."`
	Readers  int           `default:"8" help:"Entry bundles read concurrently."`

	MetricsListen string `placeholder:"ADDRESS" help:"Serve Prometheus metrics under /metrics at this address, without --once." type:"listen"`
}

// Validate implements kong's check after parsing.
func (c *monitorCommand) Validate() error {
	age, badAge := time.ParseDuration(c.MaxAge)
	switch {
	case c.Interval <= 0 || c.Timeout <= 0 || c.Tries <= 0 || c.Readers <= 0:
		return errors.New("--interval, --timeout, --tries and --readers must be positive")
	case len(c.Key) == 0 && c.Policy == "":
		return errors.New("missing flags: --key=VKEY, or --policy=FILE with the log's key")
	case c.Policy != "" && len(c.Witness) > 0:
		return errors.New("--policy names the witnesses and excludes --witness")
	case c.MaxLag < 0 || c.MaxLag > 0 && len(c.Witness) == 0 && c.Policy == "":
		return errors.New("--max-lag must not be negative, and needs --witness or --policy")
	case c.MaxAge != "" && (badAge != nil || age < 0):
		return errors.New("--max-age must be a duration like 3h, and not negative")
	case age > 0 && len(c.Witness) == 0 && c.Policy == "":
		return errors.New("--max-age needs --witness or --policy: only witnesses can confirm the age of a view")
	case c.All && (len(c.Compare) > 0 || c.Evidence != ""):
		return errors.New("--compare and --evidence are for one log and exclude --all")
	case (c.Predecessor == "") != (len(c.PredecessorKey) == 0) || c.PredecessorURL != "" && c.Predecessor == "":
		return errors.New("--predecessor requires --predecessor-key, and --predecessor-key and --predecessor-url require --predecessor")
	case c.All && c.Predecessor != "":
		return errors.New("--predecessor is for one log and excludes --all")
	case c.Once && c.MetricsListen != "":
		return errors.New("--metrics-listen excludes --once")
	}
	return nil
}

// maxAge returns the maximum age of the view for package monitor. Negative means any age.
func (c *monitorCommand) maxAge() time.Duration {
	switch age, err := time.ParseDuration(c.MaxAge); {
	case err == nil && age == 0:
		return -1
	case err == nil:
		return age
	case c.MaxLag > 0:
		return c.MaxLag
	case len(c.Witness) > 0:
		return monitor.DefaultMaxAge
	}
	return 0 // the default of package monitor
}

// Run exits with 1 after a finding and with 2 if a check was inconclusive.
func (c *monitorCommand) Run(ctx context.Context, s *streams) error {
	metrics, reported := new(monitor.Metrics), map[id.Origin]bool{}
	check, err := c.newCheck(s, func(r monitor.Report, err error) error {
		metrics.Observe(r, err)
		if reported[r.Origin] && err == nil && r.NewEntries == 0 && len(r.AcceptedKeys) == 0 {
			return nil // without --once only news are printed
		}
		reported[r.Origin] = true
		return printMonitored(s, r, err)
	})
	if err != nil {
		return err
	}
	if c.Once {
		return check(ctx)
	}
	stop, err := serveMetrics(c.MetricsListen, metrics, s)
	if err != nil {
		return err
	}
	defer stop()
	return monitor.Loop{Interval: c.Interval}.Run(ctx, func(ctx context.Context) error {
		err := check(ctx)
		if err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintln(s.err, "aps:", textcheck.PrintableLines(err.Error()))
		}
		return err
	})
}

// reportFunc prints the report of a check and the error of the check.
type reportFunc func(monitor.Report, error) error

// newCheck returns a function that checks the log, or all logs, once and passes each report to tell.
func (c *monitorCommand) newCheck(s *streams, tell reportFunc) (func(context.Context) error, error) {
	relied, err := c.readTrust(s)
	if err != nil {
		return nil, err
	}
	if c.All {
		return c.newFleetCheck(s, relied, tell)
	}
	reading := context.Background() // counts the entries of a check
	m, err := c.newMonitor(relied, func(read, size id.Index) { syncs.SetWork(reading, int64(read), int64(size)) })
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		ctx, shown := commandline.ShowProgress(ctx, s.err, "reading")
		syncs.BeginStep(ctx, "reading", "entries")
		reading = ctx
		report, err := m.Check(ctx)
		shown.End()
		return errors.Join(withExitStatus(err), tell(report, err))
	}, nil
}

// newFleetCheck is newCheck for all logs of a service.
func (c *monitorCommand) newFleetCheck(s *streams, relied monitorTrust, tell reportFunc) (func(context.Context) error, error) {
	service, err := client.New(c.clientConfig(c.URL))
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	fleet, err := monitor.NewFleet(monitor.FleetOptions{
		Service: service, Keys: relied.keys, Folder: c.State, Witnesses: relied.witnesses, MaxLag: c.MaxLag, MaxAge: c.maxAge(),
		Policy: relied.policy, Readers: c.Readers,
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		var printing error
		ctx, shown := commandline.ShowProgress(ctx, s.err, "reading")
		defer shown.End()
		err := fleet.Check(ctx, func(r monitor.Report, err error) {
			shown.Hide()
			printing = errors.Join(printing, tell(r, err))
		})
		return errors.Join(withExitStatus(err), printing)
	}, nil
}

// parseFlagValues parses the values of a flag.
func parseFlagValues[T any](flag string, texts []string, parse func(string) (T, error)) (all []T, err error) {
	for _, text := range texts {
		v, err := parse(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		all = append(all, v)
	}
	return all, nil
}

func (c *monitorCommand) newMonitor(relied monitorTrust, progress func(read, size id.Index)) (*monitor.Monitor, error) {
	log, err := client.OpenTiles(c.clientConfig(c.URL))
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	o := monitor.Options{
		Log: log, Keys: relied.keys, State: c.State, Evidence: c.Evidence, Witnesses: relied.witnesses,
		MaxLag: c.MaxLag, MaxAge: c.maxAge(), Policy: relied.policy,
		Readers: c.Readers, Progress: progress, AskSuccessor: true,
	}
	if o.Predecessor, err = c.openPredecessor(); err != nil {
		return nil, err
	}
	for _, url := range c.Compare {
		other, err := client.OpenTiles(c.clientConfig(url))
		if err != nil {
			return nil, fmt.Errorf("--compare: %w", err)
		}
		o.Others = append(o.Others, other)
	}
	return monitor.New(o)
}

// openPredecessor opens the log that this one succeeds, or returns nil if the flags name none.
func (c *monitorCommand) openPredecessor() (*monitor.Predecessor, error) {
	if c.Predecessor == "" {
		return nil, nil
	}
	keys, err := parseFlagValues("--predecessor-key", c.PredecessorKey, tlog.ParseVerifierKey)
	if err != nil {
		return nil, err
	}
	prefix := c.PredecessorURL
	if prefix == "" {
		first, n := id.Origin(strings.TrimRight(c.URL, "/")).Split()
		if n == 1 {
			return nil, errors.New("--url does not end in the number of a successor: --predecessor-url is required")
		}
		for range n - 2 {
			first = first.Next()
		}
		prefix = string(first)
	}
	log, err := client.OpenTiles(c.clientConfig(prefix))
	if err != nil {
		return nil, fmt.Errorf("--predecessor-url: %w", err)
	}
	return &monitor.Predecessor{Log: log, Keys: keys, State: c.Predecessor}, nil
}

func (c *monitorCommand) clientConfig(url string) client.Config {
	return client.Config{BaseURL: url, Timeout: c.Timeout, Retry: client.Retry{Attempts: c.Tries}}
}

// withExitStatus wraps the error of a check so that it has its exit code.
func withExitStatus(err error) error {
	var f *monitor.Finding
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return &negative{err}
	}
	return &unable{fmt.Errorf("can't tell: %w", err)}
}

// serveMetrics listens until stop is called. Without an address it does nothing.
func serveMetrics(address string, m *monitor.Metrics, s *streams) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-listen: %w", err)
	}
	_, _ = fmt.Fprintf(s.err, "aps: metrics at http://%s/metrics\n", l.Addr())
	server := &http.Server{Handler: onlyMetrics(m), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second}
	go func() { _ = server.Serve(l) }() // until stop
	return func() { _ = server.Close() }, nil
}

// onlyMetrics serves GET and HEAD of /metrics with m.
func onlyMetrics(m http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/metrics":
			http.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		default:
			m.ServeHTTP(w, r)
		}
	})
}
