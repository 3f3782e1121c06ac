package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/cmd/aps/people"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/verify/pack"
)

// maxProven is the maximum size of a file in bytes.
const maxProven = 64 << 20

type verifyCommand struct {
	Bundle string `arg:"" complete:"files" help:"File with a bundle, a tlog-proof, a COSE receipt or an evidence pack, folder with an unpacked pack, - for standard input, or the address of a document, which is fetched; with --url and --slug the event id."`
	trustFlags
	Directory directoryFlags `embed:"" prefix:"directory-"`

	Entry    string   `placeholder:"FILE" help:"The logged entry that a tlog-proof or a COSE receipt is for, - for standard input. A final line end is ignored." type:"input" expected:"a file with a logged entry, or - for standard input"`
	Require  string   `enum:"commitment,record,full" default:"commitment" help:"How much a bundle has to disclose: commitment, record or full."`
	Where    []string `placeholder:"CONDITION" sep:"none" help:"Of an evidence pack: count only the acts whose column satisfies the condition, such as 'amount_usd>500'. The operators are = != > >= < <= and ~ (contains). Repeat it for several conditions."`
	Acts     bool     `help:"Of an evidence pack: list the counted acts."`
	ToolKey  []string `placeholder:"VKEY" sep:"none" help:"A tool's own key: its receipt in the event, or in the events of an evidence pack, is checked under it. Repeat it for several tools." type:"vkey"`
	Intent   string   `placeholder:"FILE" help:"With --tool-key: the bundle of the intent, which shows the act that the event is the result of. With --url it is fetched." type:"input" expected:"a file with a bundle"`
	Coverage string   `placeholder:"FILE" help:"Of an evidence pack: the tool's record of calls that an event in the pack compared with the log, by its SHA-256." type:"input" expected:"a file with a record of calls"`
	Manifest string   `placeholder:"HEX" help:"SHA-256 of an evidence pack's manifest, as the log's event of the export states it." type:"hash"`
	URL      string   `name:"url" placeholder:"URL" help:"Fetch the bundle of an event from this service. For an evidence pack: fetch the log's event of the export, with the session of aps login or APS_CONSOLE_TOKEN, and compare the manifest with it." type:"url"`
	Slug     string   `placeholder:"NAME" help:"The organization's slug, with --url." type:"slug"`
}

func (*verifyCommand) Help() string {
	return `Status 0: verified. 1: proved wrong; the first thing that fails is named. 2: can't tell: no key, ` +
		`or signed by another one than those given, too few cosignatures, not enough disclosed, ` +
		`a file that can't be read, a manifest that no event of the log names, a service that can't be reached.

Nothing is fetched unless an address or --url is given.`
}

func (c *verifyCommand) Run(ctx context.Context, s *streams, t *people.Terminal) error {
	trusted, err := c.trustFlags.readTrust(s, "--")
	if err != nil {
		return err
	}
	tools, err := c.readToolKeys()
	if err != nil {
		return err
	}
	if c.Slug == "" && isPack(c.Bundle) {
		if c.Intent != "" {
			return errors.New("--intent is for bundles")
		}
		want := packRequirements{Manifest: c.Manifest, Full: c.Require == "full", Acts: actQuestion{list: c.Acts}, ToolKeys: tools}
		for _, text := range c.Where {
			if err := want.Acts.addCondition(text); err != nil {
				return err
			}
		}
		if c.Coverage != "" {
			if want.Coverage, err = digestFile(c.Coverage); err != nil {
				return err
			}
		}
		if c.URL != "" {
			want.FindExport = func(r *pack.Report) (id.Index, bool, error) { return c.findExport(ctx, t, trusted, r) }
		}
		return verifyPack(ctx, c.Bundle, want, t, packTrust{Known: trusted.knownKeys(), Open: trusted.openCheckpoint,
			Quorum: trusted.checkQuorum, QuorumTime: trusted.quorumTime, Cosignatures: trusted.validCosignatures, ErrQuorum: errQuorum,
			Wrong: func(err error) error { return &negative{err} }, Unknown: unknownKeysError})
	}
	if c.Acts || len(c.Where) > 0 || c.Coverage != "" {
		return errors.New("--where, --acts and --coverage are for evidence packs")
	}
	directory, err := trustFlags(c.Directory).readTrust(s, "--directory-")
	if err != nil {
		return err
	}
	text, err := c.loadInput(ctx, s)
	if err != nil {
		return err
	}
	receipt, proof := tlog.IsReceipt(text), bytes.HasPrefix(text, []byte("c2sp.org/tlog-proof@"))
	switch {
	case (receipt || proof) && (len(tools) > 0 || c.Intent != ""):
		return errors.New("--tool-key and --intent are for bundles and evidence packs")
	case receipt:
		return c.checkReceipt(s, text, trusted)
	case proof:
		return c.checkProof(s, text, trusted)
	}
	return c.checkBundle(ctx, s, text, trusted, directory, tools)
}

