package deploy

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/agentledger/agentledger/storage/archive/objects/objectstest"
	"github.com/agentledger/agentledger/tools/release/image"
)

var program string // the service, built once

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "agentledger-deploy-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "agentledger")
	build := exec.Command("go", "build", "-o", program, "./cmd/agentledger")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the pod's user goes through it
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// machine is a folder in which the paths of a container lie, with its ports at loopback.
type machine struct {
	root string
	node string // address for other nodes
}

func newMachine(t *testing.T) machine {
	t.Helper()
	root, err := os.MkdirTemp("", "pod") // short, because the path of a socket may be in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{image.DataDir, image.AnchorsDir, "/etc/agentledger"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A volume is of root, with the group of the pod.
	for _, dir := range []string{image.DataDir, image.AnchorsDir} {
		if err := os.Chown(root+dir, os.Geteuid(), groupOfPod()); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(root+dir, 0o770|os.ModeSetgid); err != nil {
			t.Fatal(err)
		}
	}
	return machine{root, addressOfNode()}
}

// groupOfPod is the group of volumes, and -1, which changes nothing, for a test that does not run as root.
func groupOfPod() int {
	if os.Geteuid() != 0 {
		return -1
	}
	return image.User
}

// local puts the machine's own paths and addresses into a setting or an argument.
func (m machine) local(s string) string {
	return strings.NewReplacer("/var/lib/", m.root+"/var/lib/", "/etc/agentledger", m.root+"/etc/agentledger",
		`":8080"`, `"127.0.0.1:0"`, `":9464"`, `"127.0.0.1:0"`, `":8092"`, `"`+m.node+`"`, "$(POD_IP):8092", m.node,
		"$(POD_NAME).red-agentledger-pods.ledger.svc:8092", m.node, "127.0.0.1:8091", "127.0.0.1:0", "127.0.0.1:9464", "127.0.0.1:0").Replace(s)
}

// inContainer gives a command the user and the variables of the image, and more variables.
func (m machine) inContainer(c *exec.Cmd, env []string) *exec.Cmd {
	c.Dir, c.Env = "/", append([]string{"PATH=/usr/bin", "AGENTLEDGER_DATA=" + m.local(image.DataDir)}, env...)
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: image.User, Gid: image.User}}
	}
	return c
}

// serve runs the program until check has seen it serve, and wants it to end as it is told.
func (m machine) serve(t *testing.T, args, env []string, stop time.Duration, check func(urls map[string]string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := m.inContainer(exec.CommandContext(ctx, program, args...), env)
	log := &bytes.Buffer{}
	c.Stderr = log
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	urls := map[string]string{}
	lines := bufio.NewScanner(out)
	for len(urls) == 0 && lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 0 && fields[0] == "serving" {
			fields = append([]string{"main"}, fields[1:]...)
			for i := 0; i+1 < len(fields); i += 2 {
				urls[fields[i]] = fields[i+1]
			}
		}
	}
	if len(urls) == 0 {
		_ = c.Wait()
		t.Fatalf("the service does not serve: %s", log)
	}
	check(urls)
	begin := time.Now()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := c.Wait(); err != nil || time.Since(begin) > stop {
		t.Errorf("the end: got %v after %s\n%s", err, time.Since(begin), log)
	}
}

// statusOf returns the status of a GET.
func statusOf(t *testing.T, url string) int {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode
}

// wantVariable wants a variable that the program reads, because it does not refuse others.
func wantVariable(t *testing.T, name string) {
	t.Helper()
	said, err := exec.Command(program, "serve", "--help").CombinedOutput()
	if !strings.HasPrefix(name, "AGENTLEDGER_") && !strings.HasPrefix(name, "PG") {
		return
	}
	words := strings.FieldsFunc(string(said), func(r rune) bool { return !unicode.IsLetter(r) && r != '_' })
	if err != nil || !slices.Contains(words, name) {
		t.Errorf("serve does not know the variable %s: %v", name, err)
	}
}

// environmentOf returns the variables of a container, with the values of its secrets.
func environmentOf(t *testing.T, m machine, c corev1.Container, secrets map[string]string) []string {
	t.Helper()
	var env []string
	for _, e := range c.Env {
		wantVariable(t, e.Name)
		value := m.local(e.Value)
		switch {
		case e.ValueFrom != nil && e.ValueFrom.FieldRef != nil:
			value = "of the pod: " + e.ValueFrom.FieldRef.FieldPath // where it is used, the machine has its own
		case e.ValueFrom != nil:
			ref := e.ValueFrom.SecretKeyRef
			found, ok := secrets[ref.Name+"/"+ref.Key]
			if !ok {
				t.Fatalf("%s is of the unknown secret %s/%s", e.Name, ref.Name, ref.Key)
			}
			value = found
		}
		env = append(env, e.Name+"="+value)
	}
	return env
}

