package transfer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/seal"
)

// A piece is a file of JSON lines. The first line identifies the piece. The last line contains the number of lines
// between them and the SHA-256 of all bytes before it. A piece gets its name when it is complete and durable.

// header is the first line of a piece.
type header struct {
	Format       string          `json:"agentledger"` // "transfer"
	Version      int             `json:"version"`     // formatVersion
	Piece        pieceKind       `json:"piece"`
	Organization id.Organization `json:"organization_id,omitzero"`
	Begin        id.Index        `json:"begin"` // first event, for pieceEvents
}

type pieceKind string

const (
	pieceExport       pieceKind = "export"       // the organizations of an export
	pieceOrganization pieceKind = "organization" // one organization and its pieces
	pieceRecords      pieceKind = "records"      // of the organization's partition
	pieceService      pieceKind = "service"      // its entries in the service's own partition
	pieceEvents       pieceKind = "events"
)

// formatVersion is incremented by a change that older programs must not read.
const formatVersion = 1

func newPieceHeader(kind pieceKind, o id.Organization, begin id.Index) header {
	return header{Format: "transfer", Version: formatVersion, Piece: kind, Organization: o, Begin: begin}
}

// footer is the last line of a piece.
type footer struct {
	End sum `json:"end"`
}

type sum struct {
	Lines  int      `json:"lines"`
	SHA256 id.Hash  `json:"sha256"`
	Size   id.Index `json:"size"` // of the ledger after the events
	Root   id.Hash  `json:"root"` // at that size
	// Authenticator authenticates the rest of the last line, under a key derived from the master key. Exports of
	// older programs have none.
	Authenticator id.Hash `json:"authenticator,omitzero"`
}

// purpose is the purpose of the authenticators of an export.
const purpose = "agentledger/export/v1"

// text is the part of a last line that its authenticator covers. It contains the SHA-256 of all lines before it, the
// first of which identifies the piece.
func (s sum) text() ([]byte, error) {
	s.Authenticator = id.Hash{}
	return json.Marshal(footer{s})
}

// checkAuthenticator returns an error that wraps ErrUnauthenticated if no key of the ring authenticates the piece.
func (s sum) checkAuthenticator(keyring *seal.Keyring, path string) error {
	if s.Authenticator == (id.Hash{}) {
		return unauthenticatedf("%s has no authenticator: it was written by an older program, or the authenticator was removed", path)
	}
	text, err := s.text()
	if err != nil {
		return err
	}
	if !keyring.IsAuthentic(purpose, text, s.Authenticator[:]) {
		return unauthenticatedf("%s: its authenticator does not match: it was changed after it was written, or it comes from a service "+
			"with another master key", path)
	}
	return nil
}

// footerStart is the beginning of the last line and of no other.
const footerStart = `{"end":{`

// maxLine bounds a line: an event of the largest configurable size, in a record and an envelope.
const maxLine = 64 << 20

// pieceWriter writes a piece.
type pieceWriter struct {
	path  string
	file  *os.File
	out   *bufio.Writer
	sum   hash.Hash
	lines int
	bytes int64

	keyring *seal.Keyring // if nil, the piece gets no authenticator
}

// partSuffix is the suffix of the name of an incomplete piece.
const partSuffix = ".part"

func partialPath(path string) string { return path + partSuffix }

