package main

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
)

// maxReasons bounds the number of distinct reasons.
const maxReasons = 20

// tally counts the outcomes of the lines. It is safe for concurrent use.
type tally struct {
	mu      sync.Mutex
	summary summary
	reasons map[string]*reason
	retries map[string]uint64
}

// summary is the outcome of a replay. Heads are nil if the checkpoint could not be fetched.
type summary struct {
	Lines      uint64    `json:"lines"`
	Created    uint64    `json:"created"`
	Replayed   uint64    `json:"replayed"`
	Tightened  uint64    `json:"tightened"` // of those created
	Denied     uint64    `json:"denied"`    // of those tightened
	Refused    uint64    `json:"refused"`
	Reasons    []reason  `json:"reasons"` // most frequent first
	Retries    []retry   `json:"retries"` // most frequent first
	Seconds    float64   `json:"seconds"`
	Rate       float64   `json:"events_per_second"`
	HeadBefore *treeHead `json:"head_before"`
	HeadAfter  *treeHead `json:"head_after"`
}

// reason is why lines were refused. FirstLine counts from 1.
type reason struct {
	Reason    string `json:"reason"`
	Lines     uint64 `json:"lines"`
	FirstLine uint64 `json:"first_line"`
}

// retry is a reason for which requests were retried. An event that the first attempt stored is replayed by the second.
type retry struct {
	Reason   string `json:"reason"`
	Requests uint64 `json:"requests"`
}

// treeHead is the content of a checkpoint. Its signature was not checked.
type treeHead struct {
	TreeSize id.Index `json:"tree_size"`
	RootHash id.Hash  `json:"root_hash"`
}

func newTreeHead(c tlog.Checkpoint) *treeHead { return &treeHead{c.Size, c.Root} }

func newTally() *tally { return &tally{reasons: map[string]*reason{}, retries: map[string]uint64{}} }

// countTaken counts a line that the service accepted.
func (t *tally) countTaken(r client.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.summary.Lines++
	if r.Status == client.Replayed {
		t.summary.Replayed++
		return
	}
	t.summary.Created++
	if r.Tightened() {
		t.summary.Tightened++
	}
	if r.Decision == id.Deny {
		t.summary.Denied++
	}
}

// countRefused counts a refused line. Its number starts at 0.
func (t *tally) countRefused(number uint64, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.summary.Lines++
	t.summary.Refused++
	why = boundedReason(t.reasons, why)
	r := t.reasons[why]
	if r == nil {
		r = &reason{Reason: why, FirstLine: number + 1}
		t.reasons[why] = r
	}
	r.Lines++
	r.FirstLine = min(r.FirstLine, number+1)
}

// boundedReason returns the reason under which why is counted: why itself, unless there are maxReasons others.
func boundedReason[V any](reasons map[string]V, why string) string {
	if _, known := reasons[why]; !known && len(reasons) >= maxReasons {
		return "other reasons"
	}
	return why
}

// countRetry counts a request that is retried after err.
func (t *tally) countRetry(err error) {
	why := retryReason(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retries[boundedReason(t.retries, why)]++
}

// retryReason returns the cause of an error without addresses and request IDs, which differ each time.
func retryReason(err error) string {
	var answer *client.Error
	var broken *net.OpError
	var failed *url.Error
	switch {
	case errors.As(err, &answer):
		return (&client.Error{Status: answer.Status, Code: answer.Code, Message: answer.Message}).Error()
	case errors.As(err, &broken):
		return broken.Op + ": " + broken.Err.Error()
	case errors.As(err, &failed):
		return failed.Err.Error()
	}
	return err.Error()
}

// totalAfter returns the summary after that much time.
func (t *tally) totalAfter(elapsed time.Duration) summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.summary
	s.Reasons = make([]reason, 0, len(t.reasons))
	for _, r := range t.reasons {
		s.Reasons = append(s.Reasons, *r)
	}
	// sort.SliceStable is one function for all types, and slices.SortFunc one for each: 20 kB of the program.
	sort.SliceStable(s.Reasons, func(i, j int) bool {
		a, b := &s.Reasons[i], &s.Reasons[j]
		return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Reason, b.Reason)) < 0
	})
	s.Retries = make([]retry, 0, len(t.retries))
	for why, n := range t.retries {
		s.Retries = append(s.Retries, retry{why, n})
	}
	sort.SliceStable(s.Retries, func(i, j int) bool {
		a, b := &s.Retries[i], &s.Retries[j]
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Reason, b.Reason)) < 0
	})
	s.Seconds = elapsed.Seconds()
	if elapsed > 0 {
		s.Rate = float64(s.Lines) / elapsed.Seconds()
	}
	return s
}

func (s summary) printSummary(out *streams) error {
	if out.json {
		return out.printJSON(s)
	}
	if err := out.printLine("lines      %d: %d created, %d replayed, %d refused", s.Lines, s.Created, s.Replayed,
		s.Refused); err != nil {
		return err
	}
	if err := out.printLine("tightened  %d, of these denied %d", s.Tightened, s.Denied); err != nil {
		return err
	}
	if err := out.printLine("head       %s before, %s after", s.HeadBefore.describeSize(),
		s.HeadAfter.describeSize()); err != nil {
		return err
	}
	for _, r := range s.Reasons {
		if err := out.printLine("refused    %d, first in line %d: %s", r.Lines, r.FirstLine,
			textcheck.Printable(r.Reason)); err != nil {
			return err
		}
	}
	for _, r := range s.Retries {
		if err := out.printLine("sent again %s: %s", textcheck.Count(r.Requests, "time"), textcheck.Printable(r.Reason)); err != nil {
			return err
		}
	}
	return out.printLine("rate       %.0f events/s, %.1f s", s.Rate, s.Seconds)
}

func (h *treeHead) describeSize() string {
	if h == nil {
		return "unknown"
	}
	return "size " + strconv.FormatUint(uint64(h.TreeSize), 10)
}
