package deploy

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/agentledger/agentledger/tools/release/image"
)

const composeFile = "../../deploy/compose.yaml"

const nodesFile = "../../deploy/compose-nodes.yaml"

func loadCompose(t *testing.T, content []byte) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: t.TempDir(), Environment: secretsOfNodes(), ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: content}},
	}, func(o *loader.Options) { o.SetProjectName("ledger", true) })
}

func readCompose(t *testing.T) types.ServiceConfig {
	t.Helper()
	content, err := os.ReadFile(composeFile)
	if err != nil {
		t.Fatal(err)
	}
	p, err := loadCompose(t, content)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Services) != 1 || len(p.Volumes) != 2 {
		t.Fatalf("got services %v, volumes %v", p.ServiceNames(), p.VolumeNames())
	}
	return p.Services["agentledger"]
}

// The compose file is valid under the strict schema, and its only service has no more rights than it needs.
func TestCompose(t *testing.T) {
	s := readCompose(t)
	volumes := map[string]string{}
	for _, v := range s.Volumes {
		volumes[v.Source] = v.Type + " " + v.Target
	}
	for field, good := range map[string]bool{
		"image":      s.Image == "agentledger:1.2.3" && s.Build == nil,
		"user":       s.User == "", // the image's user, which is not root
		"read-only":  s.ReadOnly && !s.Privileged,
		"rights":     slices.Equal(s.CapDrop, []string{"ALL"}) && s.CapAdd == nil && slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}),
		"volumes":    len(volumes) == 2 && volumes["data"] == "volume "+image.DataDir && volumes["anchors"] == "volume "+image.AnchorsDir,
		"ports":      len(s.Ports) == 1 && s.Ports[0].HostIP == "127.0.0.1" && s.Ports[0].Target == 8080,
		"networks":   s.NetworkMode == "",
		"entrypoint": s.Entrypoint == nil && slices.Equal(s.Command, []string{"serve"}),
		"stop":       s.StopGracePeriod != nil && time.Duration(*s.StopGracePeriod) > 10*time.Second,
	} {
		if !good {
			t.Errorf("%s: got %+v", field, s)
		}
	}
}

// The loader rejects unknown members of a compose file, so the test above notices misspelled ones.
func TestComposeIsStrict(t *testing.T) {
	for _, content := range []string{
		"services: {a: {image: x, read-only: true}}",
		"services: {a: {image: x, cap_drop: ALL}}",
		"services: {a: {image: x, volumes: ['data:/x']}}",
		"service: {}",
	} {
		if p, err := loadCompose(t, []byte(content)); err == nil {
			t.Errorf("%s: got %+v", content, p)
		}
	}
}

// The command and the variables of the compose file start the real program.
func TestComposeStarts(t *testing.T) {
	s, m := readCompose(t), newMachine(t)
	env := []string{}
	for name, value := range s.Environment {
		wantVariable(t, name)
		env = append(env, name+"="+strings.Trim(m.local(`"`+*value+`"`), `"`))
	}
	for range 2 {
		m.serve(t, s.Command, env, time.Duration(*s.StopGracePeriod), func(urls map[string]string) {
			for _, path := range []string{"/livez", "/readyz"} {
				if got := statusOf(t, urls["main"]+path); got != http.StatusOK {
					t.Errorf("%s: got %d", path, got)
				}
			}
		})
	}
}

// secretsOfNodes are the variables that the file with several nodes reads from the environment.
func secretsOfNodes() map[string]string {
	return map[string]string{"AGENTLEDGER_MASTER_KEY": masterKey, "AGENTLEDGER_PLATFORM_SECRET": "a platform secret",
		"POSTGRES_PASSWORD": "secret"}
}

