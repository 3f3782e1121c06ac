package operator

import (
	"fmt"
	"strconv"
	"time"

	"github.com/agentledger/agentledger/internal/operate/status"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// report is what `agentledger status` prints, with its main numbers as tiles.
type report struct {
	*status.Report
	Trusted wire.Clock // the clock of the process
}

// readReport returns the state of the service as the process that serves this page sees it.
func (p *pages) readReport(r *page.Request) (report, error) {
	found, err := p.Identity.Operator.Status.Report(r.Context())
	return report{found, p.Identity.Operator.ShowClock()}, err
}

// Uptime returns for how long the process has served, in words.
func (r report) Uptime() string {
	return inWords(time.Duration(r.Program.UptimeSeconds) * time.Second)
}

// inWords returns a duration in its largest unit that is at least 1.
func inWords(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days"
}

// NodeCount returns how many nodes take part, of how many. A single process has no nodes.
func (r report) NodeCount() string {
	part := 0
	for _, n := range r.Nodes {
		if !n.Leaving {
			part++
		}
	}
	return fmt.Sprintf("%d of %d", part, len(r.Nodes))
}

// ClockWords returns how far the machine's clock is from the expected time.
func (r report) ClockWords() string {
	offset := time.Duration(r.Trusted.OffsetMS) * time.Millisecond
	switch {
	case offset >= time.Millisecond:
		return fmt.Sprintf("%.3f s ahead", offset.Seconds())
	case offset <= -time.Millisecond:
		return fmt.Sprintf("%.3f s behind", -offset.Seconds())
	}
	return "within 1 ms"
}

// Several reports whether other nodes serve too. The report is about the node that serves this page.
func (r report) Several() bool { return len(r.Nodes) > 1 }

// Fullest returns the volume with the largest used share in percent, or nil if none is measured.
func (r report) Fullest() *usedVolume {
	var fullest *usedVolume
	for _, v := range r.Volumes {
		if v.SizeBytes == 0 || v.FreeBytes > v.SizeBytes {
			continue
		}
		if used := int(100 * (v.SizeBytes - v.FreeBytes) / v.SizeBytes); fullest == nil || used > fullest.Percent {
			fullest = &usedVolume{v.Folder, used}
		}
	}
	return fullest
}

type usedVolume struct {
	Folder  string
	Percent int
}

// BackupAge returns how old the latest backup is, in words.
func (r report) BackupAge() string { return inWords(max(0, r.At.Time().Sub(r.Backup.MadeAt))) }

// serviceView is the content of the service page.
type serviceView struct {
	report
	PublicURL string
	Directory string // slug of the directory's organization; "" if none
}

func (p *pages) showService(r *page.Request) (any, error) {
	found, err := p.readReport(r)
	return serviceView{found, p.PublicURL, p.Directory}, err
}

// acceptClock accepts the machine's clock as correct.
func (p *pages) acceptClock(r *page.Request) (page.Outcome, error) {
	p.Identity.Operator.AcceptClock()
	return page.GoTo(r.Address(servicePage), "clock-accepted"), nil
}
