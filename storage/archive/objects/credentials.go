package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// maxCredentials bounds the file of credentials, in bytes. A session token has up to 4 KiB at some providers.
const maxCredentials = 16 << 10

// credentialSource is where the credentials of a bucket come from. A printed one does not show them.
type credentialSource struct {
	path string                 // of a file; "" for the environment
	env  func() aws.Credentials // a function, because a printed struct shows its private fields
}

// newCredentialSource takes the credentials of the environment when no file is named, and checks both.
func newCredentialSource(path string, getenv func(string) string) (credentialSource, error) {
	var env aws.Credentials
	if getenv != nil {
		env = aws.Credentials{
			AccessKeyID:     getenv("AWS_ACCESS_KEY_ID"),
			SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken:    getenv("AWS_SESSION_TOKEN"),
		}
	}
	s := credentialSource{path, func() aws.Credentials { return env }}
	_, err := s.Retrieve(context.Background())
	return s, err
}

// Retrieve returns the credentials. The file is read each time, so that it can be replaced while the program runs.
func (s credentialSource) Retrieve(context.Context) (aws.Credentials, error) {
	c, origin := s.env(), "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	if s.path != "" {
		text, err := readPrivateFile(s.path)
		if err != nil {
			return aws.Credentials{}, fmt.Errorf("read the credentials of the object store: %w", err)
		}
		c, origin = parseCredentials(text), "aws_access_key_id and aws_secret_access_key in "+s.path
	}
	if !c.HasKeys() {
		return aws.Credentials{}, fmt.Errorf("no credentials of the object store: set %s", origin)
	}
	return c, nil
}

// readPrivateFile reads a small file that only its owner can read.
func readPrivateFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s: others may read it: set its mode to 0600", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxCredentials+1))
	if err == nil && len(text) > maxCredentials {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("too large")}
	}
	return string(text), err
}

// parseCredentials reads lines of "name = value", the format of the AWS tools. Sections and other names are passed
// over.
func parseCredentials(text string) aws.Credentials {
	var c aws.Credentials
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, "=")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			c.AccessKeyID = value
		case "aws_secret_access_key":
			c.SecretAccessKey = value
		case "aws_session_token":
			c.SessionToken = value
		}
	}
	return c
}
