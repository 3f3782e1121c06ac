package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
)

// erasedTexts lists the members in which calls of agents, and comments on requests of agents, accept text. The value
// names the remainder of an erasure (package erasure) that states where the text remains, or is "" if the text is
// erased. A new member fails the test until it is planted and listed.
func erasedTexts() map[string][]string {
	lists := map[string]string{
		"": `postEvent.actor_principal postEvent.payload postEvent.actor_type postEvent.* postEvent#Idempotency-Key
			postEvent.on_behalf_of.issuer postEvent.on_behalf_of.subject postEvent#Agentledger-Subject-Token
			askForApproval.actor_principal askForApproval.payload askForApproval.*
			askForApproval.on_behalf_of.issuer askForApproval.on_behalf_of.subject askForApproval#Agentledger-Subject-Token
			requestAccess.on_behalf_of.issuer requestAccess.on_behalf_of.subject requestAccess#Agentledger-Subject-Token
			evaluatePolicy.on_behalf_of.issuer evaluatePolicy.on_behalf_of.subject evaluatePolicy#Agentledger-Subject-Token
			requestAccess.subject.properties requestAccess.action.properties requestAccess.resource.type requestAccess.resource.id
			requestAccess.resource.properties requestAccess.context requestAccess.denial.binding_token requestAccess.denial.reason requestAccess#Idempotency-Key requestAccess#X-Request-ID cancelAccessTask#X-Request-ID
			evaluatePolicy.actor_principal evaluatePolicy.payload evaluatePolicy.* evaluatePolicy.actor_type evaluatePolicy.action_kind
			recordSteps.payload recordSteps.on_behalf_of.issuer recordSteps.on_behalf_of.subject recordSteps#Agentledger-Subject-Token`,
		"records": `postEvent.event_id postEvent.agent_id postEvent.key_id postEvent.action_kind postEvent.tool_name postEvent.trace_id
			recordSteps.kind recordSteps.tool_name startRun.agent_id startRun.trace_id`,
		"approvals": `askForApproval.agent_id askForApproval.tool_name askForApproval.trace_id requestAccess.subject.id requestAccess.action.name`,
		"callbacks": `askForApproval.callback_url`,
		"service_events": `voteOnApproval.comment voteOnApproval.reason_code voteOnApproval.assertion.authenticator_data
			voteOnApproval.assertion.client_data_json voteOnApproval.assertion.credential_id voteOnApproval.assertion.signature
			voteOnApproval.assertion.time revokeApproval.reason revokeApproval.reason_code
			startRun.workflow.name startRun.workflow.version startRun.workflow.tool startRun.external_run_id completeRun.error`,
		"runs": `recordSteps.step_key recordSteps.status`,
	}
	all := map[string][]string{}
	for remainder, list := range lists {
		all[remainder] = strings.Fields(list)
	}
	return all
}

// writtenByMembers reports whether an operation accepts text only from members of the organization, users and
// operators: settings, policies, names and accounts. They can be changed or deleted there, and no erasure covers them.
// Nothing of the headers that Slack signs its requests with is stored, and nothing of access evaluations.
func writtenByMembers(o documented) bool {
	remark := o.ID == "voteOnApproval" || o.ID == "revokeApproval"
	return strings.HasPrefix(o.path, "/access/v1/evaluation") || o.ID == "pressSlackButton" || !remark && (strings.HasPrefix(o.path, "/v1/console/") || strings.HasPrefix(o.path, "/v1/id/"))
}

// Every text that an agent can send is erased by event, agent, trace and principal, or the erasure's response states
// where it remains. The test searches all responses and pages, evidence packs, records, deliveries, the log of the
// service, an export, and the files of the store after a compaction or VACUUM (FULL).
func TestErasedTexts(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"event_id", "agent_id", "trace_id", "principal"} {
		t.Run(by, func(t *testing.T) {
			w := newPlantedWorld(t, func(*config.Serve) {})
			w.checkMembers()
			w.erase(by)
			found := w.search()
			engine := w.service.store.Engine
			if engine.(backup.CompactionStore).Erasures() == 0 {
				t.Error("the store is not compacted after the erasures")
			}
			if err := w.service.Close(); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"compact"}, {"export", "--to", filepath.Join(w.config.Store.Data, "export")}} {
				if out, exit := command(t, "agentledger", append(args, "--data", w.config.Store.Data)...); exit != 0 {
					t.Fatalf("%v: %s", args, out)
				}
			}
			w.searchFiles(w.config.Store.Data, found)
			w.compare(found)
		})
	}
}