func createPiece(path string, h header, keyring *seal.Keyring) (*pieceWriter, error) {
	f, err := os.OpenFile(partialPath(path), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	w := &pieceWriter{path: path, file: f, sum: sha256.New(), keyring: keyring}
	w.out = bufio.NewWriterSize(io.MultiWriter(f, w.sum), 1<<18)
	first, err := json.Marshal(h)
	if err == nil {
		err = w.writeBytes(first)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

// writeLine appends one line, which must not contain a line feed.
func (w *pieceWriter) writeLine(line []byte) error {
	w.lines++
	return w.writeBytes(line)
}

func (w *pieceWriter) writeBytes(line []byte) error {
	w.bytes += int64(len(line)) + 1
	_, err := w.out.Write(line)
	return errors.Join(err, w.out.WriteByte('\n'))
}

// sealPiece writes the last line, makes the piece durable and renames it to its name.
func (w *pieceWriter) sealPiece(size id.Index, root id.Hash) (sum, error) {
	if err := w.out.Flush(); err != nil {
		return sum{}, errors.Join(err, w.file.Close())
	}
	end := sum{Lines: w.lines, SHA256: id.Hash(w.sum.Sum(nil)), Size: size, Root: root}
	if w.keyring != nil {
		text, err := end.text()
		if err != nil {
			return sum{}, errors.Join(err, w.file.Close())
		}
		end.Authenticator = w.keyring.Authenticate(purpose, text)
	}
	last, err := json.Marshal(footer{end})
	if err == nil {
		err = w.writeBytes(last)
	}
	if err = errors.Join(err, w.out.Flush(), w.file.Sync(), w.file.Close()); err == nil {
		err = durable.Rename(partialPath(w.path), w.path)
	}
	return end, err
}

// discardPiece closes a piece that is not sealed.
func (w *pieceWriter) discardPiece() { w.file.Close() }

// pieceReader reads and verifies a piece.
type pieceReader struct {
	path    string
	file    *os.File
	in      *bufio.Reader
	keyring *seal.Keyring // if nil, the authenticator is not checked
	sum     hash.Hash
	end     sum // set when nextLine has returned io.EOF
	read    int // lines after the header
	long    []byte
}

// openPiece opens a piece whose first line must be h. At its end the reader returns ErrUnauthenticated if no key of
// the ring authenticates the piece. If keyring is nil, it does not check the authenticator.
func openPiece(path string, h header, keyring *seal.Keyring) (*pieceReader, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, Damagedf("%s is missing", path)
	}
	if err != nil {
		return nil, err
	}
	r := &pieceReader{path: path, file: f, in: bufio.NewReaderSize(f, 1<<18), keyring: keyring, sum: sha256.New()}
	if err := r.readHeader(h); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func (r *pieceReader) readHeader(h header) error {
	first, err := r.readRawLine()
	if err != nil {
		return r.damagedPiece("has no first line")
	}
	var got header
	if err := json.Unmarshal(first, &got, json.RejectUnknownMembers(true)); err != nil {
		return r.damagedPiece("is not a piece of an export")
	}
	if got.Format == h.Format && got.Version != h.Version {
		return Refusedf("%s has version %d, but this program reads version %d", r.path, got.Version, h.Version)
	}
	if got != h {
		return r.damagedPiece("is another piece: %s of %s from %d", got.Piece, got.Organization, got.Begin)
	}
	r.digestLine(first)
	return nil
}

func (r *pieceReader) digestLine(line []byte) {
	r.sum.Write(line)
	r.sum.Write([]byte{'\n'})
}

// nextLine returns the next line, which is valid until the next call. After the last line, it verifies the piece and
// returns io.EOF.
func (r *pieceReader) nextLine() ([]byte, error) {
	line, err := r.readRawLine()
	if errors.Is(err, io.EOF) {
		return nil, r.damagedPiece("line %d: the piece ends here, without its last line", r.read+2)
	}
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(line, []byte(footerStart)) {
		return nil, r.readFooter(line)
	}
	r.digestLine(line)
	r.read++
	return line, nil
}

// readFooter checks the last line and returns io.EOF.
func (r *pieceReader) readFooter(line []byte) error {
	end, err := parseFooter(line)
	if err != nil {
		return r.damagedPiece("line %d is malformed", r.read+2)
	}
	if end.SHA256 != id.Hash(r.sum.Sum(nil)) || end.Lines != r.read {
		return r.damagedPiece("its SHA-256 is %s, but its last line contains %s", hex.EncodeToString(r.sum.Sum(nil)),
			end.SHA256)
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return r.damagedPiece("line %d follows the last line", r.read+3)
	}
	if r.keyring != nil {
		if err := end.checkAuthenticator(r.keyring, r.path); err != nil {
			return err
		}
	}
	r.end = end
	return io.EOF
}

// parseFooter accepts exactly the output of sealPiece.
func parseFooter(line []byte) (sum, error) {
	var f footer
	if err := json.Unmarshal(line, &f, json.RejectUnknownMembers(true)); err != nil {
		return sum{}, err
	}
	if same, err := json.Marshal(f); err != nil || !bytes.Equal(same, line) {
		return sum{}, errors.New("not in canonical form")
	}
	return f.End, nil
}

// readRawLine returns a line without its line feed, or io.EOF if there is no complete line.
func (r *pieceReader) readRawLine() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if err == nil {
		return line[:len(line)-1], nil
	}
	for r.long = r.long[:0]; errors.Is(err, bufio.ErrBufferFull); {
		if r.long = append(r.long, line...); len(r.long) > maxLine {
			return nil, r.damagedPiece("line %d is too long", r.read+2)
		}
		line, err = r.in.ReadSlice('\n')
	}
	if err != nil {
		return nil, err
	}
	r.long = append(r.long, line...)
	return r.long[:len(r.long)-1], nil
}

func (r *pieceReader) close() { r.file.Close() }

func (r *pieceReader) damagedPiece(format string, args ...any) error {
	return Damagedf("%s: %w", r.path, fmt.Errorf(format, args...))
}
