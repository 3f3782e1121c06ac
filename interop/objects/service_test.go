package objects

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage/archive/objects/objectstest"
)

// events is the number of events of each organization: two full bundles and a part of one.
const events = 600

// organization is an organization of the service, with its agent.
type organization struct {
	ID    id.Organization `json:"organization_id"`
	Slug  id.Slug         `json:"slug"`
	Agent struct {
		AgentID id.Agent `json:"agent_id"`
		KeyID   id.Key   `json:"key_id"`
		Private string   `json:"private_key_b64"`
	} `json:"agent"`
	IngestKey struct {
		Secret string `json:"secret"`
	} `json:"ingest_key"`
}

// service is the real program over one data folder.
type service struct {
	*testing.T
	program, data string
	environment   []string
	command       *exec.Cmd
	url           string
}

func newService(t *testing.T) *service {
	t.Helper()
	dir := t.TempDir()
	s := &service{T: t, program: filepath.Join(dir, "agentledger"), data: filepath.Join(dir, "data"),
		environment: append(os.Environ(), "AWS_ACCESS_KEY_ID="+objectstest.AccessKey, "AWS_SECRET_ACCESS_KEY="+secretKey)}
	build := exec.Command("go", "build", "-o", s.program, "./cmd/agentledger")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return s
}

// once runs a command of the program on the data folder and checks its exit status.
func (s *service) once(status int, args ...string) []byte {
	s.Helper()
	c := exec.Command(s.program, append(args, "--data", s.data)...)
	c.Env = s.environment
	out, err := c.Output()
	if c.ProcessState.ExitCode() != status {
		s.Fatalf("%v: got %v, want status %d\n%s", args, err, status, out)
	}
	return out
}

func (s *service) found(name string) organization {
	s.Helper()
	out := s.once(0, "init", "--public-url", "http://log.example", "--name", name, "--slug", name,
		"--admin-email", "ops@"+name+".example", "--disclosure", "full", "--json")
	var o organization
	if err := json.Unmarshal(out, &o); err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	return o
}

// serve starts the service. With an address of an object store it archives every full bundle at once.
func (s *service) serve(archive string) {
	s.Helper()
	settings := filepath.Join(filepath.Dir(s.data), "agentledger.json")
	text := map[string]any{"public_url": "http://log.example", "listen": "127.0.0.1:0", "id_listen": "127.0.0.1:0", "metrics_listen": ""}
	if archive != "" {
		text["archive"], text["tuning"] = archive, map[string]any{"archive_after_days": 0}
	}
	content, err := json.Marshal(text)
	if err == nil {
		err = os.WriteFile(settings, content, 0o600)
	}
	if err != nil {
		s.Fatal(err)
	}
	s.command = exec.Command(s.program, "--config", settings, "serve", "--data", s.data)
	log := &bytes.Buffer{}
	s.command.Env, s.command.Stderr = s.environment, log
	out, err := s.command.StdoutPipe()
	if err == nil {
		err = s.command.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	command := s.command
	s.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if strings.Contains(log.String(), "HIDDEN") {
			s.Errorf("the log has the secret:\n%s", log)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "serving" {
			s.url = fields[1]
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return
		}
	}
	s.Fatalf("the service does not serve:\n%s", log)
}

func (s *service) stop() {
	s.Helper()
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		s.Fatal(err)
	}
	if err := s.command.Wait(); err != nil {
		s.Errorf("the end: %v", err)
	}
}

func (s *service) client(o organization) *client.Client {
	s.Helper()
	c, err := client.New(client.Config{BaseURL: s.url, Token: o.IngestKey.Secret, Retry: client.Retry{Attempts: 1}})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(c.CloseIdle)
	return c
}

// name returns the ID of an event.
func name(o organization, i int) id.Event { return id.Event(fmt.Sprintf("%s-%d", o.Slug, i)) }