// The same on PostgreSQL, by all four at once.
func TestErasedTextsInDatabase(t *testing.T) {
	t.Parallel()
	database := startDatabase(t)
	w := newPlantedWorld(t, func(c *config.Serve) { c.Store.Storage = database.URL() })
	for _, by := range []string{"event_id", "principal"} {
		w.erase(by)
	}
	found := w.search()
	if err := w.service.Close(); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"VACUUM (FULL) event", "VACUUM (FULL) segment", "VACUUM (FULL) record", "CHECKPOINT"} {
		if err := database.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	w.searchFiles(database.Dir(), found)
	w.compare(found)
}

// The same with an archive: the texts are moved before they are erased. The test also searches its objects, and the
// responses and the export that are made from them.
func TestErasedTextsInArchive(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "archive")
	w := newPlantedWorld(t, func(c *config.Serve) { c.Store.Archive = "file://" + folder })
	w.moveTexts()
	moved := w.newSearcher()
	w.searchObjects(folder, moved)
	for _, member := range []string{"postEvent.payload", "postEvent.actor_principal", "recordSteps.payload", "postEvent.event_id"} {
		for _, text := range w.texts[member] {
			if len(moved.found[text]) == 0 {
				t.Errorf("a text of %s was not moved to the archive", member)
			}
		}
	}
	for _, by := range []string{"event_id", "principal"} {
		w.erase(by)
	}
	found := w.search()
	if err := w.service.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"compact"}, {"export", "--to", filepath.Join(w.config.Store.Data, "export")}, {"fsck"}} {
		args = append(args, "--data", w.config.Store.Data, "--archive", w.config.Store.Archive)
		if out, exit := command(t, "agentledger", args...); exit != 0 {
			t.Fatalf("%v: %s", args, out)
		}
	}
	w.searchFiles(w.config.Store.Data, found)
	w.searchFiles(folder, found)
	w.searchObjects(folder, found)
	w.compare(found)
}

// archiving is an engine with an archive.
type archiving interface{ Pass(context.Context) error }

// bundleEvents is the number of events of an object.
const bundleEvents = 256

