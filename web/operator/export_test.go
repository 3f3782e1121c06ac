package operator

import "time"

// Sessions are sessions on a test clock.
type Sessions struct{ *sessions }

func NewSessions(now func() time.Time) Sessions { return Sessions{newSessions(now)} }

func (s Sessions) Begin(secret string) string   { return s.begin(secret) }
func (s Sessions) SecretOf(token string) string { return s.secretFor(token) }
func (s Sessions) End(token string)             { s.end(token) }
func (s Sessions) Len() int                     { return s.open.Len() }