// The arguments, variables and settings of each variant start the real program. It answers the probes, makes its files
// below the volumes with private modes, starts a second time over them, and ends in time.
func TestChartStarts(t *testing.T) {
	server := startDatabase(t)
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			store := httptest.NewServer(new(objectstest.Server)) // an archive is of one service
			t.Cleanup(store.Close)
			m, p := render(t, v, "red"), newMachine(t)
			schema := strings.NewReplacer(" ", "", ",", "").Replace(strings.ToLower(name))
			if err := server.Exec(`CREATE SCHEMA "` + schema + `"`); err != nil {
				t.Fatal(err)
			}
			database, key := server.URL("search_path="+schema), masterKey
			secrets := map[string]string{"ledger-secrets/master-key": key, "ledger-secrets/platform-secret": "a platform secret", "s/k": key,
				"s/p.q": "another platform secret", "ledger-archive/access-key-id": objectstest.AccessKey, "ledger-archive/secret-access-key": "secret", "y/id": objectstest.AccessKey, "y/key": "secret",
				"ledger-database/url": database, "ledger-database/password": "secret", "x/uri": database, "x/pw": "secret"}
			settings := strings.ReplaceAll(p.local(m.configMap.Data["agentledger.json"]), archiveEndpoint, store.URL)
			if err := os.WriteFile(p.root+"/etc/agentledger/agentledger.json", []byte(settings), 0o644); err != nil {
				t.Fatal(err)
			}
			container := m.pod().Spec.Containers[0]
			var args []string
			for _, a := range container.Args {
				args = append(args, p.local(a))
			}
			grace := time.Duration(*m.pod().Spec.TerminationGracePeriodSeconds) * time.Second
			for range 2 {
				if !m.embedded() { // a new pod has a new data folder
					if err := os.RemoveAll(p.root + image.DataDir + "/data"); err != nil {
						t.Fatal(err)
					}
				}
				env := environmentOf(t, p, container, secrets)
				p.serve(t, args, env, grace, func(urls map[string]string) {
					checkProbes(t, m, urls)
					checkStatus(t, p, env, urls["identity"])
				})
			}
			wantPrivate(t, p, !m.embedded())
		})
	}
}

func checkProbes(t *testing.T, m manifests, urls map[string]string) {
	t.Helper()
	c := m.pod().Spec.Containers[0]
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if probe.HTTPGet.Port.StrVal != "http" || statusOf(t, urls["main"]+probe.HTTPGet.Path) != http.StatusOK {
			t.Errorf("%s: the probe %+v is not answered", name, probe.HTTPGet)
		}
	}
	if m.monitor != nil && statusOf(t, urls["metrics"]+m.monitor.Spec.Endpoints[0].Path) != http.StatusOK {
		t.Errorf("no metrics at %v", urls)
	}
	if statusOf(t, urls["identity"]+"/operator") == http.StatusNotFound || statusOf(t, urls["main"]+"/operator") != http.StatusNotFound {
		t.Errorf("the operator's pages are not on the identity listener alone: %v", urls)
	}
}

// checkStatus asks the service as an operator does inside of the container: the variables are enough.
func checkStatus(t *testing.T, m machine, env []string, identity string) {
	t.Helper()
	c := m.inContainer(exec.Command(program, "status", "--server", identity), env)
	out, err := c.CombinedOutput()
	if code := c.ProcessState.ExitCode(); code != 0 && code != 1 || !strings.Contains(string(out), "service       ready") {
		t.Errorf("status: got %v\n%s", err, out)
	}
}

// wantPrivate wants the service's folders private, and the mount points with nothing but them.
func wantPrivate(t *testing.T, m machine, inDatabase bool) {
	t.Helper()
	for mount, folder := range map[string]string{image.DataDir: "data", image.AnchorsDir: "anchors"} {
		found, err := os.ReadDir(m.root + mount)
		if err != nil || len(found) != 1 || found[0].Name() != folder {
			t.Errorf("%s: got %v, %v, want %s", mount, found, err, folder)
			continue
		}
		info, err := found[0].Info()
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: got %v, %v, want mode 0700", folder, info.Mode(), err)
		}
	}
	if _, err := os.Stat(m.root + image.DataDir + "/data/db"); (err != nil) != inDatabase {
		t.Errorf("the embedded store: got %v", err)
	}
	if _, err := os.Stat(m.root + image.DataDir + "/data/master.key"); err == nil {
		t.Error("the service made a master key, although it has one")
	}
}
