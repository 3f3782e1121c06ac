package commandline

import (
	"encoding"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
)

// form is the form of the values of flags and arguments that have its name as the tag type. Empty values are left to the
// commands, because an environment variable may be set and empty.
type form struct {
	expected string // completes "expected …". The tag expected takes precedence.
	valid    func(text string) bool
	expand   bool                    // a path, which is made absolute
	secret   bool                    // the value may contain a password, so that errors do not contain it
	explain  func(text string) error // or nil; why a value of the right shape is not valid
}

// forms are all forms, by name.
var forms = map[string]form{
	"vkey":       {expected: "a verifier key, NAME+HASH+KEY such as log.example/o/1+0a1b2c3d+AQ…", valid: parses(tlog.ParseVerifierKey)},
	"witnesskey": {expected: "the verifier key of a witness, NAME+HASH+KEY such as witness.example/w+0a1b2c3d+BA…", valid: parses(tlog.ParseWitnessKey)},
	"publickey":  {expected: "an Ed25519 public key, base64 of 32 bytes", valid: isPublicKey, explain: checkPublicKey},
	"hash":       {expected: "a SHA-256, 64 hexadecimal digits in lower case", valid: parses(id.ParseHash)},
	"org":        {expected: "an organization ID, a UUID such as 018f6f3e-8d3c-4b5e-9a52-5f0c6d1e7a90", valid: parses(id.ParseOrganization)},
	"agent":      {expected: "an agent ID, 1 to 128 of A-Z, a-z, 0-9 and ._-", valid: event.ValidAgent},
	"agentordid": {expected: "an agent ID, or a DID such as did:key:z6Mk…", valid: func(s string) bool { return event.ValidAgent(s) || isDID(s) }},
	"keyid":      {expected: "a key ID, 1 to 256 of A-Z, a-z, 0-9 and ._:#-", valid: event.ValidKey},
	"tool":       {expected: "the name of a tool, such as acme.payments.send", valid: event.ValidTool},
	"tools":      {expected: "the name of a tool, or a pattern such as acme.**", valid: textcheck.ValidToolGlob},
	"id":         {expected: "an ID, 1 to 128 of A-Z, a-z, 0-9 and ._:-", valid: event.ValidEvent},
	"trace":      {expected: "a trace ID, 1 to 128 of A-Z, a-z, 0-9 and ._:-", valid: event.ValidEvent},
	"event":      {expected: "an event ID, a log index or an event hash", valid: event.ValidEvent},
	"policy":     {expected: "a policy ID, such as payments", valid: event.ValidEvent},
	"kind":       {expected: "an action_kind, such as tool_call", valid: event.ValidKind},
	"word":       {expected: "a word of a-z, 0-9, _ and -", valid: regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`).MatchString},
	"slug":       {expected: "the slug of an organization, such as acme-corp", valid: isSlug},
	"slugorid":   {expected: "the slug of an organization, such as acme-corp, or its ID, a UUID", valid: func(s string) bool { return isSlug(s) || parses(id.ParseOrganization)(s) }},
	"servername": {expected: "a name of letters, digits and -", valid: regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`).MatchString},
	"email":      {expected: "an e-mail address, such as you@log.example", valid: isEmail},
	"instant":    {expected: "a UTC time with milliseconds, such as 2026-01-31T12:00:00.000Z", valid: parses(id.ParseInstant)},
	"time":       {expected: "a time, such as 2026-01-31T12:00:00Z", valid: isTime},
	"position":   {expected: "a UTC time, such as 2026-01-31T12:00:00Z, or a log index", valid: func(s string) bool { return isTime(s) || isNumber(s) }},
	"number":     {expected: "a whole number, not negative", valid: isNumber},
	"duration":   {expected: "a duration, such as 90s or 1h30m", valid: func(s string) bool { return parses(time.ParseDuration)(s) }},
	"url":        {expected: "an http or https URL, such as https://log.example", valid: isURL("http", "https"), secret: true},
	"server":     {expected: "the address of the identity listener, http://HOST:PORT or unix:PATH", valid: isServer, secret: true},
	"postgres":   {expected: "the address of a PostgreSQL database, postgres://USER@HOST/DATABASE", valid: isPostgres, secret: true},
	"archive":    {expected: "the address of an object store, s3://BUCKET/PREFIX?endpoint=URL&region=NAME or file:///FOLDER", valid: isArchive, secret: true},
	"smtp":       {expected: "the address of a mail server, smtps://HOST?from=ADDRESS or smtp://HOST?from=ADDRESS", valid: isURL("smtp", "smtps"), secret: true},
	"listen":     {expected: "an address to listen at, HOST:PORT, :PORT or unix:PATH", valid: isListenAddress},
	"location":   {expected: "a named location of nginx, such as @tool", valid: regexp.MustCompile(`^@[A-Za-z0-9_-]{1,64}$`).MatchString},
	"network":    {expected: "a network, such as 10.1.0.0/16", valid: parses(netip.ParsePrefix)},
	"token":      {expected: "an ingest key, visible ASCII characters without spaces", valid: isToken, secret: true},

	"input":        {expected: "a file that exists, or - for standard input", valid: func(s string) bool { return s == "-" || isFile(s) }, explain: explainPath},
	"file":         {expected: "a file that exists", valid: isFile, explain: explainPath},
	"existing":     {expected: "a file or a folder that exists", valid: exists, expand: true, explain: explainPath},
	"existingfile": {expected: "a file that exists", valid: isFile, expand: true, explain: explainPath},
	"existingdir":  {expected: "a folder that exists", valid: isFolder, expand: true, explain: explainPath},
	"path":         {expected: "a path in a folder that exists or can be made", valid: canExist, expand: true},
	"output":       {expected: "the path of a file in a folder", valid: canExist},
}

