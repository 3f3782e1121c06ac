package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/agentledger/agentledger/cmd/aps/people"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/verify/pack"
)

// packTrust contains the auditor's keys and witnesses. All fields except the first are required.
type packTrust struct {
	Known        []tlog.VerifierKey // pinned keys; if empty, the pack is checked under its own keys
	Open         func(note []byte) (tlog.Checkpoint, error)
	Quorum       func(signed bool, note []byte) *bool
	QuorumTime   func(signed bool, note []byte) *id.Instant
	Cosignatures func(note []byte) []verify.Cosignature

	// The errors of the program.
	ErrQuorum error
	Wrong     func(error) error
	Unknown   func(signers []string, slug id.Slug) error
}

// packRequirements is what a pack must show.
type packRequirements struct {
	Manifest string // SHA-256 of its manifest in hex; if empty, any
	Full     bool   // with the signed texts
	Coverage string // SHA-256, in hex, of a tool's record that the log compared; if empty, any or none
	Acts     actQuestion
	ToolKeys []tlog.VerifierKey

	// FindExport finds and proves the log's event that names the manifest, and returns its log index. found is false if
	// the log has no such event. If FindExport is nil, the event is not searched.
	FindExport func(*pack.Report) (at id.Index, found bool, err error)
}

// isPack reports whether name is a folder, or a file that begins like a pack. Standard input and addresses are not packs.
func isPack(name string) bool {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return true
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var begin [4]byte
	_, err = io.ReadFull(f, begin[:])
	return err == nil && string(begin[:]) == "PK\x03\x04"
}

// packReport is the JSON output.
type packReport struct {
	pack.Report
	OK           bool                 `json:"ok"`
	Error        string               `json:"error,omitzero"`
	QuorumOK     *bool                `json:"quorum_ok,omitzero"`
	QuorumTime   *id.Instant          `json:"quorum_time,omitzero"` // when a quorum had cosigned
	ManifestOK   *bool                `json:"manifest_ok,omitzero"` // the manifest has the digest that was given, or that the log names
	ExportIndex  *id.Index            `json:"export_log_index,omitzero"`
	Cosignatures []verify.Cosignature `json:"cosignatures"`
	UnknownKeys  []string             `json:"unknown_keys,omitzero"` // set when they are the only fault
	ActRows      []actRow             `json:"act_rows,omitzero"`     // with --acts
}

// hasWrongReceipt reports whether the receipt of a tool is wrong, which proves nothing against the pack itself.
func (r *packReport) hasWrongReceipt() bool {
	return r.Acts != nil && r.Acts.Receipts != nil && r.Acts.Receipts.Wrong > 0
}

// verifyPack checks a pack, prints the facts that it proves, and returns an error unless it shows everything that is
// wanted.
func verifyPack(ctx context.Context, name string, w packRequirements, out *people.Terminal, t packTrust) error {
	r, failed, err := check(ctx, name, t, &w)
	if err != nil {
		return err
	}
	if failed != nil {
		w.Acts.rows = nil // nothing is known about them
	} else if err := compareManifest(&r, w); err != nil {
		return err
	}
	other := w.Manifest != "" && w.Manifest != r.ManifestSHA256.String()
	if failed == nil && !other {
		if err := w.Acts.checkAnswered(&r.Report); err != nil {
			return err
		}
	}
	r.ActRows = w.Acts.rows
	if err := print(out, name, &r, failed, t, &w.Acts); err != nil {
		return err
	}
	switch {
	case len(r.UnknownKeys) > 0:
		return t.Unknown(r.UnknownKeys, "")
	case failed != nil:
		return t.Wrong(fmt.Errorf("not proved: %s", textcheck.Printable(failed.Error())))
	case other:
		return t.Wrong(errors.New("not proved: the pack has another manifest than was asked for"))
	case r.hasWrongReceipt():
		return t.Wrong(fmt.Errorf("not confirmed: %s", textcheck.Printable(r.Acts.Receipts.Errors[0])))
	case len(t.Known) == 0:
		return errors.New("can't tell whose log this is: neither --key nor --policy names it")
	case r.QuorumOK != nil && !*r.QuorumOK:
		return t.ErrQuorum
	case w.Full && !r.Request.Envelopes:
		return errors.New("can't tell: the pack was made without envelopes")
	case w.Coverage != "" && !slices.ContainsFunc(r.Coverage, func(c pack.Coverage) bool { return c.FileSHA256.String() == w.Coverage }):
		return errors.New("can't tell: no event that the pack shows compares this record of calls with the log")
	case r.ManifestOK != nil && !*r.ManifestOK:
		return errors.New("can't tell: no event of the log names the manifest of this pack, so it may have been repacked")
	}
	return nil
}

// repacked is what is not covered if the digest of the manifest is only known from the pack.
const repacked = "that this pack is as the service sent it: without the digest of its manifest, its carrier may have repacked it"

// compareManifest compares the manifest with the digest that was given, and with the one in the log.
func compareManifest(r *packReport, w packRequirements) error {
	known := w.Manifest != ""
	if known {
		ok := w.Manifest == r.ManifestSHA256.String()
		r.ManifestOK = &ok
	}
	if w.FindExport != nil {
		at, found, err := w.FindExport(&r.Report)
		if err != nil {
			return err
		}
		if r.ManifestOK == nil || *r.ManifestOK {
			r.ManifestOK = &found
		}
		if known = known || found; found {
			r.ExportIndex = &at
		}
	}
	if !known {
		r.NotCovered = append(r.NotCovered, repacked)
	}
	return nil
}

