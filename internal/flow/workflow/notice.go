package workflow

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// noticeChanges returns the records that notify the organization's endpoints that a run started or ended. They are part
// of the append that records it.
func (w *Workflows) noticeChanges(ctx context.Context, s *log.State, name ID, r *record) ([]storage.Change, error) {
	if w.webhooks == nil {
		return nil, nil
	}
	transition := string(r.Status)
	if r.Status == Running {
		transition = "started"
	}
	body := jcs.AppendString([]byte(`{"run_id":`), string(name))
	body = jcs.AppendString(append(body, `,"status":`...), string(r.Status))
	body = jcs.AppendString(append(body, `,"agent_id":`...), string(r.Agent))
	body = jcs.AppendString(append(body, `,"trace_id":`...), string(r.Trace))
	body = jcs.AppendString(append(body, `,"workflow":`...), r.Workflow.Name)
	return w.webhooks.WriteDelivery(ctx, s.Identity().Tenant, s.Identity().Organization, webhook.Message{
		Type: "run." + transition, Data: jsontext.Value(append(body, '}')), Agent: r.Agent,
		Title: fmt.Sprintf("Run %s of %s: %s.", name, r.Agent, transition), Detail: r.Workflow.Name,
		Path: "/console/runs/" + string(name),
	})
}
