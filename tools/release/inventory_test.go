package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

func TestDescribe(t *testing.T) {
	program := filepath.Join(t.TempDir(), "release")
	if said, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, said)
	}
	first, err := describeInventory(program, "aps", "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	second, err := describeInventory(program, "aps", "1.2.3")
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("two documents of one program differ: %v", err)
	}
	var document struct {
		Format     string `json:"bomFormat"`
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(first, &document); err != nil || document.Format != "CycloneDX" {
		t.Fatalf("got %s, %v", first, err)
	}
	versions := make(map[string]string)
	for _, c := range document.Components {
		versions[c.Name] = c.Version
	}
	if versions["std"] != runtime.Version() || versions["github.com/CycloneDX/cyclonedx-go"] == "" {
		t.Errorf("got %v", versions)
	}
	if _, err := describeInventory("inventory_test.go", "aps", "1.2.3"); err == nil {
		t.Error("a text was accepted as a program")
	}
}