// digestFile returns the SHA-256 of a file in hex.
func digestFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// findExport fetches and proves the log's event about the export of a pack.
func (c *verifyCommand) findExport(ctx context.Context, t *people.Terminal, trusted auditorTrust, r *pack.Report) (
	at id.Index, found bool, err error) {
	manifest := r.ManifestSHA256.String()
	exports, err := people.FindExports(ctx, t, c.URL, pack.ExportKind, manifest, r.TreeSize)
	if err != nil {
		return 0, false, &unable{fmt.Errorf("look for the event of the export: %w", err)}
	}
	for _, x := range exports {
		b, err := verify.ParseBundle(x.Bundle)
		if err != nil || b.Origin != r.Origin {
			continue
		}
		b.Envelope = &x.Envelope
		if proved := verify.Check(b, trusted.bundleOptions(b)); proved.OK && proved.RecordOK != nil && proved.EnvelopeOK != nil &&
			namesManifest(b, manifest) {
			return b.LogIndex, true, nil
		}
	}
	return 0, false, nil
}

// namesManifest reports whether a proved bundle contains the service's own event about the export of a manifest.
func namesManifest(b *verify.Bundle, manifest string) bool {
	record, err := event.ParseRecord([]byte(*b.Record))
	if err != nil || record.Signer != event.SignerSystem {
		return false
	}
	e, err := event.Parse([]byte(*b.Envelope), event.Options{MaxBytes: len(*b.Envelope), Server: true})
	if err != nil || e.ActionKind != pack.ExportKind {
		return false
	}
	var statement struct {
		Manifest string `json:"manifest_sha256"`
	}
	return json.Unmarshal(e.Payload, &statement) == nil && statement.Manifest == manifest
}

// loadInput reads the bundle, the tlog-proof or the COSE receipt.
func (c *verifyCommand) loadInput(ctx context.Context, s *streams) ([]byte, error) {
	switch {
	case c.URL != "":
		return c.fetchEvent(ctx, s, id.Event(c.Bundle))
	case strings.HasPrefix(c.Bundle, "http://") || strings.HasPrefix(c.Bundle, "https://"):
		return c.fetchAddress(ctx, s)
	}
	text, err := s.readInput(c.Bundle, maxProven)
	if err != nil {
		return nil, fmt.Errorf("<bundle>: expected a file with a bundle, a tlog-proof, a COSE receipt or an evidence pack, - for standard input, or an address: %w", err)
	}
	return text, nil
}

func (c *verifyCommand) fetchEvent(ctx context.Context, s *streams, event id.Event) ([]byte, error) {
	if c.Slug == "" {
		return nil, errors.New("no organization: set --slug")
	}
	service, err := flags.Service{URL: c.URL}.NewClient(s.err)
	if err != nil {
		return nil, err
	}
	text, err := service.FetchBundle(ctx, id.Slug(c.Slug), event)
	if err != nil {
		return nil, &unable{err}
	}
	return text, nil
}

// fetchAddress fetches a document from any address.
func (c *verifyCommand) fetchAddress(ctx context.Context, s *streams) ([]byte, error) {
	address, err := url.Parse(c.Bundle)
	if err != nil {
		return nil, errors.New("not an address of a bundle, a tlog-proof or a COSE receipt")
	}
	service, err := flags.Service{URL: address.Scheme + "://" + address.Host}.NewClient(s.err)
	if err != nil {
		return nil, err
	}
	text, err := service.Fetch(ctx, address.RequestURI())
	if err != nil {
		return nil, &unable{err}
	}
	return text, nil
}

// askedEvent returns the requested event, with --url or with the address of a service, or "".
func (c *verifyCommand) askedEvent() id.Event {
	if c.URL != "" {
		return id.Event(c.Bundle)
	}
	address, err := url.Parse(c.Bundle)
	if err != nil || address.Host == "" {
		return ""
	}
	_, path, public := strings.Cut(address.Path, "/v1/public/orgs/")
	if _, event, is := strings.Cut(path, "/verify/"); public && is {
		return id.Event(event)
	}
	return ""
}