// send sends the events [begin, end) of an organization, one after the other in batches.
func (s *service) send(o organization, begin, end int) {
	s.Helper()
	signer, err := client.ParseSigner(client.Identity{Organization: o.ID, Agent: o.Agent.AgentID, Key: o.Agent.KeyID}, o.Agent.Private)
	if err != nil {
		s.Fatal(err)
	}
	var batch [][]byte
	for i := begin; i < end; i++ {
		envelope, err := signer.SignEvent(client.Event{EventID: name(o, i), ActionKind: "tool_call", Tool: "shop.orders.read",
			Payload: map[string]any{"order": i, "of": o.Slug}})
		if err != nil {
			s.Fatal(err)
		}
		if batch = append(batch, envelope); len(batch) == 200 || i == end-1 {
			for _, outcome := range s.client(o).SendBatch(s.Context(), batch) {
				if outcome.Err != nil {
					s.Fatal(outcome.Err)
				}
			}
			batch = nil
		}
	}
}

// texts returns the part of an event's bundle that has record and envelope. It does not depend on the size of the tree.
func (s *service) texts(o organization, i int) ([]byte, error) {
	bundle, err := s.client(o).FetchBundle(s.Context(), o.Slug, name(o, i))
	if err != nil {
		return nil, err
	}
	_, rest, found := bytes.Cut(bundle, []byte(`"record":`))
	texts, _, ended := bytes.Cut(rest, []byte(`"operator_statement"`))
	if !found || !ended || !bytes.Contains(texts, []byte(`"envelope":`)) {
		return nil, fmt.Errorf("no record, envelope or statement in %s", bundle)
	}
	return texts, nil
}

// wantTexts checks that the texts of an event are unchanged.
func (s *service) wantTexts(o organization, i int, want []byte) {
	s.Helper()
	if got, err := s.texts(o, i); err != nil || !bytes.Equal(got, want) {
		s.Errorf("texts of %s: got %v\n%s\nwant\n%s", name(o, i), err, got, want)
	}
}

// countBundles counts the objects of bundles, whose names are numbers of 16 digits.
func countBundles(t *testing.T, root string) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "bucket", "prefix"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && len(d.Name()) == 16 && strings.Trim(d.Name(), "0123456789") == "" {
			n++
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The real program archives the texts of two organizations in the real server. Texts stay the same, an outage of the
// server stops neither appends nor heads, and archived texts are available again when the server returns.
func TestServiceArchives(t *testing.T) {
	store := newServer(t)
	store.start()
	s := newService(t)
	red, blue := s.found("red"), s.found("blue")
	s.serve("")
	before := map[id.Event][]byte{}
	for _, o := range []organization{red, blue} {
		s.send(o, 0, events)
		for _, i := range []int{0, 255, 300, 599} {
			texts, err := s.texts(o, i)
			if err != nil {
				t.Fatal(err)
			}
			before[name(o, i)] = texts
		}
	}
	s.stop()

	archive := address("http://" + store.address)
	s.serve(archive)
	for end := time.Now().Add(time.Minute); countBundles(t, store.root) < 4; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %d objects, want 4", countBundles(t, store.root))
		}
	}
	s.wantTexts(red, 0, before[name(red, 0)])
	s.wantTexts(blue, 255, before[name(blue, 255)])
	s.stop()
	s.serve(archive) // with nothing in memory

	store.stop()
	if texts, err := s.texts(red, 300); err == nil {
		t.Errorf("an archived text without the server: got %s", texts)
	} else if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("an archived text without the server: got %v, want 503", err)
	}
	s.wantTexts(blue, 599, before[name(blue, 599)]) // of the bundle that is not full
	s.send(red, events, events+1)
	if _, err := s.texts(red, events); err != nil {
		t.Errorf("a new event without the server: %v", err)
	}

	store.start()
	for _, o := range []organization{red, blue} {
		for _, i := range []int{0, 255, 300, 599} {
			s.wantTexts(o, i, before[name(o, i)])
		}
	}
	s.stop()
	if out := s.once(0, "fsck", "--archive", archive); !bytes.Contains(out, []byte(" 0 faults")) {
		t.Errorf("fsck: got %s", out)
	}
	s.once(2, "fsck") // without the archive that the store needs
}
