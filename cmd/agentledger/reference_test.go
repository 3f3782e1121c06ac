package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/test/clireference"
	"github.com/agentledger/agentledger/internal/test/docpage"
)

// otherVariables are the environment variables without a flag.
var otherVariables = []clireference.Variable{
	{Name: config.PlatformSecretVariable, Meaning: "the platform secret itself, instead of its file"},
	{Name: config.MasterKeyVariable, Meaning: "the master key itself, base64 of 32 bytes, instead of its file"},
	{Name: "PGPASSWORD", Meaning: "password of the database"},
	{Name: "PGPASSFILE", Meaning: "file with passwords of databases, as libpq reads it"},
	{Name: "GOGC", Meaning: "Go's garbage collection target; overrides `tuning.heap_floor_mib`"},
	{Name: "GOMEMLIMIT", Meaning: "Go's memory limit; takes precedence over `tuning.heap_floor_mib`"},
	{Name: "GOMAXPROCS", Meaning: "number of threads that run Go code; by default the number of processors, and at least two"},
	{Name: "XDG_DATA_HOME", Meaning: "folder of the data of a service without `--data` and `--public-url`; default `~/.local/share`"},
	{Name: "NO_COLOR", Meaning: "if not empty, output has no colors"},
}

const exitStatuses = `## Exit statuses

| Command | 0 | 1 | 2 | 3 |
|---|---|---|---|---|
| ` + "`serve`" + ` | ended by a signal | – | the settings or the store are rejected, the store failed while serving, or a part of the stop did not end in time | the store does not accept this program with these settings: the program is too old for its data, or nodes with another master key serve. A service manager need not restart it |
| ` + "`status`, `doctor`, `fsck`, `backup`, `restore`, `export`, `import`, `policy`, `clock`, `demo`" + ` | nothing is wrong | something is wrong, and the output names it | the command could not do its work | as ` + "`serve`" + ` |
| all others | done | – | not done | as ` + "`serve`" + ` |
`

func newReferenceParser(t *testing.T) *kong.Kong {
	t.Helper()
	p, err := kong.New(new(commands), config.ParserOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReference(t *testing.T) {
	clireference.Check(t, "agentledger", newReferenceParser(t).Model, exitStatuses+"\n"+clireference.CommonNotes, otherVariables...)
}

var description = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*")(?:, unit: "[^"]*")?, constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// metric is a metric of the service's registry, including one without a value.
type metric struct{ name, help, labels string }

// registeredMetrics returns the metrics of a service.
func registeredMetrics(t *testing.T, s *server) (metrics []metric) {
	t.Helper()
	all := make(chan *prometheus.Desc)
	go func() {
		s.service.watch.registry.Describe(all)
		close(all)
	}()
	for d := range all {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("%s has another form", d)
		}
		var found metric
		for text, to := range map[string]*string{m[1]: &found.name, m[2]: &found.help} {
			if _, err := fmt.Sscanf(text, "%q", to); err != nil {
				t.Fatal(err)
			}
		}
		labels := strings.FieldsFunc(regexp.MustCompile(`="[^"]*"`).ReplaceAllString(m[3]+","+m[4], ""), func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		found.labels = strings.Join(labels, ", ")
		metrics = append(metrics, found)
	}
	return metrics
}

// checkMetricsPage checks the page of metrics: all that services with every option register, with the alerts that use each.
func checkMetricsPage(t *testing.T, metrics []metric) {
	t.Helper()
	alerts := make(map[string][]string)
	for _, rule := range strings.Split(readFile(t, "../../deploy/alerts.yaml"), "- alert: ")[1:] {
		alert, rest, _ := strings.Cut(rule, "\n")
		expression, _, _ := strings.Cut(rest, "labels:")
		for _, m := range regexp.MustCompile(`agentledger_[a-z_]+`).FindAllString(expression, -1) {
			if name := partOfHistogram.ReplaceAllString(m, ""); !slices.Contains(alerts[name], alert) {
				alerts[name] = append(alerts[name], alert)
			}
		}
	}
	slices.SortFunc(metrics, func(a, b metric) int {
		return strings.Compare(a.name+" "+a.labels+" "+a.help, b.name+" "+b.labels+" "+b.help)
	})
	var b strings.Builder
	b.WriteString(`# Metrics

    curl http://127.0.0.1:9464/metrics

The private listener ` + "`--metrics-listen`" + ` serves them in Prometheus' text format, and profiles below ` + "`/debug/pprof/`" + `. Series of routes,
statuses and codes appear with their first count. No label names an organization. ` + "`deploy/dashboard.json`" + ` is a Grafana dashboard of all
metrics, ` + "`deploy/alerts.yaml`" + ` has the [alert rules](alerts.md). This page is generated from the registry of a service with every option.

| Metric | Labels | Meaning | Alerts |
|---|---|---|---|
`)
	for _, m := range slices.Compact(metrics) {
		if m.help == "" {
			t.Errorf("%s has no help", m.name)
		}
		if !strings.HasPrefix(m.name, "agentledger_") {
			continue // of the Go runtime and the process, which differ by version and system
		}
		var links []string
		for _, a := range alerts[m.name] {
			links = append(links, "["+strings.TrimPrefix(a, "Agentledger")+"](alerts.md#"+strings.ToLower(a)+")")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, docpage.Code(m.labels), docpage.Cell(m.help), strings.Join(links, ", "))
	}
	b.WriteString("\nThe metrics `go_…` and `process_…` of the Prometheus client describe the Go runtime and the process: memory, processor time and open files.\n")
	docpage.Check(t, "../..", "metrics", b.String())
}
