package pack_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/packtest"
	"github.com/agentledger/agentledger/verify/pack"
)

// A pack that exceeds a bound is rejected for that reason, before its content is read.
func TestBounds(t *testing.T) {
	l := packtest.NewSampleLog(t)
	set := func(name, content string) func(*packtest.Parts) {
		return func(p *packtest.Parts) { *p.File(name) = content }
	}
	for want, bend := range map[string]func(*packtest.Parts){
		"manifest: range: malformed": func(p *packtest.Parts) {
			p.Manifest.TreeSize, p.Manifest.End = 2*pack.MaxEvents, pack.MaxEvents+1
		},
		"manifest.json: too large":  func(p *packtest.Parts) { p.Text = strings.Repeat(" ", pack.MaxDocument+1) },
		"checkpoint: too large":     set(pack.FileCheckpoint, strings.Repeat("a", 128<<10+1)),
		"keys.json: too large":      set(pack.FileKeys, strings.Repeat("a", pack.MaxDocument+1)),
		"agents.json: too large":    set(pack.FileAgents, strings.Repeat("a", pack.MaxAgentsFile+1)),
		"too many agents":           set(pack.FileAgents, manyAgents(pack.MaxAgents+1)),
		"records: length of a line": set(pack.FileRecords, strings.Repeat("a", pack.MaxLine+1)+"\n"),
		"names of the files": func(p *packtest.Parts) {
			var policies []packtest.File
			for i := range pack.MaxPolicies + 1 {
				policies = append(policies, packtest.File{Name: pack.PolicyFile(id.Hash{byte(i >> 8), byte(i)})})
			}
			p.Files = append(p.Files[:4:4], append(policies, p.Files[5:]...)...)
		},
		"a policy and its digest": func(p *packtest.Parts) {
			p.Files[4].Content += " "
		},
		"erasures: length of a line":  set(pack.FileErasures, strings.Repeat("a", pack.MaxLine+1)+"\n"),
		"approvals: length of a line": set(pack.FileApprovals, strings.Repeat("a", pack.MaxLine+1)+"\n"),
	} {
		p := packtest.Samples(t, l)[0].Parts
		bend(p)
		if _, err := check(p.Bytes(t), l.Key()); !isWrong(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	p := packtest.Samples(t, l)[0].Parts
	*p.File(pack.FileAgents) = manyAgents(pack.MaxAgents)
	if _, err := check(p.Bytes(t), l.Key()); !isWrong(err) || strings.Contains(err.Error(), "too many") {
		t.Errorf("the maximum number of agents: got %v", err)
	}
}

// manyAgents returns a list of agents without keys.
func manyAgents(n int) string {
	var b strings.Builder
	b.WriteString(`{"agents":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"agent_id":"agt_%08d","display_name":null,"keys":[]}`, i)
	}
	return b.String() + `]}`
}