// Forms returns the options by which a parser checks the forms of values. All parsers of the programs need them.
func Forms() []kong.Option {
	options := []kong.Option{
		kong.TypeMapper(reflect.TypeFor[id.Organization](), mapper("org")),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.TypeMapper(reflect.TypeFor[map[string]uint64](), kong.MapperFunc(decodeNumbers)),
	}
	for name := range forms {
		options = append(options, kong.NamedMapper(name, mapper(name)))
	}
	return options
}

// DecodePath decodes a path, as flags with the tag type:"path" are decoded.
func DecodePath(ctx *kong.DecodeContext, target reflect.Value) error {
	return forms["path"].decode(ctx, target)
}

func mapper(name string) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error { return forms[name].decode(ctx, target) }
}

// decode implements kong.Mapper for strings, types that can be read from text, and lists of both.
func (f form) decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if expected := ctx.Value.Tag.Get("expected"); expected != "" {
		f.expected = expected
	}
	texts, err := f.pop(ctx, target.Kind() == reflect.Slice)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if f.expand && text != "" {
			text = kong.ExpandPath(text)
		}
		isDefault := ctx.Value.HasDefault && text == ctx.Value.Default
		if text != "" && !isDefault && !f.valid(strings.TrimSpace(text)) {
			return f.reject(text)
		}
		if target.Kind() == reflect.Slice {
			element := reflect.New(target.Type().Elem()).Elem()
			if err := f.set(element, text); err != nil {
				return err
			}
			target.Set(reflect.Append(target, element))
		} else if err := f.set(target, text); err != nil {
			return err
		}
	}
	return nil
}

// pop returns the values that were given: several for a list.
func (f form) pop(ctx *kong.DecodeContext, list bool) ([]string, error) {
	if list && ctx.Value.Flag == nil {
		var texts []string
		for _, t := range ctx.Scan.PopWhile(func(t kong.Token) bool { return t.IsValue() }) {
			texts = append(texts, t.String())
		}
		return texts, nil
	}
	value, err := popValue(ctx, f.expected)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case string:
		if list {
			return kong.SplitEscaped(v, ctx.Value.Tag.Sep), nil
		}
		return []string{v}, nil
	case []any: // of a settings file
		texts := make([]string, len(v))
		for i := range v {
			text, ok := v[i].(string)
			if !ok || !list {
				return nil, fmt.Errorf("expected %s", f.expected)
			}
			texts[i] = text
		}
		return texts, nil
	}
	return nil, fmt.Errorf("expected %s, as a text", f.expected)
}

// popValue returns the value of a flag or an argument, a string unless it is from a settings file.
func popValue(ctx *kong.DecodeContext, expected string) (any, error) {
	if token := ctx.Scan.Peek(); token.IsEOL() || !token.IsValue() {
		return nil, fmt.Errorf("a value is missing: expected %s", expected)
	}
	return ctx.Scan.Pop().Value, nil
}

func (f form) reject(text string) error {
	if f.secret && (f.expected == forms["token"].expected || strings.ContainsAny(text, "@?")) {
		return fmt.Errorf("expected %s", f.expected)
	}
	err := fmt.Errorf("expected %s, got %s", f.expected, quote(text))
	if f.explain != nil {
		if why := f.explain(text); why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
	}
	return err
}

// quote returns a short form of a value for errors.
func quote(text string) string {
	const most = 80
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strconv.Quote(text)
}

func (f form) set(target reflect.Value, text string) error {
	if u, ok := target.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if text == "" {
			target.SetZero()
			return nil
		}
		if err := u.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
			return f.reject(text)
		}
		return nil
	}
	target.SetString(text)
	return nil
}

