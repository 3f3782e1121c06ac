package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// FleetOptions configure NewFleet. Service, Keys and Folder are required.
type FleetOptions struct {
	Service *client.Client
	Keys    []tlog.VerifierKey // of the directory's log and of the frozen logs before it
	Folder  string             // for all states and the evidence; created if missing

	Witnesses []tlog.WitnessKey // of the directory
	MaxLag    time.Duration
	MaxAge    time.Duration // of the directory's view
	Policy    *trust.Policy // of the directory, instead of Witnesses

	Logs    int // logs checked at a time; default 4
	Readers int // this and the following as in Options
	Looks   int
	Pause   time.Duration
	Clock   func() time.Time
}

// ErrHidden is returned if the directory has new entries whose content the service does not show.
// The verified head is stored nevertheless.
var ErrHidden = errors.New("entries of the directory with undisclosed content")

// Fleet follows a service's directory and every log that the directory lists. The
// directory also lists the keys of the logs, so only the directory's key is pinned. A
// Fleet is not safe for concurrent use.
type Fleet struct {
	FleetOptions
	origin id.Origin // of the directory: the last in its line that one of the keys belongs to
}

// NewFleet checks options and returns a fleet. It does no I/O.
func NewFleet(o FleetOptions) (*Fleet, error) {
	if o.Service == nil || o.Folder == "" || len(o.Keys) == 0 {
		return nil, errors.New("monitor: service, keys and folder are required")
	}
	if o.Logs <= 0 {
		o.Logs = 4
	}
	f := &Fleet{FleetOptions: o, origin: id.Origin(o.Keys[0].Name())}
	for _, k := range o.Keys {
		_, newest := f.origin.Split()
		_, n := id.Origin(k.Name()).Split()
		if !f.ofDirectory(id.Origin(k.Name())) {
			return nil, errors.New("monitor: keys of several directories")
		}
		if n > newest {
			f.origin = id.Origin(k.Name())
		}
	}
	return f, nil
}

// Check checks the directory and then each log once. It calls each with the result of every log,
// one call at a time. Its error joins all errors; a finding in one log does not stop the checks of
// the others. If the directory's new entries cannot be read or are wrong, no log is checked. Errors
// of a log are those of Monitor.Check, and ErrHidden.
func (f *Fleet) Check(ctx context.Context, each func(Report, error)) error {
	if err := os.MkdirAll(f.Folder, 0o700); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	register, err := f.checkDirectory(ctx, each)
	if register == nil {
		return err
	}
	var mu sync.Mutex
	var checks sync.WaitGroup
	all, turns := []error{err}, make(chan struct{}, f.Logs)
	var held []int // indexes of logs that extend all of their listed trees
	for i, l := range register.Logs {
		turns <- struct{}{}
		checks.Go(func() {
			defer func() { <-turns }()
			report, err := f.checkListedLog(ctx, register, l)
			mu.Lock()
			defer mu.Unlock()
			if all = append(all, err); err == nil && (report.Successor == nil || report.Successor.Unread == "") {
				held = append(held, i)
			}
			each(report, err)
		})
	}
	checks.Wait()
	return errors.Join(append(all, f.markChecked(register, held))...)
}

// markChecked records that logs were compared with all of their listed trees.
func (f *Fleet) markChecked(r *register, logs []int) error {
	news := false
	for _, i := range logs {
		news = news || len(r.Logs[i].Unchecked) > 0
		r.Logs[i].Unchecked = nil
	}
	if !news {
		return nil
	}
	if err := r.saveTo(f.registerFile()); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

func (f *Fleet) registerFile() string {
	return filepath.Join(f.Folder, numberedName("register", f.origin))
}

// checkDirectory follows the directory's log and returns its register, or nil if the register is
// unreliable.
func (f *Fleet) checkDirectory(ctx context.Context, each func(Report, error)) (*register, error) {
	named, err := f.Service.Directory(ctx)
	if err != nil {
		return nil, err
	}
	if named.Origin != f.origin {
		return nil, fmt.Errorf("the directory of the service is %s, and the key is that of %s", named.Origin, f.origin)
	}
	tiles, err := f.Service.Tiles(named.Origin)
	if err != nil {
		return nil, err
	}
	o := f.monitorOptions(tiles, f.directoryKeys(f.origin), f.logFileName(f.origin))
	o.Witnesses, o.MaxLag, o.MaxAge, o.Policy = f.Witnesses, f.MaxLag, f.MaxAge, f.Policy
	m, err := New(o)
	if err != nil {
		return nil, err
	}
	if m.Predecessor, err = f.directoryBefore(); err != nil {
		return nil, err
	}
	file := f.registerFile()
	read, err := f.readRegister(m, file)
	if err != nil {
		return nil, err
	}
	l := &listings{service: f.Service, register: read}
	m.visit = l.visitEntries
	m.commit = func(to id.Index) error { return read.saveTo(file) }
	hidden, first := read.Hidden, read.ReadTo == 0
	report, err := m.Check(ctx)
	if report.HiddenEntries = &read.Hidden; err == nil && read.Hidden > hidden && !first {
		err = fmt.Errorf("%s: %w: %d more", f.origin, ErrHidden, read.Hidden-hidden)
	}
	each(report, err)
	if report.TreeSize < read.ReadTo { // the error concerns earlier entries than the last ones read
		return nil, err
	}
	return read, err
}

// readRegister reads the register and checks that it is at least as new as the state.
func (f *Fleet) readRegister(m *Monitor, file string) (*register, error) {
	r, err := loadRegister(file, f.origin)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	s, err := m.loadState()
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if r.ReadTo < s.tree.Size() {
		return nil, fmt.Errorf("read state: %s: %w: it is older than %s: move both files away", file, ErrState, m.State)
	}
	return r, nil
}

func (f *Fleet) monitorOptions(log *client.Tiles, keys []tlog.VerifierKey, name string) Options {
	return Options{
		Log: log, Keys: keys, State: f.folderFile(name), Evidence: filepath.Join(f.Folder, "evidence", name),
		Readers: f.Readers, Looks: f.Looks, Pause: f.Pause, Clock: f.Clock,
	}
}

// checkListedLog follows one log, which must extend its trees in the directory.
func (f *Fleet) checkListedLog(ctx context.Context, r *register, l registeredLog) (Report, error) {
	keys, err := l.parseKeys()
	if err != nil {
		return Report{Origin: l.Origin}, fmt.Errorf("%s: %w", l.Origin, err)
	}
	tiles, err := f.Service.Tiles(l.Origin)
	if err != nil {
		return Report{Origin: l.Origin}, fmt.Errorf("%s: %w", l.Origin, err)
	}
	m, err := New(f.monitorOptions(tiles, keys, f.logFileName(l.Origin)))
	if err != nil {
		return Report{Origin: l.Origin}, fmt.Errorf("%s: %w", l.Origin, err)
	}
	if m.Predecessor, err = f.findPredecessor(r, l.Origin); err != nil {
		return Report{Origin: l.Origin}, fmt.Errorf("%s: %w", l.Origin, err)
	}
	m.listed, m.attach = l.uncheckedHeads(), attachListing(f.Service, l)
	report, err := m.Check(ctx)
	report.OtherSigners = nil // the directory lists a new key as soon as that key signs alone
	if report.Successor = f.findSuccessor(r, l.Origin); report.Successor != nil {
		if f := (*Finding)(nil); err != nil && !errors.As(err, &f) && ctx.Err() == nil {
			// The ended log may be gone. The successor's first event was compared with
			// the kept head.
			report.Successor.Unread, err = err.Error(), nil
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", l.Origin, err)
	}
	return report, err
}