// open opens a pack, which is a file or a folder, and returns a function that checks it.
func open(ctx context.Context, name string) (check func(pack.Options) (pack.Report, error), end func(), err error) {
	syncs.BeginStep(ctx, "reading", "bytes")
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		root, err := os.OpenRoot(name)
		if err != nil {
			return nil, nil, err
		}
		check = func(o pack.Options) (pack.Report, error) { return pack.CheckFolder(root.FS(), o) }
		return check, func() { root.Close() }, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	check = func(o pack.Options) (pack.Report, error) { return pack.Check(meteredFile{ctx, f}, info.Size(), o) }
	return check, func() { f.Close() }, nil
}

// meteredFile counts the bytes that are read of a pack.
type meteredFile struct {
	ctx context.Context
	io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (f meteredFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(p, at)
	syncs.CountWork(f.ctx, int64(n))
	return n, err
}

// check checks a pack with the pinned keys. failed is set if it is not proved. If the only fault is that other keys
// signed the pack, the report contains these keys.
func check(ctx context.Context, name string, t packTrust, w *packRequirements) (r packReport, failed, err error) {
	checkPack, end, err := open(ctx, name)
	if err != nil {
		return r, nil, err
	}
	defer end()
	o := pack.Options{OpenCheckpoint: t.Open, CountAct: w.Acts.count, ToolKeys: w.ToolKeys}
	if len(t.Known) == 0 {
		o.OpenCheckpoint = nil
	}
	r.Report, failed = checkPack(o)
	switch {
	case errors.Is(failed, pack.ErrContainer):
		return r, nil, fmt.Errorf("can't tell: %s", textcheck.Printable(failed.Error()))
	case failed != nil && !isWrong(failed):
		return r, nil, failed
	}
	note := []byte(r.Checkpoint)
	r.Cosignatures, r.QuorumOK, r.OK = t.Cosignatures(note), t.Quorum(failed == nil, note), failed == nil
	r.QuorumTime = t.QuorumTime(failed == nil, note)
	if failed == nil {
		return r, nil, nil
	}
	r.Error = failed.Error()
	if errors.Is(failed, tlog.ErrSignature) && len(t.Known) > 0 {
		if _, err := checkPack(pack.Options{}); err == nil {
			r.UnknownKeys = verify.UnknownSigners(note, t.Known)
		}
	}
	return r, failed, nil
}

// describeTime returns the time of a cosignature, with a remark if it proves none.
func describeTime(c verify.Cosignature) string {
	if c.InFuture {
		return c.Time.String() + " (in the future: it proves no time)"
	}
	return c.Time.String()
}

// isWrong reports whether a pack is not proved. All else is a file that can't be read.
func isWrong(err error) bool {
	for _, kind := range []error{verify.ErrMalformed, verify.ErrMismatch, verify.ErrVersion, tlog.ErrMalformed,
		tlog.ErrProof, tlog.ErrSignature} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// print prints the outcome.
func print(out *people.Terminal, name string, r *packReport, failed error, t packTrust, acts *actQuestion) error {
	if out.JSON {
		return out.PrintJSON(r)
	}
	if failed != nil {
		return nil // the error says all
	}
	key := "the key given"
	if len(t.Known) == 0 {
		key = "a key that the pack names itself"
	}
	lines := []string{
		fmt.Sprintf("pack        %s", textcheck.Printable(name)),
		fmt.Sprintf("log         %s", textcheck.Printable(string(r.Origin))),
		fmt.Sprintf("ok          complete for [%d, %d): %s shown, %d withheld, %d erased",
			r.Begin, r.End, textcheck.Count(r.Shown, "event"), r.Withheld, r.Erased),
		fmt.Sprintf("ok          under the checkpoint of %s, signed by %s", textcheck.Count(r.TreeSize, "event"), key),
		fmt.Sprintf("ok          %s, %s, %d of them with the payload that was decided on",
			textcheck.Count(r.Envelopes, "envelope"), textcheck.Count(r.Approvals, "approval"), r.Approvals-r.ActionsUnchecked),
	}
	lines = append(lines, acts.lines(&r.Report)...)
	for i := range r.Coverage {
		lines = append(lines, r.Coverage[i].String())
	}
	lines = append(lines, fmt.Sprintf("manifest    %s", r.ManifestSHA256))
	switch {
	case r.ExportIndex != nil:
		lines = append(lines, fmt.Sprintf("ok          event %d of the log names this manifest", *r.ExportIndex))
	case r.ManifestOK != nil && *r.ManifestOK:
		lines = append(lines, "ok          the manifest has the digest that was given")
	}
	lines = append(lines, r.VoteLines()...)
	for _, c := range r.Cosignatures {
		lines = append(lines, fmt.Sprintf("cosigned    by %s at %s", textcheck.Printable(c.Name), describeTime(c)))
	}
	if r.QuorumTime != nil {
		lines = append(lines, fmt.Sprintf("cosigned    by a quorum of the policy, by %s", r.QuorumTime))
	}
	if r.SignaturesUnchecked > 0 {
		lines = append(lines, fmt.Sprintf("--          %s envelopes that are not in the pack",
			textcheck.Count(r.SignaturesUnchecked, "signature needs", "signatures need")))
	}
	for _, what := range r.NotCovered {
		lines = append(lines, "not covered: "+what)
	}
	if r.ManifestOK == nil || *r.ManifestOK {
		lines = append(lines, "proved, as far as checked above")
	}
	for _, line := range lines {
		if err := out.PrintLine("%s", line); err != nil {
			return err
		}
	}
	return nil
}
