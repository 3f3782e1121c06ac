package config_test

import (
	"testing"

	"github.com/agentledger/agentledger/internal/config"
)

func TestIsLocalURL(t *testing.T) {
	for url, want := range map[string]bool{
		"http://localhost": true, "http://localhost:8080": true, "https://log.localhost/path": true,
		"http://127.0.0.1:8080": true, "http://[::1]:8080": true, "http://[::1]": true,
		"https://log.example": false, "https://localhost.example": false, "https://notlocalhost": false,
		"http://10.1.0.7:8080": false, "": false, "http://%": false,
	} {
		if got := config.IsLocalURL(url); got != want {
			t.Errorf("%q: got %v, want %v", url, got, want)
		}
	}
}
