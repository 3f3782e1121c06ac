package transfer_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/slack"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/operate/directory"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/operate/recordcheck"
	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// fate is what export, import and succession do with the records of a kind.
type fate string

const (
	// In an organization's partition.
	moves    fate = "moves"         // exported, imported, and copied to a successor
	ofLog    fate = "of one log"    // exported and imported; a successor does not get it
	ofLocal  fate = "of one store"  // neither exported nor imported; a successor does not get it
	repeated fate = "with a member" // of the service's partition: follows the memberships
	// In the service's own partition.
	entry fate = "entry" // made from an organization's record, in the other store and for the successor
	stays fate = "stays" // of this service alone
)

// kinds lists every kind of record of the product. A new kind must be added here after its owner has decided where it
// goes: in an organization's partition it moves by itself, and entries in the service's partition need ServiceRecords
// of their owner. The reason is for every kind that does not simply move.
var kinds = map[storage.Kind]struct {
	fate   fate
	reason string
}{
	"agent":                  {moves, ""},
	"agent_key":              {moves, ""},
	"agent_key_used":         {moves, ""},
	"approval":               {moves, ""},
	"approval_action":        {moves, ""},
	"approval_intent":        {moves, ""},
	"approval_newest":        {moves, ""},
	"approval_open":          {moves, ""},
	"approval_tally":         {moves, ""},
	"bridge_key":             {moves, ""},
	"console_token":          {moves, ""},
	"count":                  {moves, ""},
	"deputy":                 {moves, ""},
	"ingest_key":             {moves, ""},
	"ingest_key_use":         {moves, ""},
	"invitation":             {moves, ""},
	"ledger_window":          {moves, ""},
	"member_sign_in":         {moves, ""},
	"membership":             {moves, ""},
	"org":                    {moves, ""},
	"outbox":                 {moves, ""},
	"outbox_dead":            {moves, ""},
	"policy":                 {moves, ""},
	"policy_active":          {moves, ""},
	"policy_digest":          {moves, ""},
	"policy_version":         {moves, ""},
	"retention":              {moves, "names the log that it is in, and begins anew in another"},
	"saved_views":            {moves, ""},
	"slack_link":             {moves, ""},
	"slack_window":           {moves, ""},
	"statement_pace":         {moves, ""},
	"share":                  {moves, ""},
	"stream_export":          {moves, ""},
	"stream_export_position": {moves, "names the log that it is in, so it goes on behind the predecessor"},
	"stream_export_status":   {moves, ""},
	"stream_export_test":     {moves, ""},
	"system_key":             {moves, ""},
	"tool_keys":              {moves, "names the log of its latest change; a successor inherits the keys"},
	"voter_key":              {moves, "names the log that it signs in, and signs nothing in another"},
	"voter_mail":             {moves, ""},
	"voter_mail_told":        {moves, ""},
	"weekly_mail":            {moves, ""},
	"webhook_attempt":        {moves, ""},
	"webhook_endpoints":      {moves, ""},
	"webhook_health":         {moves, ""},
	"webhook_key":            {moves, ""},
	"webhook_position":       {moves, "names the log that it is in, so it goes on behind the predecessor"},
	"webhook_told":           {moves, ""},
	"mail":                   {moves, "of an organization's causes; the mails of accounts are in the service's partition and stay"},

	"erasure":          {ofLog, "names indices of one log"},
	"erasure_tally":    {ofLog, "counts erasures of one log"},
	"directory_listed": {ofLog, "names the checkpoint of one log that the directory has"},
	"event_source":     {ofLog, "names the origin of one log's statements"},
	"grant_key":        {ofLog, "signs for one origin"},
	"ledger":           {ofLog, "is the identity of one log"},
	"ledger_successor": {ofLog, "names the successor of one log"},
	"run":              {ofLog, "runs stay with the log that has their events"},
	"run_external":     {ofLog, "runs stay with their log"},
	"run_late":         {ofLog, "runs stay with their log"},
	"run_list":         {ofLog, "runs stay with their log"},
	"run_newest":       {ofLog, "runs stay with their log"},
	"run_step":         {ofLog, "runs stay with their log"},
	"run_tally":        {ofLog, "runs stay with their log"},
	"witnessed":        {ofLog, "is about the checkpoints of one log"},

	"ledger_fault":           {ofLocal, "a fault of a store's copy is none of another copy"},
	"derived/stated":         {ofLocal, "is built anew from the events"},
	"derived/index":          {ofLocal, "is built anew from the events"},
	"derived/index_acts":     {ofLocal, "is built anew from the events"},
	"derived/index_columns":  {ofLocal, "is built anew from the events"},
	"derived/index_postings": {ofLocal, "is built anew from the events"},
	"derived/index_recent":   {ofLocal, "is built anew from the events"},
	"derived/index_singles":  {ofLocal, "is built anew from the events"},
	"derived/index_merged":   {ofLocal, "is built anew from the events"},
	"derived/index_values":   {ofLocal, "is built anew from the events"},
	"ledger_reverified":      {ofLocal, "another copy is verified anew"},

	"account":       {repeated, ""},
	"account_email": {repeated, ""},
	"account_org":   {repeated, ""},

	"agent_claim":          {entry, ""},
	"agent_public_claim":   {entry, ""},
	"approval_due":         {entry, ""},
	"console_token_claim":  {entry, ""},
	"erasure_due":          {entry, ""},
	"ingest_key_claim":     {entry, ""},
	"mail_due":             {entry, ""},
	"org_id":               {entry, ""},
	"org_slug":             {entry, ""},
	"outbox_due":           {entry, ""},
	"run_due":              {entry, ""},
	"share_claim":          {entry, ""},
	"stream_export_due":    {entry, ""},
	"voter_mail_due":       {entry, ""},
	"webhook_position_due": {entry, ""},

	"account_factors":    {stays, "passkeys are bound to this service's name; people set them up again at the other service"},
	"passkey_account":    {stays, "passkeys are bound to this service's name"},
	"passkey_answered":   {stays, "challenges of this service, for minutes"},
	"account_subject":    {stays, "the maker of an export could link accounts of another service to persons of a choice"},
	"mail_stranger":      {stays, "whom this service mailed in the last day"},
	"mail_daily":         {stays, "how many mails it caused here today"},
	"email_change":       {stays, "a link of this service, for an hour or so"},
	"sign_in_change_due": {stays, "changes of this service that its organizations state within moments"},
	"login_event":        {stays, "is about this service's sign-ins"},
	"password_reset":     {stays, "a link of this service, for an hour"},
	"resealing":          {stays, "is about this store's master keys"},
	"session":            {stays, "people sign in again"},
	"session_end":        {stays, "people sign in again"},
	"session_of":         {stays, "people sign in again"},
	"setup":              {stays, "links of this service before it has an organization"},
}

