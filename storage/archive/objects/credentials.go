package objects

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/agentledger/agentledger/internal/secret"
)

// credentialSource is the source of a bucket's credentials. Formatting it does not reveal them.
type credentialSource struct {
	path string                 // of a file; if empty, the environment is used
	env  func() aws.Credentials // a function, because fmt prints unexported fields
}

// newCredentialSource returns a source that uses the file at path or, if path is empty, the environment. It checks that
// there are credentials.
func newCredentialSource(path string, getenv func(string) string) (credentialSource, error) {
	var env aws.Credentials
	if getenv != nil {
		env = aws.Credentials{
			AccessKeyID:     secret.TrimLineEnd(getenv("AWS_ACCESS_KEY_ID")),
			SecretAccessKey: secret.TrimLineEnd(getenv("AWS_SECRET_ACCESS_KEY")),
			SessionToken:    secret.TrimLineEnd(getenv("AWS_SESSION_TOKEN")),
		}
	}
	s := credentialSource{path, func() aws.Credentials { return env }}
	_, err := s.Retrieve(context.Background())
	return s, err
}

// Retrieve returns the credentials. It reads the file each time, so that it can be replaced while the program runs.
func (s credentialSource) Retrieve(context.Context) (aws.Credentials, error) {
	c, origin := s.env(), "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	if s.path != "" {
		text, err := secret.ReadFile(s.path)
		if err != nil {
			return aws.Credentials{}, fmt.Errorf("read credentials of the object store: %w", err)
		}
		c, origin = parseCredentials(text), "aws_access_key_id and aws_secret_access_key in "+s.path
	}
	if !c.HasKeys() {
		return aws.Credentials{}, fmt.Errorf("no credentials of the object store: set %s", origin)
	}
	if err := secret.CheckLine(c.AccessKeyID + c.SecretAccessKey + c.SessionToken); err != nil {
		return aws.Credentials{}, fmt.Errorf("credentials of the object store: %w", err)
	}
	return c, nil
}

// parseCredentials parses lines of "name = value", the format of the AWS tools. It ignores sections and other names.
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
