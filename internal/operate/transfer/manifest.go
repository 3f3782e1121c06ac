package transfer

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
)

// Names of the files that every directory contains.
const (
	manifestName = "manifest.ndjson"
	recordsName  = "records.ndjson"
	serviceName  = "service.ndjson"
)

// eventsPieceName returns the name of the piece that begins at an event. The names sort in the order of the events.
func eventsPieceName(begin id.Index) string { return fmt.Sprintf("events-%016d.ndjson", begin) }

// listed is an organization in the manifest of an export.
type listed struct {
	Organization `json:",inline"`
	SHA256       id.Hash `json:"sha256"` // of its own manifest
}

// details is the first line of an organization's own manifest.
type details struct {
	Organization  `json:",inline"`
	Tenant        handle     `json:"tenant"`
	LogKey        string     `json:"log_key"`
	Last          id.Hash    `json:"last"`
	LastReceived  id.Instant `json:"last_received"`
	ConfigVersion uint64     `json:"config_version"`
	Checkpoint    string     `json:"checkpoint"`
	// Ended means that the ledger is frozen and has a successor: Checkpoint is the last one that it published, and
	// need not match the events.
	Ended      bool       `json:"ended,omitzero"`
	ExportedAt id.Instant `json:"exported_at"`
}

// handle is a tenant as text, because JSON numbers are not exact for large integers.
type handle id.Tenant

// MarshalText implements encoding.TextMarshaler.
func (h handle) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(h)), nil }

// UnmarshalText parses the output of MarshalText.
func (h *handle) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 16, 63)
	if err != nil || len(b) != 16 || n == 0 {
		return errors.New("tenant is malformed")
	}
	*h = handle(n)
	return nil
}

// listedPiece is any further line of an organization's own manifest.
type listedPiece struct {
	File   string    `json:"file"`
	Piece  pieceKind `json:"piece"`
	Begin  id.Index  `json:"begin"`
	SHA256 id.Hash   `json:"sha256"` // of everything before its last line
}

// manifest lists the contents of an organization's directory.
type manifest struct {
	details
	dir     string
	keyring *seal.Keyring // if nil, authenticators are not checked
	pieces  []listedPiece
	shown   id.Index // size of the checkpoint, set when it is checked
}

func (m *manifest) parsedTenant() id.Tenant { return id.Tenant(m.Tenant) }

// organizationDir returns the directory of one log: the organization's ID, followed by the log's number from its
// second log on.
func organizationDir(dir string, o id.Organization, origin id.Origin) string {
	return filepath.Join(dir, strings.ReplaceAll(origin.Below(o), "/", "."))
}

// isOrganizationDir reports whether a directory has such a name.
func isOrganizationDir(name string) bool {
	name, number, numbered := strings.Cut(name, ".")
	if n, err := strconv.Atoi(number); numbered && (err != nil || n < 2) {
		return false
	}
	_, err := id.ParseOrganization(name)
	return err == nil
}

func (m *manifest) writeManifest(keyring *seal.Keyring) (sum, error) {
	w, err := createPiece(filepath.Join(m.dir, manifestName), newPieceHeader(pieceOrganization, m.ID, 0), keyring)
	if err != nil {
		return sum{}, err
	}
	lines := []any{m.details}
	for _, p := range m.pieces {
		lines = append(lines, p)
	}
	return w.sealLines(lines, m.Size, m.Root)
}

func writeExport(dir string, all []listed, keyring *seal.Keyring) error {
	w, err := createPiece(filepath.Join(dir, manifestName), newPieceHeader(pieceExport, id.Organization{}, 0), keyring)
	if err != nil {
		return err
	}
	lines := make([]any, len(all))
	for i := range all {
		lines[i] = all[i]
	}
	_, err = w.sealLines(lines, 0, id.Hash{})
	return err
}

func (w *pieceWriter) sealLines(lines []any, size id.Index, root id.Hash) (sum, error) {
	for _, l := range lines {
		text, err := json.Marshal(l)
		if err == nil {
			err = w.writeLine(text)
		}
		if err != nil {
			w.discardPiece()
			return sum{}, err
		}
	}
	return w.sealPiece(size, root)
}

