package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func day(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t.Add(13 * time.Hour)
}

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		exit    string // of the scan
		file    string // before; "": none
		now     string
		err     string // "": none
		says    string
		written string // into the file
	}{
		"nothing found":           {"0", "", "2026-12-01", "", "", "2026-12-01\n"},
		"nothing found, again":    {"0", "2020-01-01\n", "2026-12-01", "", "", "2026-12-01\n"},
		"vulnerable":              {"3", "2026-12-01\n", "2026-12-01", "something that is called is vulnerable", "", "2026-12-01\n"},
		"not made, today":         {"1", "2026-12-01\n", "2026-12-01", "", "the last scan was made on 2026-12-01. After 2026-12-31 this is an error", "2026-12-01\n"},
		"not made, 30 days":       {"1", "2026-12-01\n", "2026-12-31", "", "NOT CHECKED", "2026-12-01\n"},
		"not made, 31 days":       {"1", "2026-12-01\n", "2027-01-01", "the last scan was made on 2026-12-01, more than 30 days ago", "", "2026-12-01\n"},
		"not made, another way":   {"2", "2026-12-01\n", "2027-01-01", "more than 30 days ago", "", "2026-12-01\n"},
		"none recorded, 30 days":  {"1", "none since 2026-12-01\n", "2026-12-31", "", "no scan is recorded yet, counted from 2026-12-01. After 2026-12-31", "none since 2026-12-01\n"},
		"none recorded, 31 days":  {"1", "none since 2026-12-01\n", "2027-01-01", "no scan is recorded yet, counted from 2026-12-01, more than 30 days ago", "", "none since 2026-12-01\n"},
		"a date that has to come": {"1", "2026-12-02\n", "2026-12-01", "has not come yet", "", "2026-12-02\n"},
		"no date":                 {"1", "yesterday\n", "2026-12-01", "the first line is no date", "", "yesterday\n"},
		"no file":                 {"1", "", "2026-12-01", "read date of the last scan", "", ""},
	} {
		file := filepath.Join(t.TempDir(), "date")
		if tc.file != "" {
			if err := os.WriteFile(file, []byte(tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var out, problems bytes.Buffer
		err := checkVulnerabilities(t.Context(), []string{file, "sh", "-c", "exit " + tc.exit}, day(tc.now), &out, &problems)
		if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
		if !strings.Contains(out.String(), tc.says) {
			t.Errorf("%s: says %q, want %q", name, out.String(), tc.says)
		}
		if got, _ := os.ReadFile(file); string(got) != tc.written {
			t.Errorf("%s: the file has %q, want %q", name, got, tc.written)
		}
	}
}

func TestScanThatCanNotBegin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "date")
	for _, args := range [][]string{nil, {file}, {file, filepath.Join(t.TempDir(), "absent")}} {
		if err := checkVulnerabilities(t.Context(), args, day("2026-12-01"), new(bytes.Buffer), new(bytes.Buffer)); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

// The file of the tree can be read, and says no day that has not come.
func TestRecordOfTheTree(t *testing.T) {
	text, err := os.ReadFile("../../tools/vulncheck.date")
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseRecord(string(text))
	if err != nil || r.date.After(time.Now().AddDate(0, 0, 1)) {
		t.Errorf("got %+v, %v", r, err)
	}
}
