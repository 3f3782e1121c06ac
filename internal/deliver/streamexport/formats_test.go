package streamexport_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// required are the members that OCSF 1.4.0 requires of API Activity (class 6003), with their types. Of members
// separated by a bar, one is enough.
var required = []struct {
	path string
	text bool // a text; otherwise a number
}{
	{"activity_id", false}, {"category_uid", false}, {"class_uid", false}, {"severity_id", false}, {"time", false},
	{"type_uid", false}, {"metadata.version", true}, {"metadata.product.name", true},
	{"metadata.product.vendor_name", true}, {"api.operation", true},
	{"actor.user|actor.app_uid|actor.process|actor.session|actor.invoked_by", true},
	{"src_endpoint.uid|src_endpoint.ip|src_endpoint.name|src_endpoint.svc_name", true},
}

func find(body map[string]any, path string) (v any) {
	for _, one := range strings.Split(path, "|") {
		v = body
		for _, name := range strings.Split(one, ".") {
			m, _ := v.(map[string]any)
			v = m[name]
		}
		if v != nil {
			return v
		}
	}
	return nil
}

// bodies sends three events in a format and returns them.
func bodies(t *testing.T, change func(*streamexport.Request)) (all []map[string]any, text string) {
	t.Helper()
	h, r := newHouse(t, enginetest.Pebble(t)), newReceiver(t)
	h.append(red, 2)
	h.put(red, r.URL, fromIndex(0), change)
	h.send()
	for _, one := range r.take() {
		for _, record := range one.records {
			if record.EventName != "agentledger.event" || record.TimeUnixNano == 0 || record.SeverityNumber == 0 {
				t.Errorf("got %v", record)
			}
			all = append(all, plain(record.Body.GetKvlistValue().GetValues()))
			text += prototext.Format(record)
		}
	}
	if len(all) != 3 {
		t.Fatalf("got %d events, want 3", len(all))
	}
	return all, text
}

func TestOCSF(t *testing.T) {
	for _, encoding := range []streamexport.Encoding{streamexport.EncodingProtobuf, streamexport.EncodingJSON} {
		all, text := bodies(t, func(r *streamexport.Request) { r.Encoding = encoding })
		for i, body := range all {
			for _, member := range required {
				switch v := find(body, member.path).(type) {
				case string:
					if !member.text || v == "" {
						t.Errorf("event %d: %s: got %q", i, member.path, v)
					}
				case int64:
					if member.text {
						t.Errorf("event %d: %s: got %d", i, member.path, v)
					}
				default:
					if !strings.HasPrefix(member.path, "actor.user|") || v == nil {
						t.Errorf("event %d: %s: got %v", i, member.path, v)
					}
				}
			}
			if body["type_uid"] != int64(600399) || body["class_uid"] != int64(6003) || find(body, "metadata.version") != "1.4.0" {
				t.Errorf("event %d: got %v", i, body)
			}
		}
		for path, want := range map[string]any{
			"api.operation": "acme.orders.read", "activity_name": "tool_call", "actor.user.uid": "svc", "actor.app_uid": "agt_test",
			"metadata.uid": "evt-000001", "metadata.correlation_uid": "trc", "status": "Success", "status_code": "allow",
			"unmapped.event_id": "evt-000001", "unmapped.log_index": int64(0), "unmapped.signer": "agent", "metadata.sequence": int64(1),
		} {
			if got := find(all[0], path); got != want {
				t.Errorf("%s: got %v, want %v", path, got, want)
			}
		}
		if strings.Contains(text, "payload-of-") {
			t.Errorf("payloads were not asked for: got %s", text)
		}
	}
}

func TestCloudEvents(t *testing.T) {
	all, text := bodies(t, func(r *streamexport.Request) { r.Format = streamexport.FormatCloudEvents })
	for path, want := range map[string]any{
		"specversion": "1.0", "id": "evt-000001", "source": "//" + string(ledgertest.Origin(red)), "type": "agentledger.event.stored",
		"subject": "agt_test", "time": "2026-11-20T12:00:00Z", "datacontenttype": "application/json",
		"data.tool_name": "acme.orders.read", "data.declared": "allow", "data.effective": "allow", "data.log_index": int64(0),
	} {
		if got := find(all[0], path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	if !strings.Contains(text, "cloudevents.event_id") || strings.Contains(text, "payload-of-") {
		t.Errorf("got %s", text)
	}
}

// A payload keeps its exact text.
func TestPayloads(t *testing.T) {
	for _, format := range []streamexport.Format{streamexport.FormatOCSF, streamexport.FormatCloudEvents} {
		all, _ := bodies(t, func(r *streamexport.Request) { r.Format, r.Payloads = format, true })
		got := []any{find(all[0], "unmapped.payload"), find(all[0], "data.payload")}
		if want := `{"amount":10.5,"secret":"payload-of-evt-000001","text":"evt-000001"}`; !slices.Contains(got, any(want)) {
			t.Errorf("%s: got %v, want %s", format, got, want)
		}
	}
}
