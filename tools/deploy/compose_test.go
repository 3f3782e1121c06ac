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

func loadCompose(t *testing.T, content []byte) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: t.TempDir(), ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: content}},
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

// The compose file passes the strict schema, and its one service has no more rights than it needs.
func TestCompose(t *testing.T) {
	s := readCompose(t)
	volumes := map[string]string{}
	for _, v := range s.Volumes {
		volumes[v.Source] = v.Type + " " + v.Target
	}
	for field, good := range map[string]bool{
		"image":      s.Image == "agentledger:1.2.3" && s.Build == nil,
		"user":       s.User == "", // the image's, which is no root
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

// The loader refuses what is no member of a compose file, so that the test above sees misspelled ones.
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