func (c *verifyCommand) checkBundle(ctx context.Context, s *streams, text []byte, trusted, directory auditorTrust, tools []tlog.VerifierKey) error {
	bundle, err := verify.ParseBundle(text)
	if err != nil {
		return unreadableBundle(text, err)
	}
	if event := c.askedEvent(); event != "" && event != bundle.EventID {
		return &negative{errors.New("the service sent the bundle of another event")}
	}
	options := addDirectoryTrust(trusted.bundleOptions(bundle), directory, bundle.Directory)
	r := bundleReport{Report: verify.Check(bundle, options)}
	for _, k := range verify.UnknownKeys(bundle, options) {
		r.UnknownKeys = append(r.UnknownKeys, verify.Signer(k.Name(), k.Hash()))
	}
	r.QuorumOK = trusted.checkQuorum(r.CheckpointOK, []byte(bundle.Checkpoint))
	r.QuorumTime = trusted.quorumTime(r.CheckpointOK, []byte(bundle.Checkpoint))
	if second := bundle.Directory; second != nil {
		r.DirectoryQuorumOK = directory.checkQuorum(*r.DirectoryOK, []byte(second.Bundle.Checkpoint))
		r.DirectoryQuorumTime = directory.quorumTime(*r.DirectoryOK, []byte(second.Bundle.Checkpoint))
	}
	if r.OK {
		if r.ToolReceipt, err = c.checkToolReceipt(ctx, s, bundle, trusted, tools); err != nil {
			return err
		}
	}
	if s.json {
		err = s.printJSON(r)
	} else {
		err = printReport(s, bundle, r)
	}
	switch {
	case err != nil:
		return err
	case len(r.UnknownKeys) > 0:
		return unknownKeysError(r.UnknownKeys, bundle.OrganizationSlug)
	case !r.OK:
		return &negative{fmt.Errorf("not proved: %s", textcheck.Printable(r.Errors[0]))}
	case r.ToolReceipt.isWrong():
		return &negative{fmt.Errorf("not confirmed: %s", textcheck.Printable(r.ToolReceipt.Error))}
	case len(trusted.keys) == 0:
		return errors.New("can't tell whose log this is: neither --key nor --policy names it")
	case r.QuorumOK != nil && !*r.QuorumOK:
		return errQuorum
	case c.Directory != (directoryFlags{}) && bundle.Directory == nil:
		return errNoSecondProof
	case r.DirectoryQuorumOK != nil && !*r.DirectoryQuorumOK:
		return errDirectoryQuorum
	}
	if err := checkDisclosure(c.Require, r.Report); err != nil {
		return err
	}
	return r.ToolReceipt.checkConfirmed(len(tools) > 0, r.EnvelopeOK != nil)
}

// These prove nothing wrong: cosignatures come after a checkpoint, and listings after an event.
var (
	errQuorum          = errors.New("can't tell: too few witnesses of the policy have cosigned the checkpoint")
	errDirectoryQuorum = errors.New("can't tell: too few witnesses of the directory's policy " +
		"have cosigned its checkpoint")
	errNoSecondProof = errors.New("can't tell: the bundle has no second proof by the directory")
)

// unknownKeysError returns the error if the only fault is a signature by unknown keys, with where to find the keys. The
// slug is only a hint.
func unknownKeysError(signers []string, slug id.Slug) error {
	if slug == "" {
		slug = "SLUG"
	}
	return fmt.Errorf("can't tell: signed by the key %s, which is not among those that you trust. "+
		"If it is a key that the log had before or has got since, it is in the log's "+
		"/v1/public/orgs/%s/transparency/keys: save that, at a time or from a source that you trust, "+
		"and give it as --keys (--directory-keys for the directory's)",
		textcheck.Printable(strings.Join(signers, " and ")), textcheck.Printable(string(slug)))
}

// checkDisclosure returns an error if a verified bundle discloses less than is required.
func checkDisclosure(required string, r verify.Report) error {
	missing := ""
	switch {
	case required == "full" && r.EnvelopeOK == nil:
		missing = "envelope"
	case required != "commitment" && r.RecordOK == nil:
		missing = "record"
	case required != "commitment" && r.SignatureOK == nil:
		missing = "envelope, without which the signature can't be checked,"
	default:
		return nil
	}
	return fmt.Errorf("can't tell: the %s is not disclosed", missing)
}

// unreadableBundle distinguishes a bundle that violates the rules, which is wrong, from input that is not a bundle or of a
// later version, about which nothing is known.
func unreadableBundle(text []byte, err error) error {
	value := jsontext.Value(text)
	isObject := value.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) &&
		value.Kind() == '{'
	if errors.Is(err, verify.ErrVersion) || !isObject || !bytes.Contains(text, []byte(`"inclusion"`)) {
		return fmt.Errorf("not a bundle that this program reads: %w", err)
	}
	return &negative{fmt.Errorf("not proved: %w", err)}
}
