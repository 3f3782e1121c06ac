package publicapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// Over all proofs of two logs, a target has one ETag per rendering. The ETag of a proof at an earlier head differs from
// all later ones.
func TestTagsOfProofs(t *testing.T) {
	w := newWorld(t)
	bodies := map[string]string{} // by target and tag
	for round := range 5 {
		for _, o := range []*owner{&w.red, &w.blue} {
			w.append(o, id.DiscloseRecord, fmt.Sprint("e-", round))
			size := int(w.state(o).Size())
			for at := range size {
				for _, query := range []string{fmt.Sprint("inclusion?log_index=", at), fmt.Sprint("consistency?from=", at), fmt.Sprintf("inclusion?tree_size=%d&log_index=%d", max(at+1, size-1), at)} {
					target := "/v1/public/orgs/" + string(o.slug) + "/transparency/" + query
					got := w.get(target)
					tag, body := got.Header().Get("ETag"), got.Body.String()
					key := target + " " + tag
					if before, ok := bodies[key]; ok && before != body {
						t.Errorf("%s: two bodies with the tag %s:\n%s\n%s", target, tag, before, body)
					}
					bodies[key] = body
					if again := w.do(http.MethodGet, target, "If-None-Match: "+tag); again.Code != http.StatusNotModified {
						t.Errorf("%s with its tag: status %d", target, again.Code)
					}
				}
			}
		}
	}
	distinct := map[string]string{}
	for key, body := range bodies {
		target, _, _ := strings.Cut(key, " ")
		if other, ok := distinct[target+body]; ok && other != key {
			t.Errorf("one body with two tags: %s and %s", key, other)
		}
		distinct[target+body] = key
	}
}