func readNodes(t *testing.T) *types.Project {
	t.Helper()
	content, err := os.ReadFile(nodesFile)
	if err != nil {
		t.Fatal(err)
	}
	p, err := loadCompose(t, content)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var nodeNames = []string{"one", "two", "three"}

// The nodes differ only in their URLs and volumes. Only the balancer is reachable from outside.
func TestComposeNodes(t *testing.T) {
	p := readNodes(t)
	if got := strings.Join(p.ServiceNames(), " "); got != "balancer database one three two" || len(p.Volumes) != 4 {
		t.Fatalf("got services %s, volumes %v", got, p.VolumeNames())
	}
	first := p.Services["one"]
	for _, name := range nodeNames {
		s := p.Services[name]
		for field, good := range map[string]bool{
			"image":    s.Image == "agentledger:1.2.3" && s.Build == nil && s.User == "",
			"rights":   s.ReadOnly && !s.Privileged && slices.Equal(s.CapDrop, []string{"ALL"}) && s.CapAdd == nil && slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}),
			"volumes":  len(s.Volumes) == 1 && s.Volumes[0].Source == name && s.Volumes[0].Target == image.DataDir,
			"ports":    len(s.Ports) == 0 && s.NetworkMode == "",
			"command":  s.Entrypoint == nil && slices.Equal(s.Command, []string{"serve"}),
			"stop":     s.StopGracePeriod != nil && time.Duration(*s.StopGracePeriod) > 10*time.Second,
			"URL":      *s.Environment["AGENTLEDGER_NODE_URL"] == "https://"+name+":8092",
			"database": s.DependsOn["database"].Condition == types.ServiceConditionHealthy,
		} {
			if !good {
				t.Errorf("%s: %s: got %+v", name, field, s)
			}
		}
		for variable, value := range first.Environment {
			if other := s.Environment[variable]; variable != "AGENTLEDGER_NODE_URL" && (other == nil || *other != *value) {
				t.Errorf("%s: %s differs from that of the first node", name, variable)
			}
		}
		if len(s.Environment) != len(first.Environment) {
			t.Errorf("%s has the variables %v", name, s.Environment)
		}
	}
	balancer, database := p.Services["balancer"], p.Services["database"]
	if len(balancer.Ports) != 1 || len(database.Ports) != 0 || balancer.Privileged || database.Privileged {
		t.Errorf("got %+v, %+v", balancer, database)
	}
	// Over TCP, because the server on the socket is healthy before its start.
	if check := strings.Join(database.HealthCheck.Test, " "); !strings.Contains(check, "--host 127.0.0.1") {
		t.Errorf("the database is asked by %q", check)
	}
	proxy, err := os.ReadFile("../../deploy/proxy/haproxy-nodes.cfg")
	for _, name := range nodeNames {
		if err != nil || !strings.Contains(string(proxy), "\tserver "+name+" "+name+":8080\n") {
			t.Errorf("the balancer does not know node %s: %v", name, err)
		}
	}
}

// Without a secret, nothing starts.
func TestComposeNodesNeedSecrets(t *testing.T) {
	content, err := os.ReadFile(nodesFile)
	if err != nil {
		t.Fatal(err)
	}
	for missing := range secretsOfNodes() {
		others := secretsOfNodes()
		delete(others, missing)
		_, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
			WorkingDir: t.TempDir(), Environment: others, ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: content}},
		}, func(o *loader.Options) { o.SetProjectName("ledger", true) })
		if err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: got %v", missing, err)
		}
	}
}

// The commands and variables of the three nodes start the real program, and each node sees the others.
func TestComposeNodesStart(t *testing.T) {
	server, p := startDatabase(t), readNodes(t)
	var all []start
	var stop time.Duration
	for _, name := range nodeNames {
		s, m := p.Services[name], newMachine(t)
		env := []string{}
		for variable, value := range s.Environment {
			wantVariable(t, variable)
			local := strings.Trim(m.local(`"`+*value+`"`), `"`)
			switch variable {
			case "AGENTLEDGER_STORAGE":
				if local != "postgres://ledger@database/ledger" {
					t.Errorf("got %s", local)
				}
				local = server.URL()
			case "AGENTLEDGER_NODE_URL":
				local = strings.ReplaceAll(local, name+":8092", m.node)
			}
			env = append(env, variable+"="+local)
		}
		all, stop = append(all, start{m, s.Command, env}), time.Duration(*s.StopGracePeriod)
	}
	serveTogether(t, all, stop)
}
