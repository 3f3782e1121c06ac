package people

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// Bounds of a directory that aps apply reads. The service has its own bounds of what an organization may have.
const (
	maxDeclaredFile = 4 << 20 // bytes
	maxDeclared     = 1000    // elements of one list, and documents
)

// The files of a directory that aps apply reads. Each is optional.
const (
	agentsFile   = "agents.json"
	webhooksFile = "webhooks.json"
	membersFile  = "members.json"
	policiesFile = "policies.json"
	policiesDir  = "policies"
)

// declaration is what the files of a directory declare about an organization. A member of an element that is nil stays as it is.
type declaration struct {
	agents   []declaredAgent
	webhooks []declaredWebhook
	members  []declaredMember // nil without a file
	policies []document
	active   string // policy_id of the document that is enforced; "" if there are no documents
}

type declaredAgent struct {
	AgentID     string        `json:"agent_id"`
	DisplayName *string       `json:"display_name"`
	Bridge      *bool         `json:"bridge"`
	Active      *bool         `json:"active"`
	Keys        []declaredKey `json:"keys"`
}

// declaredKey is a signing key by its public part. The proof is needed only until the key is registered.
type declaredKey struct {
	KeyID        string `json:"key_id"`
	PublicKeyB64 string `json:"public_key_b64"`
	ProofB64     string `json:"proof_b64"`
	Status       string `json:"status"` // active (or ""), retired or revoked
}

// declaredWebhook is an endpoint. Its address is a member of the file or, because it may contain a secret, the value of an
// environment variable.
type declaredWebhook struct {
	Name   string    `json:"name"`
	URL    string    `json:"url"`
	URLEnv string    `json:"url_env"`
	Events []string  `json:"events"`
	Tools  *[]string `json:"tools"`
	Agents *[]string `json:"agents"`
	Format *string   `json:"format"`
	Active *bool     `json:"active"`
}

type declaredMember struct {
	Email     string `json:"email"`
	Role      string `json:"role"`
	Suspended *bool  `json:"suspended"`
}

// readDeclaration reads the files of a directory. It rejects a member, a file name and a combination that it does not know,
// and calls nobody.
func readDeclaration(dir string) (*declaration, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("<dir>: expected a folder: %w", err)
	}
	d := new(declaration)
	var (
		agents struct {
			Agents []declaredAgent `json:"agents"`
		}
		webhooks struct {
			Webhooks []declaredWebhook `json:"webhooks"`
		}
		members struct {
			Members []declaredMember `json:"members"`
		}
		policies struct {
			Active string `json:"active"`
		}
	)
	read := 0
	for _, entry := range entries {
		name := entry.Name()
		file := filepath.Join(dir, name)
		switch {
		case name == policiesDir && !entry.IsDir():
			err = fmt.Errorf("%s: expected a folder", file)
		case name == policiesDir:
			d.policies, err = readDocuments(file)
		case !strings.HasSuffix(name, ".json"):
			continue
		case name == agentsFile:
			err = readStrictly(entry, file, &agents)
			d.agents = append(d.agents, agents.Agents...)
		case name == webhooksFile:
			err = readStrictly(entry, file, &webhooks)
			d.webhooks = append(d.webhooks, webhooks.Webhooks...)
		case name == membersFile:
			err = readStrictly(entry, file, &members)
			d.members = append([]declaredMember{}, members.Members...) // an empty list needs a person too
		case name == policiesFile:
			err = readStrictly(entry, file, &policies)
		default:
			err = fmt.Errorf("%s: unknown file: expected %s, %s, %s, %s or the folder %s", file, agentsFile, webhooksFile, membersFile,
				policiesFile, policiesDir)
		}
		if err != nil {
			return nil, err
		}
		read++
	}
	if read == 0 {
		return nil, fmt.Errorf("%s: nothing is declared: expected %s, %s, %s or the folder %s", dir, agentsFile, webhooksFile, membersFile, policiesDir)
	}
	if n := max(len(d.agents), len(d.webhooks), len(d.members)); n > maxDeclared {
		return nil, fmt.Errorf("%s: a list has %d elements, more than %d", dir, n, maxDeclared)
	}
	return d, errors.Join(d.checkAgents(), d.checkWebhooks(), d.checkMembers(), d.checkPolicies(policies.Active))
}

func readStrictly(entry os.DirEntry, file string, into any) error {
	text, err := readRegular(entry, file)
	if err != nil {
		return err
	}
	return decodeStrictly(file, text, into)
}