func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	f := forms["duration"]
	texts, err := f.pop(ctx, false)
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(texts[0])
	if err != nil {
		return f.reject(texts[0])
	}
	target.SetInt(int64(d))
	return nil
}

// decodeNumbers decodes NAME=NUMBER;NAME=NUMBER, or the object of a settings file.
func decodeNumbers(ctx *kong.DecodeContext, target reflect.Value) error {
	const expected = "NAME=NUMBER, separated by semicolons, such as free=10000;team=0"
	value, err := popValue(ctx, expected)
	if err != nil {
		return err
	}
	numbers := map[string]uint64{}
	add := func(name, text string) error {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if err != nil || name == "" {
			return fmt.Errorf("expected %s, got %s", expected, quote(name+"="+text))
		}
		numbers[name] = n
		return nil
	}
	switch v := value.(type) {
	case string:
		for _, pair := range kong.SplitEscaped(v, ctx.Value.Tag.MapSep) {
			name, text, found := strings.Cut(pair, "=")
			if !found {
				return fmt.Errorf("expected %s, got %s", expected, quote(pair))
			}
			if err := add(strings.TrimSpace(name), text); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, n := range v {
			if err := add(name, fmt.Sprintf("%v", formatNumber(n))); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("expected %s", expected)
	}
	if target.IsNil() {
		target.Set(reflect.ValueOf(numbers))
		return nil
	}
	for name, n := range numbers { // a repeated flag adds to the ones before
		target.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(n))
	}
	return nil
}

// formatNumber writes a whole number of a JSON file without an exponent.
func formatNumber(v any) any {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return v
}

func parses[T any](parse func(string) (T, error)) func(string) bool {
	return func(text string) bool {
		_, err := parse(text)
		return err == nil
	}
}

func isPublicKey(text string) bool {
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err == nil {
		_, err = edkey.ParsePublic(raw)
	}
	return err == nil
}

func checkPublicKey(text string) error {
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err == nil && len(raw) == edkey.PublicSize {
		_, err = edkey.ParsePublic(raw)
		return err
	}
	return nil
}

func isDID(text string) bool {
	method, rest, _ := strings.Cut(strings.TrimPrefix(text, "did:"), ":")
	return strings.HasPrefix(text, "did:") && method != "" && rest != "" && !strings.ContainsAny(text, " \t\r\n")
}

// isSlug reports whether a text may be a slug. The service knows which ones exist.
var isSlug = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9])*$`).MatchString

func isEmail(text string) bool {
	name, host, _ := strings.Cut(text, "@")
	return name != "" && host != "" && !strings.ContainsAny(text, " <>,;\t\r\n")
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

func isURL(schemes ...string) func(string) bool {
	return func(text string) bool {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return false
		}
		for _, scheme := range schemes {
			if u.Scheme == scheme {
				return true
			}
		}
		return false
	}
}

// isPostgres reports whether a text is an address of PostgreSQL: a URL, whose host may be empty for a socket, or NAME=VALUE pairs.
func isPostgres(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") || !strings.Contains(text, "://") && strings.Contains(text, "=")
}

const unixPrefix = "unix:"

func isServer(text string) bool {
	return strings.HasPrefix(text, unixPrefix) && text != unixPrefix || isURL("http", "https")(text)
}

func isArchive(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "s3" && u.Host != "" || u.Scheme == "file" && u.Path != "")
}

func isListenAddress(text string) bool {
	if path, isUnix := strings.CutPrefix(text, unixPrefix); isUnix {
		return path != ""
	}
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return err == nil
}

func isToken(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// explainPath returns why a path does not name a file or a folder.
func explainPath(path string) error {
	info, err := os.Stat(path)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	if err == nil && info.IsDir() {
		return errors.New("it is a folder")
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// isFile reports whether a path is anything but a folder. A file that can't be examined counts: opening it gives the reason.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return exists(path) && (err != nil || !info.IsDir())
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return exists(path) && (err != nil || info.IsDir())
}

// canExist reports whether the folder of a path exists, or can be made: no parent is a file.
func canExist(path string) bool {
	for parent := filepath.Dir(path); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err == nil {
			return info.IsDir()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return !errors.Is(err, syscall.ENOTDIR)
		}
		if parent == filepath.Dir(parent) {
			return true
		}
	}
}

// Values returns the flags and arguments of a command, without those that all commands have.
func Values(leaf *kong.Node) []*kong.Value {
	values := append([]*kong.Value{}, leaf.Positional...)
	for _, f := range leaf.Flags {
		values = append(values, f.Value)
	}
	return values
}
