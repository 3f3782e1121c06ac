package main

import (
	"fmt"
	"strings"
	"testing"
)

// A page of the list of keys equals the corresponding part of the whole list.
func TestPartsOfLogList(t *testing.T) {
	var keys []string
	for i := range 25 {
		keys = append(keys, fmt.Sprintf("log.example/o/org_%02d+0000+key", i))
	}
	for limit := 1; limit < 30; limit++ {
		var paths, want []string
		for after, more := "", true; more; more = after != "" {
			var part []string
			logs, next := listKeys(keys, after, limit)
			for _, l := range logs {
				part = append(part, l.Path)
			}
			if len(part) == 0 || len(part) > limit {
				t.Fatalf("limit %d: got %q", limit, part)
			}
			paths, after = append(paths, part...), next
		}
		for i := range keys {
			want = append(want, fmt.Sprintf("org_%02d", i))
		}
		if strings.Join(paths, " ") != strings.Join(want, " ") {
			t.Errorf("limit %d: got %q", limit, paths)
		}
	}
	for _, after := range []string{"zzz", "\xff", keys[24]} {
		if logs, next := listKeys(keys, after, 10); len(logs) != 0 || next != "" {
			t.Errorf("after %q: got %v, %q", after, logs, next)
		}
	}
	if logs, next := listKeys(nil, "", 10); len(logs) != 0 || next != "" {
		t.Errorf("of none: got %v, %q", logs, next)
	}
}