// readRegular reads a file that is not a link, so that files of a proposed change can't name others on the machine.
func readRegular(entry os.DirEntry, file string) ([]byte, error) {
	if !entry.Type().IsRegular() {
		return nil, fmt.Errorf("%s: expected a regular file", file)
	}
	info, err := entry.Info()
	if err == nil && info.Size() > maxDeclaredFile {
		err = fmt.Errorf("%s: larger than %d bytes", file, maxDeclaredFile)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// decodeStrictly decodes JSON without unknown and duplicate members. Its errors name the file and the line.
func decodeStrictly(file string, text []byte, into any) error {
	err := json.Unmarshal(text, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	var offset int64
	message := "not JSON"
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = wrong.ByteOffset
		if errors.Is(err, jsontext.ErrDuplicateName) {
			message = fmt.Sprintf("member %q occurs twice", textcheck.Printable(wrong.JSONPointer.LastToken()))
		}
	}
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		offset = wrong.ByteOffset
		message = "wrong type of " + textcheck.Printable(string(wrong.JSONPointer))
		if errors.Is(err, json.ErrUnknownName) {
			message = fmt.Sprintf("unknown member %q", textcheck.Printable(wrong.JSONPointer.LastToken()))
		}
	}
	offset = min(max(offset, 0), int64(len(text)))
	for int(offset) < len(text) && (text[offset] == ' ' || text[offset] == '\n' || text[offset] == '\r' || text[offset] == '\t' || text[offset] == ',') {
		offset++ // to the value that the error is about
	}
	return fmt.Errorf("%s:%d: %s", file, 1+bytes.Count(text[:offset], []byte("\n")), message)
}

// readDocuments reads the policies of a folder, in the order of their files.
func readDocuments(dir string) ([]document, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []document
	for _, entry := range entries {
		file := filepath.Join(dir, entry.Name())
		if !strings.HasSuffix(file, ".json") {
			continue
		}
		text, err := readRegular(entry, file)
		if err == nil {
			err = decodeStrictly(file, text, new(map[string]jsontext.Value))
		}
		if err != nil {
			return nil, err
		}
		d, err := readDocument(file)
		if err != nil {
			return nil, err
		}
		if all = append(all, d); len(all) > maxDeclared {
			return nil, fmt.Errorf("%s: more than %d documents", dir, maxDeclared)
		}
	}
	return all, nil
}

// unique reports an error for a name that is empty or that occurs twice.
func unique(seen map[string]bool, file, member, name string) error {
	if name == "" {
		return fmt.Errorf("%s: an element without %s", file, member)
	}
	if seen[name] {
		return fmt.Errorf("%s: %s %s occurs twice", file, member, textcheck.Printable(name))
	}
	seen[name] = true
	return nil
}

func (d *declaration) checkAgents() error {
	agents := map[string]bool{}
	for _, a := range d.agents {
		if err := unique(agents, agentsFile, "agent_id", a.AgentID); err != nil {
			return err
		}
		keys := map[string]bool{}
		for _, k := range a.Keys {
			if err := unique(keys, agentsFile+": "+a.AgentID, "key_id", k.KeyID); err != nil {
				return err
			}
			if k.PublicKeyB64 == "" {
				return fmt.Errorf("%s: %s: key %s has no public_key_b64", agentsFile, a.AgentID, k.KeyID)
			}
			switch k.Status {
			case "", keyActive, keyRetired, keyRevoked:
			default:
				return fmt.Errorf("%s: %s: key %s: status must be active, retired or revoked", agentsFile, a.AgentID, k.KeyID)
			}
		}
		if len(a.Keys) > maxDeclared {
			return fmt.Errorf("%s: %s has more than %d keys", agentsFile, a.AgentID, maxDeclared)
		}
	}
	return nil
}

// checkWebhooks also reads the addresses of endpoints from the environment.
func (d *declaration) checkWebhooks() error {
	names := map[string]bool{}
	for i := range d.webhooks {
		w := &d.webhooks[i]
		if err := unique(names, webhooksFile, "name", w.Name); err != nil {
			return err
		}
		if (w.URL == "") == (w.URLEnv == "") {
			return fmt.Errorf("%s: %s needs either url or url_env", webhooksFile, textcheck.Printable(w.Name))
		}
		if w.URLEnv != "" {
			if w.URL = os.Getenv(w.URLEnv); w.URL == "" {
				return fmt.Errorf("%s: %s: the environment variable %s is not set", webhooksFile, textcheck.Printable(w.Name), textcheck.Printable(w.URLEnv))
			}
		}
		if len(w.Events) == 0 {
			return fmt.Errorf("%s: %s has no events", webhooksFile, textcheck.Printable(w.Name))
		}
	}
	return nil
}

func (d *declaration) checkMembers() error {
	addresses := map[string]bool{}
	for i := range d.members {
		m := &d.members[i]
		m.Email = strings.ToLower(m.Email)
		if err := unique(addresses, membersFile, "email", m.Email); err != nil {
			return err
		}
		if m.Role == "" {
			return fmt.Errorf("%s: %s has no role", membersFile, textcheck.Printable(m.Email))
		}
	}
	return nil
}

// checkPolicies decides which document is enforced: the one that policies.json names, or the only one.
func (d *declaration) checkPolicies(active string) error {
	if len(d.policies) == 1 && active == "" {
		active = d.policies[0].policy
	}
	d.active = active
	policies := map[string]bool{}
	for _, one := range d.policies {
		if policies[one.policy] {
			return fmt.Errorf("%s: policy_id %s occurs twice", one.file, textcheck.Printable(one.policy))
		}
		policies[one.policy] = true
	}
	switch {
	case active == "" && len(d.policies) > 1:
		return fmt.Errorf(`%s: there are %d documents: name the one that is enforced, {"active":"…"}`, policiesFile, len(d.policies))
	case active != "" && !policies[active]:
		return fmt.Errorf("%s: active is %s, which is no document in %s", policiesFile, textcheck.Printable(active), policiesDir)
	}
	return nil
}

// The states of a key.
const (
	keyActive  = "active"
	keyRetired = "retired"
	keyRevoked = "revoked"
)
