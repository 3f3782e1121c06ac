// Benchreport reads the output of "go test -bench" on standard input and writes the medians to a document, below its line
// "<!-- measured -->". It keeps the text above that line.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const marker = "<!-- measured -->\n"

func main() {
	if err := writeReport(os.Stdin, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "benchreport:", err)
		os.Exit(1)
	}
}

func writeReport(in io.Reader, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: benchreport DOCUMENT < results")
	}
	document, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	above, _, ok := bytes.Cut(document, []byte(marker))
	if !ok {
		return fmt.Errorf("%s has no line %q", args[0], strings.TrimSpace(marker))
	}
	results, err := readResults(in)
	if err != nil {
		return err
	}
	text := string(above) + marker + "\n" + describeMachine() + "\n" + results.renderGoals()
	return os.WriteFile(args[0], []byte(text), 0o644)
}

// describeMachine names the commit and the machine of the measurement.
func describeMachine() string {
	commit := "unknown"
	if out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("Commit %s, %s, %s, %d cores, %s. Medians.\n",
		commit, time.Now().UTC().Format(time.DateOnly), runtime.Version(), runtime.NumCPU(), processorName())
}

func processorName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	if m := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(b); m != nil {
		return string(m[1])
	}
	return runtime.GOARCH
}

// results are the values of each benchmark by unit, in input order.
type results struct {
	names  []string
	values map[string]map[string][]float64
}

// line is one result: name, iterations, then pairs of value and unit.
var line = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

func readResults(in io.Reader) (*results, error) {
	r := &results{values: map[string]map[string][]float64{}}
	pkg := ""
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if p, ok := strings.CutPrefix(lines.Text(), "pkg: "); ok {
			pkg = p[strings.LastIndex(p, "/")+1:]
		}
		if m := line.FindStringSubmatch(lines.Text()); m != nil {
			if err := r.appendValues(pkg+" "+m[1], strings.Fields(m[2])); err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
		}
	}
	return r, lines.Err()
}

func (r *results) appendValues(name string, pairs []string) error {
	if r.values[name] == nil {
		r.names = append(r.names, name)
		r.values[name] = map[string][]float64{}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		v, err := strconv.ParseFloat(pairs[i], 64)
		if err != nil {
			return err
		}
		r.values[name][pairs[i+1]] = append(r.values[name][pairs[i+1]], v)
	}
	return nil
}

// median returns the median of at least one value. For an even number, it is the larger of the two in the middle.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// formatNumber shows three digits, or more for whole numbers.
func formatNumber(f float64) string {
	if f >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}
