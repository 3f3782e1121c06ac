package pgtest_test

import (
	"os"
	"testing"

	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

func TestServer(t *testing.T) {
	s, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Exec("CREATE TABLE kept (n int8)", "INSERT INTO kept VALUES (7)"); err != nil {
		t.Error(err)
	}
	if err := s.Kill(); err != nil {
		t.Error(err)
	}
	if err := s.Exec("SELECT 1"); err == nil {
		t.Error("a killed server answers")
	}
	if err := s.Run(); err != nil {
		t.Error(err)
	}
	if err := s.Await("SELECT n = 7 FROM kept"); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
		t.Errorf("the directory of a stopped server: got %v, want that it is gone", err)
	}
}