// kindsInSource finds the constants of type storage.Kind in the product's source, with their locations.
func kindsInSource(t *testing.T) map[storage.Kind]string {
	t.Helper()
	found := map[storage.Kind]string{}
	root := "../../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), root+"/")
		if d.IsDir() && (strings.HasPrefix(name, ".") || name == "internal/test" || name == "bench" || name == "interop" || name == "storage") && path != root {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, is := n.(*ast.ValueSpec); is && isKind(s.Type) {
				for _, v := range s.Values {
					addKind(t, found, v, name)
				}
			}
			if c, is := n.(*ast.CallExpr); is && isKind(c.Fun) && len(c.Args) == 1 {
				addKind(t, found, c.Args[0], name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func isKind(e ast.Expr) bool {
	s, is := e.(*ast.SelectorExpr)
	if !is || s.Sel.Name != "Kind" {
		return false
	}
	x, is := s.X.(*ast.Ident)
	return is && x.Name == "storage"
}

func addKind(t *testing.T, found map[storage.Kind]string, value ast.Expr, place string) {
	literal, is := value.(*ast.BasicLit)
	if !is {
		return
	}
	kind, err := strconv.Unquote(literal.Value)
	if err != nil {
		t.Error(err)
	}
	if other := found[storage.Kind(kind)]; other != "" && other != place {
		t.Errorf("%s is a kind of %s and of %s", kind, other, place)
	}
	found[storage.Kind(kind)] = place
}

// Every kind of record in the product is listed above, and the code does what the table says.
func TestEveryKindIsNamed(t *testing.T) {
	found := kindsInSource(t)
	for kind, place := range found {
		if _, named := kinds[kind]; !named {
			t.Errorf("%s of %s is not in the table of this test: say what export, import and succession do with it", kind, place)
		}
	}
	for kind, named := range kinds {
		if found[kind] == "" {
			t.Errorf("%s is in the table and not in the product", kind)
		}
		if got := log.Local(kind); got != (named.fate == ofLocal) {
			t.Errorf("%s: left out of exports: got %v, want %s", kind, got, named.fate)
		}
		left := kind.Derived() || log.OfLedger(kind) || witness.OfLog(kind) || approval.BelongsToLog(kind) || workflow.OfLog(kind) || directory.OfLog(kind) || erasure.OfLog(kind) || sysevent.OfLog(kind)
		if left != (named.fate == ofLog || named.fate == ofLocal) {
			t.Errorf("%s: left out of successions: got %v, want %s", kind, left, named.fate)
		}
		travels := named.fate == moves || named.fate == ofLog || named.fate == repeated || named.fate == entry
		if got := recordcheck.Knows(kind); got != travels {
			t.Errorf("%s: an import can decode it: got %v, want %s", kind, got, named.fate)
		}
		if (named.fate == ofLog || named.fate == ofLocal || named.fate == stays) && named.reason == "" {
			t.Errorf("%s: there is no reason", kind)
		}
	}
	for _, sealed := range rekey.SealedRecords() {
		if f := kinds[sealed.Kind].fate; f != moves && f != ofLog {
			t.Errorf("%s has sealed keys of an organization, but its fate is %s", sealed.Kind, f)
		}
	}
}

// partitionKinds counts the records of a partition by kind.
func (h *house) partitionKinds(t id.Tenant) map[storage.Kind]int {
	h.t.Helper()
	counts := map[storage.Kind]int{}
	for r, err := range storage.PartitionOf(h.t.Context(), h.engine, t) {
		if err != nil {
			h.t.Fatal(err)
		}
		counts[r.Kind]++
	}
	return counts
}

// checkPartitions checks that each record is in the partition that the table gives for its kind.
func (h *house) checkPartitions(organization id.Tenant) (own, service map[storage.Kind]int) {
	h.t.Helper()
	own, service = h.partitionKinds(organization), h.partitionKinds(id.Service)
	for kind := range own {
		if f := kinds[kind].fate; f != moves && f != ofLog && f != ofLocal {
			h.t.Errorf("%s is in an organization's partition, but its fate is %q", kind, f)
		}
	}
	for kind := range service {
		if f := kinds[kind].fate; f != entry && f != repeated && f != stays && kind != "mail" {
			h.t.Errorf("%s is in the service's partition, but its fate is %q", kind, f)
		}
	}
	return own, service
}

// An organization with records of people, endpoints and a stream export is imported with each record and each entry, on
// both engines, and each record that moves goes over to a successor.
func TestEveryRecordMoves(t *testing.T) {
	for name, stores := range map[string][2]func(testing.TB) storagetest.Engine{
		"to the second engine": {pebble, postgres}, "to the first engine": {postgres, pebble},
	} {
		t.Run(name, func(t *testing.T) {
			c := &collected{t: t}
			here := newHouse(t, stores[0](t), newKeyring(t))
			here.start()
			red := here.found("red", "ann@example.com", 3)
			here.found("blue", "bob@example.com", 4)
			red.send(2)
			red.furnish(t, c)
			sent, entries := here.checkPartitions(red.Tenant)
			for _, kind := range []storage.Kind{"membership", "invitation", "console_token", "share", "webhook_endpoints", "webhook_position", "outbox", "stream_export", "stream_export_position", "stream_export_status", "voter_key", "slack_link", "slack_window"} {
				if sent[kind] == 0 {
					t.Errorf("the organization has no %s: furnish it", kind)
				}
			}
			here.stop()
			here.fsck()
			dir := filepath.Join(t.TempDir(), "export")
			here.export(dir, "red")
			there := newHouse(t, stores[1](t), here.keyring)
			there.imports(dir, "red")
			there.now = here.now
			there.fsck()
			got, gotEntries := there.checkPartitions(red.Tenant)
			maps.DeleteFunc(sent, func(k storage.Kind, _ int) bool { return kinds[k].fate == ofLocal })
			maps.DeleteFunc(got, func(k storage.Kind, _ int) bool { return kinds[k].fate == ofLocal })
			if !maps.Equal(got, sent) {
				t.Errorf("records: got %v, want %v", got, sent)
			}
			for kind := range entries {
				if f := kinds[kind].fate; (f == entry || f == repeated) != (gotEntries[kind] > 0) {
					t.Errorf("%s (%s): %d arrived", kind, f, gotEntries[kind])
				}
			}
			there.start()
			moved := red.at(there)
			there.freeze(moved)
			there.stop()
			if _, err := there.succession("red", "a test", nil); err != nil {
				t.Fatal(err)
			}
			there.fsck()
			there.start()
			defer there.stop()
			after, _ := there.checkPartitions(moved.succeeded().Tenant)
			for kind := range sent {
				if kinds[kind].fate == moves && after[kind] != sent[kind] {
					t.Errorf("%s: the successor has %d, want %d", kind, after[kind], sent[kind])
				}
			}
			if left := slices.Sorted(maps.Keys(after)); slices.Contains(left, "grant_key") {
				t.Errorf("the successor has %v", left)
			}
			var stated recordcheck.Statements // the voter key belongs to the predecessor, so the successor states nothing about it
			if found, err := stated.CompareStore(t.Context(), there.engine, moved.succeeded().State.Identity()); err != nil || len(found) > 0 {
				t.Errorf("the successor's records: %v, %v", found, err)
			}
		})
	}
}

// furnish gives the organization records of each kind that people create.
func (r *resident) furnish(t *testing.T, c *collected) {
	t.Helper()
	owner := r.Membership.Account
	r.token() // opens a session
	if _, err := r.members().Invite(t.Context(), r.Tenant, &account.Session{Account: owner}, "joe@example.com", account.Auditor); err != nil {
		t.Fatal(err)
	}
	wanted := apitoken.Wanted{Name: "ci", Role: account.Admin, ExpiresAt: id.InstantOf(r.now.Add(time.Hour))}
	if _, _, err := r.tokens().Create(t.Context(), r.Tenant, owner, wanted); err != nil {
		t.Fatal(err)
	}
	link := share.Wanted{Note: "KPMG", Query: "tool=payments.*", ExpiresAt: id.InstantOf(r.now.Add(time.Hour))}
	if _, _, err := r.shares().Create(t.Context(), r.Tenant, owner, link); err != nil {
		t.Fatal(err)
	}
	links := slacklink.New(slacklink.Options{Records: r.engine, Events: r.systemEvents, Members: r.accounts, Keyring: r.keyring, Pace: &quota.Quota{Records: r.engine, Clock: r.clock}, Clock: r.clock})
	by := &account.Session{Account: owner, ID: "ses_1"}
	if err := links.Open(t.Context(), r.Tenant, by); err != nil {
		t.Fatal(err)
	}
	offer, err := links.NewOffer(r.State.Identity().Organization, slack.User{Team: "T1", ID: "U1"}, "ann")
	if err == nil {
		err = links.Accept(t.Context(), r.Tenant, by, offer)
	}
	if err == nil {
		err = links.Open(t.Context(), r.Tenant, by)
	}
	if err != nil {
		t.Fatal(err)
	}
	hooks := webhook.New(webhook.Options{Records: r.engine, Keyring: r.keyring, Caller: make(receiver, 100), Events: r.systemEvents, Ledgers: r.ledgers, Clock: r.clock})
	address, events := "https://hook.example/", []string{"event.stored"}
	if _, err := hooks.CreateEndpoint(t.Context(), r.Tenant, string(owner), webhook.EndpointPatch{URL: &address, Events: &events}); err != nil {
		t.Fatal(err)
	}
	r.send(3)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := hooks.SweepEvents(t.Context(), slog.New(slog.DiscardHandler)); err != nil { // creates deliveries, which nobody sends
		t.Fatal(err)
	}
	hooks.Run(ended, slog.New(slog.DiscardHandler))
	putStream(t, r.streams(c), r)
	sendStreams(t, r.streams(c))
	r.registerVoter(r.Tenant, owner, nil)
}
