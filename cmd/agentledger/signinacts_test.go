package main

import (
	"reflect"
	"testing"
)

// Commands by whether they can change how a member of an organization signs in. A new command must be added here. One that
// changes accounts must go through package account, which states such changes.
func TestCommandsThatChangeSignIns(t *testing.T) {
	classified := map[string]string{
		"Serve": "by its calls, which package identity lists", "Demo": "", "Status": "", "Doctor": "", "Backup": "", "Fsck": "",
		"Init":    "through package provision, as the call that makes an organization",
		"Import":  "an imported account is unproved, and a known account keeps its ways in",
		"Restore": "the whole store as it was", "Compact": "", "Adopt": "", "RotateLogKey": "", "AskWitnesses": "", "Reindex": "",
		"AcceptRecords": "it changes no account: memberships that contradict the log stay as they are stored, and ways in are not compared",
		"Clock":         "", "CorrectClock": "", "Succeed": "", "Export": "", "Policy": "", "Version": "",
	}
	for field := range reflect.TypeFor[commands]().Fields() {
		if _, is := field.Tag.Lookup("cmd"); !is {
			continue
		}
		if _, known := classified[field.Name]; !known {
			t.Errorf("%s: can it change how a member signs in?", field.Name)
		}
		delete(classified, field.Name)
	}
	for name := range classified {
		t.Errorf("%s: there is no such command", name)
	}
}