// moveTexts sends enough events to move the planted ones to the archive.
func (w *plantedWorld) moveTexts() {
	w.Helper()
	var batch bytes.Buffer
	for n := range bundleEvents + 1 {
		batch.Write(w.sign(map[string]any{"event_id": fmt.Sprint("filler-", n), "trace_id": "filler", "action_kind": "tool_call",
			"tool_name": "any.filler", "payload": map[string]any{}, "actor_type": "agent", "actor_principal": "filler", "salt": "filler",
			"agent_id": w.org.Agent.AgentID, "key_id": w.org.Agent.KeyID}))
		batch.WriteByte('\n')
	}
	header := w.org.ingest()
	header.Set("Content-Type", "application/x-ndjson")
	w.must("POST", "/v1/ingest/events/batch", batch.String(), header)
	if err := w.service.store.Engine.(archiving).Pass(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// searchObjects searches the decompressed objects of the archive for the texts.
func (w *plantedWorld) searchObjects(folder string, found *searcher) {
	w.Helper()
	codec, err := archive.NewCodec()
	if err != nil {
		w.Fatal(err)
	}
	objects := objectsIn(w.T, folder)
	if len(objects) == 0 {
		w.Fatal("no texts are in the archive")
	}
	for path, object := range objects {
		number, err := strconv.ParseUint(filepath.Base(path), 10, 64)
		if err != nil {
			w.Fatal(err)
		}
		texts, err := codec.Decode(object, w.org.tenant, id.Index(number)*bundleEvents, bundleEvents, archive.MaxTexts)
		if err != nil {
			w.Fatal(err)
		}
		for _, e := range texts.Events {
			found.search("object "+filepath.Base(path), slices.Concat(e.Record, []byte{' '}, e.Envelope))
		}
	}
}

// checkMembers compares the members in which the API accepts text with the planted members.
func (w *plantedWorld) checkMembers() {
	w.Helper()
	operations := map[string]documented{}
	for _, o := range listOperations(w.T) {
		operations[o.ID] = o
	}
	members := textMembers(w.T)
	for _, member := range members {
		operation, _, inBody := strings.Cut(member, ".")
		operation, _, inHeader := strings.Cut(operation, "#")
		if !inBody && !inHeader || writtenByMembers(operations[operation]) {
			continue
		}
		if len(w.texts[member]) == 0 {
			w.Errorf("%s accepts text, but no text is planted", member)
		}
	}
	for member := range w.texts {
		if !slices.Contains(members, member) {
			w.Errorf("%s is planted, but the API has no such text", member)
		}
	}
}

// erase erases everything by one kind of name, and returns when all erasures are complete.
func (w *plantedWorld) erase(by string) {
	w.Helper()
	owner := w.owner()
	names := map[string][]string{"agent_id": w.agents, "trace_id": w.traces, "principal": w.principals}[by]
	for _, name := range names {
		w.begin("/v1/console/erasures", map[string]any{by: name, "reason": "test_data"}, owner)
	}
	if by == "event_id" {
		for _, name := range w.events {
			w.begin("/v1/console/events/"+name+"/erase", map[string]any{"reason": "test_data"}, owner)
		}
	}
	asked := map[string][]string{"event_id": w.approvals, "trace_id": w.requests, "principal": w.requests}[by] // access requests have no trace and no principal
	w.requests = nil
	for _, name := range asked {
		for _, e := range w.list("/v1/console/events?limit=1000&q="+name, "events", owner)[:1] {
			w.begin("/v1/console/events/"+e["event_id"].(string)+"/erase", map[string]any{"reason": "test_data"}, owner)
		}
	}
	for more := true; more; {
		var err error
		if archive, is := w.service.store.Engine.(archiving); is { // an erasure waits until its objects are rewritten
			if err := archive.Pass(w.Context()); err != nil {
				w.Fatal(err)
			}
		}
		if more, err = w.service.erasures.Sweep(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
	for _, name := range w.erasures {
		e := w.must("GET", "/v1/console/erasures/"+name, "", owner)
		if e["state"] != "done" {
			w.Errorf("%s is %s", name, e["state"])
		}
		w.checkRemains(e)
	}
}

func (w *plantedWorld) begin(path string, body any, header http.Header) {
	w.Helper()
	w.erasures = append(w.erasures, w.call("POST", path, body, header)["erasure_id"].(string))
}

// list returns the members of a list in a response.
func (w *plantedWorld) list(path, name string, header http.Header) (all []map[string]any) {
	w.Helper()
	listed, _ := w.must("GET", path, "", header)[name].([]any)
	for _, one := range listed {
		all = append(all, one.(map[string]any))
	}
	return all
}

// checkRemains checks that the response of an erasure and its page name each remainder of the table.
func (w *plantedWorld) checkRemains(erasure map[string]any) {
	w.Helper()
	named := map[string]bool{}
	_, page := w.send("GET", "/console/erasures/"+erasure["erasure_id"].(string), "", w.owner())
	for _, one := range erasure["remains"].([]any) {
		one := one.(map[string]any)
		named[one["code"].(string)] = true
		for _, member := range []string{"what", "until"} {
			text, _ := one[member].(string)
			if text == "" || !strings.Contains(html.UnescapeString(string(page)), text) {
				w.Errorf("the page of an erasure does not contain %s %q", member, text)
			}
		}
	}
	for code := range erasedTexts() {
		if code != "" && !named[code] {
			w.Errorf("the answer does not name %s", code)
		}
	}
}

// needle is a form of a planted text to search for: as it is, or in base64.
type needle struct {
	form string
	text canary
}

// prefixLen is the length of the prefixes by which needles are found.
const prefixLen = 8

// needles returns all planted texts by the prefixes of their forms.
func (w *plantedWorld) needles() map[string][]needle {
	all := map[string][]needle{}
	for _, texts := range w.texts {
		for _, text := range texts {
			for _, form := range text.forms() {
				all[form[:prefixLen]] = append(all[form[:prefixLen]], needle{form, text})
			}
		}
	}
	return all
}

// searcher searches for texts.
type searcher struct {
	needles map[string][]needle
	seen    map[[sha256.Size]byte]bool // contents without a match
	found   map[canary][]string        // places, by text
}

func (w *plantedWorld) newSearcher() *searcher {
	return &searcher{needles: w.needles(), seen: map[[sha256.Size]byte]bool{}, found: map[canary][]string{}}
}

// search looks for the texts in a content.
func (s *searcher) search(place string, content []byte) {
	sum := sha256.Sum256(content)
	if s.seen[sum] {
		return
	}
	s.seen[sum] = true
	for at := 0; at+prefixLen <= len(content); at++ {
		for _, n := range s.needles[string(content[at:at+prefixLen])] {
			if bytes.HasPrefix(content[at:], []byte(n.form)) && !slices.Contains(s.found[n.text], place) {
				s.found[n.text] = append(s.found[n.text], place)
				s.seen[sum] = false
			}
		}
	}
}

// search searches all responses and pages, the records and events of the store, and the log.
func (w *plantedWorld) search() *searcher {
	w.Helper()
	made := w.call("POST", "/v1/console/shares", map[string]any{"note": "auditor", "expires_at": w.service.clock.Now().Add(time.Hour)}, w.owner())
	_, w.shared, _ = strings.Cut(made["url"].(string), "/share/")
	found := w.newSearcher()
	requested := map[string]bool{}
	for _, handler := range []http.Handler{w.public, w.private} {
		err := chi.Walk(handler.(*edge.Router).Mux, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			if method == http.MethodGet && !requested[pattern] {
				requested[pattern] = true
				w.searchAnswers(pattern, found)
			}
			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
	}
	for _, partition := range []id.Tenant{w.org.tenant, id.Service} {
		for r, err := range storage.PartitionOf(w.Context(), w.service.store.Engine, partition) {
			if err != nil {
				w.Fatal(err)
			}
			found.search("record "+string(r.Kind), []byte(r.Key+" "+string(r.Value)))
		}
	}
	for _, member := range erasedTexts()[""] { // nor does a search find an event by them
		for _, text := range w.texts[member] {
			for _, filter := range []string{"q", "principal"} {
				if len(w.list("/v1/console/events?"+filter+"="+string(text), "events", w.owner())) > 0 {
					found.found[text] = append(found.found[text], "search by "+filter)
				}
			}
		}
	}
	found.search("log", []byte(w.logs.String()))
	return found
}

// pathParameter matches a parameter of a pattern.
var pathParameter = regexp.MustCompile(`\{([a-z]+)(:[^}]*)?\}`)

// searchAnswers searches the responses to an owner and to strangers.
func (w *plantedWorld) searchAnswers(pattern string, found *searcher) {
	w.Helper()
	owner, paths := w.owner(), []string{pattern}
	for _, parameter := range pathParameter.FindAllStringSubmatch(pattern, -1) {
		values, known := w.values()[parameter[1]]
		if !known {
			w.Errorf("%s: no values of %s", pattern, parameter[1])
		}
		var filled []string
		for _, path := range paths {
			for _, value := range values {
				filled = append(filled, strings.Replace(path, parameter[0], url.PathEscape(value), 1))
			}
		}
		paths = filled
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "/*") {
			path = strings.TrimSuffix(path, "*") + "000"
		}
		for _, header := range []http.Header{owner, {}, {"X-Platform-Secret": {w.secret}}, w.org.ingest()} {
			w.searchAnswer(path, pattern, header, found)
		}
		if !strings.HasPrefix(pattern, "/v1/") {
			continue
		}
		for _, query := range []string{"?limit=1000", "?format=csv", "?format=ndjson", "?envelopes=1", "?verify=1", "?by=agent,tool,rule", "?format=tlog-proof", "?format=cose"} {
			w.searchAnswer(path+query, pattern, owner, found)
		}
	}
}

func (w *plantedWorld) searchAnswer(path, pattern string, header http.Header, found *searcher) {
	w.Helper()
	if status, answer := w.send("GET", path, "", header); status == http.StatusOK {
		found.search("GET "+pattern, unpacked(w.T, answer))
	}
}

// values returns values of parameters in paths.
func (w *plantedWorld) values() map[string][]string {
	none := []string{"none"}
	return map[string][]string{
		"approval": w.approvals, "run": w.runs, "slug": {"red"}, "event": append(slices.Clone(w.events), "0", "1"), "act": w.events, "organization": {w.org.OrganizationID.String()},
		"agent": w.agents, "trace": w.traces, "erasure": w.erasures, "policy": {"p"}, "key": {w.org.IngestKey.KeyID, string(w.org.Agent.KeyID)},
		"webhook": w.webhooks, "digest": none, "did": none, "number": {"2"}, "provider": none, "tree": none, "membership": {w.org.MembershipID},
		"account": {w.org.Account}, "file": none, "secret": {w.shared}, "area": {"console"},
	}
}

// unpacked returns the contents of a pack, and other responses as they are.
func unpacked(t *testing.T, answer []byte) []byte {
	t.Helper()
	if !bytes.HasPrefix(answer, []byte("PK")) {
		return answer
	}
	pack, err := zip.NewReader(bytes.NewReader(answer), int64(len(answer)))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, file := range pack.File {
		r, err := file.Open()
		if err == nil {
			_, err = all.ReadFrom(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.Bytes()
}

// searchFiles searches all files below a folder, including the decompressed tables of the embedded store. It skips the
// logs of PostgreSQL, whose settings decide how long they are kept.
func (w *plantedWorld) searchFiles(dir string, found *searcher) {
	w.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "pg_wal" {
			return fs.SkipDir
		}
		if err != nil || !d.Type().IsRegular() || d.Name() == "log" {
			return err
		}
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil && strings.HasSuffix(path, ".sst") {
			var values []byte
			values, err = tableValues(w.Context(), path)
			content = append(content, values...)
		}
		files++
		relative, _ := filepath.Rel(dir, path)
		found.search("file "+relative, content)
		return err
	})
	if err != nil || files == 0 {
		w.Fatalf("%d files, %v", files, err)
	}
}

// tableValues returns all keys and values of a table of the embedded store, including overwritten and deleted ones.
func tableValues(ctx context.Context, path string) (all []byte, err error) {
	file, err := vfs.Default.Open(path)
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return nil, err
	}
	r, err := sstable.NewReader(ctx, readable, sstable.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for kv := it.First(); kv != nil; kv = it.Next() {
		value, _, err := kv.Value(nil)
		if err != nil {
			return nil, err
		}
		all = append(append(all, kv.K.UserKey...), value...)
	}
	return all, it.Error()
}

// compare compares the results with the table: an erased text is found nowhere, and a remaining text is found
// somewhere.
func (w *plantedWorld) compare(found *searcher) {
	w.Helper()
	remainder := map[string]string{}
	for code, members := range erasedTexts() {
		for _, member := range members {
			remainder[member] = code
		}
	}
	inFiles := 0
	for _, all := range found.found {
		if slices.ContainsFunc(all, func(place string) bool { return strings.HasPrefix(place, "file ") }) {
			inFiles++
		}
	}
	if inFiles == 0 {
		w.Error("no remaining text was found in a file: the search proves nothing")
	}
	for _, member := range slices.Sorted(maps.Keys(w.texts)) {
		code, listed := remainder[sameMember(member)]
		if !listed {
			w.Errorf("%s is in no list: %v", member, found.found[w.texts[member][0]])
			continue
		}
		remains := map[string]bool{}
		for _, text := range w.texts[member] {
			for _, place := range found.found[text] {
				remains[place] = true
			}
		}
		where := slices.Sorted(maps.Keys(remains))
		switch {
		case code == "" && len(where) > 0:
			w.Errorf("%s was erased and is in %q", member, where)
		case code != "" && len(where) == 0:
			w.Errorf("%s is nowhere, but the response of an erasure names it in %s", member, code)
		}
	}
}

// sameMember returns the member of the table for a member of another operation with the same body.
func sameMember(member string) string {
	member = strings.NewReplacer("postBatch.", "postEvent.", "postBatch#", "postEvent#", "ByShortPath.", ".", "ByShortPath#", "#", "Steps.[].", "Steps.").Replace(member)
	if text, ok := strings.CutPrefix(member, "evaluatePolicy."); ok && text != "actor_type" && text != "action_kind" {
		member = "askForApproval." + text
	}
	return strings.Replace(member, ".[].", ".", 1)
}