// readLines calls each for every line of a manifest, with a function that decodes the line. It returns
// ErrUnauthenticated if no key of the ring authenticates the manifest. If keyring is nil, it does not check the
// authenticator.
func readLines(
	path string, h header, keyring *seal.Keyring, each func(number int, decode func(any) error) error,
) (sum, error) {
	r, err := openPiece(path, h, keyring)
	if err != nil {
		return sum{}, err
	}
	defer r.close()
	for {
		line, err := r.nextLine()
		if errors.Is(err, io.EOF) {
			return r.end, nil
		}
		if err != nil {
			return sum{}, err
		}
		decode := func(into any) error {
			if err := json.Unmarshal(line, into, json.RejectUnknownMembers(true)); err != nil {
				return r.damagedPiece("line %d is malformed", r.read+1)
			}
			return nil
		}
		if err := each(r.read-1, decode); err != nil {
			return sum{}, err
		}
	}
}

// readExport reads the organizations of an export.
func readExport(dir string, keyring *seal.Keyring) (all []listed, err error) {
	path := filepath.Join(dir, manifestName)
	end, err := readLines(path, newPieceHeader(pieceExport, id.Organization{}, 0), keyring,
		func(_ int, decode func(any) error) error {
			var l listed
			err := decode(&l)
			all = append(all, l)
			return err
		})
	if err == nil && (end.Size != 0 || end.Root != id.Hash{}) {
		err = Damagedf("%s: its last line belongs to another piece", path)
	}
	return all, err
}

// readManifest reads an organization's own manifest, which must be the listed one.
func readManifest(dir string, l listed, keyring *seal.Keyring) (*manifest, error) {
	m := &manifest{dir: organizationDir(dir, l.ID, l.Origin), keyring: keyring}
	path := filepath.Join(m.dir, manifestName)
	end, err := readLines(path, newPieceHeader(pieceOrganization, l.ID, 0), keyring,
		func(number int, decode func(any) error) error {
			if number == 0 {
				return decode(&m.details)
			}
			var p listedPiece
			err := decode(&p)
			m.pieces = append(m.pieces, p)
			return err
		})
	if err != nil {
		return nil, err
	}
	if end.SHA256 != l.SHA256 || m.Organization != l.Organization || end.Size != m.Size || end.Root != m.Root {
		return nil, Damagedf("%s does not match the manifest of the export", path)
	}
	return m, m.checkManifest(path)
}

// checkManifest checks that the pieces have the required names and order.
func (m *manifest) checkManifest(path string) error {
	want := map[pieceKind]string{pieceRecords: recordsName, pieceService: serviceName}
	for _, p := range m.pieces {
		if p.Piece == pieceEvents {
			want[p.Piece] = eventsPieceName(p.Begin)
		}
		if want[p.Piece] == "" || p.File != want[p.Piece] {
			return Damagedf("%s: piece %s does not belong there", path, p.File)
		}
		if p.Piece != pieceEvents {
			delete(want, p.Piece)
		}
	}
	delete(want, pieceEvents)
	for _, name := range want {
		return Damagedf("%s: piece %s is not listed", path, name)
	}
	return nil
}

// pieceNamed returns the only piece of a kind.
func (m *manifest) pieceNamed(kind pieceKind) listedPiece {
	for _, p := range m.pieces {
		if p.Piece == kind {
			return p
		}
	}
	return listedPiece{}
}

// openPiece opens a piece of the organization.
func (m *manifest) openPiece(p listedPiece) (*pieceReader, error) {
	return openPiece(filepath.Join(m.dir, p.File), newPieceHeader(p.Piece, m.ID, p.Begin), m.keyring)
}

// closeLine checks that a piece that was read to its end matches the manifest.
func (m *manifest) closeLine(r *pieceReader, p listedPiece) error {
	sameHead := p.Piece == pieceEvents || r.end.Size == m.Size && r.end.Root == m.Root
	if r.end.SHA256 != p.SHA256 || !sameHead {
		return r.damagedPiece("does not match the manifest")
	}
	return nil
}
